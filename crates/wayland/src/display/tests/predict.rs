//! Letters are drawn before they are answered, on a subsurface of ours and nowhere else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use wayferry_pixels::Rect;
use wayferry_proto::HostTime;

use super::super::{Config, Predict, Wishes};
use super::rig::{BufferCommit, GLOBALS, Got, Rig};
use super::toy::{A, B, C, CELL, RETURN, Toy, release_all};
use crate::message::{ToApp, ToDisplay, UnitContent, WireArg, WireId};
use crate::trace::{Probe, Recorder, Span, Stage};
use crate::wire::Arg;

fn rig(predict: Predict) -> Rig {
    let mut rig = Rig::configured(GLOBALS, Config { predict: Wishes::all(predict), ..Config::default() });
    rig.turn();
    rig.requests();
    rig
}

/// A window in which letters are known by now, and what predictions are drawn on.
fn learned(predict: Predict) -> (Rig, Toy, Sheet) {
    let mut rig = rig(predict);
    rig.connection.set_round_trip(rig.now, Duration::from_millis(100));
    let mut toy = Toy::new(&mut rig);
    toy.learn(&mut rig);
    let sheet = Sheet::find(&rig).expect("it is made");
    rig.requests();
    (rig, toy, sheet)
}

/// Our surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sheet {
    surface: u32,
    subsurface: u32,
    at: (u32, u32),
}

impl Sheet {
    /// As the log has it: the veil of the window was made before that.
    fn find(rig: &Rig) -> Option<Self> {
        let made = rig.got.iter().rev().find(|got| got.is("wl_subcompositor", "get_subsurface"))?;
        let (subsurface, surface) = (made.uint(0), made.uint(1));
        let places = |got: &&Got| got.object == subsurface && got.request == "set_position";
        let at = match rig.got.iter().rev().find(places).map(|got| &got.args[..]) {
            Some([Arg::Int(x), Arg::Int(y)]) => (x.cast_unsigned(), y.cast_unsigned()),
            _ => (0, 0),
        };
        Some(Self { surface, subsurface, at })
    }

    /// What it shows, if anything.
    fn shows(self, rig: &Rig) -> Option<&BufferCommit> {
        let last = rig.shown.iter().rev().find(|shown| shown.surface == self.surface);
        last.filter(|shown| shown.buffer != 0)
    }

    /// Its pixels that are not transparent: where in the window they are, and what is there.
    fn pixels(self, rig: &Rig) -> Vec<(u32, u32, Vec<u8>)> {
        let Some(shown) = self.shows(rig) else { return vec![] };
        let width = shown.pixels.len() / 4 / CELL.1 as usize;
        let pixels = shown.pixels.chunks(4).enumerate().filter(|(_, pixel)| pixel[3] != 0);
        let place = |at: usize| (self.at.0 + (at % width) as u32, self.at.1 + (at / width) as u32);
        pixels.map(|(at, pixel)| (place(at).0, place(at).1, pixel.to_vec())).collect()
    }

    fn is_as(self, rig: &Rig, toy: &Toy) -> bool {
        let pixels = self.pixels(rig);
        !pixels.is_empty() && pixels.iter().all(|(x, y, pixel)| toy.part(Rect::new(*x, *y, 1, 1)) == *pixel)
    }
}

/// Requests to the sheet and to the window, in their order.
fn story(rig: &mut Rig, toy: &Toy, sheet: Sheet) -> Vec<&'static str> {
    let window = rig.id(toy.surface);
    let words = rig.got.drain(..).filter_map(|got| match (got.object, got.request) {
        (id, "attach") if id == sheet.surface && got.uint(0) == 0 => Some("sheet: nothing"),
        (id, "attach") if id == sheet.surface => Some("sheet: picture"),
        (id, "commit") if id == sheet.surface => Some("sheet: commit"),
        (id, "set_sync") if id == sheet.subsurface => Some("sheet: with the window"),
        (id, "set_desync") if id == sheet.subsurface => Some("sheet: alone"),
        (id, "set_position") if id == sheet.subsurface => Some("sheet: moves"),
        (id, "destroy") if id == sheet.subsurface => Some("sheet: gone"),
        (id, "attach") if id == window => Some("window: picture"),
        (id, "commit") if id == window => Some("window: commit"),
        _ => None,
    });
    words.collect()
}

#[test]
fn a_letter_is_drawn_before_it_is_answered_and_the_window_is_not_touched() {
    let (mut rig, mut toy, sheet) = learned(Predict::Auto);
    toy.press(&mut rig, C);
    assert_eq!(story(&mut rig, &toy, sheet), ["sheet: picture", "sheet: commit"]);
    toy.take(C);
    // It is lined at this distance, which the truth is not.
    assert_eq!(sheet.pixels(&rig).len(), 2 * 8 * 16, "the letter, and the caret behind it");
    let (mut rig, mut toy, sheet) = learned(Predict::Always);
    rig.connection.set_round_trip(rig.now, Duration::from_millis(5));
    toy.press(&mut rig, C);
    toy.take(C);
    assert!(sheet.is_as(&rig, &toy));
    rig.assert_alive();
}

#[test]
fn the_truth_and_the_end_of_the_prediction_are_one_frame() {
    let (mut rig, mut toy, sheet) = learned(Predict::Auto);
    let number = toy.press(&mut rig, C);
    rig.requests();
    toy.take(C);
    toy.show(&mut rig, Some(number));
    let expected = [
        "window: picture",
        "sheet: with the window",
        "sheet: nothing",
        "sheet: commit",
        "window: commit",
        "sheet: alone",
    ];
    assert_eq!(story(&mut rig, &toy, sheet), expected);
    assert_eq!(sheet.shows(&rig), None);
    rig.assert_alive();
}

#[test]
fn what_is_still_not_answered_stays_drawn_in_the_frame_that_answers_the_rest() {
    let (mut rig, mut toy, sheet) = learned(Predict::Auto);
    let first = toy.press(&mut rig, C);
    toy.press(&mut rig, A);
    rig.requests();
    toy.take(C);
    release_all(&mut rig);
    toy.show(&mut rig, Some(first));
    let story = story(&mut rig, &toy, sheet);
    assert_eq!(story[1..4], ["sheet: with the window", "sheet: picture", "sheet: commit"]);
    assert!(sheet.shows(&rig).is_some());
    rig.assert_alive();
}

#[test]
fn what_turned_out_wrong_goes_with_the_frame_that_shows_it() {
    let (mut rig, mut toy, sheet) = learned(Predict::Auto);
    let number = toy.press(&mut rig, C);
    assert!(sheet.shows(&rig).is_some());
    toy.take(B);
    toy.show(&mut rig, Some(number));
    assert_eq!(sheet.shows(&rig), None);
    toy.press(&mut rig, A);
    assert_eq!(sheet.shows(&rig), None, "another epoch has begun");
    rig.assert_alive();
}

#[test]
fn a_key_that_is_late_is_taken_back_without_a_commit_of_the_window() {
    let (mut rig, mut toy, sheet) = learned(Predict::Auto);
    let key = toy.press(&mut rig, C);
    rig.requests();
    rig.say(&ToDisplay::Late { key });
    assert_eq!(story(&mut rig, &toy, sheet), ["sheet: nothing", "sheet: commit"]);
    rig.assert_alive();
}

#[test]
fn regression_a_caret_that_blinks_keeps_a_letter_that_the_program_never_wrote() {
    let (mut rig, mut toy, sheet) = learned(Predict::Auto);
    let number = toy.press(&mut rig, C);
    // The program had the key, and its caret blinks: the app side counts that as an answer.
    toy.invert();
    toy.show(&mut rig, Some(number));
    assert!(sheet.shows(&rig).is_some(), "the letter may still come");
    release_all(&mut rig);
    rig.now += Duration::from_millis(100);
    assert!(rig.connection.next_timeout().is_some_and(|due| due <= rig.now));
    rig.connection.on_timeout(rig.now);
    rig.turn();
    assert_eq!(sheet.shows(&rig), None);
    rig.assert_alive();
}

#[test]
fn a_near_link_and_a_user_who_wants_none_have_no_sheet() {
    for (predict, rtt) in [(Predict::Auto, 20), (Predict::Never, 500)] {
        let mut rig = rig(predict);
        rig.connection.set_round_trip(rig.now, Duration::from_millis(rtt));
        let mut toy = Toy::new(&mut rig);
        toy.learn(&mut rig);
        toy.press(&mut rig, C);
        assert_eq!(Sheet::find(&rig), None, "{predict:?} at {rtt} ms");
        rig.assert_alive();
    }
}

#[test]
fn a_link_that_becomes_far_is_predicted_from_what_was_learned_before() {
    let mut rig = rig(Predict::Auto);
    rig.connection.set_round_trip(rig.now, Duration::from_millis(20));
    let mut toy = Toy::new(&mut rig);
    toy.learn(&mut rig);
    rig.connection.set_round_trip(rig.now, Duration::from_millis(200));
    toy.types(&mut rig, C, 200);
    let sheet = Sheet::find(&rig).expect("it is made with a commit that came anyway");
    toy.press(&mut rig, A);
    assert!(sheet.shows(&rig).is_some());
    rig.assert_alive();
}

#[test]
fn an_answer_that_does_not_come_is_enough_on_a_near_link() {
    let mut rig = rig(Predict::Auto);
    rig.connection.set_round_trip(rig.now, Duration::from_millis(20));
    let mut toy = Toy::new(&mut rig);
    toy.learn(&mut rig);
    toy.types(&mut rig, C, 300);
    let sheet = Sheet::find(&rig).expect("it is made");
    toy.press(&mut rig, A);
    assert!(sheet.shows(&rig).is_some());
    assert_eq!(marked(&rig, sheet), 0, "it is not lined yet");
    rig.now += Duration::from_millis(251);
    // As a loop does it, which tells the round trip first.
    rig.connection.set_round_trip(rig.now, Duration::from_millis(20));
    assert!(rig.connection.next_timeout().is_some_and(|due| due <= rig.now), "it will be");
    rig.connection.on_timeout(rig.now);
    assert!(rig.connection.next_timeout().is_none_or(|due| due > rig.now), "it is done");
    rig.turn();
    release_all(&mut rig);
    assert!(marked(&rig, sheet) > 0);
    rig.assert_alive();
}

/// Pixels of the last row of a letter's cell that are neither paper nor of the caret.
fn marked(rig: &Rig, sheet: Sheet) -> usize {
    let bottom = sheet.at.1 + CELL.1 - 1;
    let pixels = sheet.pixels(rig);
    let left = pixels.iter().map(|(x, ..)| *x).min().unwrap_or(0);
    let row = pixels.iter().filter(|(x, y, _)| *y == bottom && *x < left + CELL.0);
    row.filter(|(_, _, pixel)| pixel[0] > 100).count()
}

#[test]
fn keys_are_counted_by_what_became_of_them() {
    let (mut rig, mut toy, _) = learned(Predict::Auto);
    let figures = |rig: &Rig| rig.connection.predicted().next().expect("of the window").1;
    let before = figures(&rig);
    assert_eq!(before.shown, before.right, "none was wrong");
    assert!(before.right > 0 && before.held > 0, "{before:?}");
    toy.types(&mut rig, C, 100);
    let number = toy.press(&mut rig, A);
    toy.take(B);
    toy.show(&mut rig, Some(number));
    release_all(&mut rig);
    toy.types(&mut rig, A, 100);
    let after = figures(&rig);
    assert_eq!((after.right, after.wrong, after.held), (before.right + 1, 1, before.held + 1));
    assert_eq!(after.shown, after.right + after.wrong);
}

/// Writes down what was done for which surface.
#[derive(Debug, Default)]
struct Spans(Mutex<Vec<(Stage, WireId, u64, u64)>>);

impl Recorder for Spans {
    fn now(&self) -> HostTime {
        HostTime(0)
    }

    fn record(&self, span: Span) {
        self.0.lock().expect("spans").push((span.stage, span.surface, span.seq, span.bytes));
    }
}

#[test]
fn the_app_side_and_a_trace_hear_nothing_of_predictions() {
    let heard = |predict| -> (Vec<ToApp>, Vec<_>) {
        let spans = Arc::new(Spans::default());
        let probe = Probe::new(Arc::clone(&spans) as Arc<dyn Recorder>);
        let config = Config { predict: Wishes::all(predict), probe, ..Config::default() };
        let mut rig = Rig::configured(GLOBALS, config);
        rig.turn();
        let mut toy = Toy::new(&mut rig);
        toy.learn(&mut rig);
        for code in [A, B, C, RETURN, A] {
            toy.press(&mut rig, code);
        }
        assert_eq!(Sheet::find(&rig).is_some(), predict == Predict::Always);
        let spans = std::mem::take(&mut *spans.0.lock().expect("spans"));
        (rig.take_reported(), spans)
    };
    assert_eq!(heard(Predict::Always), heard(Predict::Never));
}

#[test]
fn what_is_drawn_goes_with_the_keyboard_and_is_not_there_when_it_comes_back() {
    let (mut rig, mut toy, sheet) = learned(Predict::Always);
    toy.press(&mut rig, C);
    rig.requests();
    let surface = Arg::Object(rig.id(toy.surface));
    rig.event(toy.keyboard, "leave", vec![Arg::Uint(2), surface]);
    rig.turn();
    assert_eq!(story(&mut rig, &toy, sheet), ["sheet: gone"]);
    toy.enter(&mut rig);
    for code in [C, A] {
        toy.press(&mut rig, code);
        toy.take(code);
        toy.show(&mut rig, None);
    }
    assert_eq!(Sheet::find(&rig), None, "nothing is known any more");
    rig.assert_alive();
}

#[test]
fn what_is_drawn_goes_with_its_surface() {
    let (mut rig, mut toy, sheet) = learned(Predict::Always);
    toy.press(&mut rig, C);
    rig.requests();
    let surface = toy.surface;
    let objects: Vec<WireId> = vec![WireId(surface.0 + 4), WireId(surface.0 + 2), surface];
    for object in objects {
        rig.request(object, "destroy", vec![]);
    }
    assert!(rig.got.iter().any(|got| got.object == sheet.subsurface && got.request == "destroy"));
    rig.assert_alive();
}

#[test]
fn a_field_for_a_password_ends_it_at_once() {
    let globals: Vec<_> = GLOBALS.iter().copied().chain([("zwp_text_input_manager_v3", 1)]).collect();
    let mut rig =
        Rig::configured(&globals, Config { predict: Wishes::all(Predict::Always), ..Config::default() });
    rig.turn();
    let (manager, seat) = (rig.bind("zwp_text_input_manager_v3"), rig.bind("wl_seat"));
    let input = rig.make(manager, "get_text_input", vec![WireArg::Object(seat)]);
    let mut toy = Toy::new(&mut rig);
    toy.learn(&mut rig);
    let sheet = Sheet::find(&rig).expect("it is made");
    toy.press(&mut rig, C);
    assert!(sheet.shows(&rig).is_some());
    rig.requests();
    rig.request(input, "set_content_type", vec![WireArg::Uint(0), WireArg::Uint(8)]);
    assert_eq!(story(&mut rig, &toy, sheet), ["sheet: gone"]);
    toy.learn(&mut rig);
    toy.press(&mut rig, C);
    assert_eq!(Sheet::find(&rig), None);
    rig.request(input, "set_content_type", vec![WireArg::Uint(0), WireArg::Uint(13)]);
    rig.request(input, "commit", vec![]);
    toy.learn(&mut rig);
    assert!(Sheet::find(&rig).is_some(), "it may be again");
    rig.assert_alive();
}

/// Which key of a new field is the first that is shown, of a program with a text input. What it says of its caret, it
/// says before each content.
fn first_shown(says: impl Fn(u32) -> Option<[i32; 4]>) -> Option<u32> {
    let globals: Vec<_> = GLOBALS.iter().copied().chain([("zwp_text_input_manager_v3", 1)]).collect();
    let config = Config { predict: Wishes::all(Predict::Always), ..Config::default() };
    let mut rig = Rig::configured(&globals, config);
    rig.turn();
    let (manager, seat) = (rig.bind("zwp_text_input_manager_v3"), rig.bind("wl_seat"));
    let input = rig.make(manager, "get_text_input", vec![WireArg::Object(seat)]);
    let mut toy = Toy::new(&mut rig);
    let first = (1..=12u32).find(|typed| {
        let code = [A, B][*typed as usize % 2];
        let number = toy.press(&mut rig, code);
        let shows = Sheet::find(&rig).is_some_and(|sheet| sheet.shows(&rig).is_some());
        toy.take(code);
        if let Some(caret) = says(*typed) {
            rig.request(input, "set_cursor_rectangle", caret.map(WireArg::Int).into());
            rig.request(input, "commit", vec![]);
        }
        rig.now += Duration::from_millis(100);
        toy.show(&mut rig, Some(number));
        release_all(&mut rig);
        shows
    });
    rig.assert_alive();
    first
}

#[test]
fn a_program_that_says_where_its_caret_is_is_predicted_sooner() {
    let learned = first_shown(|_| None).expect("it is shown");
    let told = first_shown(|typed| Some([typed.cast_signed() * 8, 0, 8, 16])).expect("it is shown");
    assert!(told < learned, "{told}, and {learned} where it says nothing");
}

#[test]
fn a_caret_that_is_not_where_the_program_says_changes_nothing() {
    let learned = first_shown(|_| None);
    let (least, most) = (i32::MIN, i32::MAX);
    for lie in
        [[0, 16, 8, 16], [-8, 0, 8, 16], [least; 4], [most; 4], [0, 0, most, 16], [most, 0, 8, 16], [0; 4]]
    {
        assert_eq!(first_shown(|_| Some(lie)), learned, "{lie:?}");
    }
}

#[test]
fn a_button_and_another_state_of_the_window_take_it_back() {
    for event in ["button", "configure"] {
        let (mut rig, mut toy, sheet) = learned(Predict::Always);
        let seat = rig.bind("wl_seat");
        let pointer = rig.make(seat, "get_pointer", vec![]);
        toy.press(&mut rig, C);
        assert!(sheet.shows(&rig).is_some());
        match event {
            "button" => rig.event(rig.id(pointer), event, [1, 0, 272, 1].map(Arg::Uint).into()),
            _ => {
                let toplevel = rig.id(WireId(toy.surface.0 + 4));
                rig.event(toplevel, event, vec![Arg::Int(0), Arg::Int(0), Arg::Array(vec![])]);
            }
        }
        rig.turn();
        assert_eq!(sheet.shows(&rig), None, "{event}");
        rig.assert_alive();
    }
}

#[test]
fn nothing_is_drawn_over_a_surface_whose_pixels_are_not_those_of_the_screen() {
    let (mut rig, mut toy, sheet) = learned(Predict::Always);
    let mut unit = rig.unit(toy.surface, UnitContent::Keep);
    unit.state.push(rig.message(toy.surface, "set_buffer_transform", vec![WireArg::Int(1)]));
    rig.say(&ToDisplay::Unit(unit));
    toy.types(&mut rig, C, 100);
    rig.requests();
    toy.press(&mut rig, A);
    assert_eq!(story(&mut rig, &toy, sheet), [""; 0]);
    rig.assert_alive();
}

/// The program's pixels are shown on so many units from its next commit on.
fn scale(rig: &mut Rig, toy: &Toy, units: [i32; 2]) {
    let viewporter = rig.bind("wp_viewporter");
    let viewport = rig.make(viewporter, "get_viewport", vec![WireArg::Object(toy.surface)]);
    let mut unit = rig.unit(toy.surface, UnitContent::Keep);
    unit.state.push(rig.message(viewport, "set_destination", units.map(WireArg::Int).into()));
    rig.say(&ToDisplay::Unit(unit));
}

/// The viewport that a sheet has, and on how many units that shows it.
fn viewport(rig: &Rig, sheet: Sheet) -> Option<(u32, [i32; 2])> {
    let is_its = |got: &&Got| got.is("wp_viewporter", "get_viewport") && got.uint(1) == sheet.surface;
    let viewport = rig.got.iter().find(is_its)?.uint(0);
    let sizes = rig.got.iter().rev().filter(|got| got.object == viewport && got.request == "set_destination");
    let size = |got: &Got| if let [Arg::Int(x), Arg::Int(y)] = got.args[..] { Some([x, y]) } else { None };
    Some((viewport, sizes.filter_map(size).next()?))
}

/// Two units are three pixels, so the second line, from pixel 16 to 32, is laid over from 15 to 33.
#[test]
fn at_a_fractional_scale_the_sheet_lies_at_whole_units_and_the_letter_to_the_pixel() {
    let mut rig = rig(Predict::Always);
    let mut toy = Toy::new(&mut rig);
    scale(&mut rig, &toy, [128, 32]);
    toy.learn(&mut rig);
    for code in [RETURN, A, B] {
        toy.types(&mut rig, code, 100);
    }
    toy.press(&mut rig, C);
    toy.take(C);
    let sheet = Sheet::find(&rig).expect("it is made");
    let (viewport, size) = viewport(&rig, sheet).expect("it is scaled");
    assert_eq!((sheet.at, size), ((0, 10), [128, 12]));
    let shown = sheet.shows(&rig).expect("the letter");
    let width = shown.pixels.len() / 4 / 18;
    let drawn: Vec<_> = shown.pixels.chunks(4).enumerate().filter(|(_, pixel)| pixel[3] != 0).collect();
    assert_eq!(drawn.len(), 2 * 8 * 16, "the letter, and the caret behind it");
    for (at, pixel) in drawn {
        let place = Rect::new((at % width) as u32, 15 + (at / width) as u32, 1, 1);
        assert_eq!(toy.part(place), pixel, "at {place:?}");
    }
    let surface = Arg::Object(rig.id(toy.surface));
    rig.event(toy.keyboard, "leave", vec![Arg::Uint(2), surface]);
    rig.turn();
    let gone = |object| rig.got.iter().position(|got| got.object == object && got.request == "destroy");
    assert!(gone(viewport).is_some() && gone(viewport) < gone(sheet.surface));
    rig.assert_alive();
}

/// 1.25: 154 units are 192.5 pixels, and 38 are 47.5. What is beyond the last whole unit is not laid over.
#[test]
fn sides_that_a_program_rounds_are_scaled_as_the_compositor_has_said() {
    let globals: Vec<_> = GLOBALS.iter().copied().chain([("wp_fractional_scale_manager_v1", 1)]).collect();
    for preferred in [150, 180] {
        let config = Config { predict: Wishes::all(Predict::Always), ..Config::default() };
        let mut rig = Rig::configured(&globals, config);
        rig.turn();
        let mut toy = Toy::new(&mut rig);
        let manager = rig.bind("wp_fractional_scale_manager_v1");
        let told = rig.make(manager, "get_fractional_scale", vec![WireArg::Object(toy.surface)]);
        rig.event(rig.id(told), "preferred_scale", vec![Arg::Uint(preferred)]);
        rig.turn();
        scale(&mut rig, &toy, [154, 38]);
        toy.learn(&mut rig);
        toy.press(&mut rig, C);
        let size = Sheet::find(&rig).and_then(|sheet| viewport(&rig, sheet)).map(|(_, size)| size);
        assert_eq!(size, (preferred == 150).then_some([152, 16]), "{preferred}");
        rig.assert_alive();
    }
}

#[test]
fn a_surface_that_is_scaled_in_one_direction_alone_has_no_sheet() {
    let mut rig = rig(Predict::Always);
    let mut toy = Toy::new(&mut rig);
    scale(&mut rig, &toy, [192, 24]);
    toy.learn(&mut rig);
    assert_eq!(Sheet::find(&rig), None);
    rig.assert_alive();
}

#[test]
fn a_compositor_that_releases_nothing_gets_two_pictures_and_none_that_is_wrong() {
    let (mut rig, mut toy, sheet) = learned(Predict::Always);
    let first = toy.press(&mut rig, C);
    toy.press(&mut rig, A);
    toy.press(&mut rig, B);
    let pictures = |rig: &mut Rig, toy: &Toy| {
        story(rig, toy, sheet).iter().filter(|word| **word == "sheet: picture").count()
    };
    assert_eq!(pictures(&mut rig, &toy), 2);
    toy.take(B);
    toy.show(&mut rig, Some(first));
    assert_eq!(sheet.shows(&rig), None, "what was drawn is wrong");
    release_all(&mut rig);
    rig.assert_alive();
}

#[test]
fn a_program_of_which_none_are_wanted_has_none() {
    let predict = "always,foot=never".parse().expect("wishes");
    let mut rig = Rig::configured(GLOBALS, Config { predict, ..Config::default() });
    rig.turn();
    let mut toy = Toy::new(&mut rig);
    toy.learn(&mut rig);
    let sheet = Sheet::find(&rig).expect("another program has it");
    rig.requests();
    let toplevel = WireId(toy.surface.0 + 4);
    rig.request(toplevel, "set_app_id", vec![WireArg::Str(Some(b"foot".to_vec()))]);
    assert_eq!(story(&mut rig, &toy, sheet), ["sheet: gone"]);
    toy.learn(&mut rig);
    toy.press(&mut rig, C);
    assert_eq!(Sheet::find(&rig), None);
    rig.assert_alive();
}

#[test]
fn without_subsurfaces_there_is_nothing() {
    let globals: Vec<_> = GLOBALS.iter().copied().filter(|(name, _)| *name != "wl_subcompositor").collect();
    let mut rig =
        Rig::configured(&globals, Config { predict: Wishes::all(Predict::Always), ..Config::default() });
    rig.turn();
    let mut toy = Toy::new(&mut rig);
    toy.learn(&mut rig);
    toy.press(&mut rig, C);
    assert_eq!(Sheet::find(&rig), None);
    rig.assert_alive();
}

#[derive(Clone, Debug)]
enum Deed {
    Press(u32),
    /// The program takes a key other than the one that was pressed, and says that it answers any.
    Show(u32, Option<u64>),
    Late(u64),
    Blank(u64),
    Wait(u64),
    Release,
    Disturb,
}

fn deed() -> impl Strategy<Value = Deed> {
    let code = prop::sample::select(vec![A, B, C, RETURN, 14, 105]);
    let number = || prop_oneof![0u64..60, Just(u64::MAX >> 4)];
    prop_oneof![
        4 => code.clone().prop_map(Deed::Press),
        4 => (code, prop::option::of(number())).prop_map(|(code, answered)| Deed::Show(code, answered)),
        1 => number().prop_map(Deed::Late),
        1 => number().prop_map(Deed::Blank),
        2 => (0u64..400).prop_map(Deed::Wait),
        2 => Just(Deed::Release),
        1 => Just(Deed::Disturb),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A host that paints what it likes and says that it answers what was never asked.
    #[test]
    fn a_hostile_host_gets_one_sheet_and_few_buffers(deeds in prop::collection::vec(deed(), 0..60)) {
        let (mut rig, mut toy, sheet) = learned(Predict::Always);
        let buffers = rig.buffers.len();
        for deed in deeds {
            match deed {
                Deed::Press(code) => {
                    toy.press(&mut rig, code);
                }
                Deed::Show(code, answered) => {
                    toy.take(code);
                    let busy = rig.busy.len() >= 3;
                    if busy {
                        release_all(&mut rig);
                    }
                    toy.show(&mut rig, answered);
                }
                Deed::Late(key) => rig.say(&ToDisplay::Late { key }),
                Deed::Blank(answered) => {
                    release_all(&mut rig);
                    toy.content.fill(&[20, 20, 20, 255]);
                    toy.show(&mut rig, Some(answered));
                }
                Deed::Wait(millis) => {
                    rig.now += Duration::from_millis(millis);
                    if rig.connection.next_timeout().is_some_and(|at| at <= rig.now) {
                        rig.connection.on_timeout(rig.now);
                    }
                    rig.turn();
                }
                Deed::Release => release_all(&mut rig),
                Deed::Disturb => {
                    let toplevel = rig.id(WireId(toy.surface.0 + 4));
                    rig.event(toplevel, "configure", vec![Arg::Int(0), Arg::Int(0), Arg::Array(vec![])]);
                    rig.turn();
                }
            }
            rig.assert_alive();
            // Four of the window's and four of the sheet's.
            prop_assert!(rig.buffers.len() <= buffers.max(8), "{} buffers", rig.buffers.len());
        }
        let made = rig.got.iter().filter(|got| got.is("wl_compositor", "create_surface")).count();
        prop_assert_eq!(made, 0, "more than {:?}", sheet);
        // Nothing is left of what was never answered.
        rig.now += Duration::from_secs(31);
        rig.connection.on_timeout(rig.now);
        rig.turn();
        prop_assert_eq!(sheet.shows(&rig), None);
    }
}
