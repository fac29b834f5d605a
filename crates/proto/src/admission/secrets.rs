//! What lets a display in: secrets that were given out, and what is known of those that were let in with one.
//!
//! It knows no candidates and no places. Invariant: a secret lets in one display and no other, and what is known of a
//! display is known as one [`Role`]; once that is forgotten, the display needs another secret.

use std::time::Duration;

use crate::{Secret, Time};

/// What a display may do that is let in. The secret that it shows decides, and none becomes more by what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It takes the place of the one that is there.
    Active,
    /// It is a viewer.
    View,
}

/// The secrets that are good, and who may come again. `C` is a certificate.
#[derive(Debug)]
pub struct Secrets<C> {
    given: Vec<Given<C>>,
    /// The display that is here.
    active: Option<Known<C>>,
    /// Viewers.
    viewers: Vec<Known<C>>,
    /// One that no display has: a session that accepts none would accept every display.
    reserved: Secret,
}

/// A secret that was given out.
#[derive(Debug, Clone, Copy)]
struct Given<C> {
    secret: Secret,
    role: Role,
    /// Until when it is good.
    until: Time,
    /// For the display with this certificate, which was met. A printed ticket is for anybody who comes with it.
    met: Option<C>,
}

/// By what a display is known that was let in.
#[derive(Debug, Clone, Copy)]
struct Known<C> {
    /// With this it may come again.
    incarnation: Option<Secret>,
    certificate: C,
}

/// What a display shows to be let in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Credentials<C> {
    pub(super) secret: Option<Secret>,
    pub(super) incarnation: Option<Secret>,
    pub(super) certificate: C,
    /// What it asks for, which may be less than its secret is good for.
    pub(super) wish: Role,
}

impl<C> Given<C> {
    fn is_good(&self, now: Time) -> bool {
        now < self.until
    }
}

impl<C> Known<C> {
    fn shows(&self, incarnation: Option<Secret>) -> bool {
        incarnation.is_some() && self.incarnation == incarnation
    }
}

impl<C: Copy + Eq> Secrets<C> {
    pub(super) fn new(reserved: Secret) -> Self {
        Self { given: Vec::new(), active: None, viewers: Vec::new(), reserved }
    }

    /// A secret to be printed is good until then. Of more than [`MAX_GIVEN`] the oldest is forgotten.
    pub fn print(&mut self, role: Role, secret: Secret, until: Time) {
        self.give(Given { secret, role, until, met: None });
    }

    /// A secret for the display with this certificate, which was met, is good for [`INVITED`].
    pub fn invite(&mut self, role: Role, secret: Secret, certificate: C, now: Time) {
        // A display that comes again leaves one that it does not need: the good ones must not make room for it.
        self.given.retain(|given| given.is_good(now));
        self.give(Given { secret, role, until: now + INVITED, met: Some(certificate) });
    }

    fn give(&mut self, given: Given<C>) {
        if self.given.len() >= MAX_GIVEN {
            self.given.remove(0);
        }
        self.given.push(given);
    }

    /// Printed secrets are good no more.
    pub fn revoke_printed(&mut self) {
        self.given.retain(|given| given.met.is_some());
    }

    /// Whether there is an active display, or one that may come again as such.
    pub fn knows_active(&self) -> bool {
        self.active.is_some()
    }

    /// The active display was sent away, or has left for good: it cannot come again. Gives its certificate, if no other
    /// has that.
    #[must_use = "the certificate is good no more"]
    pub fn forget_active(&mut self) -> Option<C> {
        let known = self.active.take()?;
        self.forget(&known)
    }

    /// The viewers were sent away: none of them can come again. Gives certificates as [`Self::forget_active`].
    #[must_use = "the certificates are good no more"]
    pub fn forget_viewers(&mut self) -> Vec<C> {
        let gone = std::mem::take(&mut self.viewers);
        gone.iter().filter_map(|known| self.forget(known)).collect()
    }

    /// A viewer has left for good. Gives its certificate as [`Self::forget_active`].
    #[must_use = "the certificate is good no more"]
    pub fn forget_viewer(&mut self, incarnation: Secret) -> Option<C> {
        let index = self.viewers.iter().position(|viewer| viewer.shows(Some(incarnation)))?;
        let gone = self.viewers.remove(index);
        self.forget(&gone)
    }

    /// What was given to a display that is not known any more goes with it.
    fn forget(&mut self, gone: &Known<C>) -> Option<C> {
        if self.is_known(gone.certificate) {
            return None;
        }
        self.given.retain(|given| given.met != Some(gone.certificate));
        Some(gone.certificate)
    }

    /// Whether a display with this certificate was let in, and may come again.
    pub fn is_known(&self, certificate: C) -> bool {
        self.known().any(|known| known.certificate == certificate)
    }

    fn known(&self) -> impl Iterator<Item = &Known<C>> {
        self.active.iter().chain(&self.viewers)
    }

    /// Secrets that are remembered, and displays that may come again; never more than [`MAX_GIVEN`] and [`MAX_VIEWERS`]
    /// + 1.
    pub fn len(&self) -> (usize, usize) {
        (self.given.len(), self.known().count())
    }

    /// Secrets and incarnations that are accepted now; never none.
    pub(super) fn accepted(&self, now: Time) -> (Vec<Secret>, Vec<Secret>) {
        let secrets = self.given.iter().filter(|given| given.is_good(now)).map(|given| given.secret);
        let incarnations = self.known().filter_map(|known| known.incarnation);
        (secrets.collect(), std::iter::once(self.reserved).chain(incarnations).collect())
    }

    /// Lets a display in if what it shows is good now, and as what; it may come again as that. With the certificate of
    /// one that cannot come again for it, as [`Self::forget_active`] gives it.
    pub(super) fn admit(&mut self, shown: &Credentials<C>, now: Time) -> Option<(Role, Option<C>)> {
        let index = shown.secret.and_then(|secret| self.position(secret, now));
        let role = index.map(|index| self.given[index].role).or_else(|| self.role_of(shown.incarnation))?;
        let role = if shown.wish == Role::View { Role::View } else { role };
        // Known as both, it would be forgotten as one of them, and come again as the other.
        let is_active = self.active.as_ref().is_some_and(|active| active.shows(shown.incarnation));
        if role == Role::View && is_active {
            return None;
        }
        // It is good no more.
        index.map(|index| self.given.remove(index));
        let known = Known { incarnation: shown.incarnation, certificate: shown.certificate };
        Some((role, self.remember(role, known)))
    }

    /// One that it replaces cannot come again.
    fn remember(&mut self, role: Role, known: Known<C>) -> Option<C> {
        self.viewers.retain(|viewer| !viewer.shows(known.incarnation));
        let gone = match role {
            Role::Active => self.active.replace(known),
            Role::View => {
                self.viewers.push(known);
                (self.viewers.len() > MAX_VIEWERS).then(|| self.viewers.remove(0))
            }
        };
        gone.and_then(|gone| self.forget(&gone))
    }

    /// Where a secret is that is good.
    fn position(&self, shown: Secret, now: Time) -> Option<usize> {
        self.given.iter().position(|given| given.secret == shown && given.is_good(now))
    }

    /// As what a display comes again.
    fn role_of(&self, incarnation: Option<Secret>) -> Option<Role> {
        if self.viewers.iter().any(|viewer| viewer.shows(incarnation)) {
            return Some(Role::View);
        }
        self.active.as_ref().is_some_and(|active| active.shows(incarnation)).then_some(Role::Active)
    }
}

/// Secrets that are good at once; the oldest is forgotten first.
pub const MAX_GIVEN: usize = 16;
/// Viewers that may come again; the oldest is forgotten first.
pub const MAX_VIEWERS: usize = 16;
/// How long a display that was met may take to come.
pub const INVITED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Time = Time::from_millis(3_600_000);

    fn secret(byte: u8) -> Secret {
        Secret::from([byte; 32])
    }

    fn secrets() -> Secrets<u8> {
        Secrets::new(secret(0))
    }

    fn shown(secret: Option<Secret>, run: u8) -> Credentials<u8> {
        Credentials { secret, incarnation: Some(self::secret(run)), certificate: run, wish: Role::Active }
    }

    #[test]
    fn a_secret_for_viewing_is_good_for_that_alone_and_once() {
        let mut secrets = secrets();
        secrets.print(Role::View, secret(1), LATER);
        secrets.print(Role::Active, secret(2), LATER);
        let mut come = |byte, run| secrets.admit(&shown(Some(secret(byte)), run), Time::ZERO);
        let view = Some((Role::View, None));
        assert_eq!([come(1, 11), come(1, 12)], [view, None]);
        assert_eq!([come(2, 13), come(2, 14)], [Some((Role::Active, None)), None]);
    }

    #[test]
    fn a_viewer_comes_again_as_that_and_nothing_else() {
        let mut secrets = secrets();
        let known = |byte| Known { incarnation: Some(secret(byte)), certificate: byte };
        secrets.active = Some(known(3));
        secrets.viewers.push(known(4));
        let comes = [3, 4, 5].map(|byte| secrets.role_of(Some(secret(byte))));
        assert_eq!(comes, [Some(Role::Active), Some(Role::View), None]);
        let shows = [3, 4].map(|byte| secrets.admit(&shown(Some(secret(byte)), 5), Time::ZERO));
        assert_eq!(shows, [None, None], "it is no secret of another display");
    }

    #[test]
    fn regression_who_comes_again_and_again_uses_no_place_of_a_ticket() {
        let mut secrets = secrets();
        secrets.print(Role::View, secret(1), LATER);
        for round in 0..40 {
            let now = Time::from_millis(round * 61_000);
            secrets.invite(Role::Active, secret(100 + round as u8), 2, now);
        }
        assert_eq!(secrets.admit(&shown(Some(secret(1)), 9), Time::ZERO), Some((Role::View, None)));
    }

    /// It had asked to view with what it comes again by, and was known as both.
    #[test]
    fn regression_a_display_that_was_sent_away_comes_again_as_a_view() {
        let mut secrets = secrets();
        for byte in [1, 2] {
            secrets.print(Role::Active, secret(byte), LATER);
        }
        assert_eq!(secrets.admit(&shown(Some(secret(1)), 9), Time::ZERO), Some((Role::Active, None)));
        for also in [None, Some(secret(2))] {
            let wish = Credentials { wish: Role::View, ..shown(also, 9) };
            assert_eq!(secrets.admit(&wish, Time::ZERO), None);
        }
        assert_eq!(secrets.forget_active(), Some(9));
        assert_eq!(secrets.admit(&shown(None, 9), Time::ZERO), None);
    }

    /// It came while the secret was good, and said nothing for a while.
    #[test]
    fn regression_a_secret_is_good_after_it_has_expired() {
        let mut secrets = secrets();
        secrets.print(Role::Active, secret(1), LATER);
        assert_eq!(secrets.accepted(Time::ZERO).0, [secret(1)]);
        assert_eq!(secrets.admit(&shown(Some(secret(1)), 9), LATER), None);
    }
}
