//! Commits of trees.

use super::super::surface::MAX_CONTENTS_AHEAD;
use super::*;

/// A parent with content and a synchronised child with content.
pub(super) fn tree(rig: &mut Rig) -> (u32, u32, u32, u32) {
    let (parent, shm) = rig.window();
    let compositor = rig.bind("wl_compositor");
    let factory = rig.bind("wl_subcompositor");
    let child = rig.surface(compositor);
    let subsurface = rig.id("wl_subsurface");
    rig.request(
        factory,
        "get_subsurface",
        vec![Arg::NewId(subsurface), Arg::Object(child), Arg::Object(parent)],
    );
    rig.units();
    (parent, child, subsurface, shm)
}

#[test]
fn a_synchronised_child_travels_in_its_parents_unit() {
    let mut rig = Rig::new();
    let (parent, child, _, shm) = tree(&mut rig);
    let buffer = rig.buffer(shm, 2, 2, 5);
    rig.attach(child, buffer);
    rig.commit(child);
    assert!(rig.units().is_empty(), "cached until the parent commits");
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let units = rig.units();
    assert_eq!((units.len(), units[0].children.len()), (1, 1));
    assert_eq!(units[0].children[0].content, UnitContent::Update(UpdateSeq(1)));
}

#[test]
fn a_childs_new_pixels_never_enter_an_older_parent_unit() {
    let mut rig = Rig::new();
    let (parent, child, _, shm) = tree(&mut rig);
    for value in [5, 6] {
        let buffer = rig.buffer(shm, 2, 2, value);
        rig.attach(child, buffer);
        rig.commit(child);
        if value == 5 {
            rig.commit(parent);
        }
    }
    // The second commit of the child is cached: the unit that left must hold the first one's pixels.
    let mut shown = wayferry_pixels::Content::new(rig.updates[1].size, rig.updates[1].format);
    wayferry_pixels::Decoder::new().apply(&mut shown, &rig.updates[1].chunks).unwrap();
    assert_eq!(shown.pixels(), [5; 16]);
    assert_eq!(rig.units().len(), 1);
}

/// A parent unit that waits may include a commit of the child that changed nothing.
#[test]
fn a_childs_unchanged_commit_does_not_let_newer_pixels_into_an_older_unit() {
    let mut rig = Rig::new();
    let (parent, child, _, shm) = tree(&mut rig);
    for (value, parent_too) in [(5, true), (5, true), (6, false)] {
        rig.flush(u64::MAX);
        let buffer = rig.buffer(shm, 2, 2, value);
        rig.attach(child, buffer);
        rig.commit(child);
        if parent_too {
            rig.commit(parent);
        }
        rig.now += FRAME / 4;
    }
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(rig.updates.len(), 2, "value 6 is cached: its parent has not committed");
}

#[test]
fn a_child_destroyed_under_a_waiting_unit_frees_its_callbacks() {
    let mut rig = Rig::new();
    let (parent, child, _, _) = tree(&mut rig);
    let frame = rig.frame(child);
    rig.commit(child);
    rig.commit(parent);
    rig.events();
    rig.request(child, "destroy", vec![]);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let freed = rig
        .events()
        .iter()
        .any(|e| e.name == "delete_id" && matches!(e.args[..], [Arg::Uint(id)] if id == frame));
    assert!(freed);
}

/// Trees may be built from the leaves up; their depth counts all the same.
#[test]
fn a_tree_of_subsurfaces_built_bottom_up_is_bounded() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let factory = rig.bind("wl_subcompositor");
    let mut child = rig.surface(compositor);
    for _ in 0..20 {
        let parent = rig.surface(compositor);
        let id = rig.id("wl_subsurface");
        rig.request(factory, "get_subsurface", vec![Arg::NewId(id), Arg::Object(child), Arg::Object(parent)]);
        child = parent;
    }
    assert_eq!(rig.connection.end(), Some(&End::TooMuch("subsurfaces nested")));
}

#[test]
fn a_desynchronised_child_commits_alone() {
    let mut rig = Rig::new();
    let (_, child, subsurface, shm) = tree(&mut rig);
    rig.request(subsurface, "set_desync", vec![]);
    let buffer = rig.buffer(shm, 2, 2, 5);
    rig.attach(child, buffer);
    rig.commit(child);
    assert_eq!(rig.units().len(), 1);
}

/// A part of the window may vanish only after what the program drew before.
#[test]
fn a_waiting_commit_of_the_parent_leaves_before_its_child_is_destroyed() {
    let mut rig = Rig::new();
    let (parent, child, _, shm) = tree(&mut rig);
    for value in [5, 6] {
        let buffer = rig.buffer(shm, 2, 2, value);
        rig.attach(child, buffer);
        rig.commit(child);
        let buffer = rig.buffer(shm, 4, 4, value);
        rig.attach(parent, buffer);
        rig.commit(parent);
        rig.flush(u64::MAX);
    }
    assert_eq!(rig.units().len(), 1, "the second waits for the next frame");
    rig.sent.clear();
    rig.request(child, "destroy", vec![]);
    let [ToDisplay::Unit(unit), ToDisplay::Request(_)] = rig.sent.as_slice() else {
        panic!("{:?}", rig.sent)
    };
    assert_eq!((unit.content, unit.children.len()), (UnitContent::Update(UpdateSeq(3)), 1));
}

/// Regression: its state left without its pixels, so the old pixels were shown with a new scale, or the compositor
/// ended the program because they did not fit to it.
#[test]
fn a_commit_that_waits_is_folded_into_the_one_that_unmaps_its_surface() {
    let mut rig = Rig::new();
    let (_, child, subsurface, shm) = tree(&mut rig);
    rig.request(subsurface, "set_desync", vec![]);
    let odd = rig.buffer(shm, 3, 3, 5);
    rig.attach(child, odd);
    rig.commit(child);
    rig.flush(u64::MAX);
    rig.units();
    rig.request(child, "set_buffer_scale", vec![Arg::Int(2)]);
    let even = rig.buffer(shm, 2, 2, 5);
    rig.attach(child, even);
    rig.commit(child);
    rig.request(child, "attach", vec![Arg::Object(0), Arg::Int(0), Arg::Int(0)]);
    rig.commit(child);
    let units = rig.units();
    let told: Vec<_> = units.iter().map(|unit| (unit.content, unit.state.len())).collect();
    assert_eq!(told, [(UnitContent::None, 1)]);
}

/// A parent with three children, all shown: the parent, and each child with its `wl_subsurface`.
fn family(rig: &mut Rig) -> (u32, [(u32, u32); 3]) {
    let (parent, child, subsurface, shm) = tree(rig);
    let compositor = rig.bind("wl_compositor");
    let factory = rig.bind("wl_subcompositor");
    let mut more = || {
        let (child, id) = (rig.surface(compositor), rig.id("wl_subsurface"));
        let args = vec![Arg::NewId(id), Arg::Object(child), Arg::Object(parent)];
        rig.request(factory, "get_subsurface", args);
        (child, id)
    };
    let children = [(child, subsurface), more(), more()];
    for (child, _) in children {
        let buffer = rig.buffer(shm, 2, 2, 5);
        rig.attach(child, buffer);
        rig.commit(child);
    }
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    rig.units();
    (parent, children)
}

/// The stacking requests of a unit, by the program's ids: object, whether above, sibling.
fn placed(rig: &Rig, unit: &Unit) -> Vec<(u32, bool, u32)> {
    let id = |name| rig.connection.objects.by_name(name).unwrap();
    let place = |request: &Request| match request.args[..] {
        [WireArg::Object(sibling)] => Some((id(request.object), request.opcode == 2, id(sibling))),
        _ => None,
    };
    unit.state.iter().filter_map(place).collect()
}

/// Regression: the compositor was told to place a child below a sibling that was gone, and ended the program; or the
/// child stayed where it was.
#[test]
fn a_child_keeps_the_place_next_to_a_sibling_that_goes_before_the_parent_commits() {
    for whole in [false, true] {
        let mut rig = Rig::new();
        let (parent, [(a, a_role), (_, b_role), (_, c_role)]) = family(&mut rig);
        rig.request(c_role, "place_below", vec![Arg::Object(a)]);
        rig.request(a_role, "destroy", vec![]);
        if whole {
            rig.request(a, "destroy", vec![]);
        }
        rig.commit(parent);
        rig.now += FRAME;
        rig.flush(u64::MAX);
        let unit = rig.units().pop().expect("order alone is reason to commit");
        // Above the parent, and so below B.
        assert_eq!(placed(&rig, &unit), [(c_role, true, parent)]);
        let _ = b_role;
    }
}

/// The same of a commit that waits for the one of a surface further up.
#[test]
fn a_child_keeps_the_place_next_to_a_sibling_that_goes_before_a_synchronised_parents_commit_applies() {
    let mut rig = Rig::new();
    let (parent, [(a, a_role), _, (_, c_role)]) = family(&mut rig);
    let compositor = rig.bind("wl_compositor");
    let factory = rig.bind("wl_subcompositor");
    let (top, role) = (rig.surface(compositor), rig.id("wl_subsurface"));
    rig.request(factory, "get_subsurface", vec![Arg::NewId(role), Arg::Object(parent), Arg::Object(top)]);
    rig.request(c_role, "place_below", vec![Arg::Object(a)]);
    rig.commit(parent);
    rig.request(a_role, "destroy", vec![]);
    rig.units();
    rig.commit(top);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let unit = rig.units().pop().expect("a unit of both");
    assert_eq!(placed(&rig, &unit.children[0]), [(c_role, true, parent)]);
}

#[test]
fn a_child_is_placed_next_to_siblings_and_its_parent_only() {
    let mut rig = Rig::new();
    let (_, [(a, a_role), ..]) = family(&mut rig);
    rig.request(a_role, "place_above", vec![Arg::Object(a)]);
    let error = rig.events().into_iter().find(|event| event.name == "error").expect("an error");
    assert!(matches!(error.args[..], [Arg::Object(object), Arg::Uint(0), _] if object == a_role));
}

/// Regression: the child was shown without what the destroyed viewport had been told.
#[test]
fn what_waits_for_a_parent_leaves_before_its_viewport_is_destroyed() {
    let mut rig = Rig::with_desk(&replay::desk_with(10, &["wp_viewporter"]));
    let (parent, child, _, shm) = tree(&mut rig);
    let (viewporter, viewport) = (rig.bind("wp_viewporter"), rig.id("wp_viewport"));
    rig.request(viewporter, "get_viewport", vec![Arg::NewId(viewport), Arg::Object(child)]);
    rig.request(viewport, "set_destination", [9, 9].map(Arg::Int).into());
    let buffer = rig.buffer(shm, 2, 2, 5);
    rig.attach(child, buffer);
    let frame = rig.frame(child);
    rig.commit(child);
    rig.sent.clear();
    rig.request(viewport, "destroy", vec![]);
    let [ToDisplay::Unit(ahead), ToDisplay::Request(_)] = rig.sent.as_slice() else {
        panic!("{:?}", rig.sent)
    };
    assert_eq!((ahead.state.len(), ahead.content), (1, UnitContent::Update(UpdateSeq(1))));
    rig.sent.clear();
    let is_answered = |rig: &mut Rig| {
        rig.now += FRAME;
        rig.flush(u64::MAX);
        rig.now += FRAME;
        rig.connection.on_timeout(rig.now);
        rig.events().iter().any(|event| (event.object, event.name) == (frame, "done"))
    };
    assert!(!is_answered(&mut rig), "it is not shown yet");
    rig.commit(parent);
    assert!(is_answered(&mut rig));
    let unit = rig.units().pop().expect("the compositor applies the child's with it");
    assert_eq!(unit.children, []);
}

/// Regression: the commit came behind the adoption, and so showed the new child.
#[test]
fn what_waits_for_a_parent_leaves_before_another_surface_becomes_its_child() {
    let mut rig = Rig::new();
    let (_, child, _, shm) = tree(&mut rig);
    let (compositor, factory) = (rig.bind("wl_compositor"), rig.bind("wl_subcompositor"));
    let grandchild = rig.surface(compositor);
    let buffer = rig.buffer(shm, 2, 2, 5);
    rig.attach(child, buffer);
    rig.commit(child);
    rig.sent.clear();
    let role = rig.id("wl_subsurface");
    let args = vec![Arg::NewId(role), Arg::Object(grandchild), Arg::Object(child)];
    rig.request(factory, "get_subsurface", args);
    let [ToDisplay::Unit(ahead), ToDisplay::Request(_)] = rig.sent.as_slice() else {
        panic!("{:?}", rig.sent)
    };
    assert_eq!(Some(ahead.surface), rig.connection.objects.name(child));
}

/// A window, its child and a child of that one; the window has content, and none is desynchronised.
fn lineage(rig: &mut Rig) -> (u32, u32, u32, u32) {
    let (parent, child, _, shm) = tree(rig);
    let (compositor, factory) = (rig.bind("wl_compositor"), rig.bind("wl_subcompositor"));
    let (grandchild, role) = (rig.surface(compositor), rig.id("wl_subsurface"));
    let args = vec![Arg::NewId(role), Arg::Object(grandchild), Arg::Object(child)];
    rig.request(factory, "get_subsurface", args);
    rig.units();
    rig.updates.clear();
    (parent, child, grandchild, shm)
}

/// Regression: a commit that was cached further up left with the pixels of the next one, which may not fit to its
/// state.
#[test]
fn a_grandchilds_commit_that_is_part_of_its_parents_keeps_its_pixels() {
    let mut rig = Rig::new();
    let (parent, child, grandchild, shm) = lineage(&mut rig);
    for value in [5, 6] {
        let buffer = rig.buffer(shm, 2, 2, value);
        rig.attach(grandchild, buffer);
        rig.commit(grandchild);
        if value == 5 {
            rig.commit(child);
        }
    }
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let updates = std::mem::take(&mut rig.updates);
    let [update] = &updates[..] else { panic!("{}", updates.len()) };
    let mut shown = wayferry_pixels::Content::new(update.size, update.format);
    wayferry_pixels::Decoder::new().apply(&mut shown, &update.chunks).unwrap();
    assert_eq!(shown.pixels(), [5; 16], "the child has not committed since");
}

/// A compositor may keep the buffers of all that waits, and is given so many only.
#[test]
fn commits_that_wait_for_a_parent_fold_once_many_contents_have_left() {
    let mut rig = Rig::new();
    let (parent, child, grandchild, shm) = lineage(&mut rig);
    let paint = |rig: &mut Rig, value| {
        let buffer = rig.buffer(shm, 2, 2, value);
        rig.attach(grandchild, buffer);
        rig.commit(grandchild);
        rig.commit(child);
    };
    (0..9).for_each(|value| paint(&mut rig, value));
    assert_eq!((rig.updates.len(), rig.units().len()), (MAX_CONTENTS_AHEAD, MAX_CONTENTS_AHEAD));
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let unit = rig.units().pop().expect("the rest of it");
    assert_eq!((unit.children.len(), unit.children[0].children.len()), (1, 1));
    // Those are shown, and their buffers come back.
    (9..11).for_each(|value| paint(&mut rig, value));
    assert_eq!(rig.units().len(), 1);
}

/// Regression: content that the display side wanted again brought what the parent had not committed.
#[test]
fn content_that_is_wanted_again_is_that_of_the_commit_that_is_shown() {
    let shown = |rig: &mut Rig| {
        rig.now += FRAME;
        rig.flush(u64::MAX);
        let update = rig.updates.pop().expect("an update");
        assert!(update.fresh && rig.updates.is_empty());
        let mut shown = wayferry_pixels::Content::new(update.size, update.format);
        wayferry_pixels::Decoder::new().apply(&mut shown, &update.chunks).unwrap();
        shown.pixels()[0]
    };
    let mut rig = Rig::new();
    let (parent, child, _, shm) = tree(&mut rig);
    let buffer = rig.buffer(shm, 2, 2, 9);
    rig.attach(parent, buffer);
    let paint = |rig: &mut Rig, value| {
        let buffer = rig.buffer(shm, 2, 2, value);
        rig.attach(child, buffer);
        rig.commit(child);
    };
    paint(&mut rig, 5);
    rig.commit(parent);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let told = ToApp::Refresh { surface: rig.connection.objects.wire(child).expect("there") };
    rig.units();
    rig.updates.clear();
    // The parent's commit shows it.
    rig.tell(&told);
    assert_eq!(shown(&mut rig), 5);
    let units = rig.units();
    assert_eq!((units.len(), units[0].children.len()), (1, 1));
    // It leaves before the next one, which is cached.
    rig.tell(&told);
    paint(&mut rig, 6);
    assert_eq!(shown(&mut rig), 5);
    rig.units();
    // What is cached comes with the parent's commit.
    rig.tell(&told);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert!(rig.updates.is_empty() && rig.units().is_empty());
    rig.commit(parent);
    assert_eq!(shown(&mut rig), 6);
}

/// A `wl_subsurface` outlives its surface, whose id another surface has then.
#[test]
fn an_inert_subsurface_says_nothing_about_a_surface_with_the_same_id() {
    let mut rig = Rig::new();
    let (parent, child, subsurface, _) = tree(&mut rig);
    rig.request(child, "destroy", vec![]);
    let name = rig.connection.objects.of(child).and_then(|object| object.wire).expect("until it is deleted");
    rig.tell(&ToApp::Deleted(name));
    let (compositor, factory) = (rig.bind("wl_compositor"), rig.bind("wl_subcompositor"));
    rig.request(compositor, "create_surface", vec![Arg::NewId(child)]);
    let again = rig.id("wl_subsurface");
    rig.request(factory, "get_subsurface", vec![Arg::NewId(again), Arg::Object(child), Arg::Object(parent)]);
    rig.request(subsurface, "set_desync", vec![]);
    rig.request(subsurface, "destroy", vec![]);
    let surface = &rig.connection.surfaces[&child];
    assert_eq!((surface.family.parent(), surface.family.is_sync()), (Some(parent), true));
}
