//! The queue of what was written: nothing is lost, doubled or moved, however it is written and taken.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::*;

#[allow(dead_code, reason = "its other callers are in the module that loads it")]
#[path = "../src/outgoing.rs"]
mod outgoing;

use outgoing::{LIMIT, Outgoing};

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    WriteOwned(usize),
    WriteAlone(usize),
    Take(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let sizes = prop_oneof![0..100_usize, 0..10_000_usize, LIMIT - 2..LIMIT + 3, Just(3 * LIMIT)];
    prop_oneof![
        4 => sizes.clone().prop_map(Step::Write),
        1 => sizes.clone().prop_map(Step::WriteOwned),
        1 => sizes.clone().prop_map(Step::WriteAlone),
        3 => sizes.prop_map(Step::Take),
    ]
}

/// Takes up to `count` bytes from the front, as a stream does that has room for so many.
fn take(outgoing: &mut Outgoing, mut count: usize) -> Vec<u8> {
    let chunks = outgoing.chunks();
    let mut taken = Vec::new();
    while let Some(mut chunk) = chunks.pop_front() {
        let part = chunk.split_to(chunk.len().min(count));
        taken.extend_from_slice(&part);
        count -= part.len();
        if !chunk.is_empty() {
            chunks.push_front(chunk);
            break;
        }
    }
    outgoing.taken(taken.len());
    taken
}

proptest! {
    #[test]
    fn bytes_leave_in_the_order_in_which_they_came(steps in vec(step(), 0..60)) {
        let mut outgoing = Outgoing::default();
        let (mut written, mut left) = (Vec::new(), Vec::new());
        let mut fresh = (0..=250_u8).cycle();
        for step in steps {
            match step {
                Step::Write(size) => {
                    let data: Vec<u8> = fresh.by_ref().take(size).collect();
                    outgoing.push(Cow::Borrowed(&data));
                    written.extend(data);
                }
                Step::WriteOwned(size) => {
                    let data: Vec<u8> = fresh.by_ref().take(size).collect();
                    written.extend(&data);
                    outgoing.push(Cow::Owned(data));
                }
                Step::WriteAlone(size) => {
                    let data: Vec<u8> = fresh.by_ref().take(size).collect();
                    outgoing.push_alone(Cow::Borrowed(&data));
                    written.extend(data);
                }
                Step::Take(size) => left.extend(take(&mut outgoing, size)),
            }
            prop_assert_eq!(outgoing.len(), written.len() - left.len());
            prop_assert_eq!(outgoing.is_empty(), written.len() == left.len());
            prop_assert_eq!(outgoing.has_room(), outgoing.len() < LIMIT);
        }
        left.extend(take(&mut outgoing, usize::MAX));
        prop_assert!(outgoing.is_empty());
        prop_assert_eq!(left, written);
    }
}

#[test]
fn what_was_cleared_is_gone() {
    let mut outgoing = Outgoing::default();
    outgoing.push(Cow::Borrowed(b"small"));
    outgoing.push(Cow::Owned(vec![0; LIMIT]));
    outgoing.clear();
    assert!(outgoing.is_empty());
    assert!(outgoing.chunks().is_empty());
}

#[test]
fn small_writes_become_one_chunk() {
    let mut outgoing = Outgoing::default();
    for _ in 0..100 {
        outgoing.push(Cow::Borrowed(b"0123456789"));
    }
    assert_eq!(outgoing.chunks().len(), 1);
}
