//! Programs that once differed, each named after what was wrong.

use std::time::Duration;

use crate::difference;
use crate::link::Link;
use crate::operation::Damage::{Buffer, Everything, Surface};
use crate::operation::Op::{self, *};

/// Runs a program over links of every kind.
fn assert_agrees(program: &[Op]) {
    for (delay, seed) in [0, 30, 200].into_iter().flat_map(|delay| (0..16).map(move |seed| (delay, seed))) {
        let (holds, starves) = (seed % 4 != 3, seed % 3 == 0);
        let delay = Duration::from_millis(delay);
        let link = Link { delay, seed, holds, starves, old: seed % 5 == 0, sockets: false };
        assert_eq!(difference(program, link, None), None, "{link:?}");
    }
}

fn paint(place: usize) -> Op {
    Paint { place, size: None, rect: [1, 2, 5, 4], damage: Everything, xrgb: false }
}

/// A window with pixels, in place 0.
fn window(rest: &[Op]) -> Vec<Op> {
    [&[Create(0), Toplevel(0), paint(0), Commit(0)], rest].concat()
}

#[test]
fn popups_go_from_the_top_down_although_pixels_are_on_their_way() {
    let popup =
        |place, parent| [Create(place), Popup { place, parent, grab: false }, paint(place), Commit(place)];
    let popups = [popup(1, 0), popup(2, 1)].concat();
    assert_agrees(&window(&[&popups[..], &[Settle, paint(2), Commit(2), DestroyAll(1)]].concat()));
}

#[test]
fn state_of_a_commit_is_never_shown_with_the_pixels_before_it() {
    let child = [Create(1), Child { place: 1, parent: 0 }, Sync(1, false), paint(1), Commit(1), Commit(0)];
    let larger = Paint { place: 1, size: Some((5, 5)), rect: [0; 4], damage: Buffer, xrgb: false };
    let rest = [Settle, paint(1), Commit(1), Scale(1, 1), larger, Commit(1), Unmap(1)];
    assert_agrees(&window(&[&child[..], &rest].concat()));
}

#[test]
fn the_order_of_children_outlives_the_sibling_that_it_was_told_by() {
    for destroy in [DestroyRole(1), DestroySurface { place: 1, role_first: true }] {
        let child = |place| [Create(place), Child { place, parent: 0 }, paint(place), Commit(place)];
        let children = [child(1), child(2), child(3)].concat();
        let place = Place { place: 3, sibling: 1, above: false };
        assert_agrees(&window(&[&children[..], &[Commit(0), Settle, place, destroy, Commit(0)]].concat()));
    }
}

#[test]
fn a_title_that_is_set_after_an_unmap_is_kept() {
    let noise = Paint { place: 0, size: Some((16, 16)), rect: [0, 0, 255, 255], damage: Buffer, xrgb: false };
    assert_agrees(&window(&[
        Title(0, 1),
        Settle,
        noise,
        Commit(0),
        Unmap(0),
        Title(0, 2),
        AppId(0, 3),
        paint(0),
        Commit(0),
    ]));
}

#[test]
fn a_child_whose_pixels_came_before_its_role_is_shown() {
    assert_agrees(&window(&[Create(1), paint(1), Commit(1), Child { place: 1, parent: 0 }, Commit(0)]));
}

#[test]
fn a_part_of_a_window_does_not_vanish_before_the_commits_before() {
    let child = [Create(1), Child { place: 1, parent: 0 }, paint(1), Commit(1), Commit(0), Settle];
    for role_first in [false, true] {
        let rest = [paint(0), Commit(0), DestroySurface { place: 1, role_first }, Commit(0)];
        assert_agrees(&window(&[&child[..], &rest].concat()));
    }
}

#[test]
fn a_commit_with_children_is_shown_whole_although_one_is_destroyed() {
    let child = |place| [Create(place), Child { place, parent: 0 }, paint(place), Commit(place)];
    let children = [child(1), child(2)].concat();
    let rest = [
        Commit(0),
        DestroySurface { place: 1, role_first: true },
        DestroySurface { place: 2, role_first: true },
    ];
    assert_agrees(&window(&[&children[..], &rest].concat()));
}

#[test]
fn another_viewport_waits_for_the_end_of_the_one_before() {
    let rest = [
        Source(0, Some([1; 4])),
        paint(0),
        Commit(0),
        DestroyViewport(0),
        Destination(0, Some((7, 7))),
        Commit(0),
    ];
    assert_agrees(&window(&rest));
}

#[test]
fn a_window_that_is_to_go_with_a_new_child_is_shown_in_order() {
    let child = [Create(1), Child { place: 1, parent: 0 }, paint(1), Commit(1), Commit(0), Settle];
    let rest =
        [paint(0), Commit(0), Create(1), paint(1), Commit(1), Child { place: 1, parent: 0 }, Create(0)];
    assert_agrees(&window(&[&child[..], &rest].concat()));
}

/// A child in place 1, synchronised and shown, and the surface above it.
fn child(rest: &[Op]) -> Vec<Op> {
    window(&[&[Create(1), Child { place: 1, parent: 0 }, paint(1), Commit(1), Commit(0)], rest].concat())
}

#[test]
fn a_commit_that_waits_for_its_parents_is_shown_with_the_viewport_that_it_had() {
    let larger = Paint { place: 1, size: Some((12, 10)), rect: [0; 4], damage: Buffer, xrgb: false };
    for set in [Source(1, Some([1; 4])), Destination(1, Some((7, 7)))] {
        assert_agrees(&child(&[set, larger, Commit(1), DestroyViewport(1), Commit(0), Settle, Commit(1)]));
    }
}

#[test]
fn a_child_of_a_surface_is_not_shown_by_a_commit_that_was_waiting_before() {
    let adopted = [Create(2), paint(2), Commit(2), paint(1), Commit(1), Child { place: 2, parent: 1 }];
    assert_agrees(&child(&[&adopted[..], &[Commit(0), Settle, paint(1), Commit(1), Commit(0)]].concat()));
}

#[test]
fn a_commit_that_waits_inside_its_parents_is_shown_with_its_own_pixels() {
    let larger = Paint { place: 2, size: Some((12, 12)), rect: [0; 4], damage: Buffer, xrgb: false };
    let smaller = Paint { place: 2, size: Some((1, 1)), rect: [0; 4], damage: Buffer, xrgb: false };
    let grandchild = [Create(2), Child { place: 2, parent: 1 }, Source(2, Some([3, 3, 3, 3])), larger];
    let rest = [Commit(2), Commit(1), Source(2, None), smaller, Commit(2), Commit(0), Settle, Commit(1)];
    assert_agrees(&child(&[&grandchild[..], &rest].concat()));
}

#[test]
fn what_waits_for_a_parent_is_applied_at_once_when_it_waits_no_more() {
    let rest = [paint(1), Destination(1, Some((7, 7))), Commit(1), DestroyViewport(1), paint(1), Commit(1)];
    assert_agrees(&child(&[&rest[..], &[Sync(1, false)]].concat()));
}

#[test]
fn damage_is_not_mapped_by_a_viewport_that_is_gone() {
    let part = Paint { place: 0, size: None, rect: [9, 6, 1, 1], damage: Surface, xrgb: false };
    for set in [Source(0, Some([1; 4])), Destination(0, Some((3, 3)))] {
        assert_agrees(&window(&[set, paint(0), Commit(0), DestroyViewport(0), part, Commit(0)]));
    }
}

#[test]
fn regression_a_child_is_painted_in_a_window_that_was_destroyed_before() {
    let child = |place| [Create(place), Child { place, parent: 0 }, paint(place), Commit(place)];
    let shown = [&child(1)[..], &[Sync(1, false), Commit(0), Settle]].concat();
    // The window's end waits for its pixels, because another child waits for them too.
    let rest =
        [paint(0), Commit(0), Create(2), Child { place: 2, parent: 0 }, Create(0), paint(1), Commit(1)];
    assert_agrees(&window(&[&shown[..], &rest].concat()));
}

#[test]
fn regression_a_childs_child_is_looked_at_after_its_window() {
    let children = [Create(1), Child { place: 1, parent: 0 }, Create(2), Child { place: 2, parent: 1 }];
    // The compositor keeps this commit if it comes before the window's end, and shows it nowhere if it comes after.
    let rest = [Sync(2, false), paint(2), Commit(2), Create(0)];
    assert_agrees(&window(&[&children[..], &rest].concat()));
}

#[test]
fn a_childs_child_is_not_painted_in_a_window_that_its_parent_has_left() {
    let child = |place, parent| [Create(place), Child { place, parent }, paint(place), Commit(place)];
    let shown =
        [&child(1, 0)[..], &child(2, 1), &[Sync(1, false), Sync(2, false), Commit(0), Settle]].concat();
    let rest = [paint(0), Commit(0), DestroyRole(1), paint(2), Commit(2)];
    assert_agrees(&window(&[&shown[..], &rest].concat()));
}

#[test]
fn regression_what_a_child_showed_is_lost_with_the_surface_that_it_was_on() {
    let content = [Create(1), paint(1), Commit(1)];
    let child = [Create(2), Child { place: 2, parent: 1 }, paint(2), Commit(2), Commit(1)];
    for moved in [
        &[Child { place: 2, parent: 0 }, Create(1)][..],
        // It is on nothing for a while.
        &[Create(1), Child { place: 2, parent: 0 }],
    ] {
        assert_agrees(&window(&[&content[..], &child, moved, &[paint(0), Commit(0), Settle]].concat()));
    }
}

#[test]
fn a_dialog_of_a_window_that_goes_belongs_to_the_one_below() {
    let second = [Create(1), Toplevel(1), paint(1), Commit(1), Parent(1, Some(0))];
    let dialog = [Create(2), Toplevel(2), Parent(2, Some(1))];
    for end in [Unmap(1), DestroyRole(1), Create(1)] {
        assert_agrees(&window(&[&second[..], &dialog, &[end, Settle]].concat()));
        assert_agrees(&window(&[&second[..], &dialog, &[Settle, end, Settle, Unmap(0)]].concat()));
    }
}

#[test]
fn a_child_is_seen_when_its_window_has_added_it() {
    let desynchronised = [Child { place: 1, parent: 0 }, Sync(1, false), paint(1), Commit(1)];
    let again = [Child { place: 1, parent: 0 }, paint(1), Commit(1), Commit(0)];
    assert_agrees(&window(&[&[Create(1)], &desynchronised[..], &again].concat()));
    // By a commit that passes the child's own.
    let passed = [Create(1), Child { place: 1, parent: 0 }, paint(1), Commit(1), Sync(1, false)];
    assert_agrees(&window(&[&passed[..], &[paint(1), Commit(1), Commit(0)]].concat()));
}

#[test]
fn regression_a_part_of_a_window_that_goes_vanishes_before_the_commits_before() {
    let popup = [Create(2), Popup { place: 2, parent: 0, grab: false }, paint(2)];
    let moved = [paint(0), Commit(0), Child { place: 1, parent: 2 }, Commit(2)];
    assert_agrees(&child(&[&[Settle], &popup[..], &moved, &[Create(0)]].concat()));
}
