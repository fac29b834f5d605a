//! Displays come, get lost, come back, replace each other and are sent away: each rule by itself, and any sequence of
//! them.

mod desk;
mod model;
mod rules;

use std::time::Duration;

use proptest::prelude::*;
use wayferry_proto::succession::Around;

use model::{Operation, run};

fn around() -> impl Strategy<Value = Around> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(viewers, awaited, connected)| Around {
        viewers,
        awaited,
        connected,
        ..Around::default()
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (0..3_usize).prop_map(Operation::Come),
        8 => any::<u8>().prop_map(Operation::Enter),
        4 => Just(Operation::Cut),
        2 => Just(Operation::Talk),
        1 => Just(Operation::Leave),
        1 => Just(Operation::Err),
        1 => Just(Operation::Detach),
        1 => Just(Operation::Owe),
        1 => Just(Operation::Show),
        1 => Just(Operation::Orphan),
        1 => around().prop_map(Operation::Around),
        1 => (0..40_000_u64).prop_map(|millis| Operation::Pass(Duration::from_millis(millis))),
        1 => any::<u8>().prop_map(Operation::End),
    ]
}

proptest! {
    #[test]
    fn one_display_at_most_each_told_once_and_one_end(
        followed in prop::bool::weighted(0.9),
        operations in prop::collection::vec(operation(), 0..80),
    ) {
        run(followed, &operations);
    }
}
