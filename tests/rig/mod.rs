//! The rig: real compositors without a screen, real programs, keyboards, pointers and an ssh server.
//!
//! Everything runs as an unprivileged user in a directory of its own ([`Home`]), is awaited by polling up to a deadline
//! ([`until`]), and is ended with all its descendants when its owner is dropped, in a failing test too. A program that
//! is missing fails the test: `scripts/setup` installs them all.

mod chromium;
mod device;
mod ferry;
mod firefox;
mod home;
mod input_method;
mod keyboard;
mod picture;
mod pointer;
mod program;
mod sshd;
mod sway;
mod weston;

use std::time::{Duration, Instant};

pub(crate) use chromium::{Chromium, TabMemory};
pub(crate) use ferry::{Halves, Pair, Session, attach, attach_to, free_address, host, sockets};
pub(crate) use firefox::Firefox;
pub(crate) use home::{Home, processes, unprivileged};
pub(crate) use input_method::InputMethod;
pub(crate) use keyboard::Keyboard;
pub(crate) use picture::Picture;
pub(crate) use pointer::Pointer;
pub(crate) use program::{Launch, Program};
pub(crate) use sshd::{Network, Sshd};
pub(crate) use sway::Sway;
pub(crate) use weston::Weston;

/// A compositor that programs can be shown on.
pub(crate) trait Compositor {
    /// Where its programs run.
    fn home(&self) -> &Home;

    /// The name of its socket in the runtime directory.
    fn display(&self) -> &str;

    /// What its output shows now, without the pointer.
    fn screenshot(&self) -> Picture;

    /// Prepares a program that shows itself on this compositor.
    fn launch(&self, program: &str) -> Launch {
        self.home().launch(program).env("WAYLAND_DISPLAY", self.display())
    }

    /// The picture that does not change any more.
    fn settled(&self) -> Picture {
        let (mut last, mut equal) = (self.screenshot(), 0);
        until("the picture to come to rest", || {
            let now = self.screenshot();
            equal = if now == last { equal + 1 } else { 0 };
            last = now;
            (equal == AT_REST).then(|| last.clone())
        })
    }

    /// Waits until the output shows `expected`; keeps both pictures when it never does.
    fn shows(&self, what: &str, expected: &Picture) {
        let start = Instant::now();
        let mut now = self.screenshot();
        while now != *expected {
            if start.elapsed() > PATIENCE {
                let place = expected.keep(&format!("{what}-expected"));
                now.keep(&format!("{what}-shown"));
                panic!("{what} differs: {}; pictures in {place}", expected.difference(&now));
            }
            std::thread::sleep(POLL);
            now = self.screenshot();
        }
    }
}

/// Polls until `probe` has an answer; a test that waits longer than [`PATIENCE`] fails.
pub(crate) fn until<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    poll(PATIENCE, probe).unwrap_or_else(|| panic!("waited in vain for {what}"))
}

/// Polls until `probe` has an answer, but not longer than `limit`.
pub(crate) fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if start.elapsed() > limit {
            return None;
        }
        std::thread::sleep(POLL);
    }
}

/// Long enough for a busy two-core machine; a green run never waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The only pause in the rig, between two looks.
const POLL: Duration = Duration::from_millis(20);

/// Equal screenshots in a row that count as rest.
const AT_REST: u32 = 6;
