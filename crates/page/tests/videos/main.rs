//! Videos of a page: what its script is given to decode, and what is shown of what comes back.

#[path = "../view/mod.rs"]
mod view;

mod browser;

use bytes::Bytes;
use proptest::prelude::*;
use wayferry_message::{ToApp, ToDisplay, Unit, UnitContent, WireId};
use wayferry_page::{Page, Role, Task};
use wayferry_pixels::Rect;
use wayferry_proto::Time;
use wayferry_video::Layout;

use browser::{Browser, Film, HERE, SIDE, at, bytes_of, near};
use view::*;

/// A page with a window of [`SIDE`] that is grey, and what was said about that.
fn shown(role: Role) -> Page {
    let mut page = page_as(role);
    window(60).iter().for_each(|message| say(&mut page, message));
    arrive(&mut page, 60, 1, true, &[]);
    said(&mut page);
    assert_eq!(page.poll_ended(), None);
    page
}

/// An update comes, and a unit that names it.
fn arrive(page: &mut Page, surface: u64, seq: u64, fresh: bool, frames: &[&wayferry_pixels::video::Frame]) {
    let mut chunks = chunks(if fresh { SIDE } else { 1 }, 90);
    frames.iter().for_each(|frame| chunks.extend(bytes_of(frame)));
    page.on_update(Time::ZERO, &header(surface, seq, SIDE, fresh), chunks);
    say(page, &ToDisplay::Unit(Unit { number: seq + 1, ..show(surface, seq) }));
}

fn refresh() -> ToApp {
    ToApp::Refresh { surface: WireId(60) }
}

fn applied(unit: u64) -> ToApp {
    ToApp::Applied { surface: WireId(60), unit }
}

#[test]
fn a_video_is_shown_frame_by_frame_as_a_native_display_shows_it() {
    for (role, layout) in [(Role::View, Layout::I420), (Role::Control, Layout::Nv12)] {
        let (mut page, mut browser, mut film) = (shown(role), Browser::new(layout), Film::new(1, HERE));
        for seq in 2..12 {
            let frame = film.next(seq as u8 * 9);
            arrive(&mut page, 60, seq, false, &[&frame]);
            assert_eq!((said(&mut page), at(&page, 60, 0, 0)), (vec![], 90), "it waits");
            browser.work(&mut page);
            assert_eq!(said(&mut page), [applied(seq + 1)]);
            assert!(film.is_shown(&page, 60), "frame {seq}");
        }
        let region = page.program(PROGRAM).unwrap().take_damage(WireId(60));
        assert!(matches!(region, Some(wayferry_page::Damage::All)));
        arrive(&mut page, 60, 12, false, &[&film.next(7)]);
        browser.work(&mut page);
        match page.program(PROGRAM).unwrap().take_damage(WireId(60)) {
            Some(wayferry_page::Damage::Part(region)) => assert!(region.rects().contains(&HERE)),
            other => panic!("{other:?}"),
        }
        assert_eq!(browser.begun, [1], "one decoder for all");
    }
}

#[test]
fn frames_are_given_out_and_painted_in_sequence_in_any_order_of_arrival() {
    for role in [Role::View, Role::Control] {
        let (mut page, mut browser, mut film) = (shown(role), Browser::new(Layout::I420), Film::new(0, HERE));
        let frames: Vec<_> = (2..6).map(|seq| film.next(seq as u8 * 20)).collect();
        // The third comes first.
        for seq in [4, 2, 3, 5] {
            let frame = &frames[seq as usize - 2];
            let chunks = [chunks(1, 90), bytes_of(frame)].concat();
            page.on_update(Time::ZERO, &header(60, seq, SIDE, false), chunks);
        }
        assert_eq!(page.poll_task(), None, "no unit names them");
        for seq in 2..6 {
            say(&mut page, &ToDisplay::Unit(Unit { number: seq + 1, ..show(60, seq) }));
        }
        let (answers, tasks) = browser.take(&mut page);
        assert_eq!(tasks, [1], "the others wait for their turn");
        browser.give(&mut page, answers);
        let (answers, tasks) = browser.take(&mut page);
        assert_eq!(tasks, [2, 3, 4], "and then all that are there");
        let mut answers = answers.into_iter().rev();
        browser.give(&mut page, answers.by_ref().take(2).collect());
        assert_eq!(said(&mut page), [applied(3)], "the next one is missing");
        browser.give(&mut page, answers.collect());
        assert_eq!(said(&mut page), [applied(4), applied(5), applied(6)]);
        assert!(film.is_shown(&page, 60));
    }
}

#[test]
fn two_videos_of_a_surface_and_two_surfaces_are_decoded_apart() {
    let there = Rect::new(60, 4, 30, 90);
    let (mut page, mut browser) = (shown(Role::View), Browser::new(Layout::I420));
    window(80).iter().for_each(|message| say(&mut page, message));
    arrive(&mut page, 80, 1, true, &[]);
    let (mut one, mut two, mut other) = (Film::new(0, HERE), Film::new(3, there), Film::new(0, HERE));
    for seq in 2..6 {
        arrive(&mut page, 60, seq, false, &[&two.next(200), &one.next(seq as u8)]);
        arrive(&mut page, 80, seq, false, &[&other.next(100)]);
        browser.work(&mut page);
        assert!(one.is_shown(&page, 60) && two.is_shown(&page, 60) && other.is_shown(&page, 80));
    }
    assert_eq!(browser.begun, [1, 2, 3]);
    page.close(PROGRAM);
    browser.work(&mut page);
    browser.ended.sort();
    assert_eq!((browser.ended, page.kept()), (vec![1, 2, 3], 0));
}

#[test]
fn wrong_frames_are_refused_with_their_update_and_a_fresh_one_heals_it() {
    type Change = fn(&mut wayferry_pixels::video::Frame);
    let wrong: [Change; 6] = [
        |frame| frame.data = vec![1; 40],
        |frame| frame.data.truncate(30),
        |frame| frame.video.key = false,
        |frame| frame.video.rect.width -= 20,
        |frame| frame.video.rect.x += 100,
        |frame| frame.video.stream = 4,
    ];
    for (fault, change) in wrong.into_iter().enumerate() {
        let (mut page, mut browser, mut film) =
            (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
        let mut frame = film.next(120);
        change(&mut frame);
        arrive(&mut page, 60, 2, false, &[&frame]);
        browser.work(&mut page);
        assert_eq!(said(&mut page), [refresh(), applied(3)], "fault {fault}");
        assert_eq!(at(&page, 60, 30, 30), 90, "nothing has changed");
        arrive(&mut page, 60, 3, false, &[&film.next(130)]);
        browser.work(&mut page);
        assert_eq!(
            (said(&mut page), at(&page, 60, 30, 30)),
            (vec![applied(4)], 90),
            "it waits for a fresh one"
        );
        let mut film = Film::new(1, HERE);
        arrive(&mut page, 60, 4, true, &[&film.next(140)]);
        browser.work(&mut page);
        assert!(film.is_shown(&page, 60));
    }
}

#[test]
fn what_the_browser_cannot_decode_refuses_its_update_and_ends_its_decoder() {
    for role in [Role::View, Role::Control] {
        let (mut page, mut browser, mut film) = (shown(role), Browser::new(Layout::I420), Film::new(1, HERE));
        arrive(&mut page, 60, 2, false, &[&film.next(120)]);
        browser.work(&mut page);
        said(&mut page);
        for seq in 3..6 {
            arrive(&mut page, 60, seq, false, &[&film.next(seq as u8)]);
        }
        let (_, tasks) = browser.take(&mut page);
        assert_eq!(tasks, [2]);
        page.on_undecodable(Time::ZERO, 2);
        assert_eq!(said(&mut page), [refresh(), applied(4), applied(5), applied(6)]);
        assert!(near(at(&page, 60, 30, 30), 120));
        browser.work(&mut page);
        assert_eq!(browser.ended, [1]);
        // Of two frames that are under way neither comes.
        let mut film = Film::new(1, HERE);
        arrive(&mut page, 60, 6, true, &[&film.next(50)]);
        browser.work(&mut page);
        assert!(film.is_shown(&page, 60));
        page.on_undecodable(Time::ZERO, 3);
        page.on_decoded(Time::ZERO, 9, Layout::I420, vec![]);
        arrive(&mut page, 60, 7, false, &[&film.next(60)]);
        browser.work(&mut page);
        assert!(film.is_shown(&page, 60), "what is not asked for is passed over");
        assert_eq!(page.poll_ended(), None);
    }
}

#[test]
fn planes_that_are_no_picture_of_the_video_count_as_none() {
    type Change = fn(&mut Vec<u8>);
    let wrong: [Change; 3] = [|planes| planes.truncate(9), |planes| planes.push(0), Vec::clear];
    for change in wrong {
        let (mut page, mut browser, mut film) =
            (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
        arrive(&mut page, 60, 2, false, &[&film.next(120)]);
        let (mut answers, _) = browser.take(&mut page);
        change(&mut answers[0].1);
        browser.give(&mut page, answers);
        assert_eq!(said(&mut page), [refresh(), applied(3)]);
        assert_eq!(page.poll_task(), Some(Task::End { decoder: 1 }));
    }
}

#[test]
fn a_decoder_that_owes_a_frame_for_a_second_has_failed_and_is_heard_no_more() {
    let (mut page, mut browser, mut film) =
        (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
    page.on_frame(0);
    assert_eq!(page.next_timeout(), None);
    arrive(&mut page, 60, 2, false, &[&film.next(120)]);
    let (answers, _) = browser.take(&mut page);
    assert_eq!(page.next_timeout(), Some(Time::from_millis(1000)));
    page.on_timeout(Time::from_millis(999));
    assert_eq!((said(&mut page), page.poll_task()), (vec![], None));
    page.on_timeout(Time::from_millis(1000));
    assert_eq!(said(&mut page), [refresh(), applied(3)]);
    assert_eq!(page.poll_task(), Some(Task::End { decoder: 1 }));
    browser.give(&mut page, answers);
    assert_eq!((at(&page, 60, 30, 30), page.poll_task()), (90, None), "too late");
}

#[test]
fn what_a_fresh_content_replaces_is_not_decoded() {
    let (mut page, mut browser, mut film) =
        (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
    let frames = [film.next(10), film.next(20)];
    for (seq, frame) in (2..).zip(&frames) {
        let chunks = [chunks(1, 90), bytes_of(frame)].concat();
        page.on_update(Time::ZERO, &header(60, seq, SIDE, false), chunks);
    }
    let mut film = Film::new(1, HERE);
    arrive(&mut page, 60, 4, true, &[&film.next(30)]);
    let (answers, tasks) = browser.take(&mut page);
    assert_eq!(tasks, [1]);
    browser.give(&mut page, answers);
    assert!(film.is_shown(&page, 60));
}

#[test]
fn a_fresh_content_and_64_updates_without_a_frame_end_videos() {
    for (fresh, silence, over) in [(true, 0, true), (false, 63, false), (false, 64, true)] {
        let (mut page, mut browser, mut film) =
            (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
        arrive(&mut page, 60, 2, false, &[&film.next(120)]);
        browser.work(&mut page);
        let mut seq = 3;
        for _ in 0..silence + u64::from(fresh) {
            arrive(&mut page, 60, seq, fresh, &[]);
            seq += 1;
        }
        said(&mut page);
        arrive(&mut page, 60, seq, false, &[&film.next(130)]);
        browser.work(&mut page);
        assert_eq!(browser.ended, if over { vec![1] } else { vec![] }, "{silence}");
        assert_eq!(said(&mut page).contains(&refresh()), over, "{silence}");
    }
}

#[test]
fn a_video_that_begins_ends_those_that_are_in_its_way() {
    let (mut page, mut browser, mut first) =
        (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
    arrive(&mut page, 60, 2, false, &[&first.next(120)]);
    browser.work(&mut page);
    let mut second = Film::new(2, Rect::new(40, 40, 50, 50));
    arrive(&mut page, 60, 3, false, &[&second.next(60)]);
    browser.work(&mut page);
    assert!(second.is_shown(&page, 60) && near(at(&page, 60, 12, 12), 120));
    assert_eq!((&browser.begun[..], &browser.ended[..]), (&[1, 2][..], &[1][..]));
    said(&mut page);
    arrive(&mut page, 60, 4, false, &[&first.next(130)]);
    browser.work(&mut page);
    assert_eq!(said(&mut page), [refresh(), applied(5)]);
}

#[test]
fn what_is_under_way_when_a_surface_ends_or_shows_nothing_is_given_back() {
    for (role, destroys) in [(Role::View, true), (Role::Control, true), (Role::Control, false)] {
        let (mut page, mut browser, mut film) = (shown(role), Browser::new(Layout::I420), Film::new(1, HERE));
        arrive(&mut page, 60, 2, false, &[&film.next(120)]);
        let (answers, _) = browser.take(&mut page);
        if destroys {
            [64, 62, 60].iter().for_each(|id| say(&mut page, &ask(WireId(*id), 0, vec![])));
        } else {
            say(&mut page, &ToDisplay::Unit(unit(WireId(60), 4, UnitContent::None)));
        }
        assert!(!said(&mut page).contains(&applied(3)), "it waits for the picture");
        assert_eq!(at(&page, 60, 30, 30), 90);
        browser.give(&mut page, answers);
        browser.work(&mut page);
        assert_eq!(browser.ended, [1]);
        assert!(colours(&page).concat().is_empty());
        page.close(PROGRAM);
        assert_eq!(page.kept(), 0);
    }
    // It ends with its program, before the browser has answered.
    let (mut page, mut browser, mut film) =
        (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
    arrive(&mut page, 60, 2, false, &[&film.next(120)]);
    let (answers, _) = browser.take(&mut page);
    page.close(PROGRAM);
    assert!(page.kept() > 0 && page.poll_task().is_none(), "the decoder works on it");
    browser.give(&mut page, answers);
    assert_eq!((page.kept(), page.poll_task()), (0, Some(Task::End { decoder: 1 })));
}

#[test]
fn a_child_that_waits_for_its_parent_is_painted_with_it() {
    let (mut page, mut browser, mut film) =
        (shown(Role::Control), Browser::new(Layout::I420), Film::new(1, HERE));
    child(80, 60).iter().for_each(|message| say(&mut page, message));
    arrive(&mut page, 80, 1, true, &[]);
    for seq in 2..5 {
        arrive(&mut page, 80, seq, false, &[&film.next(seq as u8 * 30)]);
        browser.work(&mut page);
    }
    let applied = |unit| ToApp::Applied { surface: WireId(80), unit };
    assert_eq!(said(&mut page), [applied(2), applied(3), applied(4), applied(5)]);
    assert_eq!(colours(&page), [[90]], "the child is not to be seen yet");
    say(&mut page, &ToDisplay::Unit(unit(WireId(60), 3, UnitContent::Keep)));
    assert!(film.is_shown(&page, 80));
}

#[test]
fn a_page_that_begins_anew_ends_all_decoders_and_goes_on_counting() {
    let (mut page, mut browser, mut film) =
        (shown(Role::View), Browser::new(Layout::I420), Film::new(1, HERE));
    arrive(&mut page, 60, 2, false, &[&film.next(120)]);
    let (answers, _) = browser.take(&mut page);
    page.begin_anew();
    assert_eq!((page.kept(), page.poll_task()), (0, Some(Task::End { decoder: 1 })));
    browser.give(&mut page, answers);
    let mut page = replay(page);
    let mut film = Film::new(1, HERE);
    arrive(&mut page, 60, 2, false, &[&film.next(120)]);
    let (answers, tasks) = browser.take(&mut page);
    assert_eq!((tasks, browser.begun.clone()), (vec![2], vec![1, 2]));
    browser.give(&mut page, answers);
    assert!(film.is_shown(&page, 60));
}

/// What a page is told in the beginning.
fn replay(mut page: Page) -> Page {
    page.open(PROGRAM).expect("room");
    bind_all(&mut page);
    window(60).iter().for_each(|message| say(&mut page, message));
    arrive(&mut page, 60, 1, true, &[]);
    page
}

#[test]
fn more_pictures_than_there_is_room_for_are_refused_and_nothing_waits_for_ever() {
    let (mut page, mut browser) = (shown(Role::View), Browser::new(Layout::I420));
    let mut film = Film::new(1, HERE);
    // One unit for all of them: each counts for a MiB.
    for seq in 2..202 {
        let frame = film.next(seq as u8);
        let chunks = [chunks(1, 90), bytes_of(&frame)].concat();
        page.on_update(Time::ZERO, &header(60, seq, SIDE, false), chunks);
    }
    say(&mut page, &ToDisplay::Unit(Unit { number: 3, ..show(60, 201) }));
    assert_eq!(said(&mut page), [refresh(), applied(3)], "the decoder has failed before it began");
    assert_eq!(page.poll_task(), None);
    // In units of their own they are decoded as they fit.
    let mut film = Film::new(1, HERE);
    arrive(&mut page, 60, 202, true, &[]);
    for seq in 203..403 {
        arrive(&mut page, 60, seq, false, &[&film.next(seq as u8)]);
    }
    browser.work(&mut page);
    assert!(film.is_shown(&page, 60));
    assert!(browser.most <= 9, "{} at once", browser.most);
}

/// What happens next in a page that is told of updates in any order.
#[derive(Debug, Clone)]
enum Step {
    /// One of the updates that have not come does.
    Arrive(usize),
    /// The next unit does.
    Say,
    /// The browser takes what it is given, and answers the last it has, or all in turn.
    Answer(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<usize>().prop_map(Step::Arrive),
        2 => Just(Step::Say),
        3 => any::<bool>().prop_map(Step::Answer),
    ]
}

/// What an update has: one frame or the other, both, or none.
fn updates() -> impl Strategy<Value = Vec<[bool; 2]>> {
    proptest::collection::vec(any::<[bool; 2]>(), 1..20)
}

proptest! {
    // Each encodes a video or two.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn in_any_order_of_arrival_all_is_shown_as_natively(
        updates in updates(), steps in proptest::collection::vec(step(), 0..80), is_display: bool
    ) {
        let mut page = shown(if is_display { Role::Control } else { Role::View });
        let mut browser = Browser::new(if is_display { Layout::Nv12 } else { Layout::I420 });
        let mut films = [Film::new(1, HERE), Film::new(2, Rect::new(60, 4, 30, 90))];
        let last = updates.len() as u64 + 1;
        let mut coming: Vec<(u64, Vec<Bytes>)> = (2..).zip(&updates).map(|(seq, which)| {
            let frames = films.iter_mut().zip(which).filter(|(_, has)| **has).map(|(film, _)| film.next(seq as u8 * 10));
            (seq, [chunks(1, 90), frames.flat_map(|frame| bytes_of(&frame)).collect()].concat())
        }).collect();
        let mut units = 2..=last;
        let mut answers = Vec::new();
        let ends = vec![Step::Arrive(0); updates.len()].into_iter().chain(vec![Step::Say; updates.len()]);
        for step in steps.into_iter().chain(ends) {
            match step {
                Step::Arrive(which) => if let Some(which) = which.checked_rem(coming.len()) {
                    let (seq, chunks) = coming.swap_remove(which);
                    page.on_update(Time::ZERO, &header(60, seq, SIDE, false), chunks);
                }
                Step::Say => if let Some(seq) = units.next() {
                    say(&mut page, &ToDisplay::Unit(Unit { number: seq + 1, ..show(60, seq) }));
                }
                Step::Answer(all) => {
                    answers.extend(browser.take(&mut page).0);
                    let now = if all { std::mem::take(&mut answers) } else { answers.pop().into_iter().collect() };
                    browser.give(&mut page, now);
                }
            }
        }
        browser.give(&mut page, answers);
        browser.work(&mut page);
        let expected: Vec<_> = (2..=last).map(|seq| applied(seq + 1)).collect();
        prop_assert_eq!(said(&mut page), expected);
        for (which, film) in films.iter().enumerate() {
            prop_assert!(film.is_shown(&page, 60) || !updates.iter().any(|update| update[which]));
        }
        page.close(PROGRAM);
        browser.work(&mut page);
        prop_assert_eq!(page.kept(), 0);
    }
}
