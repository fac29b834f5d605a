//! Clipboard, primary selection, drag and drop.

mod common;

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use common::{checkers, start};
use wayferry_stage::{Client, Clipboard, Config, Input, Program, StageEvent};

const TEXT: &str = "text/plain";

fn window(client: &mut Client, title: &str) -> wayferry_stage::Pane {
    let window = client.window(title, 100, 100).unwrap();
    client.draw(window, &checkers(100, 100)).unwrap();
    client.wait("the focus", |client| client.keyboard_focus() == Some(window)).unwrap();
    window
}

fn offered(client: &mut Client, clipboard: Clipboard) -> Vec<String> {
    let wanted = |input: &Input| matches!(input, Input::Selection { clipboard: it, types } if *it == clipboard && !types.is_empty());
    match client.wait_input(wanted).unwrap() {
        Input::Selection { types, .. } => types,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_client_copies_the_stage_and_others_paste() {
    for clipboard in [Clipboard::Regular, Clipboard::Primary] {
        let (stage, mut client) = start(Config::default());
        let mut watch = stage.watch();
        window(&mut client, "writer");
        let long = vec![7u8; 1 << 20];
        let data = vec![(TEXT.to_owned(), b"hello".to_vec()), ("image/x".to_owned(), long.clone())];
        client.copy(clipboard, data).unwrap();
        let set = watch.until(|event| matches!(event, StageEvent::SetSelection { .. })).unwrap().event;
        assert!(matches!(&set, StageEvent::SetSelection { accepted: true, types, .. } if types.len() == 2));
        // The client serves its pipe while it dispatches.
        let pasted = stage.clipboard(clipboard, TEXT);
        client.round_trip().unwrap();
        assert_eq!(pasted.recv_timeout(Duration::from_secs(30)).unwrap(), b"hello");
        // It may paste from itself.
        assert_eq!(offered(&mut client, clipboard), [TEXT, "image/x"]);
        assert_eq!(client.paste(clipboard, "image/x").unwrap().unwrap(), long);
        // Another window gets the offer with the focus.
        let reader = Program::start(wayferry_stage::Endpoint::Stream(stage.connect().unwrap()), move |it| {
            window(it, "reader");
            offered(it, clipboard);
            assert_eq!(it.paste(clipboard, "image/x")?.map(|bytes| bytes.len()), Some(1 << 20));
            Ok(())
        })
        .unwrap();
        client.wait("the other to read", |_| reader.is_finished()).unwrap();
        reader.join().unwrap();
    }
}

#[test]
fn what_the_stage_copies_a_client_pastes() {
    let (stage, mut client) = start(Config::default());
    window(&mut client, "reader");
    stage.set_clipboard(Clipboard::Regular, vec![(TEXT.to_owned(), vec![9; 300_000])]);
    assert_eq!(offered(&mut client, Clipboard::Regular), [TEXT]);
    assert_eq!(client.paste(Clipboard::Regular, TEXT).unwrap(), Some(vec![9; 300_000]));
    stage.set_clipboard(Clipboard::Regular, vec![]);
    client.wait_input(|input| matches!(input, Input::Selection { types, .. } if types.is_empty())).unwrap();
    assert_eq!(client.paste(Clipboard::Regular, TEXT).unwrap(), None);
}

#[test]
fn a_reader_may_stop_early() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    window(&mut client, "writer");
    client.copy(Clipboard::Regular, vec![(TEXT.to_owned(), vec![1; 1 << 20])]).unwrap();
    watch.until(|event| matches!(event, StageEvent::SetSelection { .. })).unwrap();
    let mut pipe = File::from(stage.read_clipboard(Clipboard::Regular, TEXT).unwrap());
    client.round_trip().unwrap();
    let mut some = [0; 10];
    pipe.read_exact(&mut some).unwrap();
    drop(pipe);
    let again = stage.clipboard(Clipboard::Regular, TEXT);
    client.round_trip().unwrap();
    assert_eq!(again.recv_timeout(Duration::from_secs(30)).unwrap().len(), 1 << 20);
}

#[test]
fn a_new_copy_cancels_the_old_one() {
    let (stage, mut client) = start(Config::default());
    window(&mut client, "writer");
    client.copy(Clipboard::Regular, vec![(TEXT.to_owned(), b"one".to_vec())]).unwrap();
    stage.set_clipboard(Clipboard::Regular, vec![(TEXT.to_owned(), b"two".to_vec())]);
    // The order of the two on the stage decides who was first; both ways only one of them is left.
    client.round_trip().unwrap();
    let pasted = client.paste(Clipboard::Regular, TEXT).unwrap().unwrap();
    let cancelled = client.take_inputs().contains(&Input::Cancelled { clipboard: Clipboard::Regular });
    assert_eq!(cancelled, pasted == b"two");
}

#[test]
fn a_drag_goes_from_one_client_to_another() {
    let (stage, mut source) = start(Config::default());
    let mut watch = stage.watch();
    let from = window(&mut source, "source");
    let mut target = Client::from_stream(stage.connect().unwrap()).unwrap();
    let to = window(&mut target, "target");
    stage.pointer_motion(10.0, 10.0);
    stage.pointer_button(0x110, true);
    source.wait_input(|input| matches!(input, Input::Button { .. })).unwrap();
    source.start_drag(from, None, vec![(TEXT.to_owned(), b"dragged".to_vec())]).unwrap();
    let started = watch.until(|event| matches!(event, StageEvent::DragStarted { .. })).unwrap().event;
    assert!(matches!(started, StageEvent::DragStarted { accepted: true, .. }));
    // The target stands at (40, 40).
    stage.pointer_motion(120.0, 120.0);
    let entered = target.wait_input(|input| matches!(input, Input::DragEnter { .. })).unwrap();
    assert_eq!(entered, Input::DragEnter { pane: Some(to), types: vec![TEXT.to_owned()] });
    target.round_trip().unwrap();
    stage.pointer_button(0x110, false);
    target.wait_input(|input| *input == Input::Drop).unwrap();
    source.wait_input(|input| *input == Input::Dropped).unwrap();
    let reader = std::thread::spawn(move || (target.take_drop(TEXT), target));
    source.wait("the drop to be read", |_| reader.is_finished()).unwrap();
    let (dropped, mut target) = reader.join().unwrap();
    assert_eq!(dropped.unwrap().unwrap(), b"dragged");
    target.round_trip().unwrap();
    source.wait_input(|input| *input == Input::DragFinished).unwrap();
    let ended = watch.until(|event| matches!(event, StageEvent::DragEnded { .. })).unwrap().event;
    assert!(matches!(ended, StageEvent::DragEnded { dropped_on: Some(_) }));
}
