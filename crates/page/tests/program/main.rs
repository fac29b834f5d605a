//! What a page answers and shows, by what a view tells it.

#[path = "../view/mod.rs"]
mod view;

use std::time::Duration;

use bytes::Bytes;
use wayferry_message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId, cost};
use wayferry_page::{Damage, End, Page, Role};
use wayferry_proto::{ConnectionId, Time, UnitHead, UpdateSeq};

use view::*;

/// A page with a window of colour 1, and what was said about that.
fn shown() -> Page {
    let mut page = page();
    window(20).iter().for_each(|message| say(&mut page, message));
    bring(&mut page, 20, 1, 1);
    say(&mut page, &ToDisplay::Unit(Unit { number: 2, ..show(20, 1) }));
    said(&mut page);
    page
}

fn nested(parent: Unit, children: Vec<Unit>) -> ToDisplay {
    ToDisplay::Unit(Unit { children, ..parent })
}

fn state(unit: Unit, state: Vec<Request>) -> ToDisplay {
    ToDisplay::Unit(Unit { state, ..unit })
}

fn end(page: &mut Page) -> Option<End> {
    page.poll_ended().map(|ended| ended.end)
}

#[test]
fn a_window_is_configured_once_and_each_unit_is_told_to_be_applied() {
    let mut page = page();
    window(20).iter().for_each(|message| say(&mut page, message));
    let applied = |unit| ToApp::Applied { surface: WireId(20), unit };
    let configure = |serial| ToApp::Event(request(WireId(22), 0, vec![WireArg::Uint(serial)]));
    assert_eq!(said(&mut page), [applied(1), configure(1)]);
    say(&mut page, &ToDisplay::Unit(unit(WireId(20), 2, UnitContent::Keep)));
    assert_eq!(said(&mut page), [applied(2)]);
    bring(&mut page, 20, 1, 5);
    say(&mut page, &ToDisplay::Unit(Unit { number: 3, feedback: true, ..show(20, 1) }));
    let never_told = ToApp::Discarded { surface: WireId(20), unit: 3 };
    assert_eq!(said(&mut page), [never_told, applied(3)]);
    assert_eq!(colours(&page), [[5]]);
    // What shows nothing any more begins as it began.
    say(&mut page, &ToDisplay::Unit(unit(WireId(20), 4, UnitContent::None)));
    say(&mut page, &ToDisplay::Unit(unit(WireId(20), 5, UnitContent::Keep)));
    assert_eq!(said(&mut page), [applied(4), applied(5), configure(2)]);
    assert_eq!(colours(&page), [[]; 0]);
}

#[test]
fn a_unit_waits_for_all_of_its_updates_in_any_order_and_is_shown_at_once() {
    let mut page = shown();
    child(30, 20).iter().for_each(|message| say(&mut page, message));
    say(&mut page, &nested(Unit { number: 3, ..show(20, 3) }, vec![show(30, 1)]));
    for (surface, seq, colour) in [(20, 3, 3), (30, 1, 9)] {
        bring(&mut page, surface, seq, colour);
        assert_eq!((said(&mut page), colours(&page)), (vec![], vec![vec![1]]));
    }
    bring(&mut page, 20, 2, 2);
    let applied = |surface, unit| ToApp::Applied { surface: WireId(surface), unit };
    assert_eq!(said(&mut page), [applied(30, 1), applied(20, 3)]);
    assert_eq!(colours(&page), [[3, 9]]);
}

#[test]
fn what_is_said_of_a_window_waits_for_its_pixels_and_other_windows_do_not() {
    let mut page = shown();
    child(30, 20).iter().for_each(|message| say(&mut page, message));
    bring(&mut page, 30, 1, 9);
    say(&mut page, &nested(Unit { number: 3, ..show(20, 2) }, vec![show(30, 1)]));
    // The child goes: not before what was said before is there.
    say(&mut page, &ask(WireId(32), 0, vec![]));
    say(&mut page, &ask(WireId(30), 0, vec![]));
    window(40).iter().for_each(|message| say(&mut page, message));
    say(&mut page, &ask(WireId(24), 2, vec![WireArg::Str(Some(b"later".to_vec()))]));
    bring(&mut page, 40, 1, 4);
    say(&mut page, &ToDisplay::Unit(Unit { number: 2, ..show(40, 1) }));
    assert_eq!(colours(&page), [[1], [4]]);
    bring(&mut page, 20, 2, 2);
    assert_eq!(colours(&page), [[2], [4]], "both were shown, and the child has gone since");
    assert_eq!(page.programs().next().unwrap().1.windows().next().unwrap().title, "later");
    assert_eq!(end(&mut page), None);
}

#[test]
fn children_are_stacked_and_placed_as_told() {
    let mut page = shown();
    for id in [30, 40] {
        child(id, 20).iter().for_each(|message| say(&mut page, message));
        bring(&mut page, id, 1, id as u8);
    }
    let place = |subsurface, opcode, sibling| {
        request(WireId(subsurface), opcode, vec![WireArg::Object(WireId(sibling))])
    };
    let at = request(WireId(32), 1, vec![WireArg::Int(-5), WireArg::Int(7)]);
    let orders: [(&[Request], &[u8]); 4] = [
        (&[at], &[1, 30, 40]),
        (&[place(42, 3, 20)], &[40, 1, 30]),
        (&[place(32, 3, 40)], &[30, 40, 1]),
        (&[place(32, 2, 20), place(42, 2, 30)], &[1, 30, 40]),
    ];
    for (number, (requests, order)) in (3..).zip(&orders) {
        let parent = unit(WireId(20), number, UnitContent::Keep);
        let children = if number == 3 { vec![show(30, 1), show(40, 1)] } else { vec![] };
        say(&mut page, &ToDisplay::Unit(Unit { state: requests.to_vec(), children, ..parent }));
        assert_eq!(colours(&page), [order.to_vec()]);
    }
    let window = page.programs().next().unwrap().1.windows().next().unwrap();
    let places = window.root.inside.iter().filter_map(|inside| match inside {
        wayferry_page::Inside::Child(child) => Some(child.at),
        wayferry_page::Inside::Itself => None,
    });
    assert_eq!(places.collect::<Vec<_>>(), [(-5, 7), (0, 0)]);
}

#[test]
fn how_content_is_shown_is_told_with_it() {
    let mut page = shown();
    let args = vec![WireArg::NewId(WireId(30)), WireArg::Object(WireId(20))];
    say(&mut page, &ask(VIEWPORTER, 1, args));
    let changes = vec![
        request(WireId(20), 7, vec![WireArg::Int(3)]),
        request(WireId(20), 8, vec![WireArg::Int(2)]),
        request(WireId(30), 1, [256, 512, 1024, 768].map(WireArg::Fixed).to_vec()),
        request(WireId(30), 2, vec![WireArg::Int(40), WireArg::Int(30)]),
        request(WireId(22), 3, [1, 2, 30, 20].map(WireArg::Int).to_vec()),
        request(WireId(22), 4, vec![WireArg::Uint(1)]),
        request(WireId(24), 7, vec![WireArg::Int(30), WireArg::Int(20)]),
    ];
    say(&mut page, &state(unit(WireId(20), 3, UnitContent::Keep), changes));
    let look = |page: &Page| {
        let window = page.programs().next().unwrap().1.windows().next().unwrap();
        (window.geometry, window.root.shape, window.root.shape.size(window.root.content.size()))
    };
    let (geometry, shape, size) = look(&page);
    assert_eq!((geometry, size), ([1, 2, 30, 20], (40, 30)));
    assert_eq!((shape.scale, shape.transform, shape.crop), (2, 3, Some([256, 512, 1024, 768])));
    let unset = vec![
        request(WireId(30), 1, [-256; 4].map(WireArg::Fixed).to_vec()),
        request(WireId(30), 2, vec![WireArg::Int(-1), WireArg::Int(-1)]),
    ];
    say(&mut page, &state(unit(WireId(20), 4, UnitContent::Keep), unset));
    assert_eq!(look(&page).2, (4, 4));
}

#[test]
fn what_is_new_of_pixels_is_told_once() {
    let mut page = shown();
    let damage = |page: &mut Page| page.program(PROGRAM).unwrap().take_damage(WireId(20));
    assert_eq!(damage(&mut page), Some(Damage::All));
    assert_eq!(damage(&mut page), Some(Damage::Part(Default::default())));
    page.on_update(Time::ZERO, &header(20, 2, 8, false), chunks(8, 7));
    say(&mut page, &ToDisplay::Unit(Unit { number: 3, ..show(20, 2) }));
    assert!(matches!(damage(&mut page), Some(Damage::Part(region)) if region.area() == 64));
    assert_eq!(page.program(PROGRAM).unwrap().take_damage(WireId(99)), None);
}

#[test]
fn a_page_that_does_not_draw_is_told_to_be_hidden_and_seen_again_when_it_does() {
    let mut page = shown();
    let visible = |visible| ToApp::Visible { surface: WireId(20), visible };
    assert_eq!(page.next_timeout(), Some(Time::ZERO + Duration::from_secs(1)));
    page.on_timeout(Time::from_millis(999));
    assert_eq!(said(&mut page), []);
    page.on_timeout(Time::from_millis(1000));
    assert_eq!((said(&mut page), page.next_timeout()), (vec![visible(false)], None));
    assert!(page.wants_frame());
    page.on_frame(0);
    page.on_frame(0);
    assert_eq!(said(&mut page), [visible(true)]);
    assert!(!page.wants_frame());
}

#[test]
fn what_cannot_be_painted_is_asked_for_again_and_in_the_end_nothing_more_is_shown() {
    let mut page = shown();
    let rotten = || vec![Bytes::from_static(&[9; 9])];
    let refresh = ToApp::Refresh { surface: WireId(20) };
    page.on_update(Time::ZERO, &header(20, 2, 8, false), rotten());
    say(&mut page, &ToDisplay::Unit(Unit { number: 3, ..show(20, 2) }));
    assert_eq!(said(&mut page)[0], refresh);
    // What builds on that changes nothing, and is not asked for once more.
    page.on_update(Time::ZERO, &header(20, 3, 8, false), chunks(8, 7));
    say(&mut page, &ToDisplay::Unit(Unit { number: 4, ..show(20, 3) }));
    assert_eq!((said(&mut page).len(), colours(&page)), (1, vec![vec![1]]));
    bring(&mut page, 20, 4, 8);
    say(&mut page, &ToDisplay::Unit(Unit { number: 5, ..show(20, 4) }));
    assert_eq!(colours(&page), [[8]]);
    for seq in 5..9 {
        assert_eq!(end(&mut page), None);
        page.on_update(Time::ZERO, &header(20, seq, 8, true), rotten());
        say(&mut page, &ToDisplay::Unit(Unit { number: seq + 1, ..show(20, seq) }));
    }
    assert!(matches!(end(&mut page), Some(End::Violation(_))));
    assert_eq!((page.kept(), page.programs().count()), (0, 0));
}

#[test]
fn what_was_handled_is_acknowledged_and_what_waits_is_not() {
    let mut page = shown();
    let message = ToDisplay::Unit(unit(WireId(20), 3, UnitContent::Keep)).encode();
    let each = cost(&message);
    let mut number = 3;
    let mut told = Vec::new();
    while told.is_empty() {
        say(&mut page, &ToDisplay::Unit(unit(WireId(20), number, UnitContent::Keep)));
        number += 1;
        told.extend(said(&mut page).into_iter().filter(|said| matches!(said, ToApp::Consumed { .. })));
    }
    assert!(
        (64 << 10) / each >= number - 12
            && matches!(told[..], [ToApp::Consumed { bytes }] if bytes >= 64 << 10)
    );
    say(&mut page, &ToDisplay::Unit(Unit { number, ..show(20, 2) }));
    for number in number + 1..number + 1000 {
        say(&mut page, &ToDisplay::Unit(unit(WireId(20), number, UnitContent::Keep)));
    }
    assert_eq!(said(&mut page), []);
    bring(&mut page, 20, 2, 2);
    assert!(said(&mut page).iter().any(|said| matches!(said, ToApp::Consumed { .. })));
}

#[test]
fn what_a_view_never_says_ends_the_program_and_no_other() {
    let bind = |interface: &str, global, version| {
        let interface = interface.to_owned();
        ToDisplay::Bind { global, interface, version, id: WireId(100) }
    };
    let mut told = header(20, 2, 8, true);
    told.unit = Some(UnitHead { number: 3, after: 0, feedback: false, answered: None });
    let deep = (0..17).flat_map(|depth| child(100 + 4 * depth, if depth == 0 { 20 } else { 96 + 4 * depth }));
    let wrongs: Vec<Vec<ToDisplay>> = vec![
        vec![bind("zxdg_decoration_manager_v1", 5, 1)],
        vec![bind("wl_seat", 1, 1)],
        vec![bind("wl_compositor", 1, 6)],
        vec![bind("wl_compositor", 1, 0)],
        vec![ask(WireId(98), 0, vec![])],
        vec![ask(COMPOSITOR, 1, vec![WireArg::NewId(WireId(100))])],
        vec![create(WireId(18))],
        vec![create(WireId(101))],
        vec![ask(WireId(20), 1, vec![WireArg::Object(WireId(0)), WireArg::Int(0), WireArg::Int(0)])],
        vec![ask(WireId(22), 1, vec![WireArg::Int(5)])],
        vec![ask(SHELL, 2, vec![WireArg::NewId(WireId(100)), WireArg::Object(WireId(20))])],
        child(100, 100).to_vec(),
        child(100, 98).to_vec(),
        deep.collect(),
        vec![ask(SUBCOMPOSITOR, 1, [100, 20, 20].map(|id| WireArg::Object(WireId(id))).to_vec())],
        vec![ToDisplay::Unit(unit(WireId(20), 2, UnitContent::Keep))],
        vec![ToDisplay::Unit(unit(WireId(22), 1, UnitContent::Keep))],
        vec![nested(unit(WireId(20), 3, UnitContent::Keep), vec![unit(WireId(20), 4, UnitContent::Keep)])],
        vec![state(
            unit(WireId(20), 3, UnitContent::Keep),
            vec![request(WireId(20), 8, vec![WireArg::Int(0)])],
        )],
        vec![state(unit(WireId(20), 3, UnitContent::Keep), vec![request(WireId(20), 6, vec![])])],
        vec![ToDisplay::Hang(true)],
        vec![ToDisplay::Late { key: 1 }],
        vec![ToDisplay::Superseded { surface: WireId(20), update: UpdateSeq(2), by: UpdateSeq(3) }],
        vec![ToDisplay::KeymapKnown { keyboard: WireId(20), hash: 1 }],
    ];
    for wrong in wrongs {
        let mut page = shown();
        page.open(ConnectionId(2)).unwrap();
        wrong.iter().for_each(|message| say(&mut page, message));
        assert!(matches!(end(&mut page), Some(End::Violation(_))), "{wrong:?}");
        assert_eq!(page.programs().map(|(id, _)| id).collect::<Vec<_>>(), [ConnectionId(2)]);
        assert_eq!((page.kept(), said(&mut page)), (0, vec![]));
    }
    let mut page = shown();
    page.on_update(Time::ZERO, &told, chunks(8, 1));
    assert!(matches!(end(&mut page), Some(End::Violation(_))));
    let mut page = shown();
    page.on_message(Time::ZERO, PROGRAM, b"nonsense");
    assert!(matches!(end(&mut page), Some(End::Violation(_))));
}

#[test]
fn a_window_may_have_as_many_surfaces_in_the_course_of_time_as_it_likes() {
    let mut page = shown();
    let mut ids = (100u64..).step_by(4);
    let mut add = |page: &mut Page| {
        let id = ids.next().unwrap();
        child(id, 20).iter().for_each(|message| say(page, message));
        id
    };
    for _ in 0..5000 {
        let id = add(&mut page);
        say(&mut page, &ask(WireId(id + 2), 0, vec![]));
        say(&mut page, &ask(WireId(id), 0, vec![]));
    }
    assert_eq!(end(&mut page), None);
    for _ in 0..4096 {
        add(&mut page);
        assert_eq!(end(&mut page), None);
    }
    add(&mut page);
    assert!(matches!(end(&mut page), Some(End::Violation(_))), "but not at once");
}

#[test]
fn a_program_that_goes_frees_what_it_had_and_another_may_have_its_number() {
    let mut page = shown();
    page.on_update(Time::ZERO, &header(20, 3, 8, true), chunks(8, 1));
    say(&mut page, &ToDisplay::Unit(Unit { number: 3, ..show(20, 3) }));
    assert!(page.kept() > 8 * 8 * 4);
    page.open(PROGRAM).unwrap();
    assert_eq!((page.kept(), page.programs().count()), (0, 1));
    page.close(PROGRAM);
    page.on_message(Time::ZERO, PROGRAM, b"nonsense");
    page.on_update(Time::ZERO, &header(20, 1, 8, true), chunks(8, 1));
    assert_eq!((page.kept(), end(&mut page)), (0, None));
    for id in 0..wayferry_page::MAX_PROGRAMS as u32 {
        page.open(ConnectionId(id)).unwrap();
    }
    assert_eq!(page.open(ConnectionId(1000)), Err(End::TooMuch("programs")));
}

#[test]
fn more_than_may_wait_ends_the_program() {
    let mut page = shown();
    say(&mut page, &ToDisplay::Unit(Unit { number: 3, ..show(20, 2) }));
    let mut number = 4;
    let ended = loop {
        say(&mut page, &ToDisplay::Unit(unit(WireId(20), number, UnitContent::Keep)));
        number += 1;
        if let Some(end) = end(&mut page) {
            break end;
        }
    };
    assert!(matches!(ended, End::Violation(_)), "{ended}");
    assert!(number < 100_000 && page.kept() == 0);
    let mut page = shown();
    let ended = (0u64..).find_map(|at| {
        say(&mut page, &create(WireId(100 + 2 * at)));
        end(&mut page)
    });
    assert_eq!(ended, Some(End::TooMuch("bytes of objects")));
    let mut page = shown();
    let ended = (2u64..).find_map(|seq| {
        page.on_update(Time::ZERO, &header(20, seq + 1, 8, true), vec![Bytes::from(vec![1; 1 << 20])]);
        end(&mut page)
    });
    assert_eq!(ended, Some(End::TooMuch("bytes of updates that wait for their units")));
    assert_eq!(page.kept(), 0);
}

#[test]
fn regression_surfaces_whose_children_wait_to_end_went_into_others_and_made_trees_without_end() {
    let mut page = shown();
    say(&mut page, &create(WireId(100)));
    child(104, 100).iter().for_each(|message| say(&mut page, message));
    // Its pixels never come, so all that follows waits.
    say(&mut page, &ToDisplay::Unit(show(104, 1)));
    say(&mut page, &ask(WireId(104), 0, vec![]));
    let objects = [100, 20].map(|id| WireArg::Object(WireId(id)));
    let args = [WireArg::NewId(WireId(108))].into_iter().chain(objects).collect();
    say(&mut page, &ask(SUBCOMPOSITOR, 1, args));
    assert!(matches!(end(&mut page), Some(End::Violation(_))));
}

#[test]
fn regression_what_had_gone_stayed_painted() {
    let drawn = || {
        let mut page = shown();
        child(30, 20).iter().for_each(|message| say(&mut page, message));
        bring(&mut page, 30, 1, 9);
        say(&mut page, &nested(unit(WireId(20), 3, UnitContent::Keep), vec![show(30, 1)]));
        page.on_frame(0);
        assert!(!page.wants_frame() && colours(&page) == [[1, 9]]);
        page
    };
    let title = vec![WireArg::Str(Some(b"a window".to_vec()))];
    let changes = [
        ask(WireId(32), 0, vec![]),
        ask(WireId(30), 0, vec![]),
        ask(WireId(20), 0, vec![]),
        ask(WireId(22), 0, vec![]),
        ask(WireId(24), 0, vec![]),
        ask(WireId(24), 2, title.clone()),
        ask(WireId(24), 3, title),
        ToDisplay::Unit(unit(WireId(30), 2, UnitContent::None)),
    ];
    for change in changes {
        let mut page = drawn();
        say(&mut page, &change);
        assert!(page.wants_frame(), "{change:?}");
        page.on_frame(0);
        assert!(!page.wants_frame());
    }
}

#[test]
fn regression_what_was_hidden_and_showed_nothing_then_was_never_told_to_be_seen() {
    let mut page = shown();
    page.on_timeout(Time::from_millis(1000));
    say(&mut page, &ToDisplay::Unit(unit(WireId(20), 3, UnitContent::None)));
    said(&mut page);
    assert!(page.wants_frame());
    page.on_frame(0);
    assert_eq!(said(&mut page), [ToApp::Visible { surface: WireId(20), visible: true }]);
}

#[test]
fn regression_a_unit_named_a_surface_again_and_again() {
    let keep = |surface, number| unit(WireId(surface), number, UnitContent::Keep);
    let inside = |page: &mut Page| {
        child(30, 20).into_iter().chain(child(40, 30)).for_each(|message| say(page, &message));
    };
    let wrongs = [
        nested(keep(20, 3), vec![keep(30, 1), keep(30, 2)]),
        // Not right inside that one.
        nested(keep(20, 3), vec![keep(40, 1)]),
        nested(keep(30, 1), vec![keep(20, 3)]),
    ];
    for wrong in wrongs {
        let mut page = shown();
        inside(&mut page);
        say(&mut page, &wrong);
        assert!(matches!(end(&mut page), Some(End::Violation(_))), "{wrong:?}");
    }
}

#[test]
fn regression_what_was_to_be_sent_or_told_had_no_limit_and_children_counted_for_their_bytes() {
    let mut page = page();
    window(20).iter().for_each(|message| say(&mut page, message));
    let ended = (2u64..1 << 20).find_map(|number| {
        say(&mut page, &ToDisplay::Unit(unit(WireId(20), number, UnitContent::Keep)));
        end(&mut page)
    });
    assert_eq!(ended, Some(End::TooMuch("bytes of messages that are to be sent")));
    assert_eq!(page.kept(), 0);

    let mut page = shown();
    let ids = (100u64..).step_by(4).take(4000);
    ids.clone().flat_map(|id| child(id, 20)).for_each(|message| say(&mut page, &message));
    let children = ids.map(|id| unit(WireId(id), 1, UnitContent::Keep)).collect();
    let before = page.kept();
    say(&mut page, &nested(Unit { number: 3, ..show(20, 2) }, children));
    assert!(page.kept() - before > 4000 * 80, "{}", page.kept() - before);

    let mut page = Page::new(Role::View);
    let opened = (0..10_000).take_while(|id| {
        let is_open = page.open(ConnectionId(*id)).is_ok();
        page.on_message(Time::ZERO, ConnectionId(*id), b"nonsense");
        is_open
    });
    assert_eq!(opened.count(), wayferry_page::MAX_PROGRAMS);
    assert!(page.kept() > 0);
    assert!(page.poll_ended().is_some() && page.open(ConnectionId(20_000)).is_ok());
}

#[test]
fn regression_an_xdg_surface_was_a_window_twice_and_stacking_named_any_surface() {
    let mut page = shown();
    say(&mut page, &ask(WireId(22), 1, vec![WireArg::NewId(WireId(100))]));
    assert!(matches!(end(&mut page), Some(End::Violation(_))));
    // Itself, and one that is inside another.
    for sibling in [30, 40] {
        let mut page = shown();
        child(30, 20).into_iter().chain(child(40, 30)).for_each(|message| say(&mut page, &message));
        let above = request(WireId(32), 2, vec![WireArg::Object(WireId(sibling))]);
        say(&mut page, &state(unit(WireId(20), 3, UnitContent::Keep), vec![above]));
        assert!(matches!(end(&mut page), Some(End::Violation(_))), "{sibling}");
    }
}

#[test]
fn regression_what_had_come_for_a_surface_was_kept_when_a_program_of_a_display_ended_it() {
    for role in [Role::View, Role::Control] {
        let kept = [false, true].map(|comes| {
            let mut page = page_as(role);
            say(&mut page, &create(WireId(60)));
            if comes {
                page.on_update(Time::ZERO, &header(60, 1, 64, true), chunks(64, 9));
            }
            say(&mut page, &ask(WireId(60), 0, vec![]));
            said(&mut page);
            page.kept()
        });
        assert_eq!(kept[0], kept[1], "{role:?}");
    }
}
