//! In any sequence of what strangers and displays do before they are admitted, only those with a good secret come in,
//! and they do.

mod world;

use std::time::Duration;

use proptest::prelude::*;
use wayferry_proto::admission::Role;

use world::{Operation, Shows, run};

fn part() -> impl Strategy<Value = Role> {
    any::<bool>().prop_map(|view| if view { Role::View } else { Role::Active })
}

fn shows() -> impl Strategy<Value = Shows> {
    (any::<u8>(), any::<u8>(), any::<bool>(), any::<bool>())
        .prop_map(|(secret, incarnation, view_only, here)| Shows { secret, incarnation, view_only, here })
}

fn millis(most: u64) -> impl Strategy<Value = Duration> {
    (0..most).prop_map(Duration::from_millis)
}

fn operation() -> impl Strategy<Value = Operation> {
    let come = (0..4u8, 0..8u8, prop::option::of(shows()));
    let said = (0..4u8, 0..4u8, prop::collection::vec(any::<u8>(), 0..20));
    prop_oneof![
        3 => (part(), millis(60_000)).prop_map(|(part, good_for)| Operation::Print(part, good_for)),
        3 => (part(), 0..8u8).prop_map(|(part, certificate)| Operation::Invite(part, certificate)),
        8 => come.prop_map(|(from, certificate, shows)| Operation::Come { from, certificate, shows }),
        8 => (0..3u8, any::<u8>()).prop_map(|(who, pieces)| Operation::Hear { who, pieces }),
        1 => said.clone().prop_map(|(who, stream, bytes)| Operation::Say { who, stream, bytes }),
        1 => said.prop_map(|(who, stream, bytes)| Operation::Tell { who, stream, bytes }),
        1 => (0..4u8, 0..8u8).prop_map(|(who, code)| Operation::Close { who, code }),
        1 => (0..4u8, any::<u8>()).prop_map(|(who, which)| Operation::End { who, which }),
        2 => millis(5_000).prop_map(Operation::Pass),
        1 => Just(Operation::Detach),
        1 => Just(Operation::DetachViews),
        1 => any::<u8>().prop_map(Operation::Leave),
        1 => Just(Operation::Revoke),
    ]
}

proptest! {
    #[test]
    fn only_a_good_secret_lets_a_display_in(operations in prop::collection::vec(operation(), 0..120)) {
        run(operations);
    }
}
