//! What a session is told when it starts.

use std::time::Duration;

use wayferry_fec::LossPrior;

use crate::{
    Capabilities, Compression, Digest, Hello, HostTime, Kinds, Secret, SessionId, Side, Time, Versions,
};

/// Most secrets that a peer's is compared with.
pub const MAX_SECRETS: usize = 64;

/// How a session behaves; a plain value, given once.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which half this is.
    pub side: Side,
    /// The session that this is (app) or wants (display). Default [`SessionId::ANY`].
    pub session: SessionId,
    /// Program and version, shown to the peer; ≤ [`MAX_SOFTWARE`](crate::MAX_SOFTWARE) bytes.
    pub software: String,
    /// Protocol versions to offer. Default [`Versions::CURRENT`].
    pub versions: Versions,
    /// Optional abilities to offer. Default none.
    pub capabilities: Capabilities,
    /// Kinds that may have streams of their own, in both directions, if the peer agrees. Default all.
    pub streams: Kinds,
    /// Kinds that this side sends through the main channel all the same. Default none.
    pub main_only: Kinds,
    /// The ticket's secret to show (display). Default none.
    pub secret: Option<Secret>,
    /// The secrets of which the peer must show one (app), if its incarnation is not an accepted one. The first
    /// [`MAX_SECRETS`] count. Default none: with no accepted incarnation either, any peer that the carrier lets in.
    pub accepted_secrets: Vec<Secret>,
    /// Digests of further secrets, of which the peer may show one instead (app). The first [`MAX_SECRETS`] count, and
    /// none without [`Self::digest`]. Default none.
    pub accepted_digests: Vec<Digest>,
    /// How a secret becomes a digest (app): a function that cannot be turned back, and under which no two secrets that
    /// a peer can find are the same. Default none.
    pub digest: Option<fn(&Secret) -> Digest>,
    /// The [incarnations](Hello::incarnation) of displays that may come again (app). Shown as a secret, an incarnation
    /// is none: it lets in the display that it names, not another. The first [`MAX_SECRETS`] count. Default none.
    pub accepted_incarnations: Vec<Secret>,
    /// Names what begins here (display): random for each [`Session::new`](crate::Session::new), the same for each
    /// [`Session::resuming`](crate::Session::resuming). The session can be resumed by a display that shows it. Offers
    /// [`Capabilities::RESUME`]. An app side offers that as a capability. Default none.
    pub resume: Option<Secret>,
    /// What this side can decompress, and would use, preferred first. Default all, Zstandard first.
    pub compression: Vec<Compression>,
    /// What this side's updates and messages are protected with. Default [`Repair::default`].
    pub repair: Repair,
    /// What the peer may make this side store.
    pub limits: Limits,
    /// When the session starts, by the run loop's time; deadlines count from here. Default [`Time::ZERO`].
    pub start: Time,
    /// How long the peer may be silent before its link counts as lost. Default 60 s; less than 3 s is taken for 3 s, as
    /// pings come no more often than once a second.
    pub silence: Duration,
    /// What the host's monotonic clock showed at [`Time::ZERO`]. Default 0, right in virtual time.
    pub clock_origin: HostTime,
}

impl Config {
    /// The defaults for one side.
    pub fn new(side: Side) -> Self {
        Self {
            side,
            session: SessionId::ANY,
            software: format!("wayferry {}", env!("CARGO_PKG_VERSION")),
            versions: Versions::CURRENT,
            capabilities: Capabilities::NONE,
            streams: Kinds::ALL,
            main_only: Kinds::EMPTY,
            secret: None,
            accepted_secrets: Vec::new(),
            accepted_digests: Vec::new(),
            digest: None,
            accepted_incarnations: Vec::new(),
            resume: None,
            repair: Repair::default(),
            compression: vec![Compression::Zstd, Compression::Lz4, Compression::None],
            limits: Limits::default(),
            start: Time::ZERO,
            silence: Duration::from_secs(60),
            clock_origin: HostTime(0),
        }
    }

    /// What it offers in its hello.
    pub(super) fn offered(&self) -> Capabilities {
        let resume = if self.resume.is_some() { Capabilities::RESUME } else { Capabilities::NONE };
        self.capabilities.with(resume)
    }

    /// What it says first on the first carrier (attempt 0), or on a later one to go on with what began in an earlier
    /// one.
    pub(super) fn hello(&self, attempt: u64, began: u64) -> Hello {
        Hello {
            versions: self.versions,
            side: self.side,
            session: self.session,
            capabilities: self.offered(),
            streams: self.streams,
            secret: self.secret,
            compression: self.compression.clone(),
            clock: self.clock_origin + self.start.since_start(),
            software: self.software.clone(),
            incarnation: self.resume,
            resuming: attempt > 0,
            attempt,
            began,
        }
    }

    /// Which of the accepted secrets the peer shows, those with digests counted behind the others; `None` where it
    /// shows none that it would have to.
    ///
    /// # Errors
    /// It shows nothing that is accepted.
    pub(super) fn admits(&self, peer: &Hello) -> Result<Option<usize>, Unknown> {
        let (secrets, incarnations) = (&self.accepted_secrets, &self.accepted_incarnations);
        let digest = peer.secret.as_ref().zip(self.digest).map(|(secret, digest)| digest(secret));
        let among_digests = position(&self.accepted_digests, digest.as_ref());
        let secret = position(secrets, peer.secret.as_ref());
        let secret = secret.or(among_digests.map(|index| secrets.len() + index));
        let known = position(incarnations, peer.incarnation.as_ref()).is_some();
        let anybody = secrets.is_empty() && incarnations.is_empty() && self.accepted_digests.is_empty();
        if secret.is_some() || known || anybody { Ok(secret) } else { Err(Unknown) }
    }
}

/// A peer that shows nothing that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unknown;

/// Where the one that is shown stands among the accepted ones. Takes as long wherever that is.
fn position<T: PartialEq>(accepted: &[T], shown: Option<&T>) -> Option<usize> {
    accepted.iter().take(MAX_SECRETS).enumerate().fold(None, |found, (index, accepted)| {
        let equal = shown.is_some_and(|shown| shown == accepted);
        found.or(equal.then_some(index))
    })
}

/// How much repair is sent beside protected blocks, where the carrier can read unordered and the peer takes repair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repair {
    /// None.
    Off,
    /// The same share always: rows sent ÷ rows of the block, from 1. For measurement.
    Fixed(f64),
    /// As much as the link's losses ask for, beginning with what is known of it.
    Adaptive(LossPrior),
}

impl Default for Repair {
    fn default() -> Self {
        Self::Adaptive(LossPrior::default())
    }
}

/// What the peer may make this side store; exceeding one ends the session with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of incomplete channels, all together, with 64 for each range. Default 512 MiB: an honest peer stays near
    /// one bandwidth-delay product, but a link that lost one packet of a large update may hold all of it back.
    pub buffered: usize,
    /// The same for one channel of messages. Default 32 MiB.
    pub buffered_per_channel: usize,
    /// The same, all together, while the peer's hello is missing. Default 4 MiB.
    pub buffered_before_hello: usize,
    /// Streams of the peer that are open at once, real and virtual. Default 8192.
    pub streams: usize,
    /// Bytes that have left in a session that can be resumed, and of which the peer has not said that it has them, with
    /// 256 for each channel. Default 512 MiB. What waits to leave is for the caller to bound.
    pub unacknowledged: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffered: 512 << 20,
            buffered_per_channel: 32 << 20,
            buffered_before_hello: 4 << 20,
            streams: 8192,
            unacknowledged: 512 << 20,
        }
    }
}
