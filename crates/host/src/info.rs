//! A side's figures, as a JSON document.
//!
//! docs/info.md lists the fields, and a test holds it to that. Nothing here measures. Invariant: every field is always
//! there; what is not known is null, never a number that looks like knowledge.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use wayferry_proto::admission::LinkId;
use wayferry_proto::{ConnectionId, LinkState, RepairCounts, Session, SessionId, Side, SurfaceId, Time};
use wayferry_wayland::PredictFigures;
use wayferry_wayland::app::{Counts, Fidelity, Kept};

use crate::edge::offer::role;
use crate::link::Link;
use crate::sanitize::sanitize;

/// The figures of one side at one time.
#[derive(Debug, Clone)]
pub struct Figures {
    side: Side,
    session: SessionId,
    /// The peer's program and version, once it has said it.
    peer: Option<String>,
    programs: usize,
    /// How long ago the peer was last heard.
    silence: Duration,
    link: LinkState,
    /// What repair takes for the link's mean burst of losses, in packets.
    mean_burst: Option<f64>,
    repair: RepairCounts,
    /// An estimate.
    saved: Duration,
    /// Of the app side; the display side does not know.
    surfaces: Option<Surfaces>,
    place: Option<Place>,
    /// Of a display: what it shows, and for how long it has.
    shown: Option<(Option<String>, Duration)>,
    /// Of the app side: what is kept for other displays, and bytes that this one is owed.
    kept: Option<(Kept, usize)>,
    /// Of the app side.
    views: Option<Views>,
    /// Of the app side: by which link the display came, if by one.
    by: Option<u32>,
    /// Of the display side: what programs take of what they may.
    shares: Option<Value>,
    sound: Option<Value>,
    microphone: Option<Value>,
    /// Of the app side: what reads GPU buffers.
    gpu: Option<Value>,
    /// Of the app side: what makes videos.
    encoder: Option<Value>,
    /// Of the display side: keys that were shown before their answers.
    predicted: Option<Value>,
}

/// Viewers.
#[derive(Debug, Clone)]
struct Views {
    viewers: Vec<ViewerInfo>,
    /// How content came to them, those that have left included.
    counts: Counts,
    /// Bytes of pixels that are kept for them alone.
    pixels: u64,
}

/// A viewer.
#[derive(Debug, Clone)]
pub struct ViewerInfo {
    /// By this its user calls it.
    pub id: u32,
    /// What it says that it is.
    pub software: Option<String>,
    /// Where it came from over QUIC; `None` if it came another way.
    pub from: Option<SocketAddr>,
    /// For how long.
    pub since: Duration,
    /// By which link it came, if by one.
    pub link: Option<u32>,
}

/// A session's name, and whether a display shows it.
#[derive(Debug, Clone)]
struct Place {
    name: Option<String>,
    state: State,
    since: Duration,
}

/// Whether a display shows a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A display is there.
    Attached,
    /// One was there and may come back.
    Away,
    /// None is.
    Detached,
}

impl State {
    /// As in the document.
    fn name(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Away => "away",
            Self::Detached => "detached",
        }
    }
}

impl Figures {
    /// Of a running side with so many programs.
    pub fn new(side: Side, link: &Link, programs: usize, now: Time) -> Self {
        let session: &Session = &link.session;
        Self {
            side,
            session: session.id(),
            peer: session.peer().map(|peer| sanitize(&peer.software)),
            programs,
            silence: session.contact_age(now),
            link: link.state(),
            mean_burst: session.loss().map(|(_, burst)| burst),
            repair: session.repair(),
            saved: link.saved().waiting(),
            surfaces: None,
            place: None,
            shown: None,
            kept: None,
            views: None,
            by: None,
            shares: None,
            sound: None,
            microphone: None,
            gpu: None,
            encoder: None,
            predicted: None,
        }
    }

    /// With what all programs take of this machine, and what they may.
    #[must_use]
    pub fn with_shares(self, shares: Value) -> Self {
        Self { shares: Some(shares), ..self }
    }

    /// With what reads GPU buffers.
    #[must_use]
    pub fn with_gpu(self, gpu: Option<Value>) -> Self {
        Self { gpu, ..self }
    }

    /// With what makes videos: its name, and whether it has ever been seen to work.
    #[must_use]
    pub fn with_encoder(self, encoder: Option<(&str, bool)>) -> Self {
        Self { encoder: encoder.map(|(name, tried)| json!({ "name": name, "tried": tried })), ..self }
    }

    /// With what came of keys that were shown before their answers, by window.
    #[must_use]
    pub fn with_predicted(self, of: impl Iterator<Item = (ConnectionId, SurfaceId, PredictFigures)>) -> Self {
        let mut windows: Vec<_> = of.collect();
        windows.sort_unstable_by_key(|(program, surface, _)| (*program, *surface));
        windows.truncate(MAX_SURFACES);
        Self { predicted: Some(windows.iter().map(predicted).collect()), ..self }
    }

    /// With what its sound does.
    #[must_use]
    pub fn with_sound(self, sound: Option<Value>) -> Self {
        Self { sound, ..self }
    }

    /// With what the microphone of the display does.
    #[must_use]
    pub fn with_microphone(self, microphone: Option<Value>) -> Self {
        Self { microphone, ..self }
    }

    /// Of a display that has shown the session of this place, as `attach` takes it, for so long.
    #[must_use]
    pub fn with_shown(self, place: Option<&str>, since: Duration) -> Self {
        Self { shown: Some((place.map(str::to_owned), since)), ..self }
    }

    /// Of a session that is called so, and has been in this state for so long.
    #[must_use]
    pub fn with_place(self, name: Option<&str>, state: State, since: Duration) -> Self {
        Self { place: Some(Place { name: name.map(str::to_owned), state, since }), ..self }
    }

    /// With what is kept for other displays, and bytes that this one, attached or away, may not have received.
    #[must_use]
    pub fn with_kept(self, kept: Kept, owed: usize) -> Self {
        Self { kept: Some((kept, owed)), ..self }
    }

    /// With the link by which its display came, if it came by one.
    #[must_use]
    pub fn with_link(self, link: Option<LinkId>) -> Self {
        Self { by: link.map(u32::from), ..self }
    }

    /// With these viewers, how content came to them, and bytes of pixels that are kept for them alone.
    #[must_use]
    pub fn with_views(self, viewers: Vec<ViewerInfo>, (counts, pixels): (Counts, u64)) -> Self {
        Self { views: Some(Views { viewers, counts, pixels }), ..self }
    }

    /// With the surfaces of all programs.
    #[must_use]
    pub fn with_surfaces(self, surfaces: impl Iterator<Item = (ConnectionId, Fidelity)>) -> Self {
        let mut surfaces: Vec<_> = surfaces.collect();
        // Users ask for those that are not exact.
        surfaces.sort_unstable_by_key(|(program, it)| (std::cmp::Reverse(it.lossy), *program, it.surface));
        let (all, lossy) = (surfaces.len(), surfaces.iter().filter(|(_, it)| it.lossy > 0).count());
        surfaces.truncate(MAX_SURFACES);
        Self { surfaces: Some(Surfaces { all, lossy, named: surfaces }), ..self }
    }

    /// The document.
    pub fn document(&self) -> Value {
        let Self { link, repair, .. } = self;
        // A byte stream hides its packets; a page has them, although it reads each stream in order.
        let packets = link.payload.is_some();
        let of_packets = |count: u64| packets.then_some(count);
        let known = link.acked_packets.saturating_add(link.lost_packets);
        let mut document = json!({
            "role": role(self.side),
            "pid": std::process::id(),
            "session": short(self.session),
            "name": self.place.as_ref().and_then(|place| place.name.as_deref()),
            "state": self.place.as_ref().map(|place| place.state.name()),
            "state_seconds": self.place.as_ref().map(|place| place.since.as_secs()),
            "kept_pixel_bytes": self.kept.as_ref().map(|(kept, _)| kept.pixels),
            "kept_state_bytes": self.kept.as_ref().map(|(kept, _)| kept.state),
            "owed_bytes": self.kept.as_ref().map(|(_, owed)| owed),
            "views": self.views.as_ref().map(|views| views.viewers.len()),
            "viewers": self.views.as_ref().map(|views| views.viewers.iter().map(viewer).collect::<Vec<Value>>()),
            "view_pixel_bytes": self.views.as_ref().map(|views| views.pixels),
            "view_updates_shared": self.views.as_ref().map(|views| views.counts.shared),
            "view_updates_own": self.views.as_ref().map(|views| views.counts.own),
            "shares": self.shares,
            "software": format!("wayferry {}", env!("CARGO_PKG_VERSION")),
            "peer_software": self.peer,
            "carrier": if packets { "quic" } else { "byte-stream" },
            "programs": self.programs,
            "silence_ms": milliseconds(self.silence),
            "rtt_ms": measured(link.rtt),
            "base_rtt_ms": measured(link.base_rtt),
            "queue_delay_ms": packets.then(|| milliseconds(link.queue_delay)),
            "rate_bits_per_second": link.rate.map(|rate| rate.saturating_mul(8)),
            "window_bytes": link.window,
            "sent_bytes": link.sent_bytes,
            "received_bytes": link.received_bytes,
            "sent_packets": of_packets(link.sent_packets),
            "lost_packets": of_packets(link.lost_packets),
            "lost_percent": percent(link.lost_packets, known).filter(|_| packets),
            "mean_burst_packets": self.mean_burst.filter(|_| packets).map(|burst| rounded(burst, 2)),
            "protected_blocks": repair.blocks,
            "repair_rows": repair.rows,
            "repair_bytes": repair.bytes,
            "repair_percent": percent(repair.bytes, link.sent_bytes),
            "rebuilt_blocks": repair.rebuilt,
            "rebuilt_bytes": repair.rebuilt_bytes,
            "saved_ms_estimate": milliseconds(self.saved),
            "surfaces_known": self.surfaces.as_ref().map(|surfaces| surfaces.all),
            "surfaces_lossy": self.surfaces.as_ref().map(|surfaces| surfaces.lossy),
            "surfaces": self.surfaces.as_ref().map(|it| it.named.iter().map(surface).collect::<Vec<Value>>()),
        });
        // More than the macro takes.
        document["place"] = self.shown.as_ref().and_then(|(place, _)| place.clone()).into();
        document["shown_seconds"] = self.shown.as_ref().map(|(_, since)| since.as_secs()).into();
        document["link"] = self.by.into();
        document["sound"] = self.sound.clone().unwrap_or_default();
        document["microphone"] = self.microphone.clone().unwrap_or_default();
        document["gpu"] = self.gpu.clone().unwrap_or_default();
        document["encoder"] = self.encoder.clone().unwrap_or_default();
        document["predicted"] = self.predicted.clone().unwrap_or_default();
        document
    }
}

/// How exact surfaces are.
#[derive(Debug, Clone)]
struct Surfaces {
    all: usize,
    lossy: usize,
    /// The first of them.
    named: Vec<(ConnectionId, Fidelity)>,
}

/// Surfaces listed in the document.
const MAX_SURFACES: usize = 100;

fn viewer(viewer: &ViewerInfo) -> Value {
    json!({
        "id": viewer.id,
        "software": viewer.software,
        "from": viewer.from.map(|from| from.to_string()),
        "seconds": viewer.since.as_secs(),
        "link": viewer.link,
    })
}

fn surface((program, it): &(ConnectionId, Fidelity)) -> Value {
    json!({
        "program": program.0,
        "surface": it.surface.0,
        "width": it.size.width(),
        "height": it.size.height(),
        "lossy_pixels": it.lossy,
        "videos": it.videos,
    })
}

fn predicted((program, surface, it): &(ConnectionId, SurfaceId, PredictFigures)) -> Value {
    json!({
        "program": program.0,
        "surface": surface.0,
        "shown": it.shown,
        "right": it.right,
        "wrong": it.wrong,
        "held": it.held,
    })
}

/// Enough of a session's id to distinguish it from others: eight characters.
fn short(session: SessionId) -> String {
    session.0[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time that is zero as long as nothing was measured.
fn measured(time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| milliseconds(time))
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3, 3)
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| rounded(100.0 * part as f64 / whole as f64, 2))
}

/// To so many decimal places: more would only look exact.
pub(crate) fn rounded(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use wayferry_pixels::Size;

    /// A side after a while on a bad link.
    fn sample() -> Figures {
        let link = LinkState {
            rtt: Duration::from_micros(103_125),
            rtt_deviation: Duration::from_millis(2),
            base_rtt: Duration::from_millis(100),
            queue_delay: Duration::from_micros(3_125),
            payload: Some(1200),
            in_order: false,
            datagram: 1162,
            window: 250_000,
            unsent: 0,
            idle: false,
            rate: Some(2_450_000),
            sent_bytes: 1_200_000,
            received_bytes: 80_000,
            lost_packets: 12,
            lost_runs: 10,
            sent_packets: 1_100,
            acked_packets: 988,
        };
        let repair = RepairCounts { blocks: 30, rows: 40, bytes: 48_000, rebuilt: 3, rebuilt_bytes: 3_400 };
        Figures {
            side: Side::App,
            session: SessionId(std::array::from_fn(|index| index as u8 + 0xa0)),
            peer: Some("wayferry 0.1.0".into()),
            programs: 2,
            silence: Duration::from_millis(20),
            link,
            mean_burst: Some(1.234),
            repair,
            saved: Duration::from_millis(309),
            place: None,
            shown: None,
            kept: None,
            views: None,
            by: None,
            shares: None,
            sound: Some(sound()),
            microphone: Some(microphone()),
            gpu: Some(gpu()),
            encoder: Some(json!({ "name": "h264_vaapi", "tried": false })),
            predicted: None,
            surfaces: None,
        }
        .with_surfaces([(0, 1), (9_216, 5), (0, 7)].into_iter().map(|(lossy, surface)| {
            let size = Size::new(640, 480).expect("a size");
            let videos = usize::from(lossy > 0);
            (ConnectionId(1), Fidelity { surface: SurfaceId(surface), size, lossy, videos })
        }))
    }

    fn sound() -> Value {
        json!({
            "codec": "opus", "rate_bits_per_second": 96_000, "mode": "hybrid", "target_ms": 80, "delay_ms": 91,
            "frames": 700, "streams_open": 3,
        })
    }

    fn gpu() -> Value {
        json!({
            "reader": "egl: Mesa", "unable": null, "readers": 1, "read": 300, "unread": 0, "read_bytes": 9_000_000,
            "read_ms_mean": 1.25,
            "surfaces": [{
                "program": 1, "surface": 5, "path": "egl", "read": 300, "read_bytes": 9_000_000, "read_ms_mean": 1.25,
                "waits_for": "program", "waits_ms": 7012.5,
            }],
        })
    }

    fn microphone() -> Value {
        json!({
            "recorded": true, "target_ms": 40, "latency_ms": 51, "played_seconds": 12.5, "concealed_seconds": 0.02,
        })
    }

    /// The same without QUIC, before anything was measured.
    fn unmeasured() -> Figures {
        Figures {
            side: Side::Display,
            peer: None,
            link: LinkState { window: 65_536, ..LinkState::default() },
            repair: RepairCounts::default(),
            saved: Duration::ZERO,
            sound: None,
            microphone: None,
            gpu: None,
            encoder: None,
            surfaces: None,
            ..sample()
        }
    }

    /// Those who read documents are tested with these.
    #[test]
    fn the_samples_of_documents_are_what_is_announced() {
        for (figures, text) in [
            (sample(), include_str!("info/sample.json")),
            (unmeasured(), include_str!("info/unmeasured.json")),
        ] {
            let mut document = figures.document();
            document["pid"] = json!(7);
            assert_eq!(document, serde_json::from_str::<Value>(text).expect("a document"));
        }
    }

    #[test]
    fn what_is_known_is_announced() {
        let document = sample().with_place(Some("foot"), State::Attached, Duration::from_millis(7_900));
        let from = [Some(SocketAddr::from(([192, 0, 2, 7], 5))), None];
        let viewers = from.map(|from| ViewerInfo {
            id: 7,
            software: from.map(|_| "a browser".to_owned()),
            from,
            since: Duration::from_millis(2_500),
            link: from.map(|_| 3),
        });
        let document = document
            .with_link("4".parse().ok())
            .with_views(viewers.to_vec(), (Counts { own: 3, shared: 400 }, 65_536));
        let mut document = document.with_kept(Kept { pixels: 1_228_800, state: 507 }, 32).document();
        // One literal of the macro takes no more fields.
        let object = document.as_object_mut().expect("an object");
        let kept = [("kept_pixel_bytes", 1_228_800), ("kept_state_bytes", 507), ("owed_bytes", 32)];
        let views = [("views", 2), ("view_pixel_bytes", 65_536)];
        let updates = [("view_updates_shared", 400), ("view_updates_own", 3)];
        for (name, value) in kept.into_iter().chain(views).chain(updates) {
            assert_eq!(object.remove(name), Some(json!(value)), "{name}");
        }
        let viewers = json!([
            { "id": 7, "software": "a browser", "from": "192.0.2.7:5", "seconds": 2, "link": 3 },
            { "id": 7, "software": null, "from": null, "seconds": 2, "link": null },
        ]);
        assert_eq!(object.remove("viewers"), Some(viewers));
        assert_eq!(object.remove("sound"), Some(sound()));
        assert_eq!(object.remove("microphone"), Some(microphone()));
        assert_eq!(object.remove("gpu"), Some(gpu()));
        assert_eq!(object.remove("encoder"), Some(json!({ "name": "h264_vaapi", "tried": false })));
        assert_eq!(object.remove("shares"), Some(Value::Null), "of the display side");
        assert_eq!(object.remove("predicted"), Some(Value::Null), "of the display side");
        assert_eq!(object.remove("place"), Some(Value::Null), "of the display side");
        assert_eq!(object.remove("shown_seconds"), Some(Value::Null), "of the display side");
        assert_eq!(object.remove("link"), Some(json!(4)));
        let expected = json!({
            "role": "app", "pid": std::process::id(), "session": "a0a1a2a3",
            "name": "foot", "state": "attached", "state_seconds": 7,
            "software": format!("wayferry {}", env!("CARGO_PKG_VERSION")), "peer_software": "wayferry 0.1.0",
            "carrier": "quic", "programs": 2, "silence_ms": 20.0,
            "rtt_ms": 103.125, "base_rtt_ms": 100.0, "queue_delay_ms": 3.125,
            "rate_bits_per_second": 19_600_000, "window_bytes": 250_000,
            "sent_bytes": 1_200_000, "received_bytes": 80_000,
            "sent_packets": 1_100, "lost_packets": 12, "lost_percent": 1.2, "mean_burst_packets": 1.23,
            "protected_blocks": 30, "repair_rows": 40, "repair_bytes": 48_000, "repair_percent": 4.0,
            "rebuilt_blocks": 3, "rebuilt_bytes": 3_400, "saved_ms_estimate": 309.0,
            "surfaces_known": 3, "surfaces_lossy": 1,
            "surfaces": [
                { "program": 1, "surface": 5, "width": 640, "height": 480, "lossy_pixels": 9_216, "videos": 1 },
                { "program": 1, "surface": 1, "width": 640, "height": 480, "lossy_pixels": 0, "videos": 0 },
                { "program": 1, "surface": 7, "width": 640, "height": 480, "lossy_pixels": 0, "videos": 0 },
            ],
        });
        assert_eq!(document, expected);
    }

    /// Numbers, and nothing that was typed.
    #[test]
    fn what_was_predicted_is_told_by_window() {
        let figures = PredictFigures { shown: 70, right: 68, wrong: 2, held: 30 };
        let windows = [(2, 5), (1, 9), (1, 5)];
        let windows = windows.map(|(program, surface)| (ConnectionId(program), SurfaceId(surface), figures));
        let document = sample().with_predicted(windows.into_iter()).document();
        let told = |program: u32, surface: u64| json!({ "program": program, "surface": surface, "shown": 70, "right": 68, "wrong": 2, "held": 30 });
        assert_eq!(document["predicted"], json!([told(1, 5), told(1, 9), told(2, 5)]));
        assert_eq!(sample().with_predicted(std::iter::empty()).document()["predicted"], json!([]));
    }

    #[test]
    fn what_is_not_known_is_null() {
        let document = unmeasured().document();
        let mut null: Vec<&str> = document
            .as_object()
            .expect("an object")
            .iter()
            .filter(|(_, value)| value.is_null())
            .map(|(key, _)| key.as_str())
            .collect();
        let mut expected = vec![
            "name",
            "state",
            "state_seconds",
            "kept_pixel_bytes",
            "kept_state_bytes",
            "owed_bytes",
            "views",
            "viewers",
            "link",
            "view_pixel_bytes",
            "view_updates_shared",
            "view_updates_own",
            "shares",
            "place",
            "shown_seconds",
            "sound",
            "microphone",
            "gpu",
            "encoder",
            "predicted",
            "peer_software",
            "rtt_ms",
            "base_rtt_ms",
            "queue_delay_ms",
            "rate_bits_per_second",
            "sent_packets",
            "lost_packets",
            "lost_percent",
            "mean_burst_packets",
            "repair_percent",
            "surfaces_known",
            "surfaces_lossy",
            "surfaces",
        ];
        null.sort_unstable();
        expected.sort_unstable();
        assert_eq!((null, &document["carrier"]), (expected, &json!("byte-stream")));
    }

    #[test]
    fn docs_info_lists_the_fields() {
        let page = include_str!("../../../docs/info.md");
        let mut listed: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name))
            .collect();
        listed.sort_unstable();
        let document = sample().document();
        let mut fields: Vec<&String> = document.as_object().expect("an object").keys().collect();
        fields.sort_unstable();
        assert_eq!(listed, fields);
    }
}
