//! The display side: asks for updates and notes when their chunks came.
//!
//! Invariant: what came is what was sent; anything else is a fault, and the run is worth nothing.

use std::sync::Arc;

use bytes::Bytes;
use noq_proto::StreamEvent;
use wayferry_proto::{ChannelId, Event, Header, Side, Time, UpdateHeader, UpdateSeq, fence};

use super::Delivery;
use super::app_side::{BESIDE, CONNECTION};
use super::log::Log;
use super::plan::{Pace, Place, Plan, is_pattern};
use super::port::Port;
use super::tap::{Seen, Tap};
use crate::app::{App, Io};

/// See the module.
#[derive(Debug)]
pub struct DisplaySide {
    port: Port,
    plan: Arc<Plan>,
    tap: Tap,
    log: Log,
    events: Option<ChannelId>,
    /// Requests that were sent.
    asked: usize,
    /// When the first of them was.
    first: Option<Time>,
    /// When the next one is due.
    next: Option<Time>,
    whole: Vec<bool>,
    left: usize,
    made_up_for: MadeUpFor,
    fault: Option<String>,
}

impl DisplaySide {
    /// For this workload.
    pub fn new(plan: Arc<Plan>, delivery: Delivery) -> Self {
        Self {
            port: Port::new(delivery, Side::Display),
            tap: Tap::default(),
            log: Log::new(&plan),
            events: None,
            asked: 0,
            first: None,
            next: None,
            whole: vec![false; plan.updates.len()],
            left: plan.updates.len(),
            made_up_for: MadeUpFor::default(),
            plan,
            fault: None,
        }
    }

    /// Whether every update is here, or something went wrong.
    pub fn is_done(&self) -> bool {
        self.left == 0 || self.fault.is_some()
    }

    /// How many updates are missing.
    pub fn missing(&self) -> usize {
        self.left
    }

    /// What went wrong.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// When what happened.
    pub fn log(&self) -> &Log {
        &self.log
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.port.session.poll_event() {
            match event {
                Event::Ready { .. } => {
                    self.events = Some(self.port.session.open(Header::Events { connection: CONNECTION }));
                    self.next = Some(now);
                }
                Event::Chunk { header, .. } if self.plan.told || header.surface == BESIDE => {}
                Event::Update { header, .. } if header.surface == BESIDE => self.say(&[0; SHOWN]),
                Event::Chunk { header, index, .. } => {
                    self.log.shown(header.seq.0.saturating_sub(1) as usize, index, now);
                }
                Event::Update { header, chunks } => {
                    self.take_update(now, &header, &chunks);
                    if self.plan.told {
                        self.show_in_turn(now, &header);
                    }
                }
                Event::Warning(why) => self.fault = Some(why),
                Event::Closed { reason, .. } => self.fault = Some(format!("{reason:?}")),
                _ => {}
            }
        }
    }

    /// Notes what is there, or made up for by what is, and all before it.
    fn show_in_turn(&mut self, now: Time, header: &UpdateHeader) {
        let MadeUpFor { book, shown } = &mut self.made_up_for;
        let first = UpdateSeq(header.seq.0 - u64::from(header.covers));
        let noted = book.complete(header.surface, header.seq).and_then(|_| match header.covers {
            0 => Ok(()),
            _ => book.supersede(header.surface, first, header.seq),
        });
        if let Err(error) = noted {
            self.fault = Some(error.to_string());
        }
        let reached = book.reached(header.surface).map_or(0, |seq| seq.0 as usize);
        for update in *shown..reached {
            (0..self.plan.updates[update].len()).for_each(|chunk| self.log.shown(update, chunk, now));
        }
        *shown = reached.max(*shown);
    }

    fn take_update(&mut self, now: Time, header: &UpdateHeader, chunks: &[Bytes]) {
        let update = header.seq.0.saturating_sub(1) as usize;
        let right = self.plan.updates.get(update).is_some_and(|lengths| {
            lengths.len() == chunks.len()
                && chunks.iter().enumerate().all(|(chunk, bytes)| {
                    lengths[chunk] == bytes.len() && is_pattern(Place { update, chunk, offset: 0 }, bytes)
                })
        });
        if !right || self.whole[update] {
            self.fault = Some(format!("update {update} came twice or with other bytes than were sent"));
            return;
        }
        self.whole[update] = true;
        self.left -= 1;
        if let Pace::Asked { pause } = self.plan.pace {
            self.next = Some(now + pause);
        }
    }

    fn say(&mut self, message: &[u8]) {
        let Some(events) = self.events else { return };
        if let Err(error) = self.port.session.send(events, message) {
            self.fault = Some(error.to_string());
        }
    }

    fn ask(&mut self, now: Time) {
        while let Some(due) = self.next.filter(|due| *due <= now) {
            self.next = None;
            let count = self.plan.updates.len();
            let requests = if self.plan.has_requests() { count } else { 1 };
            if self.asked >= requests {
                return;
            }
            let first = *self.first.get_or_insert(due);
            self.log.request(self.asked, now);
            self.asked += 1;
            self.say(&[0; REQUEST]);
            if let Pace::Keys(times) = &self.plan.pace {
                self.next = times.get(self.asked).map(|time| first + *time);
            }
        }
    }
}

/// Which updates need not come any more.
#[derive(Debug, Default)]
struct MadeUpFor {
    book: fence::Updates,
    /// How many updates have been shown, or replaced by what was.
    shown: usize,
}

impl App for DisplaySide {
    fn on_stream(&mut self, now: Time, event: StreamEvent, mut io: Io<'_>) {
        let Self { port, tap, plan, log, .. } = self;
        port.on_stream(now, &event, &mut io, |bytes| {
            tap.piece(plan, bytes, |seen| match seen {
                Seen::First(update, chunk) => log.first(update, chunk, now),
                Seen::All(update, chunk) => log.there(update, chunk, now),
            });
        });
    }

    fn drive(&mut self, now: Time, mut io: Io<'_>) {
        self.port.hear(now, &mut io);
        self.port.session.on_timeout(now);
        self.take_events(now);
        self.ask(now);
        self.port.transmit(now, &mut io);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.port.session.next_timeout().into_iter().chain(self.next).min()
    }
}

/// Bytes in which the display tells that it shows a picture.
const SHOWN: usize = 8;

/// Length of a request in bytes: about what a key press takes.
pub(crate) const REQUEST: usize = 24;
