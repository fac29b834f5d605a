//! Copies what one descriptor gives to another, on a thread of its own.
//!
//! For descriptors that may block, as those of a user's terminal: nothing else waits for them. Invariant: both ends are
//! given up when either is over.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

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

/// Wraps what the system refuses.
pub(crate) fn system(doing: &'static str) -> impl Fn(io::Error) -> SessionError {
    move |source| SessionError::System { doing, source }
}
