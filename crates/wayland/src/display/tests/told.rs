//! Units in the headers of their updates, and updates that make up for those before them.

use wayferry_pixels::{Content, Format};
use wayferry_proto::{UnitHead, UpdateHeader, UpdateSeq};

use super::rig::{Rig, size};
use super::units::{GREEN, RED, applied};
use crate::message::{ToApp, ToDisplay, UnitContent, WireId};

const BLUE: [u8; 4] = [255, 0, 0, 255];

type Update = (UpdateHeader, Vec<Vec<u8>>);

/// A surface that shows red.
fn red() -> (Rig, WireId) {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.paint(surface, size(2, 2), RED);
    applied(&mut rig);
    (rig, surface)
}

/// All of it in another colour, said to be shown by this unit after all messages so far, and not delivered.
fn told(rig: &mut Rig, surface: WireId, pixel: [u8; 4], covers: u8, number: u64) -> Update {
    let mut content = Content::new(size(2, 2), Format::Argb8888);
    content.fill(&pixel);
    let (header, chunks) = rig.update(surface, content, false);
    let unit =
        Some(UnitHead { number, after: rig.connection.intake.messages(), feedback: true, answered: None });
    (UpdateHeader { covers, unit, ..header }, chunks)
}

fn pixels(rig: &Rig) -> Vec<Vec<u8>> {
    rig.shown.iter().map(|shown| shown.pixels.clone()).collect()
}

#[test]
fn an_update_is_shown_without_a_message() {
    let (mut rig, surface) = red();
    let update = told(&mut rig, surface, GREEN, 0, 2);
    rig.deliver(update);
    assert_eq!(applied(&mut rig), [(surface, 2)]);
    assert_eq!(pixels(&rig), [RED.repeat(4), GREEN.repeat(4)]);
    // What is said of it later has been done.
    let unit = rig.unit(surface, UnitContent::Update(UpdateSeq(2)));
    rig.say(&ToDisplay::Unit(unit));
    assert_eq!((applied(&mut rig), rig.shown.len()), (vec![], 2));
    rig.assert_alive();
}

#[test]
fn what_is_lost_is_made_up_for_and_nothing_of_it_is_shown_when_it_comes_late() {
    let (mut rig, surface) = red();
    let lost = [told(&mut rig, surface, GREEN, 0, 2), told(&mut rig, surface, BLUE, 1, 3)];
    let covering = told(&mut rig, surface, [7; 4], 2, 4);
    rig.deliver(covering);
    assert_eq!(applied(&mut rig), [(surface, 4)]);
    for update in lost {
        rig.deliver(update);
    }
    assert_eq!(applied(&mut rig), []);
    assert_eq!(pixels(&rig), [RED.repeat(4), vec![7; 16]]);
    assert_eq!(rig.connection.updates.memory(), (0, 0));
    let next = told(&mut rig, surface, GREEN, 0, 5);
    rig.deliver(next);
    assert_eq!(applied(&mut rig), [(surface, 5)]);
}

#[test]
fn regression_what_is_there_is_shown_while_a_newer_one_waits() {
    let (mut rig, surface) = red();
    let [first, second] = [told(&mut rig, surface, GREEN, 0, 2), told(&mut rig, surface, BLUE, 0, 3)];
    let lost = told(&mut rig, surface, GREEN, 0, 4);
    let newest = told(&mut rig, surface, [7; 4], 0, 5);
    rig.deliver(second);
    rig.deliver(newest);
    rig.deliver(first);
    assert_eq!(applied(&mut rig), [(surface, 3)], "the newest cannot be shown yet");
    rig.deliver(lost);
    assert_eq!(applied(&mut rig), [(surface, 5)]);
    assert_eq!(pixels(&rig), [RED.repeat(4), BLUE.repeat(4), vec![7; 16]]);
}

#[test]
fn what_is_not_covered_is_waited_for() {
    let (mut rig, surface) = red();
    let lost = told(&mut rig, surface, GREEN, 0, 2);
    let covered = told(&mut rig, surface, BLUE, 0, 3);
    let covering = told(&mut rig, surface, [7; 4], 1, 4);
    rig.deliver(covering);
    rig.deliver(covered);
    assert_eq!(applied(&mut rig), []);
    rig.deliver(lost);
    assert_eq!(applied(&mut rig), [(surface, 4)], "the newest is shown, with all before it");
    assert_eq!(pixels(&rig), [RED.repeat(4), vec![7; 16]]);
}

#[test]
fn an_update_is_not_shown_before_the_messages_that_come_before_it() {
    let (mut rig, surface) = red();
    let (mut header, chunks) = told(&mut rig, surface, GREEN, 0, 3);
    header.unit.iter_mut().for_each(|unit| unit.after += 1);
    rig.deliver((header, chunks));
    assert_eq!(applied(&mut rig), []);
    rig.commit(surface);
    assert_eq!(applied(&mut rig), [(surface, 2), (surface, 3)]);
}

/// The message says it again because something comes behind it, and arrives first.
#[test]
fn a_unit_is_shown_once_in_whichever_way_it_is_told_first() {
    let (mut rig, surface) = red();
    let update = told(&mut rig, surface, GREEN, 0, 2);
    let unit = rig.unit(surface, UnitContent::Update(UpdateSeq(2)));
    rig.say(&ToDisplay::Unit(unit));
    rig.commit(surface);
    assert_eq!(applied(&mut rig), []);
    rig.deliver(update);
    assert_eq!(applied(&mut rig), [(surface, 2), (surface, 3)]);
    assert_eq!(pixels(&rig), [RED.repeat(4), GREEN.repeat(4)]);
}

/// The compositor has all buffers; what comes meanwhile takes the place of what waits.
#[test]
fn only_the_newest_waits_behind_one_that_waits_for_a_buffer() {
    let (mut rig, surface) = red();
    for number in 2..=8 {
        let update = told(&mut rig, surface, [number as u8; 4], 0, number);
        rig.deliver(update);
    }
    let shown = applied(&mut rig).len();
    rig.take_reported();
    assert!(shown < 7);
    for buffer in rig.busy.clone() {
        rig.release(buffer);
    }
    rig.turn();
    let rest: Vec<u64> = applied(&mut rig).into_iter().map(|(_, number)| number).collect();
    assert_eq!(rest, [shown as u64 + 2, 8]);
    assert_eq!(rig.shown.last().map(|shown| shown.pixels.clone()), Some(vec![8; 16]));
    rig.assert_alive();
}

#[test]
fn what_a_destroyed_surface_was_told_is_nothing() {
    let (mut rig, surface) = red();
    let lost = told(&mut rig, surface, GREEN, 0, 2);
    let early = told(&mut rig, surface, BLUE, 0, 3);
    rig.deliver(early);
    rig.request(surface, "destroy", vec![]);
    rig.deliver(lost);
    assert_eq!(applied(&mut rig), []);
    rig.assert_alive();
}

#[test]
fn what_builds_on_what_it_covers_is_refused() {
    let (mut rig, surface) = red();
    let mut content = Content::new(size(2, 2), Format::Argb8888);
    content.fill(&GREEN);
    let (header, _) = rig.update(surface, content, false);
    // A chunk of nothing but a copy of the first pixel, not compressed.
    let copy = vec![0, 8, 1, 1, 1, 0, 0, 0, 0, 0];
    let unit = Some(UnitHead { number: 2, after: 0, feedback: false, answered: None });
    rig.deliver((UpdateHeader { covers: 1, unit, ..header }, vec![copy]));
    let asked = rig.take_reported();
    assert!(asked.iter().any(|told| matches!(told, ToApp::Refresh { .. })), "{asked:?}");
    assert_eq!(rig.shown.last().map(|shown| shown.pixels.clone()), Some(RED.repeat(4)));
}
