//! The way in for displays: who may attach to a session, and what the others are told. Sans-IO.
//!
//! Everyone can reach a port, so several candidates may wait for admission; one that shows a secret that was given out
//! is let in ([`Secrets`]): once, or by a link ([`Link`]) as often as that says. Strangers, displays whose certificates
//! are known, and those on byte streams have places of their own, and the newest always gets one ([`Places`]). It knows
//! no carriers: what holds a place is the caller's, with a [`Session`] in it. It does not decide what becomes of the
//! display that is there already.
//! Invariant: a stranger without a secret costs a place for at most [`PATIENCE`], and nothing else.
//!
//! The run loop: [`Admission::come`] for each that comes; then, for each of [`Admission::numbers`], hand what has
//! arrived to the session ([`Admission::get_mut`]) and [look at it](Admission::look_at), also when
//! [`Admission::next_timeout`] has passed.

mod links;
mod secrets;

use std::time::Duration;

pub use links::{Link, LinkId, MAX_LINKS, NotALinkId, TooManyLinks};
use secrets::{Accepted, Credentials, Key};
pub use secrets::{Entry, INVITED, MAX_GIVEN, MAX_VIEWERS, Revoked, Role, Secrets, Stay};

use crate::{
    Candidate, Capabilities, CloseReason, ClosedBy, Config, Event, Places, Secret, Session, Source, Time,
};

/// Candidates that wait for admission, and what lets them in. `C` is a certificate; `H` holds a place, and its session.
#[derive(Debug)]
pub struct Admission<C, H> {
    config: Config,
    secrets: Secrets<C>,
    /// By [`Lane`].
    lanes: [Places<Visitor<C, H>>; 4],
    /// How many have come.
    count: u64,
    /// How many viewers may come that do not come again.
    free: usize,
}

/// Which places a display may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Nothing is known of it; it has to go after [`PATIENCE`].
    Stranger,
    /// Its certificate is known: it was let in, or ssh brought it.
    Known,
    /// On a byte stream.
    Here,
    /// A page on a byte stream, which others have brought: links alone let it in, and it has to go after
    /// [`PAGE_PATIENCE`].
    Page,
}

/// A display that waits for admission.
#[derive(Debug)]
struct Visitor<C, H> {
    holder: H,
    /// What was accepted when it came.
    accepted: Vec<Key>,
    certificate: C,
    /// When it has to go, unless it is let in before.
    until: Option<Time>,
}

/// What becomes of a candidate. What its session has to say is to be sent in each case.
#[derive(Debug)]
pub enum Fate<C, H> {
    /// It keeps its place.
    Waits,
    /// It is let in. The certificate of a display that cannot come again for it is good no more.
    Enters(Entry, Candidate<H>, Option<C>),
    /// What it shows is good, and still is: there is no place for another viewer, which it is to be told.
    Full(Candidate<H>),
    /// It is not let in; its session is closed, or has lost its carrier. With the reason, if that is its own doing.
    Leaves(H, Option<(CloseReason, ClosedBy)>),
}

impl AsRef<Self> for Session {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Self> for Session {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl<C: Copy + Eq, H: AsMut<Session> + AsRef<Session>> Admission<C, H> {
    /// For sessions like `config`; `reserved` is a secret that no display has.
    pub fn new(config: Config, reserved: Secret) -> Self {
        let lanes = [MAX_STRANGERS, MAX_KNOWN, MAX_HERE, MAX_PAGES].map(Places::new);
        Self { config, secrets: Secrets::new(reserved), lanes, count: 0, free: usize::MAX }
    }

    /// What lets displays in.
    pub fn secrets(&self) -> &Secrets<C> {
        &self.secrets
    }

    /// What lets displays in, to be changed.
    pub fn secrets_mut(&mut self) -> &mut Secrets<C> {
        &mut self.secrets
    }

    /// From now on there are places for so many viewers; at first for all.
    pub fn set_free(&mut self, viewers: usize) {
        self.free = viewers;
    }

    /// A display comes from there, and proves or tells that it has that certificate; `make` gives its session a
    /// carrier. Gives its number, and the one that lost its place for it, which is to be told.
    pub fn come(
        &mut self,
        (lane, source): (Lane, Source),
        certificate: C,
        now: Time,
        make: impl FnOnce(Config) -> H,
    ) -> (u64, Option<H>) {
        let accepted = match lane {
            Lane::Page => self.secrets.accepted_of_links(now),
            Lane::Stranger | Lane::Known | Lane::Here => self.secrets.accepted(now),
        };
        let Accepted { keys, secrets, digests, incarnations } = accepted;
        let config = Config {
            start: now,
            accepted_secrets: secrets,
            accepted_digests: digests,
            accepted_incarnations: incarnations,
            ..self.config.clone()
        };
        let until = match lane {
            Lane::Stranger => Some(now + PATIENCE),
            Lane::Page => Some(now + PAGE_PATIENCE),
            Lane::Known | Lane::Here => None,
        };
        let candidate = Visitor { holder: make(config), accepted: keys, certificate, until };
        self.count += 1;
        let lost = self.lanes[lane as usize].enter(self.count, source, candidate);
        (self.count, lost.map(turned_away))
    }

    /// Numbers of all candidates.
    pub fn numbers(&self) -> Vec<u64> {
        self.lanes.iter().flat_map(Places::iter).map(|(number, _)| number).collect()
    }

    /// All candidates.
    pub fn candidates(&self) -> impl Iterator<Item = &H> {
        self.lanes.iter().flat_map(Places::iter).map(|(_, candidate)| &candidate.holder)
    }

    /// The candidate with this number, for what has arrived.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut H> {
        self.lanes.iter_mut().find_map(|lane| lane.get_mut(number)).map(|candidate| &mut candidate.holder)
    }

    /// Judges a candidate by what its session has heard; none where no candidate has this number.
    pub fn look_at(&mut self, number: u64, now: Time) -> Option<Fate<C, H>> {
        let lane = self.lanes.iter_mut().find(|lane| lane.contains(number))?;
        let candidate = lane.get_mut(number)?;
        let step = step(candidate.holder.as_mut());
        let late = candidate.until.is_some_and(|until| until <= now);
        if matches!(step, Step::Waits) && !late {
            return Some(Fate::Waits);
        }
        let (_, candidate) = lane.leave(number)?;
        Some(match step {
            Step::Enters => self.let_in(candidate, now),
            Step::Waits => Fate::Leaves(turned_away(candidate), None),
            Step::Leaves(why) => Fate::Leaves(candidate.holder, why),
        })
    }

    /// A secret works once, also for two that came with it at the same time.
    fn let_in(&mut self, candidate: Visitor<C, H>, now: Time) -> Fate<C, H> {
        let Visitor { mut holder, accepted, certificate, .. } = candidate;
        let session = holder.as_mut();
        // Given up before anybody looked: a display that tries several ways at once, or one that is lost by now. The
        // one that is here stays, and there is no carrier that could tell of the end of this one.
        if session.is_closed() || session.is_suspended() {
            return Fate::Leaves(holder, None);
        }
        let key = session.matched_secret().and_then(|index| accepted.get(index).copied());
        let incarnation = session.peer().and_then(|peer| peer.incarnation);
        let view_only = session.capabilities().has(Capabilities::VIEW);
        let wish = if view_only { Role::View } else { Role::Active };
        // Of two ways that a display takes at the same time, the other may have used the secret.
        let shown = Credentials { key, incarnation, certificate, wish };
        let Some(verdict) = self.secrets.judge(&shown, now) else {
            session.close(CloseReason::BadSecret);
            return Fate::Leaves(holder, None);
        };
        let candidate = match Candidate::new(holder) {
            Ok(candidate) => candidate,
            Err(holder) => return Fate::Leaves(holder, None),
        };
        // Before anything is used up. One that comes again may have its place still.
        if verdict.entry.role == Role::View && verdict.is_new {
            match self.free.checked_sub(1) {
                Some(free) => self.free = free,
                None => return Fate::Full(candidate),
            }
        }
        let dismissed = self.secrets.admit(&shown, verdict);
        Fate::Enters(verdict.entry, candidate, dismissed)
    }

    /// When a candidate is to be looked at, at the latest.
    pub fn next_timeout(&self) -> Option<Time> {
        let candidates = self.lanes.iter().flat_map(Places::iter).map(|(_, candidate)| candidate);
        let due = |candidate: &Visitor<C, H>| {
            [candidate.holder.as_ref().next_timeout(), candidate.until].into_iter().flatten().min()
        };
        candidates.filter_map(due).min()
    }
}

enum Step {
    Waits,
    Enters,
    Leaves(Option<(CloseReason, ClosedBy)>),
}

fn step(session: &mut Session) -> Step {
    loop {
        match session.poll_event() {
            Some(Event::Ready { .. }) => return Step::Enters,
            Some(Event::Closed { reason, by }) => return Step::Leaves(Some((reason, by))),
            Some(_) => {}
            None if session.is_closed() => return Step::Leaves(None),
            None => return Step::Waits,
        }
    }
}

/// Its place is wanted by a newer one, or it has had it for long enough. It may try again.
fn turned_away<C, H: AsMut<Session>>(mut candidate: Visitor<C, H>) -> H {
    candidate.holder.as_mut().close(CloseReason::TooMuch(NO_PLACE.into()));
    candidate.holder
}

/// What one hears that has no place, or has one no more.
pub const NO_PLACE: &str = "too many displays wait for admission; try again";
/// Strangers that wait for admission at once. Each may have 4 KiB and one stream on the way.
pub const MAX_STRANGERS: usize = 32;
/// Displays at once that wait for admission and whose certificates are known.
pub const MAX_KNOWN: usize = 16;
/// Displays on byte streams that wait for admission at once.
pub const MAX_HERE: usize = 16;
/// Pages on byte streams that wait for admission at once.
pub const MAX_PAGES: usize = 16;
/// How long such a page may take to show a secret: it says it as soon as it hears that it is here, which may be behind
/// two slow links.
pub const PAGE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a stranger may take to show a secret: its first bytes lost twice on a slow link.
pub const PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests;
