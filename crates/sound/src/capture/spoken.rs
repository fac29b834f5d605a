//! The display's microphone on its way to programs that record: what the run loop hands over, and what it learns.
//!
//! Invariant: packets that the thread does not take are bounded, and the newest stay.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wayferry_audio::{Figures, Packet};
use wayferry_proto::Time;

use crate::Codec;

/// What the run loop and the thread share of it.
#[derive(Debug, Default)]
pub(super) struct Spoken(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_there: bool,
    latency: Duration,
    orders: VecDeque<Order>,
    is_recorded: bool,
    /// That has changed since the run loop looked.
    is_unseen: bool,
    figures: Figures,
}

/// What the run loop hands over.
#[derive(Debug)]
pub(super) enum Order {
    Begin(Codec),
    Packet(Time, Packet),
}

/// What the thread is to do.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) is_there: bool,
    pub(super) latency: Duration,
    pub(super) orders: VecDeque<Order>,
}

impl Spoken {
    /// Whether there is a microphone, and how long its sound takes until it arrives. Whether that is new.
    pub(super) fn set(&self, is_there: bool, latency: Duration) -> bool {
        let mut state = self.lock();
        let is_new = state.is_there != is_there || state.latency.abs_diff(latency) >= super::LATENCY_STEP;
        if is_new {
            (state.is_there, state.latency) = (is_there, latency);
        }
        is_new
    }

    pub(super) fn order(&self, order: Order) {
        let mut state = self.lock();
        if state.orders.len() >= MAX_ORDERS {
            // The oldest packet is the least worth; a flow's beginning is kept.
            let oldest = state.orders.iter().position(|order| matches!(order, Order::Packet(..)));
            state.orders.remove(oldest.unwrap_or(0));
        }
        state.orders.push_back(order);
    }

    pub(super) fn take(&self) -> Orders {
        let mut state = self.lock();
        Orders { is_there: state.is_there, latency: state.latency, orders: std::mem::take(&mut state.orders) }
    }

    /// Whether the run loop is to look at it: whether it is recorded is new.
    pub(super) fn tell(&self, is_recorded: bool, figures: Figures) -> bool {
        let mut state = self.lock();
        state.figures = figures;
        let is_new = std::mem::replace(&mut state.is_recorded, is_recorded) != is_recorded;
        state.is_unseen |= is_new;
        is_new
    }

    /// Whether a program records, and how what it records fares.
    pub(super) fn told(&self) -> (bool, Figures) {
        let state = self.lock();
        (state.is_recorded, state.figures)
    }

    /// The same; the run loop has seen it.
    pub(super) fn see(&self) -> (bool, Figures) {
        let mut state = self.lock();
        state.is_unseen = false;
        (state.is_recorded, state.figures)
    }

    /// Whether the run loop has yet to see that a program records, or none does any more.
    pub(super) fn is_unseen(&self) -> bool {
        self.lock().is_unseen
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Packets that wait for the thread, and beginnings of flows.
const MAX_ORDERS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_packets_are_dropped_and_the_beginning_is_kept() {
        let spoken = Spoken::default();
        spoken.order(Order::Begin(Codec::Pcm));
        for sequence in 0..MAX_ORDERS as u32 + 10 {
            spoken.order(Order::Packet(Time::ZERO, Packet { sequence, ..Packet::default() }));
        }
        let orders = spoken.take().orders;
        assert_eq!(orders.len(), MAX_ORDERS);
        assert!(matches!(orders[0], Order::Begin(Codec::Pcm)));
        assert!(matches!(&orders[1], Order::Packet(_, packet) if packet.sequence == 11));
    }
}
