//! The commits of one surface that are applied here and have not left.
//!
//! One that waits for its turn, and one that waits for its parent's; later ones are folded into these. Folds nothing
//! itself.

use wayferry_proto::Time;

use super::unsent::Unsent;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Commits of a synchronised subsurface that wait for the parent's.
    cached: Option<Unsent>,
    unsent: Option<Unsent>,
    /// When the first of the commits in `unsent` came.
    since: Time,
}

impl Waiting {
    /// What waits for the parent's commit.
    pub(super) fn cached(&self) -> Option<&Unsent> {
        self.cached.as_ref()
    }

    /// As [`Self::cached`].
    pub(super) fn cached_mut(&mut self) -> Option<&mut Unsent> {
        self.cached.as_mut()
    }

    pub(super) fn take_cached(&mut self) -> Option<Unsent> {
        self.cached.take()
    }

    /// The first that waits for the parent's commit.
    pub(super) fn cache(&mut self, unsent: Unsent) {
        self.cached = Some(unsent);
    }

    /// What waits for its turn.
    pub(super) fn unsent(&self) -> Option<&Unsent> {
        self.unsent.as_ref()
    }

    /// As [`Self::unsent`].
    pub(super) fn unsent_mut(&mut self) -> Option<&mut Unsent> {
        self.unsent.as_mut()
    }

    pub(super) fn take_unsent(&mut self) -> Option<Unsent> {
        self.unsent.take()
    }

    /// The first that waits for its turn.
    pub(super) fn line_up(&mut self, unsent: Unsent, now: Time) {
        (self.unsent, self.since) = (Some(unsent), now);
    }

    /// What another display must be shown first: it waits for its turn, or for the parent's commit.
    pub(super) fn stow(&mut self, unsent: Unsent, is_synchronised: bool, now: Time) {
        *(if is_synchronised { &mut self.cached } else { &mut self.unsent }) = Some(unsent);
        self.since = now;
    }

    /// Since when its first commit waits for its turn.
    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// All of them, the newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Unsent> {
        self.cached.iter().chain(&self.unsent)
    }

    /// As [`Self::iter`].
    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Unsent> {
        self.cached.iter_mut().chain(&mut self.unsent)
    }

    /// All of them, the oldest first.
    pub(super) fn into_oldest_first(self) -> impl Iterator<Item = Unsent> {
        self.unsent.into_iter().chain(self.cached)
    }

    /// The display is gone. Gives the commit that it was not sent.
    pub(super) fn part(&mut self) -> Option<Unsent> {
        self.cached.iter_mut().for_each(Unsent::part);
        self.unsent.take()
    }
}
