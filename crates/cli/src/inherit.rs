//! Descriptors that another process left open for us, named by number in the environment.
//!
//! Invariant: each is taken once, and is closed on exec afterwards, so that no program inherits it.

#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::FdFlags;

use crate::error::{Error, SessionError};

/// The descriptors whose numbers stand in these environment variables. To be called before this process opens any
/// descriptor of its own.
///
/// # Errors
/// [`Error::Usage`] when a variable is not set, its value is not the number of an open descriptor, or two name the
/// same.
pub(crate) fn take_fds<const N: usize>(names: [&'static str; N]) -> Result<[OwnedFd; N], Error> {
    let mut numbers = [0; N];
    for (index, name) in names.iter().enumerate() {
        let number = number(name)?;
        if numbers[..index].contains(&number) {
            return Err(Error::usage(format!("{name} names a descriptor that is in use for something else")));
        }
        numbers[index] = number;
    }
    let fds = numbers.map(|number| {
        // SAFETY: the descriptor is open, as just seen, and nothing else here owns it: it is none of the standard
        // three, the numbers differ, and this process has not opened any yet.
        unsafe { OwnedFd::from_raw_fd(number) }
    });
    fds.iter().try_for_each(close_on_exec)?;
    Ok(fds)
}

/// The descriptor of this number, which the caller of this program has opened. As for [`take_fds`], to be called first.
///
/// # Errors
/// [`Error::Usage`] when it is not open, or is one of the standard three.
pub(crate) fn take(number: i32) -> Result<OwnedFd, Error> {
    if !is_open(number) {
        return Err(Error::usage(format!(
            "descriptor {number} is not open, or is one of the standard three"
        )));
    }
    // SAFETY: the descriptor is open, as just seen, and nothing else here owns it: it is none of the standard three,
    // and this process has not opened any yet.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    close_on_exec(&fd)?;
    Ok(fd)
}

fn close_on_exec(fd: &OwnedFd) -> Result<(), SessionError> {
    rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)
        .map_err(|error| SessionError::System { doing: "fcntl", source: error.into() })
}

fn is_open(number: i32) -> bool {
    number >= 3 && std::path::Path::new(&format!("/proc/self/fd/{number}")).exists()
}

fn number(name: &str) -> Result<i32, Error> {
    let usage = |what: &str| Error::usage(format!("{name} {what}"));
    let value = std::env::var(name).map_err(|_| usage("is not set"))?;
    let number: i32 = value.parse().map_err(|_| usage("is not a number"))?;
    if !is_open(number) {
        return Err(usage("is not the number of an open descriptor"));
    }
    Ok(number)
}
