//! The two hosts, the link between them, the time, and what is looked at in the end.

use std::net::SocketAddr;
use std::time::Duration;

use wayferry_proto::{Side, Time};

use super::Failure;
use super::schedule::{Schedule, Trouble};
use super::server::Server;
use super::talk::Talk;
use super::viewer::Viewer;
use crate::clock::Clock;
use crate::host::address;
use crate::link::Lane;
use crate::random::Random;

/// What a run was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Messages, bytes of pipes, updates and blobs of the last talk.
    pub said: u64,
    /// How often the session went on over another connection.
    pub resumed: u32,
    /// How often a display met an app side that did not know it, the first time included.
    pub anew: u32,
    /// The most that either side kept for the other, in bytes.
    pub retained: usize,
    /// From the end of the last trouble and talk to the last word that came.
    pub settled: Duration,
}

/// Runs a schedule to its end.
///
/// # Errors
/// What one side said is not what the other one heard, something was heard twice or ended that should not have, or
/// something is left in memory.
pub fn run(schedule: &Schedule) -> Result<Report, Failure> {
    let fail = |at: Time, why: String| Failure { seed: schedule.seed, at, why };
    let mut world = World::new(schedule).ok_or_else(|| fail(Time::ZERO, "no beginning".into()))?;
    let result = world.run(schedule);
    result.map_err(|why| fail(world.now, why))
}

struct World {
    clock: Clock,
    now: Time,
    random: Random,
    server: Server,
    viewer: Viewer,
    lanes: [Lane<Packet>; 2],
    /// Troubles that are to come, the last one first.
    troubles: Vec<(Time, Trouble)>,
    wakes: Option<Time>,
    lives: u64,
    report: Report,
}

#[derive(Clone, Debug)]
struct Packet {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl World {
    fn new(schedule: &Schedule) -> Option<Self> {
        let random = Random::new(schedule.seed).fork(2);
        let clock = Clock::new();
        let talk = |side, label| Talk::new(side, &random.fork(label), schedule.pause, schedule.end);
        let viewer = Viewer::new(clock, &random.fork(5), address(0), talk(Side::Display, 3))?;
        let seeds = [random.fork(6).bits(), random.fork(7).bits()];
        let [forward, back] = schedule.lanes();
        let mut troubles = schedule.troubles.clone();
        troubles.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Some(Self {
            clock,
            now: Time::ZERO,
            server: Server::new(&random.fork(8), 1, talk(Side::App, 4)),
            random,
            viewer,
            lanes: [Lane::new(forward, seeds[0]), Lane::new(back, seeds[1])],
            troubles,
            wakes: None,
            lives: 1,
            report: Report::default(),
        })
    }

    fn run(&mut self, schedule: &Schedule) -> Result<Report, String> {
        let healed = schedule.healed();
        self.run_until(healed, |_| false)?;
        self.run_until(healed + SETTLE, |world| world.missing().is_none())?;
        if let Some(missing) = self.missing() {
            return Err(missing);
        }
        let last = [self.server.talk.last_heard, self.viewer.talk.last_heard].into_iter().flatten().max();
        self.report.settled = last.unwrap_or(healed) - healed;
        self.report.anew += self.server.anew;
        self.report.said = self.server.talk.said() + self.viewer.talk.said();
        // Nothing is left when everything is at an end.
        self.server.finish();
        self.viewer.finish();
        let end = self.now + SETTLE;
        self.run_until(end, |world| world.left().is_none() && world.missing().is_none())?;
        match self.missing().or_else(|| self.left()) {
            Some(why) => Err(why),
            None => Ok(self.report),
        }
    }

    /// What one side said and the other has not heard.
    fn missing(&self) -> Option<String> {
        let (server, viewer) = (&self.server.talk, &self.viewer.talk);
        server.missing(viewer).or_else(|| viewer.missing(server))
    }

    /// What is in memory and need not be.
    fn left(&mut self) -> Option<String> {
        let (legs, waiting) = self.server.load();
        let waiting = waiting + self.viewer.waiting();
        let retained = self.retained();
        let left = legs != 1 || waiting > 0 || retained > 0;
        left.then(|| format!("left over: {legs} connections, {waiting} streams, {retained} bytes"))
    }

    fn retained(&mut self) -> usize {
        let server = self.server.session().map_or(0, |session| session.retained());
        server + self.viewer.session().retained()
    }

    fn run_until(&mut self, end: Time, done: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let (mut steps, mut looked) = (0_u64, self.now);
        loop {
            // Looking is dear.
            if self.now - looked >= LOOK {
                looked = self.now;
                self.report.retained = self.report.retained.max(self.retained());
                if done(self) {
                    return Ok(());
                }
            }
            let Some(next) = self.next_timeout().filter(|next| *next <= end) else {
                self.now = self.now.max(end);
                return Ok(());
            };
            steps = if next > self.now { 0 } else { steps + 1 };
            if steps > MAX_STEPS {
                return Err("time stands still".into());
            }
            self.now = self.now.max(next);
            self.step();
            if let Some(why) = self.fault() {
                return Err(why);
            }
        }
    }

    fn fault(&mut self) -> Option<String> {
        let faults = [self.server.fault.take(), self.viewer.fault.take()].into_iter().flatten();
        let talks = [&self.server.talk, &self.viewer.talk].into_iter().filter_map(|talk| talk.fault());
        faults.chain(talks.map(str::to_owned)).next()
    }

    fn next_timeout(&self) -> Option<Time> {
        let (clock, now) = (self.clock, self.now);
        let lanes = self.lanes.iter().filter_map(Lane::next_timeout);
        let viewer = self.viewer.next_timeout(clock, now).filter(|_| self.wakes.is_none());
        let hosts = self.server.next_timeout(clock, now).into_iter().chain(viewer).chain(self.wakes);
        let trouble = self.troubles.last().map(|(at, _)| *at);
        lanes.chain(hosts).chain(trouble).min()
    }

    /// Does what is due now.
    fn step(&mut self) {
        let (clock, now) = (self.clock, self.now);
        if self.wakes.is_some_and(|wakes| wakes <= now) {
            self.wakes = None;
        }
        while let Some((_, trouble)) = self.troubles.pop_if(|(at, _)| *at <= now) {
            self.suffer(trouble);
        }
        while let Some(packet) = self.lanes[TO_SERVER].pop(now) {
            self.server.receive(clock, now, packet.from, &packet.bytes);
        }
        while let Some(packet) = self.lanes[TO_VIEWER].pop(now) {
            if packet.to == self.viewer.address && self.wakes.is_none() {
                self.viewer.receive(clock, now, packet.from, &packet.bytes);
            }
        }
        self.server.advance(clock, now);
        if self.wakes.is_none() {
            self.viewer.advance(clock, now);
        }
        for (to, bytes) in std::mem::take(&mut self.server.out) {
            let length = bytes.len();
            self.lanes[TO_VIEWER].push(now, length, Packet { from: address(0), to, bytes });
        }
        for (to, bytes) in std::mem::take(&mut self.viewer.out) {
            let (length, from) = (bytes.len(), self.viewer.address);
            self.lanes[TO_SERVER].push(now, length, Packet { from, to, bytes });
        }
        self.report.resumed = self.viewer.resumed;
    }

    fn suffer(&mut self, trouble: Trouble) {
        let (clock, now) = (self.clock, self.now);
        match trouble {
            Trouble::Outage(_) => {} // the lanes know
            Trouble::Sleep(time) => self.wakes = Some(self.wakes.unwrap_or(now).max(now + time)),
            // A sleeper does nothing.
            _ if self.wakes.is_some() && trouble != Trouble::Forget => {}
            Trouble::Address => self.viewer.roam(clock, now, true),
            Trouble::Rebinding => self.viewer.roam(clock, now, false),
            Trouble::Move => self.viewer.attach(clock, now),
            Trouble::Crash => self.viewer.crash(clock, now),
            Trouble::Forget => {
                self.lives += 1;
                self.report.anew += self.server.anew;
                let talk = std::mem::take(&mut self.server.talk);
                self.server = Server::new(&self.random.fork(8), self.lives, talk);
            }
        }
    }
}

/// Numbers of the lanes.
const TO_VIEWER: usize = 0;
const TO_SERVER: usize = 1;

/// How long everything may take to come to rest: the display's greatest patience, and enough for slow links that lose
/// much.
const SETTLE: Duration = Duration::from_secs(180);

/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(100);

/// How often something may happen at one moment.
const MAX_STEPS: u64 = 100_000;
