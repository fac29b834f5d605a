//! Why updates were late: by what was lost of the first transmissions of key, answer, unit and their repair.
//!
//! A run of one cell is recorded packet by packet, and every update that came more than [`LATE`] after what the empty
//! link takes is given a cause. It explains sessions with a stream for each update. Invariant: each late update has one
//! cause, the first that applies.

mod packet;
mod traffic;

use std::ops::Range;
use std::time::Duration;

use wayferry_proto::Time;

use self::packet::{Frame, Packet};
use self::traffic::{EVENTS, Lost, Traffic, UPDATE};
use crate::error::Error;
use crate::grid::{Cell, Run};
use crate::session::{Answer, Log, Plan, REQUEST};

/// One recorded run.
#[derive(Debug)]
pub struct Why {
    /// Updates that were looked at.
    pub updates: u64,
    /// Those that were late, in their order.
    pub late: Vec<Late>,
    /// Towards the display, and back.
    ways: [Traffic; 2],
}

/// An update that was late.
#[derive(Clone, Debug)]
pub struct Late {
    /// Its number, from 0.
    pub update: usize,
    /// When it was asked for or handed over, and delivered.
    pub answer: Answer,
    /// Above what the empty link takes.
    pub by: Duration,
    /// Why.
    pub cause: Cause,
}

/// What made an update late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The update before it was delivered later, or just before.
    Behind,
    /// The key was lost with all that repaired it.
    Key,
    /// The key was lost, and what repaired it came late.
    KeyRepairedLate,
    /// Everything of it, and every row.
    AllSourceAllRows,
    /// Everything of it, but not every row.
    AllSource,
    /// Some of it, and too many rows.
    SomeSource,
    /// Nothing of its own.
    Nothing,
}

impl Cause {
    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Behind => "behind the one before",
            Self::Key => "key and all that repairs it lost",
            Self::KeyRepairedLate => "key lost, repaired late",
            Self::AllSourceAllRows => "all source and all rows lost",
            Self::AllSource => "all source lost, rows came",
            Self::SomeSource => "some source and rows lost",
            Self::Nothing => "nothing of its own lost",
        }
    }
}

impl Why {
    /// Runs a cell and explains it.
    ///
    /// # Errors
    /// As [`Run::of`].
    pub fn of(cell: Cell, seed: u64) -> Result<Self, Error> {
        let (mut records, mut answers) = (Default::default(), Vec::new());
        Run::watched(cell.link(), cell, seed, |world, log: &Log, plan, sent| {
            records = world.records();
            answers = log.answers(plan, cell.delivery.order(), sent).unwrap_or_default();
        })?;
        let read = |records: Vec<(Time, bool, Vec<u8>)>| {
            let packets = records.iter().filter_map(|(at, lost, bytes)| Packet::read(*at, *lost, bytes));
            Traffic::new(packets.collect())
        };
        let mut why = Self { updates: 0, late: Vec::new(), ways: records.map(read) };
        why.explain(&cell.workload.plan(), cell.rtt(), &answers);
        Ok(why)
    }

    /// Every packet from the key, or the commit, to the delivery.
    pub fn story(&self, late: &Late) -> Vec<String> {
        let Answer { asked, delivered } = late.answer;
        let mut lines: Vec<(Time, String)> = Vec::new();
        for (way, arrow) in self.ways.iter().zip(["<-", "->"]) {
            let between = way.packets.iter().filter(|packet| packet.at >= asked && packet.at <= delivered);
            lines.extend(between.map(|packet| (packet.at, line(way, packet, arrow))));
        }
        lines.sort();
        let millis = |at: Time| at.since(asked).as_secs_f64() * 1e3;
        lines.into_iter().map(|(at, line)| format!("{:9.2} {line}", millis(at))).collect()
    }

    fn explain(&mut self, plan: &Plan, rtt: Duration, answers: &[Answer]) {
        let least = if plan.has_requests() { rtt } else { rtt / 2 };
        let of_updates = self.ways[0].of_kind(UPDATE);
        for (update, answer) in answers.iter().enumerate().skip(Log::FIRST) {
            self.updates += 1;
            let by = answer.delivered.since(answer.asked).saturating_sub(least);
            if by <= LATE {
                continue;
            }
            let behind = answers[update - 1].delivered + TOGETHER >= answer.delivered;
            let cause = match of_updates.get(update) {
                _ if behind => Cause::Behind,
                Some(stream) => self.cause(plan, update, *stream),
                None => Cause::Nothing,
            };
            self.late.push(Late { update, answer: *answer, by, cause });
        }
    }

    fn cause(&self, plan: &Plan, update: usize, stream: u64) -> Cause {
        let key = self.message(1, EVENTS, update, REQUEST).filter(|_| plan.has_requests());
        let whole = 0..u64::MAX;
        let (source, rows) = (self.ways[0].source(stream, &whole), self.ways[0].rows(stream, &whole));
        match key {
            Some((key, repair)) if key.lost > 0 && repair.all() => Cause::Key,
            Some((key, _)) if key.lost > 0 && source.lost == 0 => Cause::KeyRepairedLate,
            _ if source.lost == 0 => Cause::Nothing,
            _ if source.all() && rows.all() => Cause::AllSourceAllRows,
            _ if source.all() => Cause::AllSource,
            _ => Cause::SomeSource,
        }
    }

    /// What was lost of a message, and of what repairs it.
    fn message(&self, way: usize, kind: u64, index: usize, length: usize) -> Option<(Lost, Lost)> {
        let way = &self.ways[way];
        let stream = way.of_kind(kind).first().copied()?;
        let range: Range<u64> = way.message(stream, index, length);
        Some((way.source(stream, &range), way.rows(stream, &range)))
    }
}

fn line(way: &Traffic, packet: &Packet, arrow: &str) -> String {
    let frames: Vec<String> = packet.frames.iter().map(|frame| word(way, frame)).collect();
    let lost = if packet.lost { "LOST" } else { "" };
    format!("{arrow} {:>6} {lost:4} {}", packet.number, frames.join(", "))
}

fn word(way: &Traffic, frame: &Frame) -> String {
    match frame {
        Frame::Ack(up_to) => format!("ack {up_to}"),
        Frame::Other(kind) => format!("frame {kind:#x}"),
        Frame::Stream { number, offset, bytes, end } => {
            let end = if *end { " end" } else { "" };
            format!("{} [{offset}+{}{end}]", way.name(*number), bytes.len())
        }
    }
}

/// Updates that one arrival has let go come within this time.
const TOGETHER: Duration = Duration::from_millis(5);

/// How much above what the empty link takes is late: more than a frame.
pub const LATE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::grid::{LossModel, Workload};
    use crate::session::{Amount, Delivery};

    fn cell(workload: Workload, delivery: Delivery) -> Cell {
        let base = Cell::baseline(workload, delivery, Controller::Copa);
        Cell { rate_mbps: 20, loss: 200, loss_model: LossModel::Burst20Ms, ..base }
    }

    #[test]
    fn each_late_update_has_a_cause_and_a_story_with_a_loss() {
        for workload in [Workload::Typing, Workload::Busy] {
            let why = Why::of(cell(workload, Delivery::Repaired(Amount::Adaptive)), 1).unwrap();
            let own: Vec<&Late> = why.late.iter().filter(|late| late.cause != Cause::Behind).collect();
            assert!(!own.is_empty(), "{workload:?}");
            for late in own {
                assert!(late.by > LATE);
                let story = why.story(late);
                assert!(story.iter().any(|line| line.contains("LOST")), "{late:?}: {story:#?}");
            }
        }
    }

    #[test]
    fn without_loss_nothing_is_late() {
        let clean = Cell { loss: 0, ..cell(Workload::Typing, Delivery::Partial) };
        let why = Why::of(clean, 1).unwrap();
        assert_eq!((why.updates, why.late.len()), (590, 0));
    }
}
