//! The link of a page that has one stream of bytes, as a WebSocket is.
//!
//! It puts the session's streams on it and takes them off again; what moves the bytes is the script's. Of what is to be
//! sent little is given to the browser at a time, for what that has taken nothing more urgent overtakes. Invariant:
//! what the other side says after it broke a rule, or after its end, is not looked at.

use std::time::Duration;

use wayferry_mux::{Mux, Output};
use wayferry_proto::{Arrival, CloseReason, LinkState, Time, Transmit};

/// Bytes that the browser may have and not have sent; then it is given no more.
pub const MAX_BUFFERED: usize = 64 << 10;

/// See the module.
#[derive(Debug, Default)]
pub struct Socket {
    mux: Mux,
    /// Bytes of streams that have come: the session takes all at once.
    consumed: u64,
    /// Bytes that the browser has and has not sent.
    buffered: usize,
    is_over: bool,
}

/// What a script is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something happens.
    Nothing,
    /// To ask again when the browser has sent more.
    Wait,
    /// To send this, and ask again.
    Bytes(Vec<u8>),
    /// To send this and nothing more, and to close the socket.
    Last(Vec<u8>),
}

impl Socket {
    /// Takes what is to be sent.
    pub fn transmit(&mut self, transmit: Transmit) {
        self.mux.transmit(transmit);
    }

    /// Bytes have come; gives what they are to the session.
    pub fn receive(&mut self, now: Time, bytes: &[u8]) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        if self.is_over {
            return arrivals;
        }
        let (mut consumed, mut is_over) = (0, false);
        let received = self.mux.receive(now.since_start(), bytes, |output| match output {
            Output::Arrival(arrival) => {
                if let Arrival::Data { bytes, .. } = &arrival {
                    consumed += bytes.len() as u64;
                }
                arrivals.push(arrival);
            }
            Output::Close { code, reason } => {
                is_over = true;
                arrivals.push(Arrival::Closed { reason: CloseReason::from_wire(code, &reason) });
            }
        });
        self.consumed += consumed;
        self.is_over = is_over;
        if let Err(error) = received {
            self.is_over = true;
            let reason = CloseReason::ProtocolViolation(error.to_string());
            let (code, text) = reason.to_wire();
            self.mux.transmit(Transmit::Close { code, reason: text });
            arrivals.push(Arrival::Closed { reason });
        }
        arrivals
    }

    /// What is to be sent next, where the browser has so many bytes that it has not sent.
    pub fn send(&mut self, now: Time, buffered: usize) -> Next {
        self.buffered = buffered;
        if buffered >= MAX_BUFFERED {
            return Next::Wait;
        }
        let was_closed = self.mux.is_closed();
        self.mux.acknowledge(self.consumed);
        let mut bytes = Vec::new();
        self.mux.produce(now.since_start(), &mut bytes);
        match self.mux.is_closed() {
            true if !was_closed => Next::Last(bytes),
            _ if bytes.is_empty() => Next::Nothing,
            _ => Next::Bytes(bytes),
        }
    }

    /// Bytes that were to be sent and have not left.
    pub fn unsent(&self) -> usize {
        let streams = usize::try_from(self.mux.backlog().total).unwrap_or(usize::MAX);
        streams.saturating_add(self.mux.answers()).saturating_add(self.buffered)
    }

    /// What is known of the link; the session knows how long pings take.
    pub fn link(&self, rtt: Option<Duration>) -> LinkState {
        let window = self.mux.window();
        let rtt = rtt.unwrap_or_else(|| window.rtt());
        LinkState {
            rtt,
            base_rtt: rtt,
            payload: None,
            in_order: true,
            window: window.size(),
            unsent: self.mux.backlog().content,
            idle: self.unsent() == 0,
            rate: window.rate(),
            acked_packets: self.mux.acks(),
            ..LinkState::default()
        }
    }
}
