//! Large commits: encoded a slice at a time, while everything else goes on.

use wayferry_pixels::{Content, Decoder};

use super::*;

/// Five slices of one thread, and bytes that nothing makes fewer.
const SIDE: i32 = 768;

/// A window, with its `wl_shm`, and a keyboard whose focus it has.
struct Busy {
    rig: Rig,
    surface: u32,
    shm: u32,
    keyboard: WireId,
}

fn busy() -> Busy {
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    let seat = rig.bind("wl_seat");
    let keyboard = rig.id("wl_keyboard");
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    let keyboard = rig.connection.objects.wire(keyboard).unwrap();
    forget(&mut rig);
    Busy { rig, surface, shm, keyboard }
}

fn forget(rig: &mut Rig) {
    rig.units();
    rig.sent.clear();
    rig.updates.clear();
    rig.events();
}

/// Commits that many grainy pixels; gives the frame callback.
fn commit(rig: &mut Rig, surface: u32, shm: u32, side: i32, value: u8) -> u32 {
    let buffer = rig.grainy(shm, side, value);
    rig.attach(surface, buffer);
    let frame = rig.frame(surface);
    rig.commit(surface);
    frame
}

/// A large commit of which the first slice has left.
fn under_way(rig: &mut Rig, surface: u32, shm: u32, value: u8) -> u32 {
    let frame = commit(rig, surface, shm, SIDE, value);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!((rig.updates.len(), rig.connection.next_timeout()), (1, Some(rig.now)));
    assert!(rig.connection.stalled());
    frame
}

/// Turn after turn until the commit has left.
fn go_on(rig: &mut Rig) {
    for _ in 0..20 {
        if rig.connection.making.is_none() {
            return;
        }
        assert_eq!(rig.connection.next_timeout(), Some(rig.now));
        rig.flush(u64::MAX);
    }
    panic!("it never ends");
}

/// What the display side shows after these updates, in their sequence.
fn shown(updates: &[Update]) -> Vec<u8> {
    let mut content = Content::new(updates[0].size, updates[0].format);
    for update in updates {
        if update.fresh {
            content = Content::new(update.size, update.format);
        }
        Decoder::new().apply(&mut content, &update.chunks).unwrap();
    }
    content.pixels().to_vec()
}

fn pixels(rig: &Rig, surface: u32) -> Vec<u8> {
    rig.connection.surfaces[&surface].painter.content().unwrap().pixels().to_vec()
}

#[test]
fn a_large_commit_leaves_in_several_updates_and_one_unit_after_them() {
    let Busy { mut rig, surface, shm, .. } = busy();
    let frame = under_way(&mut rig, surface, shm, 2);
    assert!(rig.units().is_empty() && !names(&rig.events()).contains(&(frame, "done")));
    go_on(&mut rig);
    let seqs: Vec<u64> = rig.updates.iter().map(|update| update.seq.0).collect();
    assert_eq!(seqs, [2, 3, 4, 5, 6]);
    let fresh: Vec<bool> = rig.updates.iter().map(|update| update.fresh).collect();
    assert_eq!(fresh, [true, false, false, false, false]);
    let units = rig.units();
    assert_eq!((units.len(), units[0].content), (1, UnitContent::Update(UpdateSeq(6))));
    assert_eq!(shown(&rig.updates), pixels(&rig, surface));
    // What follows keeps its distance from the beginning, and no turn asks for the update back.
    commit(&mut rig, surface, shm, 8, 3);
    rig.now += FRAME;
    for turn in [Turn::First, Turn::Rest] {
        let mut credit = Credit { content: 1, ..Credit::default() };
        rig.connection.flush(rig.now, turn, &mut credit, &mut |_, seq| panic!("{seq:?} is wanted back"));
    }
    rig.collect();
    assert!(names(&rig.events()).contains(&(frame, "done")));
    assert_eq!(
        (rig.units().len(), rig.connection.next_timeout().is_some_and(|at| at <= rig.now)),
        (1, false)
    );
}

#[test]
fn parts_are_never_so_small_that_they_overtake_what_came_before() {
    let Busy { mut rig, surface, shm, .. } = busy();
    let buffer = rig.buffer(shm, 2000, 1000, 9);
    rig.attach(surface, buffer);
    rig.commit(surface);
    rig.now += FRAME;
    let mut turns = 0;
    while rig.connection.making.is_some() || turns == 0 {
        rig.flush(u64::MAX);
        turns += 1;
    }
    assert!(turns > 5, "{turns}");
    assert_eq!((rig.updates.len(), rig.units().len()), (1, 1), "a few bytes of one colour");
}

#[test]
fn a_key_comes_between_two_slices() {
    let Busy { mut rig, surface, shm, keyboard } = busy();
    under_way(&mut rig, surface, shm, 2);
    rig.events();
    let key = [7, 100, 30, 1].map(WireArg::Uint).to_vec();
    rig.tell(&ToApp::Event(Request { object: keyboard, opcode: 3, args: key }));
    assert_eq!(rig.events().iter().map(|event| event.name).collect::<Vec<_>>(), ["key"]);
    assert!(rig.connection.making.is_some() && rig.units().is_empty());
    go_on(&mut rig);
    assert_eq!(rig.units().len(), 1);
}

#[test]
fn what_the_program_asks_for_next_waits_until_the_commit_has_left() {
    let Busy { mut rig, surface, shm, .. } = busy();
    under_way(&mut rig, surface, shm, 2);
    let first = pixels(&rig, surface);
    let buffer = rig.next_id + 1;
    commit(&mut rig, surface, shm, 8, 3);
    let callback = rig.id("wl_callback");
    rig.request(1, "sync", vec![Arg::NewId(callback)]);
    assert!(!names(&rig.events()).iter().any(|(id, _)| [buffer, callback].contains(id)));
    assert!(pixels(&rig, surface) == first, "the content stays as it is");
    go_on(&mut rig);
    let parts = rig.updates.len();
    assert!(shown(&rig.updates) == first);
    assert!(names(&rig.events()).contains(&(callback, "done")), "the rest is handled in the same turn");
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!((rig.updates.len(), rig.units().len()), (parts + 1, 2));
    assert_eq!(shown(&rig.updates), pixels(&rig, surface));
}

#[test]
fn a_window_appears_in_slices_and_what_follows_it_stays_behind() {
    let mut rig = Rig::new();
    let (compositor, shm) = (rig.bind("wl_compositor"), rig.bind("wl_shm"));
    let surface = rig.surface(compositor);
    forget(&mut rig);
    commit(&mut rig, surface, shm, SIDE, 1);
    assert!(rig.updates.len() == 1 && rig.connection.making.is_some(), "no turn is waited for");
    let wire = rig.connection.objects.wire(surface).unwrap();
    rig.request(surface, "destroy", vec![]);
    go_on(&mut rig);
    let destroyed = |message: &ToDisplay| matches!(message, ToDisplay::Request(it) if it.object == wire);
    let places: Vec<bool> = rig.sent.iter().map(destroyed).collect();
    assert_eq!(places, [false, true], "the unit, then the end of the surface: {:?}", rig.sent);
    assert_eq!(rig.updates.len(), 5);
    assert!(rig.connection.surfaces.is_empty());
}

#[test]
fn a_window_that_is_unmapped_under_way_is_shown_before() {
    let Busy { mut rig, surface, shm, .. } = busy();
    let frame = under_way(&mut rig, surface, shm, 2);
    rig.attach(surface, 0);
    rig.commit(surface);
    go_on(&mut rig);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let contents: Vec<UnitContent> = rig.units().iter().map(|unit| unit.content).collect();
    assert_eq!(contents, [UnitContent::Update(UpdateSeq(6)), UnitContent::None]);
    assert!(names(&rig.events()).contains(&(frame, "done")));
}

/// Turns of several programs that share a thread, the first in the list before the others.
fn turn(rigs: &mut [&mut Rig]) {
    let mut credit = Credit { content: u64::MAX, ..Credit::default() };
    for turn in [Turn::First, Turn::Rest, Turn::Better] {
        for rig in &mut *rigs {
            rig.connection.flush(rig.now, turn, &mut credit, &mut |_, _| None);
            rig.collect();
        }
    }
}

#[test]
fn another_programs_small_commit_is_not_held_up_and_large_ones_take_turns() {
    let (Busy { mut rig, surface, shm, .. }, mut other) = (busy(), busy());
    under_way(&mut rig, surface, shm, 2);
    other.rig.now = rig.now;
    commit(&mut other.rig, other.surface, other.shm, 32, 2);
    turn(&mut [&mut rig, &mut other.rig]);
    assert_eq!((rig.updates.len(), other.rig.units().len()), (2, 1));
    commit(&mut other.rig, other.surface, other.shm, SIDE, 3);
    other.rig.updates.clear();
    other.rig.now += FRAME;
    turn(&mut [&mut rig, &mut other.rig]);
    assert_eq!((rig.updates.len(), other.rig.updates.len()), (3, 0), "one slice a turn");
    assert!(other.rig.connection.next_timeout().is_some_and(|at| at <= other.rig.now));
    turn(&mut [&mut other.rig, &mut rig]);
    assert_eq!((rig.updates.len(), other.rig.updates.len()), (3, 1));
    for _ in 0..8 {
        turn(&mut [&mut rig, &mut other.rig]);
    }
    assert_eq!((rig.updates.len(), other.rig.updates.len()), (5, 5));
    assert_eq!((rig.units().len(), other.rig.units().len()), (1, 1));
}

#[test]
fn content_that_is_wanted_again_under_way_comes_after_it() {
    let Busy { mut rig, surface, shm, .. } = busy();
    under_way(&mut rig, surface, shm, 2);
    let callback = rig.id("wl_callback");
    rig.request(1, "sync", vec![Arg::NewId(callback)]);
    let wire = rig.connection.objects.wire(surface).unwrap();
    rig.tell(&ToApp::Refresh { surface: wire });
    assert_eq!(rig.units().len(), 1, "what is under way leaves at once");
    assert_eq!(rig.connection.next_timeout(), Some(rig.now), "requests have waited");
    rig.connection.on_timeout(rig.now);
    assert!(names(&rig.events()).contains(&(callback, "done")));
    let parts = rig.updates.len();
    rig.now += FRAME;
    rig.flush(u64::MAX);
    go_on(&mut rig);
    assert!(rig.updates[parts].fresh);
    assert_eq!(shown(&rig.updates[parts..]), pixels(&rig, surface));
    assert_eq!(rig.units().len(), 1);
}

#[test]
fn a_program_that_is_gone_is_not_encoded_any_further() {
    let Busy { mut rig, surface, shm, .. } = busy();
    under_way(&mut rig, surface, shm, 2);
    rig.connection.on_hang_up();
    assert_eq!(rig.connection.next_timeout(), None);
    rig.flush(u64::MAX);
    assert_eq!((rig.updates.len(), rig.units().len()), (1, 0));
}

/// The small update that a large one replaces: its unit waits for the first part, and the large one's for the last.
#[test]
fn a_large_commit_takes_back_what_has_not_left() {
    let Busy { mut rig, surface, shm, .. } = busy();
    commit(&mut rig, surface, shm, 8, 2);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    forget(&mut rig);
    commit(&mut rig, surface, shm, SIDE, 3);
    rig.now += FRAME;
    let mut credit = Credit { content: 1, ..Credit::default() };
    rig.connection
        .flush(rig.now, Turn::Rest, &mut credit, &mut |_, seq| (seq == UpdateSeq(2)).then_some(300));
    rig.collect();
    let told = |message: &ToDisplay| matches!(message, ToDisplay::Superseded { by: UpdateSeq(3), .. });
    assert!(rig.sent.iter().any(told), "{:?}", rig.sent);
    go_on(&mut rig);
    assert_eq!(rig.updates.iter().map(|update| update.seq.0).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    assert_eq!(rig.units()[0].content, UnitContent::Update(UpdateSeq(7)));
    assert_eq!(shown(&rig.updates), pixels(&rig, surface));
}

/// What a large commit has beyond the budget is in the way of large ones only.
#[test]
fn slices_go_on_without_budget_and_small_commits_pass_them() {
    let Busy { mut rig, surface, shm, .. } = busy();
    let compositor = rig.bind("wl_compositor");
    let small = rig.surface(compositor);
    commit(&mut rig, small, shm, 4, 1);
    forget(&mut rig);
    commit(&mut rig, surface, shm, SIDE, 2);
    rig.now += FRAME;
    rig.flush(1);
    while rig.connection.making.is_some() {
        rig.flush(0);
    }
    assert_eq!((rig.updates.len(), rig.units().len()), (5, 1));
    assert_eq!(rig.connection.pacing.small_debt(), 0);
    commit(&mut rig, small, shm, 4, 2);
    rig.flush(0);
    assert_eq!(rig.units().len(), 1);
}

/// What a parent's commit brings is what its children bring, too.
#[test]
fn a_parent_that_brings_nothing_waits_with_its_large_child() {
    let mut rig = Rig::new();
    let (parent, child, _, shm) = subsurfaces::tree(&mut rig);
    commit(&mut rig, child, shm, SIDE, 1);
    commit(&mut rig, parent, shm, 4, 1);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    go_on(&mut rig);
    forget(&mut rig);
    commit(&mut rig, child, shm, SIDE, 2);
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush(0);
    assert!(rig.updates.is_empty() && rig.connection.making.is_none());
    rig.flush(1);
    go_on(&mut rig);
    assert_eq!(rig.units().len(), 1);
}

#[test]
fn a_child_is_made_in_slices_too_and_its_unit_is_one() {
    let mut rig = Rig::new();
    let (parent, child, _, shm) = subsurfaces::tree(&mut rig);
    forget(&mut rig);
    commit(&mut rig, child, shm, SIDE, 1);
    commit(&mut rig, parent, shm, SIDE, 2);
    let wire = |rig: &Rig, id| rig.connection.objects.wire(id).unwrap().0;
    let (above, below) = (wire(&rig, parent), wire(&rig, child));
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(rig.updates.iter().map(|update| update.surface.0).collect::<Vec<_>>(), [below]);
    go_on(&mut rig);
    let units = rig.units();
    assert_eq!((units.len(), units[0].children.len()), (1, 1));
    for (id, surface, unit) in [(parent, above, &units[0]), (child, below, &units[0].children[0])] {
        let updates: Vec<Update> = rig.updates.extract_if(.., |update| update.surface.0 == surface).collect();
        assert_eq!(Some(unit.content), updates.last().map(|update| UnitContent::Update(update.seq)));
        assert_eq!(shown(&updates), pixels(&rig, id));
    }
}
