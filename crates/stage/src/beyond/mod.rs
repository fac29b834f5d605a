//! A second network behind a link, for programs that run in networks of their own: two TUN devices with the link
//! between them, which carries what the kernel's own TCP and UDP send.
//!
//! Here the other network's address is [`Beyond::ADDRESS`]; the link may lose every UDP packet. Programs there are
//! started on a thread that is there. Invariant: devices, threads and all that is on its way go with the value.

mod device;
mod place;

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;

pub use self::device::tun;
pub use self::place::Place;
use crate::{Lane, LinkConfig, LinkStats};

/// See the module.
#[derive(Debug)]
pub struct Beyond {
    orders: Arc<Orders>,
    link: Option<JoinHandle<()>>,
    there: Place,
}

/// What the link's thread is told, and what it tells.
#[derive(Debug)]
struct Orders {
    wake: OwnedFd,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    stop: bool,
    down: bool,
    /// What has been carried so far.
    carried: LinkStats,
}

/// One direction.
#[derive(Debug)]
struct Direction {
    from: File,
    to: File,
    lane: Lane<Vec<u8>>,
}

impl Beyond {
    /// The other network's address, and the one of the calling thread's.
    pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
    /// See [`Self::ADDRESS`].
    pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

    /// Makes both devices, one in the network of the calling thread: that is one which has no network, such as a
    /// [`Place`]'s. Without `udp` no packet of UDP passes.
    ///
    /// # Errors
    /// There is no `/dev/net/tun`, or no right to make devices and networks.
    pub fn open(up: LinkConfig, down: LinkConfig, udp: bool) -> io::Result<Self> {
        let here = tun(Self::HERE)?;
        let there = Place::open()?;
        let far = there.run(|| tun(Self::ADDRESS))??;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let orders = Arc::new(Orders { wake, told: Mutex::default() });
        let directions = [
            Direction { from: here.try_clone()?, to: far.try_clone()?, lane: Lane::new(up) },
            Direction { from: far, to: here, lane: Lane::new(down) },
        ];
        let theirs = Arc::clone(&orders);
        let run = move || run(&theirs, directions, udp);
        let link = std::thread::Builder::new().name("link".into()).spawn(run)?;
        Ok(Self { orders, link: Some(link), there })
    }

    /// What the link has carried: up is towards the other network.
    #[must_use]
    pub fn stats(&self) -> LinkStats {
        self.orders.told().carried
    }

    /// Cuts the link, or mends it: what is sent meanwhile is lost.
    pub fn set_down(&self, down: bool) {
        self.orders.tell(|told| told.down = down);
    }

    /// Does this in the other network, and waits for it: a program that is started there stays there.
    ///
    /// # Errors
    /// What was done there panicked.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        self.there.run(job)
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        self.orders.tell(|told| told.stop = true);
        if let Some(link) = self.link.take() {
            let _ = link.join();
        }
    }
}

impl Told {
    fn orders(&self) -> (bool, bool) {
        (self.stop, self.down)
    }
}

impl Orders {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, what: impl FnOnce(&mut Told)) {
        what(&mut self.told());
        // Fails only when it is readable already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

fn run(orders: &Orders, mut directions: [Direction; 2], udp: bool) {
    let start = Instant::now();
    let mut packet = vec![0; 65_536];
    let mut was_down = false;
    loop {
        wait(orders, &directions, start);
        // Fails where nothing was told.
        let _ = rustix::io::read(&orders.wake, &mut [0; 8]);
        let (stop, down) = orders.told().orders();
        if stop {
            return;
        }
        for direction in &mut directions {
            if down != was_down {
                direction.lane.set_down(start.elapsed(), down);
            }
            direction.turn(start.elapsed(), &mut packet, udp);
        }
        was_down = down;
        let [up, down] = [&directions[0], &directions[1]].map(|direction| direction.lane.stats());
        orders.told().carried = LinkStats { up, down };
    }
}

fn wait(orders: &Orders, directions: &[Direction; 2], start: Instant) {
    let next = directions.iter().filter_map(|direction| direction.lane.next_timeout()).min();
    let left = next.map(|at: Duration| at.saturating_sub(start.elapsed()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    let mut set = [
        PollFd::from_borrowed_fd(directions[0].from.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(directions[1].from.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(orders.wake.as_fd(), PollFlags::IN),
    ];
    // An interruption, the only error that it can have, is a turn without an effect.
    let _ = poll(&mut set, left.as_ref());
}

impl Direction {
    /// Takes what the kernel has sent, and hands over what is through.
    fn turn(&mut self, now: Duration, packet: &mut [u8], udp: bool) {
        for _ in 0..PACKETS_IN_A_TURN {
            let Ok(length) = self.from.read(packet) else { break };
            let packet = &packet[..length];
            if udp || packet.get(9) != Some(&UDP) {
                // The lane counts 28 bytes of headers itself.
                self.lane.push(now, length.saturating_sub(28), packet.to_vec());
            }
        }
        while let Some(packet) = self.lane.pop(now) {
            // What the kernel has no room for is lost, as by a network.
            let _ = self.to.write(&packet);
        }
    }
}

/// The protocol's number in a header of IPv4 (RFC 791 §3.1).
const UDP: u8 = 17;

/// Packets read before those that are through are written.
const PACKETS_IN_A_TURN: usize = 64;
