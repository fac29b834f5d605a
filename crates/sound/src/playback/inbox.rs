//! What the caller and the thread exchange.
//!
//! Two bounded queues and a snapshot, each behind a lock that is held only to move data. The thread says whether it
//! wants to be woken for each order: while a device pulls it every few milliseconds, it looks by itself. Invariants: no
//! call waits for a device; the notices' eventfd is readable exactly while a notice waits.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use wayferry_audio::Packet;
use wayferry_proto::Time;

use super::{Notice, Report};
use crate::Codec;

/// What the caller wants.
#[derive(Debug)]
pub(super) enum Order {
    Begin(Codec),
    Packet(Time, Packet),
    End,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Shared {
    inbox: Mutex<Inbox>,
    /// Readable when the thread has something to look at.
    wake: OwnedFd,
    notices: Mutex<VecDeque<Notice>>,
    notices_wait: OwnedFd,
    report: Mutex<Report>,
}

#[derive(Debug, Default)]
struct Inbox {
    orders: VecDeque<Order>,
    overflowed: u64,
    is_closed: bool,
    /// Whether the thread sleeps until it is woken.
    asleep: bool,
    /// Whether it was woken since it last got up.
    woken: bool,
}

impl Inbox {
    fn wake(&mut self, wake: &OwnedFd) {
        self.woken = true;
        signal(wake);
    }
}

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self {
            inbox: Mutex::default(),
            wake: eventfd(0, flags)?,
            notices: Mutex::default(),
            notices_wait: eventfd(0, flags)?,
            report: Mutex::default(),
        })
    }

    pub(super) fn order(&self, order: Order) {
        let mut inbox = lock(&self.inbox);
        if inbox.orders.len() >= MAX_ORDERS {
            // The oldest packet is the least worth; a flow's beginning and end are kept.
            let oldest = inbox.orders.iter().position(|order| matches!(order, Order::Packet(..)));
            inbox.orders.remove(oldest.unwrap_or(0));
            inbox.overflowed += 1;
        }
        inbox.orders.push_back(order);
        if inbox.asleep {
            inbox.asleep = false;
            inbox.wake(&self.wake);
        }
    }

    pub(super) fn close(&self) {
        let mut inbox = lock(&self.inbox);
        inbox.is_closed = true;
        inbox.wake(&self.wake);
    }

    /// All orders so far and how many were dropped, ever; `None` when the handle was dropped.
    pub(super) fn take_orders(&self) -> Option<(VecDeque<Order>, u64)> {
        let mut inbox = lock(&self.inbox);
        (!inbox.is_closed).then(|| (std::mem::take(&mut inbox.orders), inbox.overflowed))
    }

    /// Says that the next order must wake the thread. Whether one has come meanwhile.
    pub(super) fn fall_asleep(&self) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.asleep = true;
        inbox.orders.is_empty()
    }

    /// The thread looks by itself from now on.
    pub(super) fn wake_up(&self) {
        let mut inbox = lock(&self.inbox);
        inbox.asleep = false;
        if std::mem::take(&mut inbox.woken) {
            drain(&self.wake);
        }
    }

    pub(super) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    pub(super) fn tell(&self, notice: Notice) {
        let mut notices = lock(&self.notices);
        if notices.len() >= MAX_NOTICES {
            notices.pop_front();
        }
        notices.push_back(notice);
        signal(&self.notices_wait);
    }

    pub(super) fn take_notice(&self) -> Option<Notice> {
        let mut notices = lock(&self.notices);
        let notice = notices.pop_front();
        if notices.is_empty() {
            drain(&self.notices_wait);
        }
        notice
    }

    pub(super) fn notices_fd(&self) -> BorrowedFd<'_> {
        self.notices_wait.as_fd()
    }

    pub(super) fn report(&self) -> Report {
        *lock(&self.report)
    }

    pub(super) fn set_report(&self, report: Report) {
        *lock(&self.report) = report;
    }
}

/// A panic of either side leaves whole data behind: all changes are single moves.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes an eventfd readable. It fails only when it is readable already.
fn signal(fd: &OwnedFd) {
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

fn drain(fd: &OwnedFd) {
    let _ = rustix::io::read(fd, &mut [0; 8]);
}

/// Orders that wait for the thread; beyond that the oldest packets are dropped. More than a player would keep of them.
const MAX_ORDERS: usize = 256;

/// Notices that the caller has not taken; beyond that the oldest are dropped.
const MAX_NOTICES: usize = 16;

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(fd: BorrowedFd<'_>) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&at_once)).unwrap() > 0
    }

    #[test]
    fn the_oldest_packets_are_dropped_and_counted_and_the_beginning_is_kept() {
        let shared = Shared::new().unwrap();
        shared.order(Order::Begin(Codec::Pcm));
        for sequence in 0..MAX_ORDERS as u32 + 10 {
            shared.order(Order::Packet(Time::ZERO, Packet { sequence, ..Packet::default() }));
        }
        let (orders, overflowed) = shared.take_orders().unwrap();
        assert_eq!((orders.len(), overflowed), (MAX_ORDERS, 11));
        assert!(matches!(orders[0], Order::Begin(Codec::Pcm)));
        assert!(matches!(&orders[1], Order::Packet(_, packet) if packet.sequence == 11));
    }

    #[test]
    fn a_thread_that_looks_by_itself_is_not_woken() {
        let shared = Shared::new().unwrap();
        shared.order(Order::End);
        assert!(!is_readable(shared.wake_fd()));
        assert!(!shared.fall_asleep(), "an order has come");
        shared.wake_up();
        shared.take_orders();
        assert!(shared.fall_asleep());
        shared.order(Order::End);
        assert!(is_readable(shared.wake_fd()));
        shared.wake_up();
        assert!(!is_readable(shared.wake_fd()));
        shared.close();
        assert!(is_readable(shared.wake_fd()), "always");
        assert!(shared.take_orders().is_none());
    }

    #[test]
    fn notices_are_bounded_and_readable_while_one_waits() {
        let shared = Shared::new().unwrap();
        assert!(!is_readable(shared.notices_fd()));
        for number in 0..MAX_NOTICES + 3 {
            shared.tell(Notice::Lost { why: number.to_string() });
        }
        assert_eq!(shared.take_notice(), Some(Notice::Lost { why: "3".into() }));
        assert!(is_readable(shared.notices_fd()));
        assert_eq!(std::iter::from_fn(|| shared.take_notice()).count(), MAX_NOTICES - 1);
        assert!(!is_readable(shared.notices_fd()));
    }
}
