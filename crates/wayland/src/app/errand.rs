//! A painter with a worker: what it takes along to make the next part of an update, and what it comes back with.
//!
//! Nothing of it is shared with the connection, which goes on meanwhile. Who is sent is decided in `units`. Invariant:
//! the updates are those that the painter would have made here.

use wayferry_pixels::{Encoder, Watch};
use wayferry_proto::Time;

use crate::codec;
use crate::message::WireId;
use crate::trace::Probe;
use crate::workers::{self, Stop};

use super::credit::Credit;
use super::painter::{Means, Painted, Painter, Screen, Step};

/// See the module.
pub(super) struct Errand {
    pub(super) painter: Painter,
    pub(super) kit: Kit,
    pub(super) now: Time,
    /// What the link takes now.
    pub(super) credit: Credit,
    /// How many more videos may begin, where they are shown.
    pub(super) videos: Option<usize>,
    pub(super) surface: WireId,
    pub(super) probe: Probe,
}

/// What a painter works with.
#[derive(Debug)]
pub(super) struct Kit {
    pub(super) encoder: Encoder,
    pub(super) codec: codec::Maker,
    /// Quality of what is lossy at first; `None` if nothing may be.
    pub(super) lossy: Option<u8>,
}

/// What has come back.
#[derive(Debug)]
pub(super) struct Return {
    pub(super) painter: Painter,
    pub(super) kit: Kit,
    /// `None` where frames of videos are waited for, or it was called off.
    pub(super) painted: Option<Painted>,
}

impl Errand {
    /// Begins an update, if none has begun, and encodes the next slice of it.
    pub(super) fn run(self, stop: &Stop) -> Return {
        let Self { mut painter, mut kit, now, mut credit, videos, surface, probe } = self;
        let mut encoder = kit.encoder.clone().with_workspace(workers::workspace());
        let mut means = Means { now, encoder: &mut encoder, credit: &mut credit, lossy: kit.lossy };
        if !painter.has_begun() && !stop.is_asked() {
            painter.begin(&mut means, videos.map(|room| Screen { codec: &mut kit.codec, room }));
        }
        let watch = probe.encoding(surface, painter.next_update().0);
        let watch = watch.as_ref().map(|watch| watch as &dyn Watch);
        let mut painted = None;
        while painted.is_none() && painter.has_begun() && !painter.awaits_frames() && !stop.is_asked() {
            painted = painter.step(&mut means, false, watch);
        }
        Return { painter, kit, painted }
    }

    /// Makes better what the display has.
    pub(super) fn improve(self, step: Step, stop: &Stop) -> Return {
        let Self { mut painter, mut kit, now, mut credit, .. } = self;
        let mut encoder = kit.encoder.clone().with_workspace(workers::workspace());
        let mut means = Means { now, encoder: &mut encoder, credit: &mut credit, lossy: kit.lossy };
        let painted = if stop.is_asked() { None } else { painter.improve(step, &mut means) };
        kit.encoder.learn_from(&encoder);
        Return { painter, kit, painted }
    }
}
