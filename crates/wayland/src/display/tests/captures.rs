//! Pictures that the compositor takes for programs.

use std::os::fd::OwnedFd;

use crate::message::{ToApp, WireArg, WireId};
use crate::picture;
use crate::tables;
use crate::wire::Arg;

use super::super::Config;
use super::rig::{Rig, size};

const NAME: &str = "zwlr_screencopy_manager_v1";

/// A frame whose size the compositor has told.
fn frame(rig: &mut Rig) -> WireId {
    let (manager, output) = (rig.bind(NAME), rig.bind("wl_output"));
    let frame = rig.make(manager, "capture_output", vec![WireArg::Int(0), WireArg::Object(output)]);
    let id = rig.id(frame);
    rig.event(id, "buffer", [1, 4, 3, 20].map(Arg::Uint).into());
    rig.turn();
    frame
}

fn rig() -> Rig {
    let globals = [("wl_compositor", 4), ("wl_shm", 1), ("wl_output", 4), (NAME, 3)];
    Rig::with(&globals)
}

fn read(fd: &OwnedFd) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = std::fs::File::from(fd.try_clone().unwrap());
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    bytes
}

fn unpack(fd: &OwnedFd) -> Option<wayferry_pixels::Content> {
    let mut unpacker = picture::Unpacker::new(size(4, 3), wayferry_pixels::Format::Xrgb8888);
    unpacker.push(&read(fd)).expect("it is a picture");
    unpacker.finish()
}

#[test]
fn what_the_compositor_writes_goes_back() {
    let mut rig = rig();
    let frame = frame(&mut rig);
    rig.request(frame, "copy", vec![WireArg::Pipe(2)]);
    let buffer =
        rig.got.iter().find(|got| got.is("zwlr_screencopy_frame_v1", "copy")).expect("it is asked").uint(0);
    let pixels: Vec<u8> = (0..56).collect();
    rig.buffers[&buffer].fill(&pixels);
    assert!(rig.pipes_out.is_empty());
    let id = rig.id(frame);
    rig.event(id, "ready", [0, 1, 2].map(Arg::Uint).into());
    rig.turn();
    let [(2, fd)] = &rig.pipes_out[..] else { panic!("{:?}", rig.pipes_out) };
    let content = unpack(fd).expect("a picture");
    let rows: Vec<u8> = (0..3).flat_map(|y| (0..16).map(move |x| y * 20 + x)).collect();
    assert_eq!(content.pixels(), rows);
    let is_gone =
        |rig: &Rig| rig.got.iter().any(|got| got.is("wl_buffer", "destroy") && got.object == buffer);
    assert!(!is_gone(&rig), "it may still be read");
    let is_ready =
        |told: &ToApp| matches!(told, ToApp::Event(event) if event.object == frame && event.args.len() == 3);
    assert!(rig.reported.iter().any(is_ready));
    rig.request(frame, "destroy", vec![]);
    assert!(is_gone(&rig));
    rig.assert_alive();
}

/// A frame may fail while its copy is on the way.
#[test]
fn regression_a_copy_of_a_frame_that_had_failed_ended_the_program() {
    let mut rig = rig();
    let frame = frame(&mut rig);
    let id = rig.id(frame);
    rig.event(id, "failed", vec![]);
    rig.turn();
    rig.request(frame, "copy", vec![WireArg::Pipe(2)]);
    let [(2, fd)] = &rig.pipes_out[..] else { panic!("{:?}", rig.pipes_out) };
    assert_eq!(read(fd), []);
    assert!(!rig.got.iter().any(|got| got.is("zwlr_screencopy_frame_v1", "copy")));
    rig.assert_alive();
}

/// A compositor that tells twice what the buffer is to be like.
#[test]
fn a_frame_is_told_of_once() {
    let mut rig = rig();
    let frame = frame(&mut rig);
    rig.request(frame, "copy", vec![WireArg::Pipe(2)]);
    let id = rig.id(frame);
    rig.event(id, "buffer", [1, 40, 3, 160].map(Arg::Uint).into());
    rig.event(id, "ready", [0, 1, 2].map(Arg::Uint).into());
    rig.turn();
    let [(2, fd)] = &rig.pipes_out[..] else { panic!("{:?}", rig.pipes_out) };
    assert!(unpack(fd).is_some());
    rig.assert_alive();
}

/// Frames that a program keeps do not count.
#[test]
fn frames_that_are_over_make_room_for_others() {
    let mut rig = rig();
    for pipe in 1..3 * crate::app::MAX_COPIES as u64 {
        let frame = frame(&mut rig);
        rig.request(frame, "copy", vec![WireArg::Pipe(2 * pipe)]);
        let id = rig.id(frame);
        rig.event(id, "ready", [0, 1, 2].map(Arg::Uint).into());
        rig.turn();
        let (_, fd) = rig.pipes_out.last().expect("a pipe");
        assert_eq!(unpack(fd).expect("a picture").pixels(), [0; 48], "a black screen");
    }
    rig.assert_alive();
}

#[test]
fn a_picture_that_is_never_taken_is_empty() {
    for ends in ["failed", "destroy"] {
        let mut rig = rig();
        let frame = frame(&mut rig);
        rig.request(frame, "copy_with_damage", vec![WireArg::Pipe(2)]);
        match ends {
            "failed" => {
                let id = rig.id(frame);
                rig.event(id, "failed", vec![]);
                rig.turn();
            }
            _ => rig.request(frame, "destroy", vec![]),
        }
        let [(2, fd)] = &rig.pipes_out[..] else { panic!("{:?}", rig.pipes_out) };
        assert_eq!(read(fd), [], "{ends}");
        rig.assert_alive();
    }
}

#[test]
fn copies_that_cannot_be_are_violations() {
    let attempts: [fn(&mut Rig); 3] = [
        |rig| {
            let frame = frame(rig);
            (0..2).for_each(|_| rig.request(frame, "copy", vec![WireArg::Pipe(2)]));
        },
        |rig| {
            let frame = frame(rig);
            rig.request(frame, "copy", vec![WireArg::Object(WireId::NULL)]);
        },
        |rig| {
            for pipe in 0..=crate::app::MAX_COPIES as u64 {
                let frame = frame(rig);
                rig.request(frame, "copy", vec![WireArg::Pipe(2 * pipe + 2)]);
            }
        },
    ];
    for attempt in attempts {
        let mut rig = rig();
        attempt(&mut rig);
        rig.violation();
    }
}

/// Without leave of the user there is no manager, and nothing is taken.
#[test]
fn nothing_is_taken_without_leave() {
    let globals = [("wl_compositor", 4), ("wl_shm", 1), ("wl_output", 4), (NAME, 3)];
    let mut rig = Rig::configured(&globals, Config { allow: Some(vec![]), ..Config::default() });
    rig.turn();
    let (manager, output) = (rig.bind(NAME), rig.bind("wl_output"));
    let frame = rig.make(manager, "capture_output", vec![WireArg::Int(0), WireArg::Object(output)]);
    rig.request(frame, "copy", vec![WireArg::Pipe(2)]);
    let [(2, fd)] = &rig.pipes_out[..] else { panic!("{:?}", rig.pipes_out) };
    assert_eq!(read(fd), []);
    assert!(rig.got.iter().all(|got| got.interface != "zwlr_screencopy_frame_v1"));
    let failed = tables::event_opcode(tables::interface("zwlr_screencopy_frame_v1").unwrap(), "failed");
    let is_failed = |told: &ToApp| matches!(told, ToApp::Event(event) if event.object == frame && Some(event.opcode) == failed);
    assert!(rig.reported.iter().any(is_failed), "{:?}", rig.reported);
    rig.assert_alive();
}
