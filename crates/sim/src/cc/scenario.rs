//! The scenarios by name, with what is expected of the product's controller in each.

use std::time::Duration;

use super::experiment::{
    Path, competition, congestion_loss, frames, limited_bulk, message_beside_bulk, rate_drop, route_change,
    start_up, two_flows,
};
use super::outcome::{Metric, Outcome, Target};
use crate::controller::Controller;
use crate::error::Error;
use crate::link::{Jitter, Loss, Policer, Reorder};
use crate::unit::Bitrate;

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// 100-byte messages at high priority beside a bulk flow: 10 Mbit/s, 20 ms each way, 250 ms of queue.
    A,
    /// The same where packets come in clumps, up to 4 ms late, and one of a hundred is lost, three in a row, both ways:
    /// 10 Mbit/s, 30 ms each way, 240 ms of queue.
    ACellular,
    /// 200 bytes, 50 times a second, as sound is sent, beside a bulk flow on a link on which each packet takes longer
    /// than an acknowledgement is held back: 1.5 Mbit/s, 30 ms each way, 250 ms of queue.
    ANarrow,
    /// 20 kB, 30 times a second, with 20 % repair, from the second second on: 30 Mbit/s, 40 ms each way, 2 % loss.
    B,
    /// The same without repair.
    BWithoutRepair,
    /// B on 8 Mbit/s.
    B8,
    /// A bulk flow begins on 20 Mbit/s, 25 ms each way, one bandwidth-delay product of queue.
    StartUp20,
    /// The same on 100 Mbit/s.
    StartUp100,
    /// The same on 1 Gbit/s.
    StartUp1000,
    /// A bulk flow's round trip grows by 100 ms: 20 Mbit/s, 20 ms each way at first.
    RttStep,
    /// A bulk flow's link falls from 20 to 2 Mbit/s.
    RateDrop,
    /// A bulk flow whose packets wander by ± 20 ms.
    JitterWander,
    /// The same, but they arrive in clumps.
    JitterClumps,
    /// A bulk flow on 100 Mbit/s whose packets wander by ± 2 ms, as on Wi-Fi.
    JitterWander100,
    /// A bulk flow beside one of CUBIC, with 30 ms of queue.
    ShareCubic30,
    /// The same with 250 ms of queue.
    ShareCubic250,
    /// A bulk flow beside one of BBR3, with 100 ms of queue.
    ShareBbr3,
    /// A bulk flow beside 10 of 20 Mbit/s without control.
    BesideConstant,
    /// Two flows of this controller, the second five seconds after the first.
    TwoFlows,
    /// 5 % of the acknowledgements' packets are lost.
    AckLoss,
    /// A bulk flow on a link that loses 2 % of the packets both ways: 100 Mbit/s, 20 ms each way, 100 ms of queue.
    Lossy100,
    /// 2 % of the packets are 10 ms late.
    Reordering,
    /// A policer of 10 Mbit/s with 50 kB of burst on a link of 100 Mbit/s.
    Policer,
    /// CoDel in the bottleneck.
    Codel,
    /// A session with adaptive repair sends 100 kB ten times a second beside a bulk flow of CUBIC, with 30 ms of queue:
    /// all loss is congestion's, and repair would only add to it.
    CongestionLoss,
}

impl Scenario {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 25] = [
        Self::A,
        Self::ACellular,
        Self::ANarrow,
        Self::B,
        Self::BWithoutRepair,
        Self::B8,
        Self::StartUp20,
        Self::StartUp100,
        Self::StartUp1000,
        Self::RttStep,
        Self::RateDrop,
        Self::JitterWander,
        Self::JitterClumps,
        Self::JitterWander100,
        Self::ShareCubic30,
        Self::ShareCubic250,
        Self::ShareBbr3,
        Self::BesideConstant,
        Self::TwoFlows,
        Self::AckLoss,
        Self::Lossy100,
        Self::Reordering,
        Self::Policer,
        Self::Codel,
        Self::CongestionLoss,
    ];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::ACellular => "A-cellular",
            Self::ANarrow => "A-narrow",
            Self::B => "B",
            Self::BWithoutRepair => "B-without-repair",
            Self::B8 => "B-8mbit",
            Self::StartUp20 => "start-up-20",
            Self::StartUp100 => "start-up-100",
            Self::StartUp1000 => "start-up-1000",
            Self::RttStep => "rtt-step",
            Self::RateDrop => "rate-drop",
            Self::JitterWander => "jitter-wander",
            Self::JitterClumps => "jitter-clumps",
            Self::JitterWander100 => "jitter-wander-100",
            Self::ShareCubic30 => "share-vs-cubic-30ms",
            Self::ShareCubic250 => "share-vs-cubic-250ms",
            Self::ShareBbr3 => "share-vs-bbr3",
            Self::BesideConstant => "beside-constant",
            Self::TwoFlows => "two-flows",
            Self::AckLoss => "ack-loss",
            Self::Lossy100 => "lossy-100",
            Self::Reordering => "reordering",
            Self::Policer => "policer",
            Self::Codel => "codel",
            Self::CongestionLoss => "congestion-loss",
        }
    }

    /// What is expected of the product's controller. Where the aim is that nothing collapses, that is half of the link.
    pub fn targets(self) -> &'static [Target] {
        use Metric::{
            Drops, Goodput, Jain, LatencyP50, LatencyP99, QueueP99, Repair, Settling, Share, StartUp,
        };
        match self {
            Self::A => &const { [Target::of(LatencyP50, 25.0), Target::of(LatencyP99, 29.0)] },
            // A frame, by which keys may be later than on an empty link, and what of the jitter looks like a queue.
            Self::ACellular => &const { [Target::of(Goodput, 90.0), Target::of(QueueP99, 20.0)] },
            // Four packets, of 7 ms each.
            Self::ANarrow => &const { [Target::of(Goodput, 90.0), Target::of(QueueP99, 28.0)] },
            Self::B => &const { [Target::of(LatencyP99, 50.0)] },
            Self::B8 => &const { [Target::of(LatencyP99, 65.0)] },
            Self::BWithoutRepair | Self::ShareBbr3 => &[],
            Self::StartUp20 => &const { [Target::of(StartUp, 3.0), Target::of(Drops, 0.0)] },
            Self::StartUp100 => &const { [Target::of(StartUp, 6.0), Target::of(Drops, 0.0)] },
            Self::StartUp1000 => &const { [Target::of(StartUp, 9.0), Target::of(Drops, 0.0)] },
            Self::RttStep => &const { [Target::of(Goodput, 85.0), Target::of(QueueP99, 100.0)] },
            Self::RateDrop => &const { [Target::of(Settling, 2.0)] },
            Self::JitterWander | Self::JitterClumps => &const { [Target::of(Goodput, 80.0)] },
            // Four times as much as wanders.
            Self::JitterWander100 => &const { [Target::of(Goodput, 90.0), Target::of(QueueP99, 16.0)] },
            Self::ShareCubic30 | Self::ShareCubic250 => &const { [Target::between(Share, 35.0, 65.0)] },
            // One row for each update of 74 packets is the least on a link that has shown loss.
            Self::CongestionLoss => &const { [Target::of(Repair, 2.5)] },
            // All but what is lost, and a little.
            Self::Lossy100 => &const { [Target::of(Goodput, 95.0)] },
            Self::TwoFlows => &const { [Target::of(Goodput, 95.0), Target::of(Jain, 0.9)] },
            Self::BesideConstant | Self::AckLoss | Self::Reordering | Self::Policer | Self::Codel => {
                &const { [Target::of(Goodput, 50.0)] }
            }
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// A connection broke.
    pub fn run(self, controller: Controller, seed: u64) -> Result<Outcome, Error> {
        let path = Path::new(Bitrate::mbps(20), 20, 100);
        let jitter = |jitter| Path { jitter, ..path };
        let span = Duration::from_millis(40);
        match self {
            Self::A => message_beside_bulk(Path::new(Bitrate::mbps(10), 20, 250), KEYS, controller, seed),
            Self::ACellular => {
                let loss = Loss::Packets { share: 0.01, burst: 3.0 };
                let jitter = Jitter::Clumps { span: Duration::from_millis(4) };
                let path = Path::new(Bitrate::mbps(10), 30, 240);
                let path = Path { loss, back_loss: loss, jitter, back_jitter: jitter, ..path };
                message_beside_bulk(path, KEYS, controller, seed)
            }
            Self::ANarrow => {
                message_beside_bulk(Path::new(Bitrate::kbps(1500), 30, 250), SOUND, controller, seed)
            }
            Self::B => frames(Bitrate::mbps(30), 0.2, controller, seed),
            Self::BWithoutRepair => frames(Bitrate::mbps(30), 0.0, controller, seed),
            Self::B8 => frames(Bitrate::mbps(8), 0.2, controller, seed),
            Self::StartUp20 => start_up(Bitrate::mbps(20), controller, seed),
            Self::StartUp100 => start_up(Bitrate::mbps(100), controller, seed),
            Self::StartUp1000 => start_up(Bitrate::mbps(1000), controller, seed),
            Self::RttStep => route_change(path, controller, seed),
            Self::RateDrop => rate_drop(Path::new(Bitrate::mbps(20), 20, 250), controller, seed),
            Self::JitterWander => {
                limited_bulk(jitter(Jitter::Wander { span, period: WANDER }), path.rate, controller, seed)
            }
            Self::JitterClumps => limited_bulk(jitter(Jitter::Clumps { span }), path.rate, controller, seed),
            Self::JitterWander100 => {
                let jitter = Jitter::Wander { span: Duration::from_millis(4), period: WANDER / 2 };
                let path = Path { jitter, ..Path::new(Bitrate::mbps(100), 20, 100) };
                limited_bulk(path, path.rate, controller, seed)
            }
            Self::ShareCubic30 => {
                competition(Path::new(path.rate, 20, 30), Controller::Cubic, controller, seed)
            }
            Self::ShareCubic250 => {
                competition(Path::new(path.rate, 20, 250), Controller::Cubic, controller, seed)
            }
            Self::ShareBbr3 => competition(path, Controller::Bbr3, controller, seed),
            Self::BesideConstant => {
                let constant = Some(Bitrate::mbps(10));
                limited_bulk(Path { constant, ..path }, Bitrate::mbps(10), controller, seed)
            }
            Self::TwoFlows => two_flows(path, controller, seed),
            Self::AckLoss => {
                limited_bulk(Path { back_loss: Loss::Independent(0.05), ..path }, path.rate, controller, seed)
            }
            Self::Lossy100 => {
                let loss = Loss::Independent(0.02);
                let path = Path { loss, back_loss: loss, ..Path::new(Bitrate::mbps(100), 20, 100) };
                limited_bulk(path, path.rate, controller, seed)
            }
            Self::Reordering => {
                let reorder = Some(Reorder { share: 0.02, by: Duration::from_millis(10) });
                limited_bulk(Path { reorder, ..path }, path.rate, controller, seed)
            }
            Self::Policer => {
                let policer = Some(Policer { rate: Bitrate::mbps(10), burst: 50_000 });
                let path = Path { policer, ..Path::new(Bitrate::mbps(100), 20, 100) };
                limited_bulk(path, Bitrate::mbps(10), controller, seed)
            }
            Self::CongestionLoss => congestion_loss(Path::new(path.rate, 20, 30), controller, seed),
            Self::Codel => limited_bulk(Path { codel: true, ..path }, path.rate, controller, seed),
        }
    }
}

/// Bytes of a message, and how far messages are apart.
const KEYS: (u64, Duration) = (100, Duration::from_millis(50));
const SOUND: (u64, Duration) = (200, Duration::from_millis(20));
/// How long a wandering delay keeps its direction.
const WANDER: Duration = Duration::from_millis(100);
