//! Commit units: what waits for what, and that buffers always hold what they should.

use proptest::prelude::*;
use wayferry_pixels::{Content, Format, Layout, Rect, Region};
use wayferry_proto::{Time, UpdateSeq};

use super::rig::{Rig, size};
use crate::action::End;
use crate::message::{ToApp, ToDisplay, UnitContent, WireArg, WireId};
use crate::value::Positioner;
use crate::wire::Arg;

pub(super) const RED: [u8; 4] = [0, 0, 255, 255];
pub(super) const GREEN: [u8; 4] = [0, 255, 0, 255];

pub(super) fn applied(rig: &mut Rig) -> Vec<(WireId, u64)> {
    let told = rig.take_reported();
    let applied = told.into_iter().filter_map(|told| match told {
        ToApp::Applied { surface, unit } => Some((surface, unit)),
        _ => None,
    });
    applied.collect()
}

#[test]
fn a_unit_is_held_until_its_update_is_complete() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.commit_update(surface);
    assert_eq!(applied(&mut rig), []);
    assert!(rig.shown.is_empty());
    let update = rig.fresh(surface, size(2, 2), RED);
    rig.deliver(update);
    assert_eq!(applied(&mut rig), [(surface, 1)]);
    assert_eq!(rig.shown[0].pixels, RED.repeat(4));
    assert_eq!(rig.shown[0].damage, [[0, 0, 2, 2]]);
}

/// A whole update in one colour and its unit, or one of which nothing can be read.
fn show(rig: &mut Rig, surface: WireId, fresh: bool, pixel: [u8; 4], sound: bool) {
    let mut content = Content::new(size(2, 2), Format::Argb8888);
    content.fill(&pixel);
    let (header, mut chunks) = rig.update(surface, content, fresh);
    if !sound {
        chunks = vec![vec![9; 9]];
    }
    rig.deliver((header, chunks));
    let unit = rig.unit(surface, UnitContent::Update(header.seq));
    rig.say(&ToDisplay::Unit(unit));
    for buffer in rig.busy.clone() {
        rig.release(buffer);
    }
}

fn refreshes(rig: &mut Rig) -> usize {
    let asked = rig.take_reported().into_iter().filter(|told| matches!(told, ToApp::Refresh { .. }));
    asked.count()
}

#[test]
fn an_update_that_cannot_be_painted_is_asked_for_again_and_nothing_builds_on_it() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    show(&mut rig, surface, true, RED, true);
    show(&mut rig, surface, false, GREEN, false);
    assert_eq!(refreshes(&mut rig), 1);
    show(&mut rig, surface, false, GREEN, true);
    assert_eq!(refreshes(&mut rig), 0, "once is enough");
    assert!(rig.shown.iter().all(|shown| shown.pixels == RED.repeat(4)), "{:?}", rig.shown);
    show(&mut rig, surface, true, GREEN, true);
    assert_eq!(rig.shown.last().map(|shown| shown.pixels.clone()), Some(GREEN.repeat(4)));
    // What is wrong again and again is no accident.
    for round in 0..4 {
        assert_eq!((rig.connection.end(), round), (None, round));
        show(&mut rig, surface, true, RED, false);
    }
    assert!(matches!(rig.connection.end(), Some(End::PeerViolation(_))));
}

#[test]
fn an_update_may_come_before_its_surface() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let surface = rig.name();
    let update = rig.fresh(surface, size(2, 2), RED);
    rig.deliver(update);
    rig.request(compositor, "create_surface", vec![WireArg::NewId(surface)]);
    let unit = rig.unit(surface, UnitContent::Update(UpdateSeq(1)));
    rig.say(&ToDisplay::Unit(unit));
    assert_eq!(applied(&mut rig), [(surface, 1)]);
}

#[test]
fn units_of_one_surface_keep_their_order_and_others_pass() {
    let mut rig = Rig::new();
    let (held, free) = (rig.surface(), rig.surface());
    rig.commit_update(held);
    rig.commit(held);
    rig.commit(free);
    assert_eq!(applied(&mut rig), [(free, 1)]);
    let update = rig.fresh(held, size(1, 1), RED);
    rig.deliver(update);
    assert_eq!(applied(&mut rig), [(held, 1), (held, 2)]);
}

#[test]
fn children_are_committed_before_their_parent() {
    let mut rig = Rig::new();
    let (parent, child) = (rig.surface(), rig.surface());
    let manager = rig.bind("wl_subcompositor");
    let args = vec![WireArg::Object(child), WireArg::Object(parent)];
    let subsurface = rig.make(manager, "get_subsurface", args);
    rig.requests();
    let mut unit = rig.unit(parent, UnitContent::Keep);
    unit.state.push(rig.message(subsurface, "set_position", vec![WireArg::Int(3), WireArg::Int(4)]));
    unit.children.push(rig.unit(child, UnitContent::Update(UpdateSeq(1))));
    rig.say(&ToDisplay::Unit(unit));
    assert_eq!(applied(&mut rig), []);
    // The whole tree waits for the child's pixels, and so does a later commit of the child alone.
    rig.commit(child);
    assert_eq!(applied(&mut rig), []);
    let update = rig.fresh(child, size(1, 1), RED);
    rig.deliver(update);
    assert_eq!(applied(&mut rig), [(child, 1), (parent, 1), (child, 2)]);
    let commits: Vec<u32> =
        rig.got.iter().filter(|got| got.is("wl_surface", "commit")).map(|got| got.object).collect();
    assert_eq!(commits, [rig.id(child), rig.id(parent), rig.id(child)]);
    let position = rig.got.iter().position(|got| got.is("wl_subsurface", "set_position")).unwrap();
    let parent_id = rig.id(parent);
    let commit = rig.got.iter().position(|got| got.is("wl_surface", "commit") && got.object == parent_id);
    assert!(position < commit.unwrap());
}

#[test]
fn a_destructor_waits_for_the_units_that_need_its_object() {
    let mut rig = Rig::new();
    let [_, surface, xdg_surface, toplevel] = rig.toplevel();
    let mut unit = rig.unit(surface, UnitContent::Update(UpdateSeq(1)));
    unit.state.push(rig.message(xdg_surface, "ack_configure", vec![WireArg::Uint(1)]));
    rig.say(&ToDisplay::Unit(unit));
    rig.requests();
    rig.request(toplevel, "destroy", vec![]);
    rig.request(xdg_surface, "destroy", vec![]);
    assert_eq!(rig.requests(), Vec::<String>::new());
    let update = rig.fresh(surface, size(1, 1), RED);
    rig.deliver(update);
    let requests = rig.requests();
    let order = ["wl_surface.commit", "xdg_toplevel.destroy", "xdg_surface.destroy"];
    let sent: Vec<&str> = requests.iter().map(String::as_str).filter(|name| order.contains(name)).collect();
    assert_eq!(sent, order);
    rig.assert_alive();
}

#[test]
fn destroying_a_surface_cancels_its_units() {
    let mut rig = Rig::new();
    let [_, surface, xdg_surface, toplevel] = rig.toplevel();
    let mut unit = rig.unit(surface, UnitContent::Update(UpdateSeq(1)));
    unit.feedback = true;
    rig.say(&ToDisplay::Unit(unit));
    rig.requests();
    rig.take_reported();
    rig.request(toplevel, "destroy", vec![]);
    rig.request(xdg_surface, "destroy", vec![]);
    rig.request(surface, "destroy", vec![]);
    let veil = ["wp_viewport.destroy", "wl_subsurface.destroy", "wl_surface.destroy"];
    let window = ["xdg_toplevel.destroy", "xdg_surface.destroy", "wl_surface.destroy"];
    assert_eq!(rig.requests(), [&window[..1], &veil, &window[1..]].concat());
    let told = rig.take_reported();
    assert_eq!(told[0], ToApp::Discarded { surface, unit: 1 });
    assert_eq!(told[1..], [toplevel, xdg_surface, surface].map(ToApp::Deleted));
    // Late pixels for it belong to no surface.
    let update = rig.fresh(surface, size(1, 1), RED);
    rig.deliver(update);
    rig.assert_alive();
}

#[test]
fn regression_a_destroyed_parent_does_not_apply_its_childrens_commits() {
    let mut rig = Rig::new();
    let (parent, child) = (rig.surface(), rig.surface());
    let manager = rig.bind("wl_subcompositor");
    let args = vec![WireArg::Object(child), WireArg::Object(parent)];
    let subsurface = rig.make(manager, "get_subsurface", args);
    let mut unit = rig.unit(parent, UnitContent::Update(UpdateSeq(1)));
    unit.children.push(rig.unit(child, UnitContent::Update(UpdateSeq(1))));
    rig.say(&ToDisplay::Unit(unit));
    rig.request(parent, "destroy", vec![]);
    for surface in [child, parent] {
        let update = rig.fresh(surface, size(1, 1), RED);
        rig.deliver(update);
    }
    assert_eq!(applied(&mut rig), [(child, 1), (parent, 1)], "as they were made, and then it goes");
    rig.request(subsurface, "destroy", vec![]);
    rig.request(child, "destroy", vec![]);
    rig.assert_alive();
}

#[test]
fn a_popup_waits_for_its_parents_pixels() {
    let mut rig = Rig::new();
    let [shell, parent, parent_xdg, _] = rig.toplevel();
    rig.commit_update(parent);
    let surface = rig.surface();
    let xdg_surface = rig.make(shell, "get_xdg_surface", vec![WireArg::Object(surface)]);
    rig.requests();
    let positioner = Positioner { size: Some((1, 1)), ..Positioner::default() };
    let args = vec![WireArg::Object(parent_xdg), WireArg::Positioner(positioner)];
    let popup = rig.make(xdg_surface, "get_popup", args);
    let seat = rig.bind("wl_seat");
    rig.request(popup, "grab", vec![WireArg::Object(seat), WireArg::Uint(3)]);
    rig.commit(surface);
    let callback = rig.make(WireId::DISPLAY, "sync", vec![]);
    assert_eq!(rig.requests(), ["wl_registry.bind"]);
    assert_eq!(applied(&mut rig), []);
    let update = rig.fresh(parent, size(1, 1), RED);
    rig.deliver(update);
    let requests = rig.requests();
    let tail = requests.iter().skip_while(|request| *request != "xdg_surface.get_popup");
    let tail: Vec<&str> = tail.map(String::as_str).collect();
    let expected = [
        "xdg_surface.get_popup",
        "xdg_positioner.destroy",
        "xdg_popup.grab",
        "wl_surface.commit",
        "wl_display.sync",
    ];
    assert_eq!(tail, expected);
    let _ = callback;
    rig.assert_alive();
}

#[test]
fn an_empty_attach_drops_the_content() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.paint(surface, size(2, 1), RED);
    let unit = rig.unit(surface, UnitContent::None);
    rig.say(&ToDisplay::Unit(unit));
    assert_eq!(rig.shown.last().unwrap().buffer, 0);
    rig.paint(surface, size(2, 1), GREEN);
    assert_eq!(rig.shown.last().unwrap().pixels, GREEN.repeat(2));
    rig.assert_alive();
}

#[test]
fn an_offset_moves_the_same_content() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.paint(surface, size(2, 1), RED);
    rig.requests();
    let mut unit = rig.unit(surface, UnitContent::Keep);
    unit.offset = (5, -6);
    rig.say(&ToDisplay::Unit(unit));
    let attach = rig.got.iter().find(|got| got.is("wl_surface", "attach")).unwrap();
    assert!(matches!(attach.args[1..], [Arg::Int(5), Arg::Int(-6)]));
    assert_eq!(rig.shown.last().unwrap().pixels, RED.repeat(2));
}

#[test]
fn a_unit_waits_when_the_compositor_holds_every_buffer() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    for _ in 0..4 {
        rig.paint(surface, size(1, 1), RED);
    }
    assert_eq!(applied(&mut rig).len(), 4);
    rig.paint(surface, size(1, 1), GREEN);
    rig.commit(surface);
    assert_eq!(applied(&mut rig), []);
    let buffer = rig.shown[0].buffer;
    rig.release(buffer);
    rig.turn();
    assert_eq!(applied(&mut rig), [(surface, 5), (surface, 6)]);
    assert_eq!(rig.shown.last().unwrap().pixels, GREEN);
    assert_eq!(rig.buffers.len(), 4);
}

#[test]
fn a_format_that_the_compositor_lacks_is_converted() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let mut content = Content::new(size(1, 1), Format::Rgb565);
    content.fill(&0xf800u16.to_le_bytes());
    let update = rig.update(surface, content, true);
    rig.deliver(update);
    let unit = rig.unit(surface, UnitContent::Update(UpdateSeq(1)));
    rig.say(&ToDisplay::Unit(unit));
    let shown = rig.shown.last().unwrap();
    assert_eq!(shown.pixels, [0, 0, 255, 255]);
    assert_eq!(rig.buffers[&shown.buffer].format, Format::Xrgb8888.to_wl_shm());
}

#[test]
fn a_surface_without_frames_counts_as_hidden_after_a_second() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.paint(surface, size(1, 1), RED);
    let callback = rig.got.iter().find(|got| got.is("wl_surface", "frame")).unwrap().uint(0);
    rig.take_reported();
    assert_eq!(rig.connection.next_timeout(), Some(Time::from_millis(1000)));
    rig.now = Time::from_millis(1000);
    rig.connection.on_timeout(rig.now);
    rig.turn();
    assert_eq!(rig.take_reported(), [ToApp::Visible { surface, visible: false }]);
    assert_eq!(rig.connection.next_timeout(), None);
    rig.event(callback, "done", vec![Arg::Uint(0)]);
    rig.forget(callback);
    rig.turn();
    assert_eq!(rig.take_reported(), [ToApp::Visible { surface, visible: true }]);
}

#[test]
fn presentation_is_reported_by_unit() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let mut unit = rig.unit(surface, UnitContent::Keep);
    unit.feedback = true;
    rig.say(&ToDisplay::Unit(unit));
    let mut unit = rig.unit(surface, UnitContent::Keep);
    unit.feedback = true;
    rig.say(&ToDisplay::Unit(unit));
    let feedback: Vec<u32> =
        rig.got.iter().filter(|got| got.is("wp_presentation", "feedback")).map(|got| got.uint(1)).collect();
    rig.take_reported();
    rig.event(feedback[0], "discarded", vec![]);
    rig.forget(feedback[0]);
    let args = [0, 2, 5, 16, 1, 9, 7].map(Arg::Uint).into();
    rig.event(feedback[1], "presented", args);
    rig.forget(feedback[1]);
    rig.turn();
    let presented = ToApp::Presented {
        surface,
        unit: 2,
        time_ns: 2_000_000_005,
        refresh_ns: 16,
        sequence: (1 << 32) + 9,
        flags: 7,
    };
    assert_eq!(rig.take_reported(), [ToApp::Discarded { surface, unit: 1 }, presented]);
}

#[test]
fn without_presentation_time_a_frame_says_when_it_was_shown() {
    let mut rig = Rig::with(&[("wl_compositor", 4), ("wl_shm", 1)]);
    let surface = rig.surface();
    rig.paint(surface, size(1, 1), RED);
    let mut unit = rig.unit(surface, UnitContent::Keep);
    unit.feedback = true;
    rig.say(&ToDisplay::Unit(unit));
    rig.take_reported();
    let callback = rig.got.iter().find(|got| got.is("wl_surface", "frame")).unwrap().uint(0);
    rig.now = Time::from_millis(16);
    rig.event(callback, "done", vec![Arg::Uint(0)]);
    rig.forget(callback);
    rig.turn();
    assert!(matches!(rig.take_reported()[..], [ToApp::Presented { unit: 2, time_ns: 16_000_000, .. }]));
}

#[test]
fn times_of_another_clock_are_not_passed_on() {
    let mut rig = Rig::new();
    let presentation = rig.connection.globals.helpers.presentation.unwrap();
    rig.event(presentation, "clock_id", vec![Arg::Uint(4)]);
    let surface = rig.surface();
    let mut unit = rig.unit(surface, UnitContent::Keep);
    unit.feedback = true;
    rig.say(&ToDisplay::Unit(unit));
    let feedback = rig.got.iter().find(|got| got.is("wp_presentation", "feedback")).unwrap().uint(1);
    rig.take_reported();
    rig.now = Time::from_millis(3);
    rig.event(feedback, "presented", [0, 99, 0, 16, 0, 9, 7].map(Arg::Uint).into());
    rig.forget(feedback);
    rig.turn();
    assert!(matches!(rig.take_reported()[..], [ToApp::Presented { time_ns: 3_000_000, sequence: 9, .. }]));
}

#[test]
fn content_that_was_never_shown_is_discarded() {
    let mut rig = Rig::with(&[("wl_compositor", 4), ("wl_shm", 1)]);
    let surface = rig.surface();
    for content in [UnitContent::Keep, UnitContent::None, UnitContent::Keep] {
        let mut unit = rig.unit(surface, content);
        unit.feedback = content == UnitContent::Keep;
        rig.say(&ToDisplay::Unit(unit));
    }
    rig.request(surface, "destroy", vec![]);
    let told = rig.take_reported();
    let discarded: Vec<_> = told.iter().filter(|told| matches!(told, ToApp::Discarded { .. })).collect();
    assert_eq!(discarded, [&ToApp::Discarded { surface, unit: 1 }, &ToApp::Discarded { surface, unit: 3 }]);
}

/// One random thing that happens to a surface.
#[derive(Debug, Clone)]
enum Step {
    /// Paint this rectangle of the content in this colour and commit.
    Paint(Rect, u8),
    /// Begin anew with this size.
    Resize(u32, u32),
    /// Attach nothing.
    Unmap,
    /// The compositor releases the n-th buffer that it holds.
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u32..40, 0u32..30, 1u32..40, 1u32..30, any::<u8>())
            .prop_map(|(x, y, width, height, colour)| Step::Paint(Rect::new(x, y, width, height), colour)),
        1 => (1u32..40, 1u32..30).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => Just(Step::Unmap),
        6 => (0usize..4).prop_map(Step::Release),
    ]
}

/// The content after painting, as the app side would have it.
fn painted(content: &Content, rect: Rect, colour: u8) -> Content {
    let mut content = content.clone();
    let size = content.size();
    let mut pixels = content.pixels().to_vec();
    let damage: Region = rect.intersection(size.rect()).into_iter().collect();
    for rect in damage.rects() {
        for y in rect.y..rect.bottom() {
            let start = (y * size.width() + rect.x) as usize * 4;
            pixels[start..start + rect.width as usize * 4].fill(colour);
        }
    }
    let layout = Layout::new(0, u64::from(size.width()) * 4, size, content.format()).unwrap();
    let read = |offset: u64, target: &mut [u8]| {
        target.copy_from_slice(&pixels[offset as usize..][..target.len()]);
        Ok::<(), std::convert::Infallible>(())
    };
    content.absorb(&layout, &damage, read).unwrap();
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_attached_buffer_equals_the_content(steps in prop::collection::vec(step(), 1..60)) {
        let mut rig = Rig::new();
        let surface = rig.surface();
        let mut expected: Vec<Option<Vec<u8>>> = Vec::new();
        let mut content = Content::new(size(40, 30), Format::Argb8888);
        let mut fresh = true;
        for step in steps {
            match step {
                Step::Release(n) => {
                    let mut busy: Vec<u32> = rig.busy.iter().copied().collect();
                    busy.sort_unstable();
                    if let Some(buffer) = busy.get(n) {
                        rig.release(*buffer);
                        rig.turn();
                    }
                    continue;
                }
                Step::Unmap => {
                    let unit = rig.unit(surface, UnitContent::None);
                    rig.say(&ToDisplay::Unit(unit));
                    expected.push(None);
                    fresh = true;
                    continue;
                }
                Step::Resize(width, height) => {
                    content = Content::new(size(width, height), Format::Argb8888);
                    fresh = true;
                }
                Step::Paint(..) => {}
            }
            if let Step::Paint(rect, colour) = step {
                content = painted(&content, rect, colour);
            }
            let update = rig.update(surface, content.clone(), fresh);
            fresh = false;
            let unit = rig.unit(surface, UnitContent::Update(update.0.seq));
            rig.say(&ToDisplay::Unit(unit));
            rig.deliver(update);
            expected.push(Some(content.pixels().to_vec()));
            // What the compositor still holds must not change under its hands.
            for buffer in rig.busy.clone() {
                let shown = rig.shown.iter().rev().find(|shown| shown.buffer == buffer).unwrap();
                prop_assert_eq!(&rig.buffers[&buffer].pixels(), &shown.pixels);
            }
        }
        // Let everything that waits for a buffer go.
        while let Some(buffer) = rig.busy.iter().copied().min() {
            rig.release(buffer);
            rig.turn();
        }
        prop_assert_eq!(rig.end(), None);
        let shown: Vec<Option<Vec<u8>>> =
            rig.shown.iter().map(|shown| (shown.buffer != 0).then(|| shown.pixels.clone())).collect();
        prop_assert_eq!(shown, expected);
    }
}

#[test]
fn the_app_side_is_told_once_when_frames_were_wanted() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.paint(surface, size(1, 1), RED);
    let callback = rig.got.iter().find(|got| got.is("wl_surface", "frame")).unwrap().uint(0);
    rig.take_reported();
    rig.now = Time::from_millis(16);
    rig.event(callback, "done", vec![Arg::Uint(0)]);
    rig.forget(callback);
    rig.turn();
    assert_eq!(rig.take_reported(), []);
    rig.now = Time::from_millis(20);
    for unit in [2, 3] {
        let bare = rig.unit(surface, UnitContent::Keep);
        rig.say(&ToDisplay::Unit(bare));
        let told = rig.take_reported();
        let beat = (unit == 2).then_some(ToApp::Beat { time_ns: 16_000_000 });
        let expected: Vec<ToApp> = beat.into_iter().chain([ToApp::Applied { surface, unit }]).collect();
        assert_eq!(told, expected);
    }
}
