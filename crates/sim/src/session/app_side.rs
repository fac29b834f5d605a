//! The app side: answers requests with updates.
//!
//! As in the product, an update is handed to the session only while its content budget lasts. Invariant: updates are
//! sent in order, each once.

use std::sync::Arc;

use noq_proto::StreamEvent;
use wayferry_proto::{ConnectionId, Event, Side, SurfaceId, Time, UnitHead, UpdateHeader, UpdateSeq, Worth};

use super::Delivery;
use super::display_side::REQUEST;
use super::plan::{FRAME, Pace, Plan};
use super::port::Port;
use crate::app::{App, Io};

/// See the module.
#[derive(Debug)]
pub struct AppSide {
    port: Port,
    plan: Arc<Plan>,
    now: Time,
    /// When the first request came.
    asked: Option<Time>,
    /// How many updates have been asked for, by requests or by the first one.
    wanted: usize,
    sent: Vec<Time>,
    /// Updates of the window beside that were sent.
    beside: usize,
    fault: Option<String>,
}

impl AppSide {
    /// For this workload.
    pub fn new(plan: Arc<Plan>, delivery: Delivery) -> Self {
        Self {
            port: Port::new(delivery, Side::App),
            plan,
            now: Time::ZERO,
            asked: None,
            wanted: 0,
            sent: Vec::new(),
            beside: 0,
            fault: None,
        }
    }

    /// When each update was handed to the session.
    pub fn sent(&self) -> &[Time] {
        &self.sent
    }

    /// Bytes of repair that were sent.
    pub fn repair_bytes(&self) -> u64 {
        self.port.session.repair().bytes
    }

    /// What went wrong.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.port.session.poll_event() {
            match event {
                Event::Message { bytes, .. } if bytes.len() == REQUEST => {
                    self.asked.get_or_insert(now);
                    self.wanted += 1;
                }
                Event::Warning(why) => self.fault = Some(why),
                Event::Closed { reason, .. } => self.fault = Some(format!("{reason:?}")),
                _ => {}
            }
        }
    }

    /// How many updates may have been sent by now, and when the next one may.
    fn due(&self, now: Time) -> (usize, Option<Time>) {
        let (count, Some(asked)) = (self.plan.updates.len(), self.asked) else { return (0, None) };
        match &self.plan.pace {
            Pace::BackToBack => (count, None),
            Pace::Timed(times) => {
                let due = times.partition_point(|time| asked + *time <= now);
                (due, times.get(due).map(|time| asked + *time))
            }
            Pace::Asked { .. } | Pace::Keys(_) => (self.wanted.min(count), None),
        }
    }

    fn send(&mut self, now: Time, io: &Io<'_>) {
        let (due, _) = self.due(now);
        while self.sent.len() < due && self.port.session.content_budget(&self.port.link(io.meter)) > 0 {
            let update = self.sent.len();
            let header = Self::header(UpdateSeq(update as u64 + 1));
            if let Err(error) = self.send_update(now, header) {
                self.fault = Some(error.to_string());
            }
            self.sent.push(now);
        }
    }

    /// When the window beside draws next.
    fn next_beside(&self) -> Option<Time> {
        self.plan.beside.get(self.beside)?;
        Some(self.asked? + FRAME * self.beside as u32)
    }

    fn send_beside(&mut self, now: Time) {
        while self.next_beside().is_some_and(|next| next <= now) {
            let (surface, seq) = (BESIDE, UpdateSeq(self.beside as u64 + 1));
            let chunks = vec![vec![0; self.plan.beside[self.beside]]];
            let header = UpdateHeader { surface, seq, ..Self::header(seq) };
            if let Err(error) = self.port.session.send_update(header, chunks) {
                self.fault = Some(error.to_string());
            }
            self.beside += 1;
        }
    }

    /// Of an update of the window that is looked at.
    fn header(seq: UpdateSeq) -> UpdateHeader {
        UpdateHeader {
            connection: CONNECTION,
            surface: SurfaceId(1),
            seq,
            size: (1, 1),
            format: 0,
            fresh: false,
            covers: 0,
            unit: None,
        }
    }

    fn send_update(&mut self, now: Time, header: UpdateHeader) -> Result<u64, wayferry_proto::Error> {
        let before = header.seq.0 - 1;
        let chunks = self.plan.chunks(before as usize);
        let session = &mut self.port.session;
        if !self.plan.told {
            let worth = if self.plan.has_requests() { Worth::Answer } else { Worth::Plain };
            return session.send_content(header, chunks, worth);
        }
        let unit = Some(UnitHead { number: header.seq.0, after: 0, feedback: false, answered: None });
        let covers = if session.repairs(now) { u64::from(self.plan.covers).min(before) as u8 } else { 0 };
        let header = UpdateHeader { covers, unit, ..header };
        let worth = if covers > 0 { Worth::Passing } else { Worth::Plain };
        session.send_content(header, chunks, worth)
    }
}

impl App for AppSide {
    fn on_stream(&mut self, now: Time, event: StreamEvent, mut io: Io<'_>) {
        self.port.on_stream(now, &event, &mut io, |_| {});
    }

    fn drive(&mut self, now: Time, mut io: Io<'_>) {
        self.port.hear(now, &mut io);
        self.now = now;
        self.port.session.on_timeout(now);
        self.take_events(now);
        self.send(now, &io);
        self.send_beside(now);
        self.port.transmit(now, &mut io);
    }

    fn next_timeout(&self) -> Option<Time> {
        let (_, next) = self.due(self.now);
        self.port.session.next_timeout().into_iter().chain(next).chain(self.next_beside()).min()
    }
}

/// The window beside.
pub(super) const BESIDE: SurfaceId = SurfaceId(2);

/// The one program of the workloads.
pub(super) const CONNECTION: ConnectionId = ConnectionId(1);
