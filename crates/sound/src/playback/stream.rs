//! What the desk plays to: a stream of its sound server, or a card where there is none.

use std::time::Duration;

use wayferry_proto::Time;

use super::card::Card;
use super::client::Client;

/// See the module.
#[derive(Debug)]
pub(super) enum Stream {
    Server(Client),
    Card(Card),
}

impl Stream {
    /// Whether it is made.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Server(client) => client.is_ready(),
            Self::Card(card) => card.is_ready(),
        }
    }

    /// When it is given up, if it owes an answer.
    pub(super) fn answers_by(&self) -> Option<Time> {
        match self {
            Self::Server(client) => client.waits_since().map(|since| since + ANSWER_LATEST),
            Self::Card(card) => card.opens_by(),
        }
    }

    /// Frames that it wants.
    pub(super) fn wanted(&self) -> usize {
        match self {
            Self::Server(client) => client.wanted(),
            Self::Card(card) => card.wanted(),
        }
    }

    /// When it is overdue to ask for more; `None` while it is not to ask.
    pub(super) fn asks_by(&self) -> Option<Time> {
        match self {
            Self::Server(client) => client.asks_by(),
            Self::Card(card) => Some(card.asks_by()),
        }
    }

    /// Gives it samples that it wants.
    pub(super) fn give(&mut self, samples: &[f32]) {
        match self {
            Self::Server(client) => client.give(samples),
            Self::Card(card) => card.give(samples),
        }
    }

    /// How long it takes until what is given next is heard.
    pub(super) fn queue(&self, now: Time) -> Duration {
        match self {
            Self::Server(client) => client.queue(now),
            Self::Card(card) => card.queue(now),
        }
    }

    /// Asks how long the queue is. A card says it by itself, each time.
    pub(super) fn ask_latency(&mut self, now: Time) {
        if let Self::Server(client) = self {
            client.ask_latency(now);
        }
    }
}

/// A server that has not answered for so long is given up.
const ANSWER_LATEST: Duration = Duration::from_secs(5);
