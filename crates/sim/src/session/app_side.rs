//! The app side: answers requests with updates.
//!
//! As in the product, an update is handed to the session only while its content budget lasts. Invariant: updates are
//! sent in order, each once.

use std::sync::Arc;

use noq_proto::StreamEvent;
use wayferry_proto::{
    ChannelId, ConnectionId, Event, Header, Side, SurfaceId, Time, UnitHead, UpdateHeader, UpdateSeq,
};

use super::Delivery;
use super::plan::{Pace, Plan};
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
    /// The ordered stream of units.
    units: Option<ChannelId>,
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
            units: None,
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
                Event::Message { .. } => {
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
            let header = UpdateHeader {
                connection: CONNECTION,
                surface: SurfaceId(1),
                seq: UpdateSeq(update as u64 + 1),
                size: (1, 1),
                format: 0,
                fresh: false,
                covers: 0,
                unit: None,
            };
            if let Err(error) = self.send_update(now, header) {
                self.fault = Some(error.to_string());
            }
            self.send_unit();
            self.sent.push(now);
        }
    }

    fn send_update(&mut self, now: Time, header: UpdateHeader) -> Result<u64, wayferry_proto::Error> {
        let before = header.seq.0 - 1;
        let chunks = self.plan.chunks(before as usize);
        let session = &mut self.port.session;
        if self.plan.covers == 0 {
            return session.send_update(header, chunks);
        }
        let unit = Some(UnitHead { number: header.seq.0, after: 0, feedback: false, answered: None });
        let covers = if session.repairs(now) { u64::from(self.plan.covers).min(before) as u8 } else { 0 };
        let header = UpdateHeader { covers, unit, ..header };
        match covers {
            0 => session.send_update(header, chunks),
            _ => session.send_passing_update(header, chunks),
        }
    }

    /// As the product does, behind the update that it names.
    fn send_unit(&mut self) {
        let Some(length) = self.plan.unit else { return };
        let session = &mut self.port.session;
        let header = Header::Wayland { connection: CONNECTION };
        let units = *self.units.get_or_insert_with(|| session.open(header));
        if let Err(error) = session.send(units, &vec![0; length]) {
            self.fault = Some(error.to_string());
        }
    }
}

impl App for AppSide {
    fn on_stream(&mut self, now: Time, event: StreamEvent, mut io: Io<'_>) {
        self.port.on_stream(now, &event, &mut io, |_| {});
    }

    fn drive(&mut self, now: Time, mut io: Io<'_>) {
        self.now = now;
        self.port.session.on_timeout(now);
        self.take_events(now);
        self.send(now, &io);
        self.port.transmit(now, &mut io);
    }

    fn next_timeout(&self) -> Option<Time> {
        let (_, next) = self.due(self.now);
        self.port.session.next_timeout().into_iter().chain(next).min()
    }
}

/// The one program of the workloads.
pub(super) const CONNECTION: ConnectionId = ConnectionId(1);
