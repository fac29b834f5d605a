//! A connection to a browser, in the clear or in TLS, with a time by which it has to be over, and a number of bytes
//! that may be read.
//!
//! Invariant: no read and no write takes longer than that, and none reads more.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustls::{ServerConnection, StreamOwned};

use super::caller;

/// What a browser is heard and answered on.
pub(super) trait Wire: Read + Write {
    /// What it is on.
    fn timed(&self) -> &Timed;

    /// The same, to be changed.
    fn timed_mut(&mut self) -> &mut Timed;

    /// Whether the caller is a program of this user.
    fn is_own(&self) -> bool;

    /// Ends it so that what was said arrives.
    fn end(self) -> io::Result<()>;
}

/// A connection whose reads and writes end in time, all together.
pub(super) struct Timed {
    pub(super) stream: TcpStream,
    pub(super) until: Instant,
    /// Bytes that may still be read. Without any, a read would block.
    pub(super) budget: usize,
}

impl Timed {
    /// One of which any number of bytes may be read until then.
    pub(super) fn new(stream: TcpStream, until: Instant) -> Self {
        Self { stream, until, budget: usize::MAX }
    }

    /// How long it may still take.
    pub(super) fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(self.budget);
        if most == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.stream.set_read_timeout(Some(self.left()?))?;
        let count = self.stream.read(&mut bytes[..most])?;
        self.budget -= count;
        Ok(count)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Wire for Timed {
    fn timed(&self) -> &Timed {
        self
    }

    fn timed_mut(&mut self) -> &mut Timed {
        self
    }

    fn is_own(&self) -> bool {
        caller::is_own(&self.stream)
    }

    /// What the caller still says must not reset the connection.
    fn end(mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        (self.until, self.budget) = (Instant::now() + LAST_WORDS, usize::MAX);
        let mut piece = [0; 1024];
        for _ in 0..LAST_PIECES {
            if self.read(&mut piece)? == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl Wire for StreamOwned<ServerConnection, Timed> {
    fn timed(&self) -> &Timed {
        &self.sock
    }

    fn timed_mut(&mut self) -> &mut Timed {
        &mut self.sock
    }

    fn is_own(&self) -> bool {
        false
    }

    fn end(mut self) -> io::Result<()> {
        self.conn.send_close_notify();
        self.flush()?;
        self.sock.end()
    }
}

/// How long a caller may take to hear the end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often it is heard meanwhile.
const LAST_PIECES: usize = 64;
