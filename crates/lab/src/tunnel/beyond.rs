//! A second network behind a link, for programs that run in networks of their own: two TUN devices with the link
//! between them.
//!
//! Here the other network's address is [`Beyond::ADDRESS`]; it may lose every UDP packet. Programs there are started on
//! a thread that is there. Invariant: devices, threads and all that is on its way go with the value.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use wayferry_stage::{Lane, LinkConfig, LinkStats};

use super::{MTU, PACKETS_IN_A_TURN, PREFIX, device, namespace};

/// See the module.
pub(crate) struct Beyond {
    stop: Arc<Stop>,
    link: Option<JoinHandle<()>>,
    /// Work for the thread that is there; its end ends that.
    work: Option<Sender<Work>>,
    there: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() + Send>;

struct Stop {
    stop: AtomicBool,
    wake: OwnedFd,
    /// What has been carried so far.
    carried: Mutex<LinkStats>,
}

/// One direction.
struct Direction {
    from: File,
    to: File,
    lane: Lane<Vec<u8>>,
}

impl Beyond {
    /// The other network's address.
    pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    /// Makes both devices. The process is in a namespace of its own: see [`super::enter`].
    pub(crate) fn open(up: LinkConfig, down: LinkConfig, udp: bool) -> io::Result<Self> {
        let here = device::open(super::HERE, PREFIX, MTU)?;
        let (work, jobs) = mpsc::channel::<Work>();
        let (tell, made) = mpsc::channel();
        let there = std::thread::Builder::new().name("beyond".into()).spawn(move || {
            let device = namespace::leave().and_then(|()| device::open(Self::ADDRESS, PREFIX, MTU));
            if tell.send(device).is_ok() {
                jobs.into_iter().for_each(|job| job());
            }
        })?;
        let far = made.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stop = Arc::new(Stop { stop: AtomicBool::new(false), wake, carried: Mutex::default() });
        let directions = [
            Direction { from: here.try_clone()?, to: far.try_clone()?, lane: Lane::new(up) },
            Direction { from: far, to: here, lane: Lane::new(down) },
        ];
        let theirs = Arc::clone(&stop);
        let link =
            std::thread::Builder::new().name("link".into()).spawn(move || run(&theirs, directions, udp))?;
        Ok(Self { stop, link: Some(link), work: Some(work), there: Some(there) })
    }

    /// What the link has carried: up is towards the other network.
    pub(crate) fn stats(&self) -> LinkStats {
        *self.stop.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does this in the other network, and waits for it: a program that is started there stays there.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (tell, told) = mpsc::channel();
        let job: Work = Box::new(move || drop(tell.send(job())));
        self.work.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        self.stop.stop.store(true, Ordering::Release);
        // Fails only when it is readable already.
        let _ = rustix::io::write(&self.stop.wake, &1u64.to_ne_bytes());
        self.work = None;
        for thread in [self.link.take(), self.there.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}

fn run(stop: &Stop, mut directions: [Direction; 2], udp: bool) {
    let start = Instant::now();
    let mut packet = vec![0; 65_536];
    while !stop.stop.load(Ordering::Acquire) {
        wait(stop, &directions, start);
        for direction in &mut directions {
            direction.turn(start.elapsed(), &mut packet, udp);
        }
        let [up, down] = [&directions[0], &directions[1]].map(|direction| direction.lane.stats());
        *stop.carried.lock().unwrap_or_else(PoisonError::into_inner) = LinkStats { up, down };
    }
}

fn wait(stop: &Stop, directions: &[Direction; 2], start: Instant) {
    let next = directions.iter().filter_map(|direction| direction.lane.next_timeout()).min();
    let left = next.map(|at: Duration| at.saturating_sub(start.elapsed()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    let mut set = [
        PollFd::from_borrowed_fd(directions[0].from.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(directions[1].from.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(stop.wake.as_fd(), PollFlags::IN),
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
