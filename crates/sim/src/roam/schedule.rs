//! What goes wrong when: plain values, made from a seed or by hand.

use std::time::Duration;

use wayferry_proto::Time;

use crate::link::{Change, Jitter, LaneConfig, Loss, Queue, Reorder, Service, Step};
use crate::random::Random;
use crate::unit::Bitrate;
use crate::world::LinkConfig;

/// One run; see the module.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What all else is random by.
    pub seed: u64,
    /// The link, without its outages.
    pub link: LinkConfig,
    /// What happens.
    pub troubles: Vec<(Time, Trouble)>,
    /// Until then the sides have something new to say, and afterwards everything has to come to rest.
    pub end: Time,
    /// From one thing that a side says to the next, in the mean.
    pub pause: Duration,
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// All packets are lost for so long.
    Outage(Duration),
    /// The display has another address from now on; it notices.
    Address,
    /// The same, and it does not.
    Rebinding,
    /// The display comes over another connection, without need.
    Move,
    /// The display ends without a word, and another one comes.
    Crash,
    /// The display is not there for so long, and does not know it.
    Sleep(Duration),
    /// The app side forgets the session: another process answers in its place.
    Forget,
}

impl Trouble {
    /// For how long.
    fn lasts(self) -> Duration {
        match self {
            Self::Outage(time) | Self::Sleep(time) => time,
            _ => Duration::ZERO,
        }
    }
}

impl Schedule {
    /// The schedule of this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed).fork(1);
        let link = LinkConfig { forward: lane(&mut random), back: lane(&mut random) };
        let (mut troubles, mut over) = (Vec::new(), Time::ZERO);
        for _ in 0..1 + random.range(0..7) {
            // One after the other, or in the midst of the one before; also when the sides have hardly met.
            let after =
                if random.range(0..4) == 0 { troubles.last().map_or(over, |(at, _)| *at) } else { over };
            let at = after + Duration::from_millis(random.range(0..3_000));
            let trouble = trouble(&mut random);
            troubles.push((at, trouble));
            over = over.max(at + trouble.lasts());
        }
        let end = over + Duration::from_millis(random.range(500..3_000));
        let pause = Duration::from_millis(random.range(10..120));
        Self { seed, link, troubles, end, pause }
    }

    /// When the last trouble is over, and nothing new is said.
    pub fn healed(&self) -> Time {
        let over = self.troubles.iter().map(|(at, trouble)| *at + trouble.lasts());
        over.max().unwrap_or(Time::ZERO).max(self.end)
    }

    /// The link with its outages.
    pub(super) fn lanes(&self) -> [LaneConfig; 2] {
        [&self.link.forward, &self.link.back].map(|lane| {
            let mut lane = lane.clone();
            lane.steps = self.outages();
            lane
        })
    }

    fn outages(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut until = Time::ZERO;
        for (at, trouble) in &self.troubles {
            let Trouble::Outage(time) = trouble else { continue };
            // One that begins in another one makes it longer.
            if *at <= until {
                steps.pop();
            } else {
                steps.push(Step { at: *at, change: Change::Down(true) });
            }
            until = until.max(*at + *time);
            steps.push(Step { at: until, change: Change::Down(false) });
        }
        steps
    }
}

fn lane(random: &mut Random) -> LaneConfig {
    let rate = Bitrate::mbps(random.range(2..40));
    LaneConfig {
        service: Service::Rate(rate),
        delay: Duration::from_millis(random.range(2..120)),
        jitter: Jitter::Clumps { span: Duration::from_millis(random.range(0..20)) },
        queue: Queue::of(rate, Duration::from_millis(200)),
        loss: Loss::Packets { share: random.unit() * 0.04, burst: 1.0 + random.unit() * 2.0 },
        reorder: Some(Reorder {
            share: random.unit() * 0.05,
            by: Duration::from_millis(random.range(1..40)),
        }),
        duplication: random.unit() * 0.03,
        ..LaneConfig::default()
    }
}

fn trouble(random: &mut Random) -> Trouble {
    match random.range(0..16) {
        0..=4 => Trouble::Outage(Duration::from_millis(random.range(50..9_000))),
        // Beyond the patience of everybody.
        5 => Trouble::Outage(Duration::from_secs(random.range(60..72))),
        6..=7 => Trouble::Address,
        8 => Trouble::Rebinding,
        9..=11 => Trouble::Move,
        12..=13 => Trouble::Crash,
        14 => Trouble::Sleep(Duration::from_millis(random.range(500..70_000))),
        _ => Trouble::Forget,
    }
}
