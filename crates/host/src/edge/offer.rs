//! Where a running side gives its figures: a Unix socket that `wayferry info` finds by its name.
//!
//! A caller gets one document and the end of the stream; nothing is read. The sockets of all sides are in one
//! directory of mode 0700, so only their user can ask. Where there is no XDG_RUNTIME_DIR, nothing is offered.
//! Invariant: nothing here ends or delays a session: a socket that cannot be made is a notice, a caller who does not
//! take the document at once loses it.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::SendFlags;
use serde_json::Value;
use wayferry_proto::{Side, Time};

use super::part::{Hub, Part};
use super::socket::{Listener, RuntimeDir};
use super::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// The socket of one side.
#[derive(Debug)]
pub struct Offer {
    listener: Listener,
    rests_until: Time,
    caller: Option<OwnedFd>,
    // Dropped after the socket in it.
    _directory: SharedDir,
}

impl Offer {
    /// The socket of this process for one side. `None` where it has no place; a failure is reported.
    pub fn new(side: Side, reporter: &Reporter) -> Option<Self> {
        let directory = directory()?;
        let name = format!("{}-{}", role(side), std::process::id());
        let made = Self::at(&directory, &name);
        made.map_err(|error| {
            let reason = format!("`{}`: {error}", directory.display());
            reporter.report(SessionEvent::InfoUnavailable { reason });
        })
        .ok()
    }

    fn at(directory: &Path, name: &str) -> io::Result<Self> {
        let (shared, listener) = listen(directory, name)?;
        Ok(Self { listener, rests_until: Time::ZERO, caller: None, _directory: shared })
    }

    /// A caller of this turn, to be answered with [`answer`].
    pub fn poll_caller(&mut self) -> Option<OwnedFd> {
        self.caller.take()
    }
}

/// Sends a caller the document.
pub fn answer(caller: &OwnedFd, document: &Value) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // The caller may have gone, which is no trouble of this session.
    let _ = rustix::net::send(caller, document.to_string().as_bytes(), flags);
}

impl Part for Offer {
    /// Accepts callers, unless it rests. That needs no deadline: pings wake the loop every second.
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        if now >= self.rests_until {
            interests.read(&self.listener);
        }
    }

    fn turn(&mut self, now: Time, _hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        if ready.has(&self.listener) {
            match self.listener.accept() {
                Ok(caller) => self.caller = caller,
                // Most likely no descriptors are left; the caller waits in the queue.
                Err(_) => self.rests_until = now + REST,
            }
        }
        Ok(())
    }
}

/// Where all sides of this user have their sockets, whether or not it exists.
pub fn directory() -> Option<PathBuf> {
    Some(RuntimeDir::of_user()?.join("wayferry"))
}

/// What a side is called in names and documents.
pub fn role(side: Side) -> &'static str {
    match side {
        Side::App => "app",
        Side::Display => "display",
    }
}

/// Whether a file of this name is a side's socket.
pub fn is_name(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(side, pid)| matches!(side, "app" | "display") && digits(pid))
}

/// Whether it is a directory of this user's that no other user can enter.
pub fn is_private(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|metadata| {
        metadata.is_dir()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && metadata.mode() & 0o077 == 0
    })
}

/// A socket of this name in the directory of all sides.
pub(super) fn listen(directory: &Path, name: &str) -> io::Result<(SharedDir, Listener)> {
    listen_with(directory, || Listener::appearing(directory, name))
}

fn listen_with<L>(directory: &Path, mut appear: impl FnMut() -> io::Result<L>) -> io::Result<(SharedDir, L)> {
    let mut attempts = 0;
    loop {
        let shared = SharedDir::new(directory)?;
        attempts += 1;
        match appear() {
            // The last side that left has just taken the directory away.
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS => {}
            listener => return Ok((shared, listener?)),
        }
    }
}

/// The directory of all sides; goes with the last.
#[derive(Debug)]
pub(super) struct SharedDir(PathBuf);

impl SharedDir {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if is_private(path) {
            Ok(Self(path.to_owned()))
        } else {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a private directory of this user"))
        }
    }
}

impl Drop for SharedDir {
    fn drop(&mut self) {
        // Fails while another side's socket is in it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// How often a directory that vanishes is made again.
const ATTEMPTS: u32 = 5;
/// How long callers wait when no descriptors are left.
const REST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use serde_json::json;

    use super::super::part::alone;
    use super::*;

    #[test]
    fn a_caller_gets_one_document_and_the_end() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        let mut offer = Offer::at(&directory, "app-1").expect("an offer");
        let mut caller = UnixStream::connect(directory.join("app-1")).expect("it listens");
        let (mut hub, _) = alone::base();
        alone::turn(&mut offer, Time::ZERO, &mut hub);
        answer(&offer.poll_caller().expect("somebody asked"), &json!({ "role": "app" }));
        let mut text = String::new();
        caller.read_to_string(&mut text).expect("the document");
        assert_eq!(text, r#"{"role":"app"}"#);
        alone::turn(&mut offer, Time::ZERO, &mut hub);
        assert!(offer.poll_caller().is_none(), "no caller asked");
    }

    #[test]
    fn a_caller_who_has_gone_does_no_harm() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        let mut offer = Offer::at(&directory, "app-1").expect("an offer");
        drop(UnixStream::connect(directory.join("app-1")).expect("it listens"));
        let (mut hub, _) = alone::base();
        assert_eq!(alone::turn(&mut offer, Time::ZERO, &mut hub), 1);
        answer(&offer.poll_caller().expect("somebody asked"), &json!({}));
    }

    #[test]
    fn the_directory_goes_with_the_last_side() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        let first = Offer::at(&directory, "app-1").expect("an offer");
        let second = Offer::at(&directory, "display-2").expect("another");
        assert!(is_private(&directory));
        drop(first);
        assert!(!directory.join("app-1").exists() && directory.join("display-2").exists());
        drop(second);
        assert!(!directory.exists());
    }

    #[test]
    fn a_directory_that_the_last_side_takes_away_meanwhile_is_made_again() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        for vanishes in [ATTEMPTS - 1, ATTEMPTS] {
            let mut left = vanishes;
            let made = listen_with(&directory, || {
                if left > 0 {
                    left -= 1;
                    fs::remove_dir(&directory).expect("it is empty");
                }
                Listener::appearing(&directory, "orders-1")
            });
            assert_eq!(made.is_ok(), vanishes < ATTEMPTS, "{vanishes}");
        }
    }

    #[test]
    fn what_a_dead_side_left_is_replaced() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        let keeps = Offer::at(&directory, "app-1").expect("an offer");
        for name in ["display-2", ".display-2"] {
            drop(std::os::unix::net::UnixListener::bind(directory.join(name)).expect("a stale socket"));
        }
        let _offer = Offer::at(&directory, "display-2").expect("an offer");
        assert!(UnixStream::connect(directory.join("display-2")).is_ok());
        drop(keeps);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        fs::create_dir(&directory).expect("made");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("opened");
        let refused = Offer::at(&directory, "app-1").expect_err("open to all");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(directory.exists(), "it was not ours to remove");
    }

    #[test]
    fn names_of_sides() {
        for name in ["app-1", "display-4194304"] {
            assert!(is_name(name), "{name}");
        }
        for name in [".app-1", "app-", "app-1x", "app", "other-1", "app-1-2"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
