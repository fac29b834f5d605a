//! Links: secrets for browsers, each good for several displays and for a while, of which only digests are kept.
//!
//! A link says what who comes by it may be, how many may still come, and until when. Who came by which is not known
//! here. Invariant: a link lets in no more than it had uses, and none once it has expired or was revoked; its id is
//! never given to another, and tells nothing of its secret.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Role;
use crate::{Digest, Time};

/// By what users name a link: its number in its session, from 1. It is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl From<LinkId> for u32 {
    fn from(id: LinkId) -> Self {
        id.0
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for LinkId {
    type Err = NotALinkId;

    fn from_str(text: &str) -> Result<Self, NotALinkId> {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        text.parse().ok().filter(|_| plain).map(Self).ok_or(NotALinkId)
    }
}

/// The text is no number from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotALinkId;

impl fmt::Display for NotALinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected the number of a link, as `share --list` shows it")
    }
}

impl std::error::Error for NotALinkId {}

/// A link that is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// What it is called.
    pub id: LinkId,
    /// What who comes by it is, and nothing else.
    pub role: Role,
    /// Until when it is good.
    pub until: Time,
    /// How many may still come by it; at least 1.
    pub uses: u8,
    pub(super) digest: Digest,
}

impl Link {
    fn is_good(&self, now: Time) -> bool {
        now < self.until && self.uses > 0
    }
}

/// There are [`MAX_LINKS`] good ones already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyLinks;

/// The links of a session.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: Vec<Link>,
    /// How many were ever made.
    count: u32,
}

impl Links {
    /// A link that is good until then, for so many, by a secret with this digest.
    pub(super) fn make(
        &mut self,
        role: Role,
        digest: Digest,
        (until, uses): (Time, u8),
        now: Time,
    ) -> Result<LinkId, TooManyLinks> {
        self.links.retain(|link| link.is_good(now));
        if self.links.len() >= MAX_LINKS {
            return Err(TooManyLinks);
        }
        self.count += 1;
        let id = LinkId(self.count);
        self.links.push(Link { id, role, until, uses, digest });
        Ok(id)
    }

    /// Those that are good, the oldest first.
    pub(super) fn good(&self, now: Time) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(move |link| link.is_good(now))
    }

    /// Each is good for so much less.
    pub(super) fn shorten(&mut self, by: Duration) {
        self.links.iter_mut().for_each(|link| link.until = link.until - by);
    }

    /// One more has come by this link, which is good.
    pub(super) fn spend(&mut self, id: LinkId) {
        let link = self.links.iter_mut().find(|link| link.id == id);
        link.into_iter().for_each(|link| link.uses = link.uses.saturating_sub(1));
    }

    /// That one is good no more, or none is. Says whether any was.
    pub(super) fn revoke(&mut self, which: Option<LinkId>, now: Time) -> bool {
        let revoked = |link: &Link| which.is_none_or(|id| id == link.id);
        let any = self.good(now).any(revoked);
        self.links.retain(|link| !revoked(link));
        any
    }
}

/// Links that are good at once; one more is refused.
pub const MAX_LINKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbers_as_people_write_them() {
        assert_eq!("17".parse(), Ok(LinkId(17)));
        assert_eq!(LinkId(17).to_string(), "17");
        for text in ["", "0", "017", "+1", "-1", "1 ", "4294967296", "host"] {
            assert_eq!(text.parse::<LinkId>(), Err(NotALinkId), "{text}");
        }
    }

    #[test]
    fn one_more_than_there_may_be_is_refused_until_one_is_over() {
        let mut links = Links::default();
        let (now, later) = (Time::ZERO, Time::from_millis(1_000));
        let mut make = |until, now| links.make(Role::View, Digest([1; 32]), (until, 1), now);
        assert_eq!(make(later, now), Ok(LinkId(1)));
        let long = Time::from_millis(9_000);
        (1..MAX_LINKS).for_each(|_| assert!(make(long, now).is_ok()));
        assert_eq!(make(long, now), Err(TooManyLinks));
        assert_eq!(make(long, later), Ok(LinkId(17)), "the first has expired, and its id is not used again");
    }
}
