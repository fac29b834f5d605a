//! Pictures that change all the time.

use std::ops::Range;

use wayferry_pixels::video::{self, Frame};

use super::better::{IDLE, SLOW, rest};
use super::view::Eye;
use super::*;

/// A program, and a display that shows videos or does not.
fn program(video: bool, lossy: Option<u8>) -> (Rig, (u32, u32)) {
    let desk = Rc::new(Desk { video, ..Desk::clone(&desk()) });
    let mut rig = Rig::with_desk(&desk);
    rig.connection = Connection::new(Config { lossy, ..Config::default() }, &desk);
    let window = rig.window();
    rig.flush_with(SLOW);
    (rig, window)
}

fn rig() -> (Rig, (u32, u32)) {
    program(true, Some(75))
}

/// The pixels of a scene that moves, with some grain.
fn scene(time: u64) -> Vec<u8> {
    let mut state = time + 1;
    let pixels = (0..256u64 * 256).flat_map(|index| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (x, y, grain) = (index % 256 + 2 * time, index / 256 + time, state >> 62);
        let level = |value: u64| 40 + (value.wrapping_add(grain) % 340).abs_diff(170) as u8;
        [level(x + y), level(2 * x), level(y), 255]
    });
    pixels.collect()
}

fn commit_scene(rig: &mut Rig, (surface, shm): (u32, u32), time: u64) -> Vec<u8> {
    let pixels = scene(time);
    let buffer = rig.buffer_of(shm, 256, 256, &pixels);
    rig.attach(surface, buffer);
    rig.commit(surface);
    pixels
}

/// Shows one picture after the other, two frames apart; gives the pixels of the last.
fn play(rig: &mut Rig, window: (u32, u32), times: Range<u64>, credit: Credit) -> Vec<u8> {
    let mut pixels = Vec::new();
    for time in times {
        rig.now += FRAME * 2;
        pixels = commit_scene(rig, window, time);
        rig.flush_with(credit);
        rig.units();
    }
    pixels
}

fn frames(update: &Update) -> Vec<Frame> {
    video::split(&update.chunks, update.size).unwrap().0
}

fn length(update: &Update) -> usize {
    update.chunks.iter().map(Vec::len).sum()
}

/// The display side's pixels after all updates so far.
fn shown(rig: &Rig, surface: u32) -> Vec<u8> {
    let wire = rig.connection.objects.wire(surface).unwrap();
    let mut display = crate::display::Screen::new();
    for update in rig.updates.iter().filter(|update| update.surface.0 == wire.0) {
        display.apply(update).unwrap();
    }
    display.pixels().to_vec()
}

/// How far two contents are apart, of 255.
fn distance(ours: &[u8], theirs: &[u8]) -> f64 {
    let sum: u64 = ours.iter().zip(theirs).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / ours.len() as f64
}

#[test]
fn a_picture_that_changes_all_the_time_is_a_video_and_exact_when_it_pauses() {
    let (mut rig, window) = rig();
    play(&mut rig, window, 1..9, SLOW);
    assert!(rig.updates.iter().all(|update| frames(update).is_empty()), "it may stop at once");
    let before = length(rig.updates.last().unwrap());
    let pixels = play(&mut rig, window, 9..20, SLOW);
    let last = rig.updates.last().unwrap();
    let [Frame { video, fourth: 255, .. }] = &frames(last)[..] else { panic!("no video") };
    assert_eq!((video.rect.width, video.rect.height, video.key), (256, 256, false));
    assert!(length(last) * 3 < before, "{} bytes after {before}", length(last));
    let far = distance(&pixels, &shown(&rig, window.0));
    assert!(far > 0.0 && far < 8.0, "{far}");
    let begins = rig.updates.iter().filter(|update| frames(update).iter().any(|frame| frame.video.key));
    assert_eq!(begins.count(), 1);

    rest(&mut rig);
    assert_eq!(shown(&rig, window.0), pixels);
    assert_eq!(rig.connection.videos(), 0, "nothing is kept of it");
    let pixels = play(&mut rig, window, 30..31, SLOW);
    assert!(frames(rig.updates.last().unwrap()).is_empty(), "one picture is no video any more");
    rest(&mut rig);
    assert_eq!(shown(&rig, window.0), pixels);
}

#[test]
fn a_video_lives_on_a_link_that_needs_a_second_for_a_frame() {
    let (mut rig, window) = rig();
    play(&mut rig, window, 1..12, SLOW);
    for time in 20..24 {
        rig.now += Duration::from_secs(1);
        rig.connection.on_timeout(rig.now);
        play(&mut rig, window, time..time + 1, SLOW);
        let last = frames(rig.updates.last().unwrap());
        assert!(last.len() == 1 && !last[0].video.key);
    }
}

#[test]
fn a_display_that_cannot_show_videos_gets_no_more_of_them() {
    let (mut rig, window) = rig();
    let surface = rig.connection.objects.wire(window.0).unwrap();
    let begun = |rig: &Rig| rig.updates.iter().flat_map(frames).filter(|frame| frame.video.key).count();
    for time in 1..8 {
        play(&mut rig, window, 20 * time..20 * time + 19, SLOW);
        rig.tell(&ToApp::Refresh { surface });
    }
    assert_eq!(begun(&rig), 3);
    let pixels = play(&mut rig, window, 300..301, SLOW);
    rest(&mut rig);
    assert_eq!(shown(&rig, window.0), pixels);
}

/// Whether a viewer gets the frames of a video that it saw begin, and what was encoded for it alone.
fn shared_video(video: bool) -> (bool, u64) {
    let (mut rig, _) = rig();
    let (surface, _, _, shm) = rig.mapped();
    let mut eye = Eye::blind(video);
    eye.settle(&mut rig);
    let before = eye.view.counts();
    assert_eq!((before.own, eye.view.kept()), (1, 0));
    for time in 0..60 {
        rig.now += FRAME * 2;
        commit_scene(&mut rig, (surface, shm), time);
        rig.flush_with(SLOW);
        rig.units();
        eye.turn(&mut rig);
        eye.answer(&rig);
    }
    let videos = rig.updates.iter().filter(|update| !frames(update).is_empty()).count();
    assert!(videos > 10, "{videos} frames");
    (eye.view.kept() == 0, eye.view.counts().own - before.own)
}

#[test]
fn a_video_is_encoded_once_for_all_that_saw_it_begin_and_can_show_it() {
    assert_eq!(shared_video(true), (true, 0));
    let (shares, own) = shared_video(false);
    assert!(!shares && own > 10, "{shares}: {own} pictures");
}

#[test]
fn without_a_display_that_shows_videos_or_a_rate_there_are_none() {
    for (video, rate, lossy) in
        [(false, SLOW.rate, Some(75)), (true, None, Some(75)), (true, SLOW.rate, None)]
    {
        let (mut rig, window) = program(video, lossy);
        play(&mut rig, window, 1..20, Credit { rate, ..SLOW });
        assert!(rig.updates.iter().all(|update| frames(update).is_empty()));
        assert!(rig.connection.surfaces[&window.0].painter.videos() == 0);
    }
}

#[test]
fn a_video_begins_anew_when_the_display_lost_it() {
    let (mut rig, window) = rig();
    play(&mut rig, window, 1..12, SLOW);
    let surface = rig.connection.objects.wire(window.0).unwrap();
    rig.tell(&ToApp::Refresh { surface });
    let before = rig.updates.len();
    let pixels = play(&mut rig, window, 20..40, SLOW);
    let again: Vec<bool> =
        rig.updates[before..].iter().flat_map(frames).map(|frame| frame.video.key).collect();
    assert!(rig.updates[before].fresh && again[0] && again[1..].iter().all(|key| !key), "{again:?}");
    assert!(distance(&pixels, &shown(&rig, window.0)) < 8.0);
}

#[test]
fn a_window_of_another_size_or_without_content_keeps_no_videos() {
    for unmap in [false, true] {
        let (mut rig, window) = rig();
        play(&mut rig, window, 1..12, SLOW);
        assert!(rig.connection.surfaces[&window.0].painter.videos() > 0);
        let other = if unmap { 0 } else { rig.buffer(window.1, 300, 300, 7) };
        rig.attach(window.0, other);
        rig.commit(window.0);
        rig.now += FRAME * 2;
        rig.flush_with(SLOW);
        rig.units();
        assert!(rig.connection.surfaces[&window.0].painter.videos() == 0);
        let pixels = play(&mut rig, window, 20..21, SLOW);
        assert!(rig.updates.last().unwrap().fresh);
        rest(&mut rig);
        assert_eq!(shown(&rig, window.0), pixels);
    }
}

#[test]
fn frames_that_a_thread_makes_leave_when_they_are_there() {
    let desk = Rc::new(Desk { video: true, ..Desk::clone(&desk()) });
    let mut rig = Rig::with_desk(&desk);
    rig.connection = Connection::new(Config { lossy: Some(75), threads: 2, ..Config::default() }, &desk);
    let window = rig.window();
    rig.flush_with(SLOW);
    let (mut pixels, mut waited) = (Vec::new(), 0);
    for time in 1..30 {
        rig.now += FRAME * 2;
        pixels = commit_scene(&mut rig, window, time);
        rig.flush_with(SLOW);
        while rig.connection.making_due().is_some() {
            assert!(rig.connection.next_timeout() > Some(rig.now), "it does not spin");
            waited += 1;
            std::thread::yield_now();
            rig.now += Duration::from_micros(1);
            rig.flush_with(SLOW);
        }
        assert!(!rig.units().is_empty(), "a unit for each commit");
    }
    assert!(waited > 0, "no thread was waited for");
    assert_eq!(frames(rig.updates.last().unwrap()).len(), 1);
    assert!(distance(&pixels, &shown(&rig, window.0)) < 8.0);
    rest(&mut rig);
    assert_eq!(shown(&rig, window.0), pixels);
}

// x264 makes noise as small as it is told, so it may be a video.
#[cfg(not(feature = "gpl"))]
#[test]
fn noise_is_no_video_for_long() {
    let (mut rig, window) = rig();
    let begun = |rig: &Rig| rig.updates.iter().flat_map(frames).filter(|frame| frame.video.key).count();
    let mut state = 1u64;
    let mut play = |rig: &mut Rig, count: usize| {
        for _ in 0..count {
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            let pixels: Vec<u8> = (0..256 * 256).flat_map(|_| [random(), random(), random(), 255]).collect();
            rig.now += FRAME * 2;
            let buffer = rig.buffer_of(window.1, 256, 256, &pixels);
            rig.attach(window.0, buffer);
            rig.commit(window.0);
            rig.flush_with(SLOW);
            rig.units();
        }
    };
    play(&mut rig, 60);
    assert_eq!(begun(&rig), 1);
    let last = rig.updates.iter().rposition(|update| !frames(update).is_empty()).unwrap();
    assert!(last < 16, "frames up to update {last}");
    rig.now += Duration::from_secs(31);
    play(&mut rig, 20);
    assert_eq!(begun(&rig), 2, "it may be another picture by now");
}

#[test]
fn an_update_with_a_frame_stays() {
    let (mut rig, window) = rig();
    play(&mut rig, window, 1..9, SLOW);
    assert!(rig.connection.surfaces[&window.0].sent.last().is_some());
    play(&mut rig, window, 9..12, SLOW);
    assert_eq!(frames(rig.updates.last().unwrap()).len(), 1);
    assert!(rig.connection.surfaces[&window.0].sent.last().is_none());
    rig.now += FRAME * 2;
    commit_scene(&mut rig, window, 50);
    let mut credit = SLOW;
    rig.connection
        .flush(rig.now, Turn::Rest, &mut credit, &mut |_, update| panic!("{update:?} is wanted back"));
    rig.collect();
    assert!(rig.sent.iter().all(|message| !matches!(message, ToDisplay::Superseded { .. })));
}

#[test]
fn the_less_the_link_takes_the_less_a_frame_has() {
    let bytes = |rate: u64| {
        let (mut rig, window) = rig();
        play(&mut rig, window, 1..40, Credit { rate: Some(rate), ..SLOW });
        let videos = rig.updates.iter().flat_map(frames).skip(10).map(|frame| frame.data.len());
        videos.sum::<usize>()
    };
    let (slow, fast) = (bytes(10_000), bytes(10_000_000));
    assert!(slow * 3 < fast * 2, "{slow} and {fast}");
}

/// What happens to a video.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It plays for so many pictures. What has not left when the next one comes is taken back.
    Play(u64, bool),
    /// It pauses for so many milliseconds, while the link is idle.
    Pause(u64),
    /// The display side has lost the content.
    Lose,
    /// Another program's picture, which is none of the video, is there for a moment.
    Flash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..24u64, any::<bool>()).prop_map(|(count, taking)| Step::Play(count, taking)),
        2 => (0..500u64).prop_map(Step::Pause),
        1 => Just(Step::Lose),
        1 => Just(Step::Flash),
    ]
}

/// The link takes what it takes; what of it the display has not got yet can be had back.
fn flush(rig: &mut Rig, mut credit: Credit, taking: bool) {
    for turn in [Turn::First, Turn::Rest, Turn::Better] {
        let updates = &mut rig.updates;
        rig.connection.flush(rig.now, turn, &mut credit, &mut |surface, seq| {
            let last = updates.pop_if(|last| taking && (last.surface, last.seq) == (surface, seq))?;
            Some(length(&last) as u64)
        });
        rig.collect();
    }
    rig.units();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No update is ever refused, and at rest every pixel is exact.
    #[test]
    fn frames_can_be_shown_after_any_steps(steps in proptest::collection::vec(step(), 1..7)) {
        let (mut rig, window) = rig();
        let (mut time, mut pixels) = (1, commit_scene(&mut rig, window, 0));
        for step in steps {
            match step {
                Step::Play(count, taking) => for _ in 0..count {
                    time += 1;
                    rig.now += FRAME * 2;
                    pixels = commit_scene(&mut rig, window, time);
                    flush(&mut rig, SLOW, taking);
                },
                Step::Pause(ms) => for _ in 0..ms / 20 {
                    rig.now += Duration::from_millis(20);
                    flush(&mut rig, IDLE, false);
                },
                Step::Lose => {
                    let surface = rig.connection.objects.wire(window.0).unwrap();
                    rig.tell(&ToApp::Refresh { surface });
                }
                Step::Flash => {
                    let other = rig.buffer(window.1, 256, 256, time as u8);
                    rig.attach(window.0, other);
                    rig.commit(window.0);
                    rig.now += FRAME * 2;
                    flush(&mut rig, SLOW, true);
                    pixels = commit_scene(&mut rig, window, time);
                }
            }
        }
        rest(&mut rig);
        prop_assert_eq!(shown(&rig, window.0), pixels);
    }
}
