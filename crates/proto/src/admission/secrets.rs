//! What lets a display in: secrets that were given out, and what is known of those that were let in with one.
//!
//! It knows no candidates and no places. Invariant: a secret lets in one display and no other, and what is known of a
//! display is known as one [`Role`]; once that is forgotten, the display needs another secret.

use std::time::Duration;

use super::links::{Link, LinkId, Links, TooManyLinks};
use crate::{Digest, Secret, Time};

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
    links: Links,
    /// The display that is here.
    active: Option<Known<C>>,
    /// How many have come as that.
    stays: u64,
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

/// Which active display is meant: the one that was let in last, or one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay(u64);

/// By what a display is known that was let in.
#[derive(Debug, Clone, Copy)]
struct Known<C> {
    /// With this it may come again. A viewer without is not remembered.
    incarnation: Option<Secret>,
    certificate: C,
    /// The link by which it came.
    link: Option<LinkId>,
}

/// As what a display is let in, and by which link, if by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it may do.
    pub role: Role,
    /// By which link it came.
    pub link: Option<LinkId>,
}

impl From<Role> for Entry {
    /// Without a link.
    fn from(role: Role) -> Self {
        Self { role, link: None }
    }
}

/// What became of links that were revoked.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "certificates are good no more, and who came by them has to leave"]
pub struct Revoked<C> {
    /// There was a good one, or somebody who may come again by having come by it, or is the active display.
    pub any: bool,
    /// The active display came by it.
    pub active: bool,
    /// Certificates as [`Secrets::forget_active`] gives them.
    pub gone: Vec<C>,
}

/// What is accepted of a display that shows it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// A secret that was given out.
    Given(Secret),
    /// The secret of this link.
    Link(LinkId),
}

/// What a display may show now. The keys are those of the secrets, then those of the links.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) keys: Vec<Key>,
    pub(super) secrets: Vec<Secret>,
    pub(super) digests: Vec<Digest>,
    /// Never none.
    pub(super) incarnations: Vec<Secret>,
}

/// What a display shows to be let in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Credentials<C> {
    pub(super) key: Option<Key>,
    pub(super) incarnation: Option<Secret>,
    pub(super) certificate: C,
    /// What it asks for, which may be less than its secret is good for.
    pub(super) wish: Role,
}

/// What becomes of what a display shows, if it is let in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub(super) entry: Entry,
    /// What is used up by that, if anything.
    spends: Option<Key>,
    /// It does not come again.
    pub(super) is_new: bool,
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
        Self {
            given: Vec::new(),
            links: Links::default(),
            active: None,
            stays: 0,
            viewers: Vec::new(),
            reserved,
        }
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

    /// A link with a secret of this digest lets in so many, as `role` and nothing else, until then.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub fn link(
        &mut self,
        role: Role,
        digest: Digest,
        good: (Time, u8),
        now: Time,
    ) -> Result<LinkId, TooManyLinks> {
        self.links.make(role, digest, good, now)
    }

    /// Until when this secret is good, which was given out; none if it is not.
    pub fn given_until(&self, secret: Secret, now: Time) -> Option<Time> {
        self.given.iter().find(|given| given.secret == secret && given.is_good(now)).map(|given| given.until)
    }

    /// The links that are good, the oldest first.
    pub fn links(&self, now: Time) -> impl Iterator<Item = &Link> {
        self.links.good(now)
    }

    /// The link by which the active display came, if it came by one.
    pub fn active_link(&self) -> Option<LinkId> {
        self.active.as_ref()?.link
    }

    /// That link, or every one, is good no more, and who came by it cannot come again.
    pub fn revoke_links(&mut self, which: Option<LinkId>, now: Time) -> Revoked<C> {
        let by_it = |known: &Known<C>| known.link.is_some_and(|id| which.is_none_or(|which| which == id));
        let was_good = self.links.revoke(which, now);
        let active = self.active.take_if(|active| by_it(active));
        let views: Vec<Known<C>> = self.viewers.extract_if(.., |viewer| by_it(viewer)).collect();
        let (active_gone, any) = (active.is_some(), was_good || active.is_some() || !views.is_empty());
        let gone = active.iter().chain(&views).filter_map(|known| self.forget(known)).collect();
        Revoked { any, active: active_gone, gone }
    }

    /// That link lets no display in any more. Who came by it may come again.
    pub fn close_link(&mut self, id: LinkId, now: Time) {
        self.links.revoke(Some(id), now);
    }

    /// Links for viewing are good no more.
    pub fn revoke_view_links(&mut self, now: Time) {
        let ids: Vec<LinkId> =
            self.links.good(now).filter(|link| link.role == Role::View).map(|link| link.id).collect();
        ids.into_iter().for_each(|id| {
            self.links.revoke(Some(id), now);
        });
    }

    /// The caller's clock stood still for so long, as that of a machine that sleeps: what is good until some time is so
    /// for that much less.
    pub fn shorten(&mut self, by: Duration) {
        self.given.iter_mut().for_each(|given| given.until = given.until - by);
        self.links.shorten(by);
    }

    /// Printed secrets are good no more.
    pub fn revoke_printed(&mut self) {
        self.given.retain(|given| given.met.is_some());
    }

    /// The active display, if there is one, or one that may come again as such.
    pub fn stay(&self) -> Option<Stay> {
        self.active.as_ref().map(|_| Stay(self.stays))
    }

    /// Whether the display with this incarnation may still come again as that. One without cannot come again, and
    /// nothing but its carrier says that it was let in.
    pub fn knows(&self, role: Role, incarnation: Option<Secret>) -> bool {
        incarnation.is_none() || self.entry_of(incarnation).is_some_and(|entry| entry.role == role)
    }

    /// The active display was sent away: it cannot come again. Gives its certificate, if no other has that.
    #[must_use = "the certificate is good no more"]
    pub fn forget_active(&mut self) -> Option<C> {
        let known = self.active.take()?;
        self.forget(&known)
    }

    /// This display has left for good, unless another has come since. As [`Self::forget_active`].
    #[must_use = "the certificate is good no more"]
    pub fn forget_stay(&mut self, stay: Stay) -> Option<C> {
        if self.stay() == Some(stay) { self.forget_active() } else { None }
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

    /// The active display is here no more, unless another has come since. It may come again if it showed by what. As
    /// [`Self::forget_active`].
    #[must_use = "the certificate is good no more"]
    pub fn lose_stay(&mut self, stay: Stay) -> Option<C> {
        let lasts = self.active.as_ref().is_some_and(|active| active.incarnation.is_some());
        if lasts { None } else { self.forget_stay(stay) }
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

    /// What is accepted now.
    pub(super) fn accepted(&self, now: Time) -> Accepted {
        let given = || self.given.iter().filter(|given| given.is_good(now));
        let keys = given().map(|given| Key::Given(given.secret));
        let incarnations = self.known().filter_map(|known| known.incarnation);
        Accepted {
            keys: keys.chain(self.links.good(now).map(|link| Key::Link(link.id))).collect(),
            secrets: given().map(|given| given.secret).collect(),
            digests: self.links.good(now).map(|link| link.digest).collect(),
            incarnations: std::iter::once(self.reserved).chain(incarnations).collect(),
        }
    }

    /// The same where links alone let displays in: no secret that was given out, and no display comes again that has
    /// come otherwise.
    pub(super) fn accepted_of_links(&self, now: Time) -> Accepted {
        let guests = self.known().filter(|known| known.link.is_some());
        Accepted {
            keys: self.links.good(now).map(|link| Key::Link(link.id)).collect(),
            secrets: Vec::new(),
            digests: self.links.good(now).map(|link| link.digest).collect(),
            incarnations: std::iter::once(self.reserved)
                .chain(guests.filter_map(|it| it.incarnation))
                .collect(),
        }
    }

    /// As what a display is to be let in, if what it shows is good now.
    pub(super) fn judge(&self, shown: &Credentials<C>, now: Time) -> Option<Verdict> {
        let opens = shown.key.and_then(|key| Some((key, self.entry_by(key, now)?)));
        let known = self.entry_of(shown.incarnation);
        let entry = opens.map(|(_, entry)| entry).or(known)?;
        // A page by a link for viewing has to say that it only views: it asks for nothing that it would not be given.
        if (entry.role, shown.wish) == (Role::View, Role::Active) && entry.link.is_some() {
            return None;
        }
        let role = if shown.wish == Role::View { Role::View } else { entry.role };
        let entry = Entry { role, ..entry };
        // Known as both, it would be forgotten as one of them, and come again as the other; and no link makes a viewer
        // the display.
        let is_other = known.is_some_and(|known| known.role != role);
        if is_other && (role == Role::View || entry.link.is_some()) {
            return None;
        }
        let spends = match opens.map(|(key, _)| key) {
            // The same display on two ways at once is one.
            Some(Key::Link(id)) if known.and_then(|known| known.link) == Some(id) => None,
            key => key,
        };
        Some(Verdict { entry, spends, is_new: known.is_none() })
    }

    /// Lets a display in as it was judged; it may come again as that. Gives the certificate of one that cannot come
    /// again for it, as [`Self::forget_active`].
    pub(super) fn admit(&mut self, shown: &Credentials<C>, verdict: Verdict) -> Option<C> {
        let Verdict { entry, spends, .. } = verdict;
        match spends {
            // It is good no more.
            Some(Key::Given(secret)) => self.given.retain(|given| given.secret != secret),
            Some(Key::Link(id)) => self.links.spend(id),
            None => {}
        }
        let Entry { role, link } = entry;
        let known = Known { incarnation: shown.incarnation, certificate: shown.certificate, link };
        self.remember(role, known)
    }

    /// One that it replaces cannot come again. Nor can one that does not show by what: nothing is kept of such a
    /// viewer, for the caller does not tell when it has left, and of such a display only while it is here.
    fn remember(&mut self, role: Role, known: Known<C>) -> Option<C> {
        self.viewers.retain(|viewer| !viewer.shows(known.incarnation));
        let gone = match role {
            Role::Active => {
                self.stays += 1;
                self.active.replace(known)
            }
            Role::View if known.incarnation.is_none() => {
                let awaited = self.given.iter().any(|given| given.met == Some(known.certificate));
                return if awaited { None } else { self.forget(&known) };
            }
            Role::View => {
                self.viewers.push(known);
                (self.viewers.len() > MAX_VIEWERS).then(|| self.viewers.remove(0))
            }
        };
        gone.and_then(|gone| self.forget(&gone))
    }

    /// As what this lets in, if it is good now.
    fn entry_by(&self, key: Key, now: Time) -> Option<Entry> {
        match key {
            Key::Given(shown) => {
                let given = self.given.iter().find(|given| given.secret == shown && given.is_good(now))?;
                Some(given.role.into())
            }
            Key::Link(id) => {
                let link = self.links.good(now).find(|link| link.id == id)?;
                Some(Entry { role: link.role, link: Some(id) })
            }
        }
    }

    /// As what a display comes again.
    fn entry_of(&self, incarnation: Option<Secret>) -> Option<Entry> {
        if let Some(viewer) = self.viewers.iter().find(|viewer| viewer.shows(incarnation)) {
            return Some(Entry { role: Role::View, link: viewer.link });
        }
        let active = self.active.as_ref().filter(|active| active.shows(incarnation))?;
        Some(Entry { role: Role::Active, link: active.link })
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
    use proptest::prelude::*;

    use super::*;

    const LATER: Time = Time::from_millis(3_600_000);

    fn secret(byte: u8) -> Secret {
        Secret::from([byte; 32])
    }

    fn secrets() -> Secrets<u8> {
        Secrets::new(secret(0))
    }

    fn shown(secret: Option<Secret>, run: u8) -> Credentials<u8> {
        let key = secret.map(Key::Given);
        Credentials { key, incarnation: Some(self::secret(run)), certificate: run, wish: Role::Active }
    }

    fn admit(secrets: &mut Secrets<u8>, shown: &Credentials<u8>, now: Time) -> Option<(Entry, Option<u8>)> {
        let verdict = secrets.judge(shown, now)?;
        Some((verdict.entry, secrets.admit(shown, verdict)))
    }

    #[test]
    fn a_secret_for_viewing_is_good_for_that_alone_and_once() {
        let mut secrets = secrets();
        secrets.print(Role::View, secret(1), LATER);
        secrets.print(Role::Active, secret(2), LATER);
        let mut come = |byte, run| admit(&mut secrets, &shown(Some(secret(byte)), run), Time::ZERO);
        let view = Some((Role::View.into(), None));
        assert_eq!([come(1, 11), come(1, 12)], [view, None]);
        assert_eq!([come(2, 13), come(2, 14)], [Some((Role::Active.into(), None)), None]);
    }

    #[test]
    fn a_viewer_comes_again_as_that_and_nothing_else() {
        let mut secrets = secrets();
        let known = |byte| Known { incarnation: Some(secret(byte)), certificate: byte, link: None };
        secrets.active = Some(known(3));
        secrets.viewers.push(known(4));
        let comes = [3, 4, 5].map(|byte| secrets.entry_of(Some(secret(byte))).map(|entry| entry.role));
        assert_eq!(comes, [Some(Role::Active), Some(Role::View), None]);
        let shows = [3, 4].map(|byte| admit(&mut secrets, &shown(Some(secret(byte)), 5), Time::ZERO));
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
        assert_eq!(
            admit(&mut secrets, &shown(Some(secret(1)), 9), Time::ZERO),
            Some((Role::View.into(), None))
        );
    }

    /// It had asked to view with what it comes again by, and was known as both.
    #[test]
    fn regression_a_display_that_was_sent_away_comes_again_as_a_view() {
        let mut secrets = secrets();
        for byte in [1, 2] {
            secrets.print(Role::Active, secret(byte), LATER);
        }
        assert_eq!(
            admit(&mut secrets, &shown(Some(secret(1)), 9), Time::ZERO),
            Some((Role::Active.into(), None))
        );
        for also in [None, Some(secret(2))] {
            let wish = Credentials { wish: Role::View, ..shown(also, 9) };
            assert_eq!(admit(&mut secrets, &wish, Time::ZERO), None);
        }
        assert_eq!(secrets.forget_active(), Some(9));
        assert_eq!(admit(&mut secrets, &shown(None, 9), Time::ZERO), None);
    }

    #[test]
    fn no_link_makes_a_viewer_the_display_or_lets_one_type() {
        let mut secrets = secrets();
        let mut make = |role, byte| secrets.link(role, Digest([byte; 32]), (LATER, 8), Time::ZERO);
        let (view, control) =
            (make(Role::View, 1).expect("a place"), make(Role::Active, 2).expect("a place"));
        let by = |link, run, wish| Credentials { key: Some(Key::Link(link)), wish, ..shown(None, run) };
        let mut come = |shown| admit(&mut secrets, &shown, Time::ZERO).map(|(entry, _)| entry.role);
        assert_eq!(come(by(view, 1, Role::Active)), None, "it says that it would type");
        assert_eq!(come(by(view, 1, Role::View)), Some(Role::View));
        assert_eq!(come(by(control, 1, Role::Active)), None, "it is known as a viewer");
        assert_eq!(come(by(control, 2, Role::View)), Some(Role::View), "it asks for less");
        assert_eq!(come(shown(None, 2)), None, "and comes again as no more");
        assert_eq!(come(by(control, 3, Role::Active)), Some(Role::Active));
        assert_eq!(come(by(view, 3, Role::View)), None, "it is known as the display");
    }

    /// It came while the secret was good, and said nothing for a while.
    #[test]
    fn regression_a_secret_is_good_after_it_has_expired() {
        let mut secrets = secrets();
        secrets.print(Role::Active, secret(1), LATER);
        assert_eq!(secrets.accepted(Time::ZERO).secrets, [secret(1)]);
        assert_eq!(admit(&mut secrets, &shown(Some(secret(1)), 9), LATER), None);
    }

    fn by_link(id: LinkId, run: u8, wish: Role) -> Credentials<u8> {
        Credentials { key: Some(Key::Link(id)), wish, ..shown(None, run) }
    }

    #[test]
    fn a_link_for_viewing_lets_nobody_in_who_asks_for_more() {
        let mut secrets = secrets();
        let id = secrets.link(Role::View, Digest([1; 32]), (LATER, 2), Time::ZERO).expect("a place");
        let entry = Entry { role: Role::View, link: Some(id) };
        assert_eq!(admit(&mut secrets, &by_link(id, 1, Role::Active), Time::ZERO), None);
        assert_eq!(secrets.links(Time::ZERO).next().map(|link| link.uses), Some(2), "it was not used");
        assert_eq!(admit(&mut secrets, &by_link(id, 1, Role::View), Time::ZERO), Some((entry, None)));
        // Nor when it comes again.
        assert_eq!(admit(&mut secrets, &shown(None, 1), Time::ZERO), None);
        let again = Credentials { wish: Role::View, ..shown(None, 1) };
        assert_eq!(admit(&mut secrets, &again, Time::ZERO), Some((entry, None)));
    }

    /// Its place among the viewers that are remembered may be taken by others; its link is good no more all the same.
    #[test]
    fn who_came_by_a_link_that_was_revoked_cannot_come_again_and_others_can() {
        let mut secrets = secrets();
        let control = secrets.link(Role::Active, Digest([1; 32]), (LATER, 1), Time::ZERO).expect("a place");
        let view = secrets.link(Role::View, Digest([2; 32]), (LATER, 8), Time::ZERO).expect("a place");
        assert!(admit(&mut secrets, &by_link(control, 1, Role::Active), Time::ZERO).is_some());
        assert!(admit(&mut secrets, &by_link(view, 2, Role::View), Time::ZERO).is_some());
        assert_eq!((secrets.active_link(), secrets.len().1), (Some(control), 2));
        let revoked = |active, gone| Revoked { any: true, active, gone };
        assert_eq!(secrets.revoke_links(Some(view), Time::ZERO), revoked(false, vec![2]));
        let come = |secrets: &mut Secrets<u8>, run, wish| {
            admit(secrets, &Credentials { wish, ..shown(None, run) }, Time::ZERO).is_some()
        };
        // Its certificate is refused, and so is what it comes again by.
        assert!(!come(&mut secrets, 2, Role::View) && come(&mut secrets, 1, Role::Active));
        assert_eq!(admit(&mut secrets, &by_link(view, 3, Role::View), Time::ZERO), None);
        assert_eq!(secrets.revoke_links(None, Time::ZERO), revoked(true, vec![1]));
        assert!(!come(&mut secrets, 1, Role::Active) && secrets.active_link().is_none());
        assert!(!secrets.revoke_links(None, Time::ZERO).any);
    }

    /// Pages show no incarnation. They were remembered as viewers that may come again, for ever.
    #[test]
    fn regression_visits_of_pages_push_out_a_viewer_and_count_when_they_are_over() {
        let mut secrets = secrets();
        let mut make = |role, byte| secrets.link(role, Digest([byte; 32]), (LATER, 20), Time::ZERO);
        let (view, control) =
            (make(Role::View, 1).expect("a place"), make(Role::Active, 2).expect("a place"));
        secrets.invite(Role::View, secret(1), 1, Time::ZERO);
        assert!(admit(&mut secrets, &shown(Some(secret(1)), 1), Time::ZERO).is_some());
        let page = |link, certificate, wish| Credentials {
            key: Some(Key::Link(link)),
            incarnation: None,
            certificate,
            wish,
        };
        for visit in 0..=MAX_VIEWERS as u8 {
            let came = admit(&mut secrets, &page(view, 100 + visit, Role::View), Time::ZERO);
            assert_eq!(
                came.expect("it is good").1,
                Some(100 + visit),
                "its certificate is good for nothing else"
            );
        }
        assert!(admit(&mut secrets, &shown(None, 1), Time::ZERO).is_some(), "it comes again");
        let revoked = secrets.revoke_links(Some(view), Time::ZERO);
        assert_eq!(revoked, Revoked { any: true, active: false, gone: vec![] });
        assert!(!secrets.revoke_links(Some(view), Time::ZERO).any, "no guest of it is remembered");

        assert!(admit(&mut secrets, &page(control, 200, Role::Active), Time::ZERO).is_some());
        let stay = secrets.stay().expect("it is here");
        assert_eq!(secrets.active_link(), Some(control));
        assert_eq!((secrets.lose_stay(stay), secrets.active_link()), (Some(200), None));
        assert!(admit(&mut secrets, &page(control, 201, Role::Active), Time::ZERO).is_some());
        assert_eq!(secrets.lose_stay(stay), None, "it was not meant");
        let native = Credentials { incarnation: Some(secret(9)), ..page(control, 202, Role::Active) };
        assert!(admit(&mut secrets, &native, Time::ZERO).is_some());
        let stay = secrets.stay().expect("it is here");
        assert_eq!((secrets.lose_stay(stay), secrets.active_link()), (None, Some(control)));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Make { control: bool, life: u8, uses: u8 },
        Pass(u8),
        Come { link: usize, run: u8, views: bool },
        Again { run: u8, views: bool },
        Revoke(Option<usize>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let run = 1..6_u8;
        prop_oneof![
            (any::<bool>(), 0..9_u8, 0..4_u8).prop_map(|(control, life, uses)| Step::Make {
                control,
                life,
                uses
            }),
            (0..4_u8).prop_map(Step::Pass),
            (0..8_usize, run.clone(), any::<bool>()).prop_map(|(link, run, views)| Step::Come {
                link,
                run,
                views
            }),
            (run, any::<bool>()).prop_map(|(run, views)| Step::Again { run, views }),
            prop::option::of(0..8_usize).prop_map(Step::Revoke),
        ]
    }

    /// What a user has been told of a link.
    struct Told {
        id: LinkId,
        role: Role,
        until: u64,
        uses: u8,
    }

    /// Who is known, told by hand: the run, as what, by which of the links.
    #[derive(Default)]
    struct Model {
        links: Vec<Told>,
        known: Vec<(u8, Role, LinkId)>,
        now: u64,
    }

    impl Model {
        fn come(&mut self, link: usize, run: u8, wish: Role) -> Option<Role> {
            let now = self.now;
            let told = self.links.get_mut(link).filter(|told| told.uses > 0 && now < told.until);
            let Some(told) = told else { return self.again(run, wish) };
            let role = if wish == Role::View { Role::View } else { told.role };
            let more = (told.role, wish) == (Role::View, Role::Active);
            if more || self.known.iter().any(|(other, known, _)| *other == run && *known != role) {
                return None;
            }
            let id = told.id;
            told.uses -= u8::from(!self.known.iter().any(|(other, _, by)| (*other, *by) == (run, id)));
            self.remember(run, role, id)
        }

        fn again(&mut self, run: u8, wish: Role) -> Option<Role> {
            let &(_, role, id) = self.known.iter().find(|(other, ..)| *other == run)?;
            if role == wish { self.remember(run, role, id) } else { None }
        }

        fn remember(&mut self, run: u8, role: Role, id: LinkId) -> Option<Role> {
            let replaced = |(other, as_what, _): &(u8, Role, LinkId)| match role {
                Role::Active => *as_what == Role::Active || *other == run,
                Role::View => (*other, *as_what) == (run, Role::View),
            };
            self.known.retain(|known| !replaced(known));
            self.known.push((run, role, id));
            Some(role)
        }
    }

    proptest! {
        #[test]
        fn links_let_in_whom_they_were_made_for_and_no_more(steps in prop::collection::vec(step(), 0..60)) {
            let (mut secrets, mut model) = (secrets(), Model::default());
            let wish = |views| if views { Role::View } else { Role::Active };
            for step in steps {
                let now = Time::from_millis(model.now);
                match step {
                    Step::Make { control, life, uses } => {
                        let role = wish(!control);
                        let until = model.now + u64::from(life);
                        let good = (Time::from_millis(until), uses);
                        let made = secrets.link(role, Digest([0; 32]), good, now);
                        let there = model.links.iter().filter(|link| link.uses > 0 && model.now < link.until);
                        prop_assert_eq!(made.is_err(), there.count() >= super::super::MAX_LINKS);
                        model.links.extend(made.map(|id| Told { id, role, until, uses }));
                    }
                    Step::Pass(time) => model.now += u64::from(time),
                    Step::Come { link, run, views } => {
                        let id = model.links.get(link).map(|link| link.id);
                        let key = id.map(Key::Link);
                        let shown = Credentials { key, wish: wish(views), ..shown(None, run) };
                        let came = admit(&mut secrets, &shown, now);
                        let expected = model.come(link, run, wish(views));
                        prop_assert_eq!(came.map(|(entry, _)| entry.role), expected);
                    }
                    Step::Again { run, views } => {
                        let shown = Credentials { wish: wish(views), ..shown(None, run) };
                        let came = admit(&mut secrets, &shown, now).map(|(entry, _)| entry.role);
                        prop_assert_eq!(came, model.again(run, wish(views)));
                    }
                    Step::Revoke(which) => {
                        let id = which.and_then(|which| model.links.get(which)).map(|link| link.id);
                        if which.is_some() && id.is_none() {
                            continue;
                        }
                        let _ = secrets.revoke_links(id, now);
                        let meant = |link: LinkId| id.is_none_or(|id| id == link);
                        model.links.iter_mut().filter(|link| meant(link.id)).for_each(|link| link.uses = 0);
                        model.known.retain(|(.., by)| !meant(*by));
                    }
                }
                let now = Time::from_millis(model.now);
                let listed: Vec<_> = secrets.links(now).map(|link| (link.id, link.uses)).collect();
                let good = model.links.iter().filter(|link| link.uses > 0 && model.now < link.until);
                prop_assert_eq!(listed, good.map(|link| (link.id, link.uses)).collect::<Vec<_>>());
            }
        }
    }
}
