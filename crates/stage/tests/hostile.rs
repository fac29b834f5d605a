//! Clients that speak nonsense: they go, the stage and its other clients stay.

mod common;

use std::io::{Read, Write};

use common::{checkers, start};
use proptest::prelude::*;
use wayferry_stage::{Client, Config, Stage, StageEvent};

/// Messages with plausible heads and any body.
fn nonsense() -> impl Strategy<Value = Vec<u8>> {
    let message = (0u32..6, 0u32..12, prop::collection::vec(any::<u32>(), 0..6));
    prop::collection::vec(message, 1..30).prop_map(|messages| {
        let words = messages.into_iter().flat_map(|(object, opcode, body)| {
            let size = 8 + body.len() as u32 * 4;
            [object, size << 16 | opcode].into_iter().chain(body)
        });
        words.flat_map(u32::to_ne_bytes).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nonsense_ends_only_its_sender(bytes in nonsense(), raw in prop::collection::vec(any::<u8>(), 0..200)) {
        let stage = Stage::start(Config::default()).unwrap();
        let mut watch = stage.watch();
        for bytes in [bytes, raw] {
            let mut stream = stage.connect().unwrap();
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
            watch.until(|event| matches!(event, StageEvent::ClientGone { .. })).unwrap();
        }
        Client::from_stream(stage.connect().unwrap()).unwrap();
    }
}

#[test]
fn a_client_that_vanishes_leaves_nothing() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("gone", 50, 50).unwrap();
    let child = client.subsurface(window, 5, 5).unwrap();
    client.draw(child, &checkers(10, 10)).unwrap();
    client.ask_frame(window);
    client.draw(window, &checkers(50, 50)).unwrap();
    watch.commit(|commit| commit.title.is_some() && commit.attached).unwrap();
    drop(client);
    let gone = watch.until(|event| matches!(event, StageEvent::ClientGone { .. })).unwrap().event;
    assert!(matches!(gone, StageEvent::ClientGone { violation: None, .. }), "{gone:?}");
    assert!(stage.windows().is_empty());
}
