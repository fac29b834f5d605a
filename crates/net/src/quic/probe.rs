//! Probes a silent peer again and again.
//!
//! QUIC asks half as often each time, down to every two seconds (RFC 9002 §6.2.1), so a link that was away for three
//! would seem away for one and a half more. Here a connection that waits for an acknowledgement longer than usual is
//! told that the network changed, which takes those pauses back and asks once more: a few small packets a second, for a
//! while. It does not judge whether the peer is gone; after some seconds it says that another socket is worth a try,
//! which is for [`super::roam`] to make.
//!
//! noq tells all connections of an endpoint at once. Where there are others beside the one that waits, its peer is only
//! pinged, as long as pings leave; behind a full window they do not.
//!
//! Invariant: nothing happens while nothing is waited for, nor for a peer that has not answered much yet: strangers
//! come to a listener too.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use noq::{Connection, PathId};
use tokio::time::sleep;

use super::meter::{LATE, is_late};
use super::runtime::Guests;
use super::shared::Shared;

/// Runs until the connection is over.
pub(super) async fn run(connection: Connection, guests: Guests, shared: Arc<Shared>) {
    let meter = &shared.meter;
    let mut closed = pin!(connection.closed());
    let (mut question, mut patience) = (Question::default(), Patience::default());
    loop {
        let pause = async {
            match meter.waits() {
                Some((waits, usual)) => sleep(pause(waits, usual)).await,
                None => meter.begun().await,
            }
        };
        tokio::select! {
            () = pause => {}
            _ = closed.as_mut() => return,
        }
        let waits = meter.waits().filter(|(waits, usual)| is_late(*waits, *usual));
        if waits.is_some_and(|(waits, _)| patience.is_over(waits)) {
            shared.stuck.notify_one();
        }
        if waits.is_some() {
            let path = connection.path(PathId::ZERO);
            let sent = connection.stats().udp_tx.datagrams;
            match path {
                Some(path) if question.ping_will_do(sent, guests.are_several()) => drop(path.ping()),
                _ => guests.network_changed(OFTEN),
            }
        } else {
            question = Question::default();
        }
    }
}

/// How a peer that is late is asked.
#[derive(Default)]
struct Question {
    /// Datagrams that had left before the last ping.
    pinged_at: Option<u64>,
    /// A ping did not leave.
    stuck: bool,
}

impl Question {
    /// Whether a ping is the way to ask, when `sent` datagrams have left so far and there are `several` connections.
    fn ping_will_do(&mut self, sent: u64, several: bool) -> bool {
        self.stuck |= self.pinged_at == Some(sent);
        let ping = several && !self.stuck;
        self.pinged_at = ping.then_some(sent);
        ping
    }
}

/// How long a socket is given before another one is tried: twice as long each time.
struct Patience {
    next: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { next: STUCK }
    }
}

impl Patience {
    /// Whether an acknowledgement has now been waited for too long on this socket.
    fn is_over(&mut self, waits: Duration) -> bool {
        if waits < STUCK {
            self.next = STUCK;
        }
        let over = waits >= self.next;
        if over {
            self.next *= 2;
        }
        over
    }
}

/// How long to leave a connection alone that has waited for so long, when a round trip is as long as is `usual`.
fn pause(waits: Duration, usual: Duration) -> Duration {
    let late = usual + LATE;
    if waits < late {
        late - waits
    } else if waits < EAGER {
        OFTEN.max(usual / 4)
    } else {
        SELDOM.max(usual / 4)
    }
}

/// How often a silent peer is asked at first, for how long that is, and how often later: phones sleep. On a slow link,
/// four times in a round trip: a side that asks less often hears that much later that the link is back.
const OFTEN: Duration = Duration::from_millis(50);
const EAGER: Duration = Duration::from_secs(10);
const SELDOM: Duration = Duration::from_millis(250);

/// A peer that does not answer for so long may hear this side and have nowhere to send to: noq gives the check of a new
/// address up after three short timeouts, and then sends nothing there until it comes from another one
/// (`PathValidationFailed`).
const STUCK: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn only_among_others_is_a_ping_enough_and_only_while_it_leaves() {
        let mut alone = Question::default();
        assert!(!alone.ping_will_do(7, false) && !alone.ping_will_do(7, false));
        let mut among = Question::default();
        assert!(among.ping_will_do(7, true) && among.ping_will_do(8, true));
        // The last one is still there: the window is full, and stays so.
        assert!(!among.ping_will_do(8, true) && !among.ping_will_do(9, true));
    }

    #[test]
    fn another_socket_is_tried_after_four_seconds_and_then_half_as_often() {
        let mut patience = Patience::default();
        let mut moves = |until: u64| (0..until).step_by(50).filter(|at| patience.is_over(ms(*at))).collect();
        let (first, second): (Vec<u64>, Vec<u64>) = (moves(40_000), moves(5_000));
        assert_eq!((first, second), (vec![4_000, 8_000, 16_000, 32_000], vec![4_000]));
    }

    #[test]
    fn a_late_answer_is_waited_for_then_asked_for_often_then_seldom() {
        assert_eq!(pause(ms(0), ms(50)), ms(150));
        assert_eq!(pause(ms(140), ms(50)), ms(10));
        assert_eq!(pause(ms(150), ms(50)), ms(50));
        assert_eq!(pause(ms(9_999), ms(20)), ms(50));
        assert_eq!(pause(ms(10_000), ms(20)), ms(250));
        assert_eq!(pause(ms(5_000), ms(600)), ms(150), "few questions are open at a time");
        assert_eq!(pause(ms(20_000), ms(2_000)), ms(500));
    }
}
