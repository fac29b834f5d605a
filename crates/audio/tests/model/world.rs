//! A sender, a link and a player in virtual time, and what is measured of them.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_audio::{
    CHANNELS, Decoder, Figures, FrameSize, Link as Known, Mode, Outgoing, Packet, Player, Position, Sender,
    encode_pcm, from_i16,
};
use wayferry_proto::Time;

use crate::link::Link;

/// What is played, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seconds: f64,
    pub(crate) mode: Mode,
    /// What the sender believes of the link's loss, and whether it knows the round trip.
    pub(crate) loss: f64,
    pub(crate) knows_rtt: bool,
    /// How much faster than it says each sound card is, in millionths.
    pub(crate) capture_ppm: f64,
    pub(crate) device_ppm: f64,
    /// The receiver's process does nothing from the one to the other.
    pub(crate) suspended: Option<(f64, f64)>,
}

impl Plan {
    pub(crate) fn new(seconds: f64, loss: f64) -> Self {
        let mode = Mode::Hybrid;
        Self { seconds, mode, loss, knows_rtt: true, capture_ppm: 0.0, device_ppm: 0.0, suspended: None }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) figures: Figures,
    /// Concealed share of what was played, in percent, since the first sound.
    pub(crate) concealed: f64,
    /// Mean latency in milliseconds, and those of the 3rd and the last minute.
    pub(crate) latency: f64,
    pub(crate) begin_latency: f64,
    pub(crate) end_latency: f64,
    /// Of any second that was played without a break.
    pub(crate) slowest: f64,
    pub(crate) fastest: f64,
    /// When sound was heard for the first time after each silence of 100 ms and more.
    pub(crate) returns: Vec<f64>,
    /// The largest step between neighbours.
    pub(crate) steepest: f32,
}

/// Runs it.
pub(crate) fn run<D: Decoder>(plan: Plan, mut link: Link, decoder: D) -> Outcome {
    let mut player = Player::new(decoder);
    let mut watch = Watch { last_minute: plan.seconds - 60.0, ..Watch::default() };
    let mut sending = Sending::new(plan);
    let mut time = 0.0;
    let step = 0.010 / (1.0 + plan.device_ppm * 1e-6);
    while time < plan.seconds {
        sending.until(time, &mut link, player.figures().target);
        let asleep = plan.suspended.is_some_and(|(from, to)| time >= from && time < to);
        if !asleep {
            let arrived = sending.flying.split_off(&(micros(time) + 1, 0));
            for ((at, _), packet) in std::mem::replace(&mut sending.flying, arrived) {
                // What arrived while the process did nothing is read when it goes on.
                let woke = plan
                    .suspended
                    .map_or(0, |(_, to)| if at < micros(to) && time >= to { micros(time) } else { 0 });
                player.receive(Time::from_micros(at.max(woke)), packet);
            }
            let mut out = [0.0; 480 * CHANNELS];
            player.play(Time::from_micros(micros(time)), &mut out, Duration::ZERO);
            watch.look(time, &player, &out);
        }
        time += step;
    }
    watch.outcome(plan, player.figures())
}

fn micros(time: f64) -> u64 {
    (time * 1e6) as u64
}

/// The sender, and what is on its way.
struct Sending {
    plan: Plan,
    sender: Sender,
    frames: u64,
    flying: BTreeMap<(u64, u64), Packet>,
    count: u64,
    groups: BTreeMap<u64, Group>,
    /// What is sent again on its stream, and when: group and place in it.
    again: BTreeMap<(u64, u64), (u64, usize)>,
    sound: Vec<Vec<u8>>,
}

/// A stream: its packets, when each has arrived, as far as that is known, and how many were read.
#[derive(Default)]
struct Group {
    packets: Vec<(Packet, Option<f64>)>,
    read: usize,
    last: f64,
    flying: Vec<(u64, u64)>,
}

impl Sending {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            sender: Sender::new(0, plan.mode),
            frames: 0,
            flying: BTreeMap::new(),
            count: 0,
            groups: BTreeMap::new(),
            again: BTreeMap::new(),
            sound: (0..250).map(|index| encode_pcm(&sound(index))).collect(),
        }
    }

    /// All frames that were captured by now leave, and what was lost leaves again, in the order of time.
    fn until(&mut self, time: f64, link: &mut Link, target: Duration) {
        let size = FrameSize::Ms20.frames() as f64 / 48_000.0 / (1.0 + self.plan.capture_ppm * 1e-6);
        loop {
            let frame = (self.frames + 1) as f64 * size;
            let again = self.again.first_key_value().map(|((at, _), _)| *at as f64 / 1e6);
            let repeat = self.sender.next_timeout().map(|at| at.since_start().as_secs_f64());
            if let Some(repeat) =
                repeat.filter(|at| *at <= frame.min(time) && again.is_none_or(|again| *at < again))
            {
                let known = self.known(link, target);
                for out in self.sender.on_timeout(Time::from_micros(micros(repeat) + 1), known) {
                    self.carry(repeat, out, link);
                }
            } else if again.is_some_and(|again| again <= frame.min(time)) {
                let ((at, _), (group, place)) = self.again.pop_first().expect("it was there");
                self.write(at as f64 / 1e6, group, place, link);
            } else if frame <= time {
                self.frame(frame, link, target);
            } else {
                return;
            }
        }
    }

    fn frame(&mut self, sent: f64, link: &mut Link, target: Duration) {
        let known = self.known(link, target);
        let payload = self.sound[(self.frames % 250) as usize].clone();
        let (capture, start) = (Position(self.frames * 960), self.frames == 0);
        self.frames += 1;
        for out in self.sender.frame(Time::from_micros(micros(sent)), capture, start, payload, known) {
            self.carry(sent, out, link);
        }
    }

    /// What the sender believes.
    fn known(&self, link: &Link, target: Duration) -> Known {
        let rtt = Duration::from_secs_f64(if self.plan.knows_rtt { link.rtt } else { 0.0 });
        // So large that samples fit, where the codec's packets would fit 1200 bytes.
        Known { rtt, loss: self.plan.loss, target, datagram: 16_000 }
    }

    fn carry(&mut self, sent: f64, out: Outgoing, link: &mut Link) {
        match out {
            Outgoing::Datagram(packets) => {
                let Some(arrives) = link.send(sent) else { return };
                for packet in packets {
                    self.fly(arrives, packet);
                }
            }
            Outgoing::Stream { group, packet, .. } => {
                let packets = &mut self.groups.entry(group).or_default().packets;
                packets.push((packet, None));
                let place = packets.len() - 1;
                self.write(sent, group, place, link);
            }
            Outgoing::Reset { group } => {
                let there = micros(sent + link.rtt / 2.0);
                let keys = self.groups.remove(&group).unwrap_or_default().flying;
                keys.iter().filter(|(at, _)| *at > there).for_each(|key| drop(self.flying.remove(key)));
            }
        }
    }

    /// A packet of a stream leaves; it is read when all before it have been.
    fn write(&mut self, time: f64, number: u64, place: usize, link: &mut Link) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        let Some(arrives) = link.send(time) else {
            // Other packets follow it closely: a loss is noticed after 9/8 of the round trip.
            let mut noticed = time + link.rtt * 9.0 / 8.0 + 0.002;
            if let Some((_, to)) = link.down.filter(|_| link.is_down(noticed)) {
                noticed = to + link.rtt;
            }
            self.count += 1;
            self.again.insert((micros(noticed), self.count), (number, place));
            return;
        };
        group.packets[place].1 = Some(arrives);
        while let Some((packet, Some(arrives))) = group.packets.get(group.read) {
            group.last = group.last.max(*arrives);
            group.read += 1;
            self.count += 1;
            let key = (micros(group.last), self.count);
            group.flying.push(key);
            self.flying.insert(key, packet.clone());
        }
    }

    fn fly(&mut self, arrives: f64, packet: Packet) {
        self.count += 1;
        self.flying.insert((micros(arrives), self.count), packet);
    }
}

/// A voice and a bell, 20 ms of 5 s that repeat: nothing that resembles itself everywhere, and no silence.
pub(crate) fn sound(index: usize) -> Vec<f32> {
    let tau = std::f64::consts::TAU;
    let sample = |at: usize| {
        let time = at as f64 / 48_000.0;
        // Whole periods in 5 s; the pitch glides, the loudness breathes.
        let glide = 140.0 * time + 4.0 * (tau * time * 0.6).sin();
        let voice: f64 = (1..6).map(|tone| (tau * glide * f64::from(tone)).sin() / f64::from(tone)).sum();
        let breath = 0.6 + 0.4 * (tau * time * 1.4).sin();
        let bell = (tau * 1046.4 * time).sin();
        from_i16(((voice * breath * 0.25 + bell * 0.05) * 32_000.0) as i16)
    };
    (0..960).flat_map(|at| [sample(index * 960 + at), 0.5 * sample(index * 960 + at)]).collect()
}

/// Looks at what is played.
#[derive(Default)]
struct Watch {
    /// Positions of the last second of unbroken sound.
    positions: std::collections::VecDeque<u64>,
    latencies: (f64, u32),
    minutes: [(f64, u32); 2],
    silent: u32,
    outcome: Outcome,
    last: f32,
    began: Option<f64>,
    last_minute: f64,
}

impl Watch {
    fn look<D: Decoder>(&mut self, time: f64, player: &Player<D>, out: &[f32]) {
        let left = out.iter().step_by(CHANNELS);
        for sample in left {
            self.outcome.steepest = self.outcome.steepest.max((sample - self.last).abs());
            self.last = *sample;
        }
        if out.iter().all(|sample| *sample == 0.0) {
            self.silent += 1;
        } else {
            if self.silent >= 10 {
                self.outcome.returns.push(time);
            }
            self.silent = 0;
        }
        let Some(position) = player.position() else { return self.positions.clear() };
        self.began.get_or_insert(time);
        let latency = player.figures().latency.as_secs_f64() * 1e3;
        add(&mut self.latencies, latency);
        if (120.0..180.0).contains(&time) {
            add(&mut self.minutes[0], latency);
        }
        if time >= self.last_minute {
            add(&mut self.minutes[1], latency);
        }
        self.tempo(position.0);
    }

    fn tempo(&mut self, position: u64) {
        if self.positions.back().is_some_and(|last| position.abs_diff(*last) > 480 + 48 * 30) {
            self.positions.clear();
        }
        self.positions.push_back(position);
        if self.positions.len() > 100 {
            let first = self.positions.pop_front().unwrap_or_default();
            let tempo = (position as f64 - first as f64) / 48_000.0;
            self.outcome.fastest = self.outcome.fastest.max(tempo);
            let slowest = self.outcome.slowest;
            self.outcome.slowest = if slowest == 0.0 { tempo } else { slowest.min(tempo) };
        }
    }

    fn outcome(mut self, plan: Plan, figures: Figures) -> Outcome {
        let mean = |(sum, count): (f64, u32)| sum / f64::from(count.max(1));
        let heard = plan.seconds - self.began.unwrap_or(0.0);
        self.outcome.concealed = figures.concealed.as_secs_f64() / heard * 100.0;
        self.outcome.latency = mean(self.latencies);
        self.outcome.begin_latency = mean(self.minutes[0]);
        self.outcome.end_latency = mean(self.minutes[1]);
        self.outcome.figures = figures;
        self.outcome
    }
}

fn add((sum, count): &mut (f64, u32), value: f64) {
    *sum += value;
    *count += 1;
}

/// How long each frame takes at best, in their order.
pub(crate) fn arrivals(plan: Plan, mut link: Link) -> Vec<f64> {
    let mut sending = Sending::new(plan);
    let mut time = 0.0;
    while time < plan.seconds {
        sending.until(time, &mut link, Duration::from_millis(100));
        time += 0.010;
    }
    let mut first = BTreeMap::new();
    for ((at, _), packet) in &sending.flying {
        first.entry(packet.sequence).or_insert(*at as f64 / 1e6 - packet.capture.0 as f64 / 48_000.0);
    }
    first.into_values().collect()
}
