//! Copies what one descriptor gives to another, on a thread of its own.
//!
//! For descriptors that may block, as those of a user's terminal: nothing else waits for them. Invariant: both ends are
//! given up when either is over, but for a program's output, which is read to its end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::error::{Error, SessionError};

/// Copies on a thread of its own until one end is over; what is returned is readable then.
pub(crate) fn copy(
    from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
) -> Result<UnixStream, Error> {
    pass_on(from, to, false)
}

/// The same for what is read even without a taker: a program must not wait for who reads what it writes.
pub(crate) fn output(from: OwnedFd, to: impl Write + Send + 'static) -> Result<UnixStream, Error> {
    pass_on(File::from(from), to, true)
}

fn pass_on(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    to_the_end: bool,
) -> Result<UnixStream, Error> {
    let (over, running) = UnixStream::pair().map_err(system("making a socket"))?;
    let work = move || {
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let taken = to.write_all(&piece[..count]).and_then(|()| to.flush());
            if taken.is_err() && !to_the_end {
                break;
            }
        }
        drop((from, to, running));
    };
    std::thread::Builder::new().spawn(work).map_err(system("starting a thread"))?;
    Ok(over)
}

/// A descriptor that is waited for. One that others have too may not block by itself: ssh makes its stdio so, and that
/// of all who share it.
pub(crate) struct Patient(OwnedFd);

impl Patient {
    /// Of one that stays open.
    pub(crate) fn of(fd: impl AsFd) -> Result<Self, SessionError> {
        fd.as_fd().try_clone_to_owned().map(Self).map_err(system("dup"))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.0, bytes) {
                Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)),
                Err(Errno::INTR) => {}
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Wraps what the system refuses.
pub(crate) fn system(doing: &'static str) -> impl Fn(io::Error) -> SessionError {
    move |source| SessionError::System { doing, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ssh has made the user's stdout one that does not block.
    #[test]
    fn regression_what_a_slow_reader_does_not_take_at_once_is_lost() {
        let ((give, take), (out, slow)) =
            (UnixStream::pair().expect("a pair"), UnixStream::pair().expect("a pair"));
        out.set_nonblocking(true).expect("it can be so");
        let over = output(take.into(), Patient::of(&out).expect("a descriptor")).expect("a thread");
        drop(out);
        let said: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_ne_bytes).collect();
        let writer = {
            let (mut give, said) = (give, said.clone());
            std::thread::spawn(move || give.write_all(&said))
        };
        let mut heard = Vec::new();
        (&slow).read_to_end(&mut heard).expect("it is there");
        assert!(heard == said, "{} of {} bytes", heard.len(), said.len());
        writer.join().expect("it ends").expect("it is taken");
        drop(over);
    }
}
