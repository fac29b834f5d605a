//! One QUIC connection, and what it carries for a session.
//!
//! As in [`host`](crate::host), but it may end, be closed, and be replaced. The session is the caller's, in a [`Port`]
//! that it lends. Invariant: a leg that no port is lent to only waits for its connection to be forgotten.

use std::num::NonZeroUsize;

use bytes::Bytes;
use noq_proto::{Connection, ConnectionError, ConnectionEvent, ConnectionHandle, Endpoint, Event, VarInt};
use wayferry_proto::{Arrival, CloseReason, Time};

use crate::app::Io;
use crate::clock::Clock;
use crate::meter::Meter;
use crate::session::Port;

/// See the module.
pub(super) struct Leg {
    pub(super) handle: ConnectionHandle,
    connection: Connection,
    meter: Meter,
    connected: bool,
}

/// A packet and where it goes.
pub(super) type Outgoing = (std::net::SocketAddr, Vec<u8>);

impl Leg {
    pub(super) fn new((handle, connection): (ConnectionHandle, Connection), meter: Meter) -> Self {
        Self { handle, connection, meter, connected: false }
    }

    /// Closes the connection.
    pub(super) fn close(&mut self, clock: Clock, now: Time, code: u32) {
        self.connection.close(clock.instant(now), VarInt::from_u32(code), Bytes::new());
    }

    /// Whether nothing is left of it.
    pub(super) fn is_over(&self) -> bool {
        self.connection.is_drained()
    }

    pub(super) fn receive(&mut self, event: ConnectionEvent) {
        self.connection.handle_event(event);
    }

    /// The host has another address.
    pub(super) fn network_changed(&mut self, clock: Clock, now: Time) {
        self.connection.handle_network_change(None, clock.instant(now));
    }

    /// Lets connection and session know the time, and the session what has come.
    pub(super) fn advance(
        &mut self,
        clock: Clock,
        now: Time,
        endpoint: &mut Endpoint,
        mut port: Option<&mut Port>,
    ) {
        let instant = clock.instant(now);
        if self.connection.poll_timeout().is_some_and(|due| due <= instant) {
            self.connection.handle_timeout(instant);
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            let Some(port) = &mut port else { continue };
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => {
                    port.session.receive(now, Arrival::Closed { reason: close_reason(&reason) });
                }
                Event::Stream(event) => {
                    let mut io = Io { connection: &mut self.connection, meter: &self.meter };
                    port.on_stream(now, &event, &mut io, |_| {});
                }
                _ => {}
            }
        }
        if let Some(port) = port {
            port.session.on_timeout(now);
        }
    }

    /// Sends what there is to send.
    pub(super) fn transmit(
        &mut self,
        clock: Clock,
        now: Time,
        out: &mut Vec<Outgoing>,
        port: Option<&mut Port>,
    ) {
        if let Some(port) = port.filter(|_| self.connected) {
            port.transmit(now, &mut Io { connection: &mut self.connection, meter: &self.meter });
        }
        let mut packet = Vec::with_capacity(PACKET);
        while let Some(transmit) =
            self.connection.poll_transmit(clock.instant(now), NonZeroUsize::MIN, &mut packet)
        {
            out.push((transmit.destination, std::mem::replace(&mut packet, Vec::with_capacity(PACKET))));
        }
    }

    pub(super) fn next_timeout(&self, clock: Clock, now: Time, port: Option<&Port>) -> Option<Time> {
        let connection = self.connection.poll_timeout().map(|due| clock.time(due).max(now));
        let session = port.and_then(|port| port.session.next_timeout());
        connection.into_iter().chain(session).min()
    }
}

fn close_reason(reason: &ConnectionError) -> CloseReason {
    match reason {
        ConnectionError::ApplicationClosed(close) => {
            let code = u32::try_from(close.error_code.into_inner()).unwrap_or(u32::MAX);
            CloseReason::from_wire(code, &String::from_utf8_lossy(&close.reason))
        }
        other => CloseReason::LinkLost(other.to_string()),
    }
}

/// More than any packet.
const PACKET: usize = 1500;
