//! Pings of the compositor: this side answers them, unless the program does not answer the app side's.
//!
//! Sends nothing itself. Invariant: each object has at most one ping that waits, the newest; the compositor asks again
//! only once it has been answered.

/// Pings that wait.
#[derive(Debug, Default)]
pub(super) struct Pings {
    /// The program does not answer its pings.
    hangs: bool,
    /// Not answered because of that: `xdg_wm_base` id and serial.
    unanswered: Vec<(u32, u32)>,
}

impl Pings {
    /// A ping has come. Keeps it while the program hangs, and says whether it did; else it is to be answered.
    pub(super) fn hold(&mut self, id: u32, serial: u32) -> bool {
        if self.hangs {
            self.unanswered.retain(|(other, _)| *other != id);
            self.unanswered.push((id, serial));
        }
        self.hangs
    }

    /// Whether the program hangs from now on; gives the pings that are to be answered now.
    pub(super) fn set_hangs(&mut self, hangs: bool) -> Vec<(u32, u32)> {
        self.hangs = hangs;
        if hangs { Vec::new() } else { std::mem::take(&mut self.unanswered) }
    }
}
