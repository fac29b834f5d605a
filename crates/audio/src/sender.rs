//! What a sender of sound decides: which frames leave, how, and what is given up.
//!
//! Frames go on short reliable streams, 200 ms each: a loss holds back no more than its own group, and a group that is
//! too old to be played is reset. Where loss or round trip is high, a datagram repeats the last one or two frames, 9 ms
//! after each. Nothing is sent during silence. The caller encodes and sends, as this module decides. Invariants: every
//! frame that is handed in is sent at least once; at most [`MAX_GROUPS`] streams are open.

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use wayferry_proto::Time;

use crate::packet::{Flags, MAX_TRACK, Packet};
use crate::sample::{FrameSize, Position};

/// How sound crosses the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// On streams alone.
    Stream,
    /// In datagrams alone, as far as they fit one.
    Datagram,
    /// On streams, and repeated in datagrams where the link needs that.
    #[default]
    Hybrid,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hybrid, Self::Stream, Self::Datagram];

    /// As users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Datagram => "datagram",
            Self::Hybrid => "hybrid",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or("expected hybrid, stream or datagram".into())
    }
}

/// What is known of the link and of the player at its other end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The round trip.
    pub rtt: Duration,
    /// The share of packets lost, from 0 to 1.
    pub loss: f64,
    /// The player's target.
    pub target: Duration,
    /// The most bytes that a datagram takes; 0 if the carrier has none.
    pub datagram: usize,
}

/// What the caller is to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// Write this on the group's stream, which is opened for its first packet.
    Stream {
        /// The group's number; they count up.
        group: u64,
        /// What to write.
        packet: Packet,
        /// Finish the stream after it.
        ends: bool,
    },
    /// Send these in one datagram.
    Datagram(Vec<Packet>),
    /// Reset the group's stream, unless all of it has arrived.
    Reset {
        /// Its number.
        group: u64,
    },
}

/// Sends one flow of sound; see the module.
#[derive(Clone, Debug)]
pub struct Sender {
    track: u8,
    mode: Mode,
    sequence: u32,
    size: FrameSize,
    begins_anew: bool,
    /// The last packets, newest first.
    previous: VecDeque<Packet>,
    /// When they are to be repeated, if they are.
    repeat: Option<Time>,
    groups: VecDeque<Group>,
    next_group: u64,
}

#[derive(Clone, Debug)]
struct Group {
    number: u64,
    began: Time,
    last: Time,
    open: bool,
}

impl Sender {
    /// A sender of the flow with this number, at most [`MAX_TRACK`].
    pub fn new(track: u8, mode: Mode) -> Self {
        Self {
            track: track.min(MAX_TRACK),
            mode,
            sequence: 0,
            size: FrameSize::default(),
            begins_anew: false,
            previous: VecDeque::new(),
            repeat: None,
            groups: VecDeque::new(),
            next_group: 0,
        }
    }

    /// How much sound the next packet should have: with a short round trip, its length would be most of the delay.
    pub fn frame_size(&mut self, rtt: Duration) -> FrameSize {
        // Hysteresis: between the two bounds it stays as it is.
        if rtt < SHORT_WAY {
            self.size = FrameSize::Ms10;
        } else if rtt > SHORT_WAY * 6 / 5 {
            self.size = FrameSize::Ms20;
        }
        self.size
    }

    /// Sequence and capture times begin anew: another carrier, another clock.
    pub fn restart(&mut self) {
        self.begins_anew = true;
        self.previous.clear();
        self.repeat = None;
        self.groups.clear();
    }

    /// A frame was encoded; `start` if sound begins with it, after silence.
    pub fn frame(
        &mut self,
        now: Time,
        capture: Position,
        start: bool,
        payload: Vec<u8>,
        link: Link,
    ) -> Vec<Outgoing> {
        let flags = Flags { start, discontinuity: std::mem::take(&mut self.begins_anew), idle: false };
        self.send(now, capture, flags, payload, link)
    }

    /// Silence has begun.
    pub fn idle(&mut self, now: Time, capture: Position, link: Link) -> Vec<Outgoing> {
        let flags = Flags { idle: true, discontinuity: std::mem::take(&mut self.begins_anew), start: false };
        self.send(now, capture, flags, Vec::new(), link)
    }

    /// All of a group's stream has arrived.
    pub fn on_delivered(&mut self, group: u64) {
        self.groups.retain(|known| known.open || known.number != group);
    }

    /// Repeats what is to be repeated now, and resets groups that are too old. Call it while nothing is sent, too.
    pub fn on_timeout(&mut self, now: Time, link: Link) -> Vec<Outgoing> {
        let mut outgoing = Vec::new();
        if self.repeat.is_some_and(|at| at <= now) {
            outgoing.extend(self.repeat(link));
        }
        let patience = link.target.saturating_mul(2).max(PATIENCE);
        while let Some(group) = self.groups.front() {
            let old = now.since(group.last) > patience || self.groups.len() > MAX_GROUPS;
            if !old {
                break;
            }
            outgoing.push(Outgoing::Reset { group: group.number });
            self.groups.pop_front();
        }
        outgoing
    }

    /// When something is to be repeated.
    pub fn next_timeout(&self) -> Option<Time> {
        self.repeat
    }

    fn send(
        &mut self,
        now: Time,
        capture: Position,
        flags: Flags,
        payload: Vec<u8>,
        link: Link,
    ) -> Vec<Outgoing> {
        // Before what is newer, if the caller is late.
        let mut outgoing: Vec<Outgoing> = self.repeat(link).into_iter().collect();
        let ends = flags.idle;
        let packet = Packet { track: self.track, sequence: self.sequence, capture, flags, payload };
        self.sequence = self.sequence.wrapping_add(1);
        let alone = self.mode == Mode::Datagram && framed(&packet) <= link.datagram;
        self.previous.push_front(packet.clone());
        self.previous.truncate(1 + COPIES_MOST);
        if alone {
            outgoing.extend(self.datagram(1 + copies(link), link));
        } else {
            let repeats = self.mode == Mode::Hybrid && copies(link) > 0 && framed(&packet) <= link.datagram;
            outgoing.push(self.on_stream(now, packet, ends));
            self.repeat = repeats.then(|| now + APART);
        }
        outgoing.extend(self.on_timeout(now, link));
        outgoing
    }

    /// The last packets once more, if they are to be repeated.
    fn repeat(&mut self, link: Link) -> Option<Outgoing> {
        self.repeat.take()?;
        self.datagram(copies(link), link)
    }

    /// So many of the last packets, or as many of them as fit.
    fn datagram(&self, packets: usize, link: Link) -> Option<Outgoing> {
        let mut packets: Vec<Packet> = self.previous.iter().take(packets).cloned().collect();
        while packets.iter().map(framed).sum::<usize>() > link.datagram {
            packets.pop();
        }
        (!packets.is_empty()).then_some(Outgoing::Datagram(packets))
    }

    /// Writes on the open group's stream, or on another when that is full.
    fn on_stream(&mut self, now: Time, packet: Packet, last: bool) -> Outgoing {
        if !self.groups.back().is_some_and(|group| group.open) {
            self.groups.push_back(Group { number: self.next_group, began: now, last: now, open: true });
            self.next_group += 1;
        }
        let length = self.size.duration();
        let Some(group) = self.groups.back_mut() else { unreachable!("one was just opened") };
        group.last = now;
        let ends = last || now.since(group.began) + length >= GROUP;
        group.open = !ends;
        Outgoing::Stream { group: group.number, packet, ends }
    }
}

/// How many of the last frames are repeated.
fn copies(link: Link) -> usize {
    let lossy = usize::from(link.loss > LOSSY) + usize::from(link.loss > VERY_LOSSY);
    (lossy + usize::from(link.rtt > LONG_WAY)).min(COPIES_MOST)
}

/// Bytes of a packet in a datagram.
fn framed(packet: &Packet) -> usize {
    packet.encoded_len() + wayferry_proto::wire::varint_len(packet.encoded_len() as u64)
}

/// Streams open at once; beyond that the oldest is reset.
pub const MAX_GROUPS: usize = 16;

/// Below this round trip, frames of 10 ms.
const SHORT_WAY: Duration = Duration::from_millis(30);

/// Above this round trip a retransmission comes too late for most targets.
const LONG_WAY: Duration = Duration::from_millis(80);

/// Above the first loss one frame is repeated, above the second two.
const LOSSY: f64 = 0.005;
const VERY_LOSSY: f64 = 0.02;

/// How long after a frame it is repeated. A loss in a row may swallow both: so not sooner. Just before the next frame,
/// where frames are shortest.
const APART: Duration = Duration::from_millis(9);

/// Frames repeated at most.
const COPIES_MOST: usize = 2;

/// Sound of one stream.
const GROUP: Duration = Duration::from_millis(200);

/// A group is given up when its last frame is older than this, and than twice the target.
const PATIENCE: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link =
        Link { rtt: Duration::from_millis(20), loss: 0.0, target: Duration::from_millis(80), datagram: 1200 };

    fn send(sender: &mut Sender, index: u64, bytes: usize, link: Link) -> Vec<Outgoing> {
        let start = index == 0;
        sender.frame(Time::from_millis(index * 20), Position(index * 960), start, vec![1; bytes], link)
    }

    fn sequences(outgoing: &[Outgoing]) -> (Vec<u32>, Vec<u32>) {
        let (mut streams, mut datagrams) = (Vec::new(), Vec::new());
        for out in outgoing {
            match out {
                Outgoing::Stream { packet, .. } => streams.push(packet.sequence),
                Outgoing::Datagram(packets) => datagrams.extend(packets.iter().map(|packet| packet.sequence)),
                Outgoing::Reset { .. } => {}
            }
        }
        (streams, datagrams)
    }

    #[test]
    fn a_group_has_200_ms() {
        let mut sender = Sender::new(1, Mode::Hybrid);
        let ends: Vec<u64> = (0..25)
            .filter(|index| {
                let sent = send(&mut sender, *index, 241, LINK);
                assert_eq!(sent.len(), 1, "no datagrams on a short sound link: {sent:?}");
                matches!(sent[0], Outgoing::Stream { ends: true, .. })
            })
            .collect();
        assert_eq!(ends, [9, 19]);
    }

    #[test]
    fn frames_ride_again_where_the_link_loses_or_is_long() {
        for (loss, rtt, copies) in
            [(0.0, 20, 0), (0.004, 80, 0), (0.006, 20, 1), (0.0, 81, 1), (0.01, 100, 2), (0.03, 20, 2)]
        {
            let link = Link { loss, rtt: Duration::from_millis(rtt), ..LINK };
            let mut sender = Sender::new(0, Mode::Hybrid);
            (0..5).for_each(|index| drop(send(&mut sender, index, 241, link)));
            sender.on_timeout(Time::from_millis(89), link);
            let (streams, datagrams) = sequences(&send(&mut sender, 5, 241, link));
            assert_eq!((streams, datagrams), (vec![5], vec![]), "{loss} {rtt}");
            assert_eq!(sender.next_timeout(), (copies > 0).then_some(Time::from_millis(109)));
            assert_eq!(sender.on_timeout(Time::from_millis(108), link), []);
            let (_, datagrams) = sequences(&sender.on_timeout(Time::from_millis(109), link));
            assert_eq!(datagrams, [5, 4][..copies], "{loss} {rtt}");
            assert_eq!(
                (sender.next_timeout(), sender.on_timeout(Time::from_millis(110), link)),
                (None, vec![])
            );
            let mut sender = Sender::new(0, Mode::Datagram);
            (0..5).for_each(|index| drop(send(&mut sender, index, 241, link)));
            let (streams, datagrams) = sequences(&send(&mut sender, 5, 241, link));
            assert_eq!((streams, datagrams), (vec![], [5, 4, 3][..=copies].to_vec()), "{loss} {rtt}");
        }
    }

    #[test]
    fn a_caller_that_is_late_repeats_before_what_is_newer() {
        let link = Link { loss: 0.05, ..LINK };
        let mut sender = Sender::new(0, Mode::Hybrid);
        send(&mut sender, 0, 241, link);
        let outgoing = send(&mut sender, 1, 241, link);
        assert!(matches!(&outgoing[0], Outgoing::Datagram(packets) if packets[0].sequence == 0));
        assert_eq!(sequences(&outgoing), (vec![1], vec![0]));
        sender.restart();
        assert_eq!(sender.next_timeout(), None);
    }

    #[test]
    fn what_fits_no_datagram_goes_on_a_stream() {
        let link = Link { loss: 0.05, ..LINK };
        let mut sender = Sender::new(0, Mode::Datagram);
        send(&mut sender, 0, 3840, link);
        assert_eq!(sequences(&send(&mut sender, 1, 3840, link)), (vec![1], vec![]));
        assert_eq!(sequences(&send(&mut sender, 2, 700, link)), (vec![], vec![2]));
        assert_eq!(sequences(&send(&mut sender, 3, 700, link)), (vec![], vec![3]), "two do not fit");
        // Woken for a copy that cannot be sent, a session would do nothing else.
        let mut hybrid = Sender::new(0, Mode::Hybrid);
        send(&mut hybrid, 0, 3840, link);
        assert_eq!(hybrid.next_timeout(), None);
        send(&mut hybrid, 1, 700, link);
        assert!(hybrid.next_timeout().is_some());
    }

    #[test]
    fn a_group_is_reset_when_it_is_too_old_unless_it_arrived() {
        let mut sender = Sender::new(0, Mode::Stream);
        (0..20).for_each(|index| drop(send(&mut sender, index, 241, LINK)));
        sender.on_delivered(0);
        assert_eq!(sender.on_timeout(Time::from_millis(780), LINK), []);
        assert_eq!(sender.on_timeout(Time::from_millis(781), LINK), [Outgoing::Reset { group: 1 }]);
        let patient = Link { target: Duration::from_millis(500), ..LINK };
        (60..70).for_each(|index| drop(send(&mut sender, index, 241, patient)));
        assert_eq!(sender.on_timeout(Time::from_millis(69 * 20 + 1000), patient), []);
        assert_eq!(
            sender.on_timeout(Time::from_millis(69 * 20 + 1001), patient),
            [Outgoing::Reset { group: 2 }]
        );
    }

    #[test]
    fn streams_are_bounded_while_nothing_arrives() {
        let mut sender = Sender::new(0, Mode::Stream);
        let slow = Link { target: Duration::from_secs(3600), ..LINK };
        (0..10_000).for_each(|index| drop(send(&mut sender, index, 241, slow)));
        assert!(sender.groups.len() <= MAX_GROUPS);
    }

    #[test]
    fn silence_ends_a_group() {
        let mut sender = Sender::new(0, Mode::Hybrid);
        let first = send(&mut sender, 0, 241, LINK);
        assert!(matches!(&first[0], Outgoing::Stream { packet, .. } if packet.flags.start));
        let idle = sender.idle(Time::from_millis(1020), Position(51 * 960), LINK);
        assert!(matches!(&idle[0], Outgoing::Stream { packet, ends: true, .. } if packet.flags.idle));
    }

    #[test]
    fn short_ways_get_short_frames() {
        let mut sender = Sender::new(0, Mode::Hybrid);
        let size = |sender: &mut Sender, rtt| sender.frame_size(Duration::from_millis(rtt));
        assert_eq!(size(&mut sender, 33), FrameSize::Ms20);
        assert_eq!(size(&mut sender, 29), FrameSize::Ms10);
        assert_eq!(size(&mut sender, 33), FrameSize::Ms10);
        assert_eq!(size(&mut sender, 37), FrameSize::Ms20);
    }

    #[test]
    fn regression_any_target_of_the_peer_is_taken() {
        let link = Link { target: Duration::MAX, ..LINK };
        let mut sender = Sender::new(0, Mode::Stream);
        assert_eq!(send(&mut sender, 0, 241, link).len(), 1);
    }
}
