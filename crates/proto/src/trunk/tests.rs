//! Both ends together, in any order of things, and each end alone with a peer that says anything.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Two ends, and what is on its way to each.
struct Pair {
    ends: [Trunk; 2],
    wires: [Vec<u8>; 2],
    /// How many bytes were sent on each strand by each end, and how many have been taken by the other.
    sent: [BTreeMap<u32, usize>; 2],
    taken: [BTreeMap<u32, usize>; 2],
    /// Whose receiver is gone.
    deaf: [Vec<u32>; 2],
}

impl Pair {
    fn new() -> Self {
        let ends = [Trunk::new(End::Near), Trunk::new(End::Far)];
        let wires = [MARK.to_vec(), Vec::new()];
        Self { ends, wires, sent: Default::default(), taken: Default::default(), deaf: Default::default() }
    }

    fn say(&mut self, end: usize, strand: u32, count: usize) {
        self.ends[end].answer(&mut self.wires[1 - end]);
        let count = count.min(self.ends[end].room(strand));
        let sent = self.sent[end].entry(strand).or_default();
        let payload: Vec<u8> = (*sent..*sent + count).map(byte).collect();
        *sent += count;
        self.ends[end].send(strand, &payload, &mut self.wires[1 - end]);
    }

    fn deliver(&mut self, end: usize, count: usize) {
        let count = count.min(self.wires[end].len());
        let piece: Vec<u8> = self.wires[end].drain(..count).collect();
        self.ends[end].receive(&piece).expect("an honest peer");
        while self.ends[end].take_opened().is_some() {}
    }

    fn take(&mut self, end: usize, strand: u32, count: usize) {
        let waiting = self.ends[end].waiting(strand);
        let waiting = waiting[..waiting.len().min(count)].to_vec();
        let taken = self.taken[end].entry(strand).or_default();
        for got in &waiting {
            assert_eq!(*got, byte(*taken), "strand {strand} at {taken}");
            *taken += 1;
        }
        self.ends[end].take(strand, waiting.len());
    }

    /// Everything that is on its way arrives.
    fn settle(&mut self) {
        for _ in 0..1000 {
            for end in [0, 1] {
                self.ends[end].answer(&mut self.wires[1 - end]);
                self.deliver(end, usize::MAX);
                for strand in self.ends[end].strands().collect::<Vec<_>>() {
                    self.take(end, strand, usize::MAX);
                }
            }
        }
    }
}

/// A byte that tells its place.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

#[test]
fn a_strand_that_is_not_taken_holds_up_no_other() {
    let mut pair = Pair::new();
    for _ in 0..1000 {
        pair.say(1, STDOUT, usize::MAX);
    }
    assert_eq!(pair.sent[1][&STDOUT], STDIO_WINDOW as usize);
    for _ in 0..1000 {
        pair.say(1, MEETING, usize::MAX);
        pair.deliver(0, usize::MAX);
        pair.take(0, MEETING, usize::MAX);
        pair.say(0, STDIN, 0);
        pair.deliver(1, usize::MAX);
    }
    assert!(pair.taken[0][&MEETING] > 10 << 20, "{:?}", pair.taken[0]);
    assert_eq!(pair.ends[1].room(STDOUT), 0);
}

#[test]
fn meetings_come_one_after_another_and_only_so_many_at_once() {
    let mut pair = Pair::new();
    assert_eq!(pair.ends[0].open(), None, "the far end does that");
    for round in 0..100 {
        let strand = pair.ends[1].open().expect("room for one");
        pair.say(1, strand, 100);
        pair.settle();
        pair.say(0, strand, 100);
        for end in [0, 1] {
            pair.ends[end].end(strand);
        }
        pair.settle();
        assert!(pair.ends.iter().all(|end| end.strands().count() == 5), "{round}");
    }
    let more = std::iter::from_fn(|| pair.ends[1].open()).count();
    assert_eq!(more, MAX_MEETINGS - 1);
    // One that is over before the peer has heard of it.
    pair.ends[1].end(MEETING + 101);
    pair.settle();
    assert!(pair.ends[0].is_heard(MEETING + 101) && pair.ends[0].is_open(MEETING + 101));
}

#[test]
fn of_meetings_that_are_over_and_not_taken_the_first_are_forgotten() {
    let mut pair = Pair::new();
    for _ in 0..100 {
        let strand = pair.ends[1].open().expect("room for one");
        pair.say(1, strand, 100);
        pair.ends[1].end(strand);
        pair.say(1, MEETING, 0);
        pair.deliver(0, usize::MAX);
        pair.ends[0].end(strand);
        pair.say(0, MEETING, 0);
        pair.deliver(1, usize::MAX);
    }
    let kept: Vec<u32> = pair.ends[0].strands().filter(|strand| *strand > MEETING).collect();
    assert_eq!(kept, (104 - MAX_MEETINGS as u32 + 1..105).collect::<Vec<_>>());
    assert!(pair.ends[0].is_heard(5), "nothing more comes of the first");
}

#[test]
fn what_a_login_prints_goes_to_stdout_and_waits_for_its_reader() {
    let mut near = Trunk::new(End::Near);
    let mut printed = 0;
    while near.takes() {
        near.receive(&[b'x'; 4096]).expect("a login may print");
        printed += 4096;
    }
    assert_eq!(printed, STDIO_WINDOW as usize);
    near.take(STDOUT, printed);
    near.receive(b"bye\nWFS").expect("a login may print");
    assert!(near.takes() && !near.is_met());
    near.end_of_stream();
    assert_eq!(near.waiting(STDOUT), b"bye\nWFS");
    // It costs the peer no room.
    near.take(STDOUT, 7);
    assert_eq!(near.strands[&STDOUT].taken, 0);
    let mut far = Trunk::new(End::Far);
    assert_eq!(far.receive(b"WFSSH2\r\n"), Err(TrunkError::NoMark));
}

#[test]
fn regression_room_that_crosses_the_end_of_its_strand_ends_the_trunk() {
    let mut pair = Pair::new();
    (0..8).for_each(|_| pair.say(0, STDIN, MAX_PIECE));
    pair.deliver(1, usize::MAX);
    (0..2).for_each(|_| pair.take(1, STDIN, usize::MAX));
    pair.say(1, STDOUT, 0);
    assert!(!pair.wires[0].is_empty(), "room is on its way");
    pair.ends[0].end(STDIN);
    pair.settle();
    assert!(!pair.ends[0].is_open(STDIN) && pair.ends[1].is_heard(STDIN));
}

#[test]
fn a_peer_that_breaks_the_rules_is_refused() {
    let refused = |end, frames: &[Frame<'_>]| {
        let mut said = MARK.to_vec();
        frames.iter().for_each(|frame| put(&mut said, *frame));
        Trunk::new(end).receive(&said).expect_err("it is refused")
    };
    let wrong = |strand| TrunkError::WrongStrand { strand };
    let piece = [0; MAX_PIECE];
    let flood = [Frame::Data { strand: STDOUT, payload: &piece }; 17];
    assert_eq!(refused(End::Near, &flood), TrunkError::TooMuch { strand: STDOUT });
    assert_eq!(refused(End::Near, &[Frame::Data { strand: STDIN, payload: b"x" }]), wrong(STDIN));
    assert_eq!(refused(End::Far, &[Frame::Data { strand: STDOUT, payload: b"x" }]), wrong(STDOUT));
    assert_eq!(refused(End::Far, &[Frame::Open { strand: 5 }]), wrong(5));
    assert_eq!(refused(End::Near, &[Frame::Open { strand: 6 }]), wrong(6));
    assert_eq!(refused(End::Near, &[Frame::End { strand: 5 }]), wrong(5));
    assert_eq!(refused(End::Near, &[Frame::Room { strand: 5, bytes: 1 }]), wrong(5));
    assert_eq!(refused(End::Near, &[Frame::End { strand: MEETING }; 2]), wrong(MEETING));
    let room = [Frame::Room { strand: MEETING, bytes: 1 }];
    assert_eq!(refused(End::Near, &room), TrunkError::TooMuch { strand: MEETING });
    let many: Vec<_> = (5..100).map(|strand| Frame::Open { strand }).collect();
    assert_eq!(refused(End::Near, &many), wrong(MEETING + MAX_MEETINGS as u32));
    assert_eq!(refused(End::Near, &[Frame::Stop { strand: STDOUT }]), wrong(STDOUT));
    assert_eq!(refused(End::Far, &[Frame::Stop { strand: STDIN }]), wrong(STDIN));
}

#[test]
fn what_has_no_reader_does_not_cross() {
    let mut pair = Pair::new();
    pair.say(1, STDOUT, usize::MAX);
    pair.ends[0].discard(STDOUT);
    pair.settle();
    for _ in 0..10_000 {
        assert_eq!(pair.ends[1].room(STDOUT), MAX_PIECE, "the program is not held up");
        pair.say(1, STDOUT, usize::MAX);
    }
    assert!(pair.wires[0].len() < MAX_PIECE, "{} bytes", pair.wires[0].len());
    pair.ends[1].end(STDOUT);
    pair.settle();
    assert!(pair.ends[0].is_heard(STDOUT));
}

proptest! {
    #[test]
    fn what_is_said_arrives_once_and_in_order(
        steps in vec((0..6u8, 0..2usize, 0..8u32, 0..100_000usize), 0..400),
    ) {
        let mut pair = Pair::new();
        for (what, end, strand, count) in steps {
            match what {
                0 | 1 => pair.say(end, strand, count),
                2 => pair.deliver(end, count),
                3 => pair.take(end, strand, count),
                4 if count < 20_000 => pair.ends[end].end(strand),
                4 if count < 25_000 => {
                    pair.ends[end].discard(strand);
                    pair.deaf[end].push(strand);
                }
                5 if count < 20_000 && pair.ends[1].next < 10 => drop(pair.ends[1].open()),
                _ => {}
            }
            for trunk in &pair.ends {
                prop_assert!(trunk.strands.len() <= MOST);
                prop_assert!(trunk.strands.values().all(|strand| strand.queue.len() <= strand.window as usize));
            }
        }
        pair.settle();
        for end in [0, 1] {
            for (strand, sent) in &pair.sent[1 - end] {
                let taken = pair.taken[end].get(strand).copied().unwrap_or(0);
                prop_assert!(pair.deaf[end].contains(strand) || taken == *sent, "{strand}: {taken} of {sent}");
            }
        }
    }

    #[test]
    fn any_peer_is_survived(near in any::<bool>(), said in vec(vec(0..7u8, 0..40), 0..100)) {
        let end = if near { End::Near } else { End::Far };
        let (mut trunk, mut out) = (Trunk::new(end), Vec::new());
        trunk.receive(MARK).expect("the mark");
        for piece in said {
            if trunk.receive(&piece).is_err() {
                break;
            }
            trunk.answer(&mut out);
            prop_assert!(trunk.strands.len() <= MOST);
        }
    }
}

/// Strands that there can be.
const MOST: usize = 4 + 2 * MAX_MEETINGS;
