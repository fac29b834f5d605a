//! One combination of everything that is varied.

use std::time::Duration;

use wayferry_proto::MAX_COVERED;

use crate::controller::Controller;
use crate::link::{Jitter, LaneConfig, Loss, Queue, Service};
use crate::random::Random;
use crate::session::{Delivery, FRAME, Pace, Plan};
use crate::unit::Bitrate;
use crate::world::LinkConfig;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// What is sent when.
    pub workload: Workload,
    /// In what order it may be delivered.
    pub delivery: Delivery,
    /// Both sides' congestion controller.
    pub controller: Controller,
    /// How packets are lost, both ways.
    pub loss_model: LossModel,
    /// Share of packets lost, in hundredths of a percent.
    pub loss: u32,
    /// What else the link does to packets, both ways.
    pub trouble: Trouble,
    /// Round-trip time of an empty link in milliseconds.
    pub rtt_ms: u32,
    /// Rate of the link in decimal megabits per second, both ways.
    pub rate_mbps: u32,
}

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// 300 updates of 100 kB in 10 chunks, back to back.
    Streaming,
    /// The same, ten a second.
    Streaming10Hz,
    /// The same, each asked for 300 ms after the one before was whole.
    NonStreaming,
    /// 600 keys, ten a second, each answered by an update of one to five packets.
    Typing,
    /// 300 updates, ten a second: most of one to five packets, some of 10 to 50 kB, a few of 100 to 300 kB.
    Mixed,
    /// A small window that draws 60 times a second for 30 s: most updates of one packet, some of two, each of which
    /// tells its unit and is shown after those before it.
    Busy,
    /// The same that changes in place: each update makes up for the six before it.
    InPlace,
    /// The same typing beside such a window of the same program, which is not covered and has no units.
    TypingBesideBusy,
    /// What a viewer received while somebody typed and ran programs in a terminal.
    TraceTerminal,
    /// While a page was scrolled.
    TraceScroll,
    /// While a window was moved.
    TraceWindows,
}

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossModel {
    /// Each for itself.
    Independent,
    /// In bursts of two packets in the mean.
    Gilbert2,
    /// In bursts of four packets in the mean.
    Gilbert4,
    /// As netem's `gemodel` with states of five packets in the mean, which lose 80 %.
    Elliott,
    /// In times of 5 ms in the mean.
    Burst5Ms,
    /// In times of 20 ms in the mean.
    Burst20Ms,
}

/// What a link does to packets but for losing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Each is up to 5 ms late for itself, and overtaken by those behind it.
    Apart5Ms,
    /// The same, up to 20 ms.
    Apart20Ms,
    /// They are up to 20 ms late in clumps, in their order.
    Clumps20Ms,
    /// A flow under CUBIC that always has something to send fills the queue towards the display.
    Bulk,
}

impl Cell {
    /// The settings that all others are compared with: 0.5 % independent loss, 100 ms, 100 Mbit/s.
    pub fn baseline(workload: Workload, delivery: Delivery, controller: Controller) -> Self {
        Self {
            workload,
            delivery,
            controller,
            loss_model: LossModel::Independent,
            loss: 50,
            trouble: Trouble::None,
            rtt_ms: 100,
            rate_mbps: 100,
        }
    }

    /// The cell whose run on a lossless link this one's overhead is compared with: the same workload with fences.
    pub fn reference(self) -> Self {
        let clean = Self { loss: 0, loss_model: LossModel::Independent, trouble: Trouble::None, ..self };
        Self { delivery: Delivery::Partial, ..clean }
    }

    /// The share of packets lost in percent.
    pub fn loss_percent(self) -> f64 {
        f64::from(self.loss) / 100.0
    }

    /// The link's rate.
    pub fn rate(self) -> Bitrate {
        Bitrate::mbps(self.rate_mbps.into())
    }

    /// The round-trip time of an empty link.
    pub fn rtt(self) -> Duration {
        Duration::from_millis(self.rtt_ms.into())
    }

    /// The same link without loss, and with more queue than any controller fills: what is sent on it is sent once.
    pub fn lossless_link(self) -> LinkConfig {
        let mut link = Self { loss: 0, ..self }.link();
        link.forward.queue.bytes = u64::MAX / 2;
        link.back.queue.bytes = u64::MAX / 2;
        link
    }

    /// The link: symmetric, with a queue of one bandwidth-delay product each way.
    pub fn link(self) -> LinkConfig {
        let lane = LaneConfig {
            service: Service::Rate(self.rate()),
            delay: self.rtt() / 2,
            queue: Queue::of(self.rate(), self.rtt()),
            loss: self.loss_model.loss(f64::from(self.loss) / 10_000.0),
            jitter: self.trouble.jitter(),
            ..LaneConfig::default()
        };
        LinkConfig { forward: lane.clone(), back: lane }
    }
}

impl LossModel {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Independent, Self::Gilbert2, Self::Gilbert4, Self::Elliott, Self::Burst5Ms, Self::Burst20Ms];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Gilbert2 => "gilbert-2",
            Self::Gilbert4 => "gilbert-4",
            Self::Elliott => "elliott",
            Self::Burst5Ms => "burst-5ms",
            Self::Burst20Ms => "burst-20ms",
        }
    }

    fn loss(self, share: f64) -> Loss {
        match self {
            _ if share <= 0.0 => Loss::None,
            Self::Independent => Loss::Independent(share),
            Self::Gilbert2 => Loss::Packets { share, burst: 2.0 },
            Self::Gilbert4 => Loss::Packets { share, burst: 4.0 },
            Self::Elliott => {
                let bad = (share / BAD_LOSS).min(0.9);
                Loss::Elliott { to_bad: BAD_ENDS * bad / (1.0 - bad), to_good: BAD_ENDS, lost: BAD_LOSS }
            }
            Self::Burst5Ms => Loss::Times { share, burst: Duration::from_millis(5) },
            Self::Burst20Ms => Loss::Times { share, burst: Duration::from_millis(20) },
        }
    }
}

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Apart5Ms, Self::Apart20Ms, Self::Clumps20Ms, Self::Bulk];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Apart5Ms => "apart-5ms",
            Self::Apart20Ms => "apart-20ms",
            Self::Clumps20Ms => "clumps-20ms",
            Self::Bulk => "bulk",
        }
    }

    fn jitter(self) -> Jitter {
        match self {
            Self::None | Self::Bulk => Jitter::None,
            Self::Apart5Ms => Jitter::Apart { span: Duration::from_millis(5) },
            Self::Apart20Ms => Jitter::Apart { span: Duration::from_millis(20) },
            Self::Clumps20Ms => Jitter::Clumps { span: Duration::from_millis(20) },
        }
    }
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Streaming,
        Self::Streaming10Hz,
        Self::NonStreaming,
        Self::Typing,
        Self::Mixed,
        Self::Busy,
        Self::InPlace,
        Self::TypingBesideBusy,
        Self::TraceTerminal,
        Self::TraceScroll,
        Self::TraceWindows,
    ];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::Streaming10Hz => "streaming-10hz",
            Self::NonStreaming => "non-streaming",
            Self::Typing => "typing",
            Self::Mixed => "mixed",
            Self::Busy => "busy",
            Self::InPlace => "busy-in-place",
            Self::TypingBesideBusy => "beside-busy",
            Self::TraceTerminal => "trace-terminal",
            Self::TraceScroll => "trace-scroll",
            Self::TraceWindows => "trace-windows",
        }
    }

    /// What it sends when; always the same.
    pub fn plan(self) -> Plan {
        let large = |pace| Plan::uniform(UPDATES, 10, CHUNK, pace);
        match self {
            Self::Streaming => large(Pace::BackToBack),
            Self::Streaming10Hz => large(Pace::Timed(every(PERIOD, UPDATES))),
            Self::NonStreaming => large(Pace::Asked { pause: PAUSE }),
            Self::Typing => {
                let mut random = Random::new(1);
                let updates = (0..KEYS).map(|_| vec![small(&mut random)]).collect();
                Plan::of(updates, Pace::Keys(every(PERIOD, KEYS)))
            }
            Self::Mixed => {
                let mut random = Random::new(2);
                let updates = (0..UPDATES).map(|_| mixed(&mut random)).collect();
                Plan::of(updates, Pace::Timed(every(PERIOD, UPDATES)))
            }
            Self::Busy => {
                let mut random = Random::new(3);
                let updates = (0..FRAMES).map(|_| vec![frame(&mut random)]).collect();
                Plan { told: true, ..Plan::of(updates, Pace::Timed(every(FRAME, FRAMES))) }
            }
            Self::InPlace => Plan { covers: MAX_COVERED, ..Self::Busy.plan() },
            Self::TypingBesideBusy => {
                let mut random = Random::new(3);
                let beside = (0..2 * FRAMES).map(|_| frame(&mut random)).collect();
                Plan { beside, ..Self::Typing.plan() }
            }
            Self::TraceTerminal => recorded(include_str!("../../traces/terminal.txt")),
            Self::TraceScroll => recorded(include_str!("../../traces/scroll.txt")),
            Self::TraceWindows => recorded(include_str!("../../traces/windows.txt")),
        }
    }
}

/// A recording by `scripts/record-rfb`: a line for each update with its time in ms and its bytes.
fn recorded(text: &str) -> Plan {
    let update = |line: &str| {
        let (millis, bytes) = line.split_once(' ')?;
        Some((Duration::from_millis(millis.parse().ok()?), chunks(bytes.parse().ok()?)))
    };
    let (times, updates) = text.lines().filter_map(update).unzip();
    Plan::of(updates, Pace::Timed(times))
}

/// About equal chunks of at most the usual size.
fn chunks(bytes: usize) -> Vec<usize> {
    let count = bytes.div_ceil(CHUNK).max(1);
    (0..count).map(|number| (bytes * (number + 1) / count - bytes * number / count).max(1)).collect()
}

fn every(period: Duration, count: usize) -> Vec<Duration> {
    (0..count as u32).map(|number| period * number).collect()
}

/// One to five packets.
fn small(random: &mut Random) -> usize {
    random.range(1..6) as usize * PACKET_CONTENT
}

fn mixed(random: &mut Random) -> Vec<usize> {
    let bytes = match random.range(0..100) {
        0..80 => return vec![small(random)],
        80..95 => random.range(10_000..50_000),
        _ => random.range(100_000..300_000),
    };
    chunks(bytes as usize)
}

/// A frame of a small busy window: a third of them are of two packets.
fn frame(random: &mut Random) -> usize {
    let bytes = if random.range(0..10) < 7 { 300..1200 } else { 1400..2600 };
    random.range(bytes) as usize
}

/// Bytes of a message of the paper; a chunk here.
const CHUNK: usize = 10_000;

const UPDATES: usize = 300;
const KEYS: usize = 600;
const PERIOD: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(300);
const FRAMES: usize = 1800;

/// netem's gemodel: the chance of a packet to end the bad state, and the share of packets that the state loses.
const BAD_ENDS: f64 = 0.2;
const BAD_LOSS: f64 = 0.8;

/// Bytes of an update that fill one packet with it.
const PACKET_CONTENT: usize = 1300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_read_to_the_last_line() {
        for (workload, text) in [
            (Workload::TraceTerminal, include_str!("../../traces/terminal.txt")),
            (Workload::TraceScroll, include_str!("../../traces/scroll.txt")),
            (Workload::TraceWindows, include_str!("../../traces/windows.txt")),
        ] {
            let plan = workload.plan();
            assert_eq!(plan.updates.len(), text.lines().count(), "{workload:?}");
            let Pace::Timed(times) = plan.pace else { panic!("{workload:?} is not timed") };
            assert!(times.is_sorted());
        }
    }

    #[test]
    fn chunks_share_an_update_out() {
        assert_eq!(chunks(25_001), [8333, 8334, 8334]);
        assert_eq!(chunks(9), [9]);
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = Workload::ALL.into_iter().map(Workload::name).collect();
        assert_eq!(names.len(), Workload::ALL.len());
    }
}
