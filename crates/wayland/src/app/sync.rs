//! Which of the program's `wl_display.sync`s the compositor must answer.
//!
//! Invariant: a `sync` is answered after everything that the answer may depend on.

use std::collections::VecDeque;

/// Which of the program's `sync`s had to be forwarded.
#[derive(Debug, Default)]
pub(crate) struct Sync {
    /// Requests so far to which the compositor owes an answer.
    owed: u64,
    /// Of these, how many are certainly answered.
    answered: u64,
    /// Forwarded callbacks in order, each with `owed` when it was sent.
    waiting: VecDeque<(u32, u64)>,
}

impl Sync {
    /// A request was sent to which the compositor owes an answer.
    pub(crate) fn owe(&mut self) {
        self.owed += 1;
    }

    /// Whether nothing that the answer depends on is outstanding.
    pub(crate) fn may_answer_here(&self) -> bool {
        self.waiting.is_empty() && self.answered == self.owed
    }

    /// The callback `id` is forwarded.
    pub(crate) fn forward(&mut self, id: u32) {
        self.waiting.push_back((id, self.owed));
    }

    /// The display is gone: the callbacks that it has not answered.
    pub(crate) fn part(&mut self) -> Vec<u32> {
        std::mem::take(self).waiting.into_iter().map(|(callback, _)| callback).collect()
    }

    /// The compositor answered the callback `id`, if it was a forwarded one.
    pub(crate) fn on_done(&mut self, id: u32) {
        if let Some(position) = self.waiting.iter().position(|(callback, _)| *callback == id) {
            let (_, owed) = self.waiting[position];
            self.answered = self.answered.max(owed);
            self.waiting.drain(..=position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_is_local_until_an_answer_is_owed() {
        let mut sync = Sync::default();
        assert!(sync.may_answer_here());
        sync.owe();
        assert!(!sync.may_answer_here());
        sync.forward(9);
        sync.owe();
        sync.on_done(9);
        assert!(!sync.may_answer_here(), "the second answer is still owed");
        sync.forward(10);
        sync.on_done(10);
        assert!(sync.may_answer_here());
    }
}
