//! When commits leave: pace, budget, order, what replaces what.

use super::*;

#[test]
fn commits_within_a_frame_fold_into_one_unit() {
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    rig.units();
    let frames: Vec<u32> = (2..5)
        .map(|value| {
            let buffer = rig.buffer(shm, 4, 4, value);
            rig.attach(surface, buffer);
            let frame = rig.frame(surface);
            rig.commit(surface);
            frame
        })
        .collect();
    rig.flush(u64::MAX);
    assert_eq!(rig.units().len(), 0, "a unit left less than a frame ago");
    rig.events();
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let units = rig.units();
    assert_eq!(units.len(), 1);
    assert!(rig.events().is_empty(), "the next commit would find the interval taken");
    rig.now += FRAME;
    rig.flush(u64::MAX);
    let done: Vec<u32> =
        rig.events().iter().filter(|event| event.name == "done").map(|event| event.object).collect();
    assert_eq!(done, frames);
    assert_eq!(rig.updates.len(), 2, "the newest pixels only");
}

#[test]
fn without_budget_content_waits_but_a_map_does_not() {
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    assert_eq!(rig.units().len(), 1, "mapping leaves at once");
    rig.now += FRAME;
    let buffer = rig.buffer(shm, 128, 128, 2);
    rig.attach(surface, buffer);
    let frame = rig.frame(surface);
    rig.commit(surface);
    rig.flush(0);
    assert!(rig.units().is_empty());
    assert!(!names(&rig.events()).contains(&(frame, "done")), "the frame callback is the back-pressure");
    let stranded = Some(rig.now + Duration::from_secs(2));
    assert_eq!(rig.connection.next_timeout(), stranded, "only budget can wake it before");
    rig.flush(1);
    assert_eq!(rig.units().len(), 1);
    rig.now += FRAME;
    rig.flush(1);
    assert!(names(&rig.events()).contains(&(frame, "done")));
}

/// A small change passes when large content is on its way; large content and its frame callback wait.
#[test]
fn without_budget_a_small_change_passes_and_a_large_one_waits() {
    let mut rig = Rig::new();
    let (small, shm) = rig.window();
    let compositor = rig.bind("wl_compositor");
    let large = rig.surface(compositor);
    let paint = |rig: &mut Rig, surface, side, value| {
        let buffer = rig.buffer(shm, side, side, value);
        rig.attach(surface, buffer);
        let frame = rig.frame(surface);
        rig.commit(surface);
        frame
    };
    paint(&mut rig, large, 128, 1);
    rig.flush(1);
    rig.units();
    rig.events();
    rig.now += FRAME;
    let small_frame = paint(&mut rig, small, 4, 2);
    let large_frame = paint(&mut rig, large, 128, 2);
    rig.flush(0);
    assert_eq!(rig.units().len(), 1, "the small one");
    rig.now += FRAME;
    rig.flush(0);
    let answered = names(&rig.events());
    assert!(answered.contains(&(small_frame, "done")) && !answered.contains(&(large_frame, "done")));
    rig.flush(1 << 20);
    assert_eq!(rig.units().len(), 1, "the large one");
}

#[test]
fn a_frame_far_beyond_the_budget_does_not_hold_up_a_small_change() {
    let mut rig = Rig::new();
    let raw = Config { compression: Compression::None, ..Config::default() };
    rig.connection = Connection::new(raw, &desk());
    let (small, shm) = rig.window();
    let compositor = rig.bind("wl_compositor");
    let large = rig.surface(compositor);
    let paint = |rig: &mut Rig, surface, side, value| {
        rig.now += FRAME;
        let buffer = rig.grainy(shm, side, value);
        rig.attach(surface, buffer);
        rig.commit(surface);
    };
    paint(&mut rig, large, 512, 1);
    paint(&mut rig, large, 512, 2);
    rig.now += FRAME;
    rig.flush(1);
    rig.units();
    paint(&mut rig, small, 4, 1);
    rig.flush(0);
    assert_eq!(rig.units().len(), 1);
    // What is small adds up all the same.
    for value in 0..64 {
        paint(&mut rig, small, 64, value);
        rig.flush(0);
    }
    assert!(rig.units().len() < 32);
}

/// All pixels of a surface change.
fn paint(rig: &mut Rig, surface: u32, shm: u32, side: i32, value: u8) {
    let buffer = rig.buffer(shm, side, side, value);
    rig.attach(surface, buffer);
    rig.commit(surface);
}

/// A window each, the first with the keyboard in it; all have shown something of this side length.
fn windows<const N: usize>(rig: &mut Rig, side: i32) -> ([u32; N], u32) {
    let compositor = rig.bind("wl_compositor");
    let shm = rig.bind("wl_shm");
    let seat = rig.bind("wl_seat");
    let keyboard = rig.id("wl_keyboard");
    rig.request(seat, "get_keyboard", vec![Arg::NewId(keyboard)]);
    let surfaces = [(); N].map(|()| rig.surface(compositor));
    for surface in surfaces {
        paint(rig, surface, shm, side, 1);
        paint(rig, surface, shm, side, 2);
    }
    let enter = tables::event_opcode(tables::interface("wl_keyboard").unwrap(), "enter").unwrap();
    let wire = |id| rig.connection.objects.wire(id).unwrap();
    let args = vec![WireArg::Uint(1), WireArg::Object(wire(surfaces[0])), WireArg::Array(vec![])];
    let event = Request { object: wire(keyboard), opcode: enter, args };
    rig.tell(&ToApp::Event(event));
    rig.flush(u64::MAX);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    rig.now += FRAME;
    rig.units();
    (surfaces, shm)
}

fn left(rig: &mut Rig) -> Vec<WireId> {
    rig.units().iter().map(|unit| unit.surface).collect()
}

#[test]
fn what_the_user_attends_to_goes_before_what_is_small_and_that_before_the_rest() {
    let mut rig = Rig::new();
    let ([attended, small, other], shm) = windows::<3>(&mut rig, 128);
    paint(&mut rig, other, shm, 128, 3);
    paint(&mut rig, small, shm, 4, 3);
    paint(&mut rig, small, shm, 4, 4);
    paint(&mut rig, attended, shm, 128, 3);
    let order = [attended, small, other].map(|id| rig.connection.objects.wire(id).unwrap());
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(left(&mut rig), order);
}

/// The budget lasts for one picture at a time, and the window with the keyboard in it always has a new one.
#[test]
fn no_window_waits_for_longer_than_a_quarter_of_a_second_behind_the_one_that_is_attended_to() {
    let mut rig = Rig::new();
    let ([attended, other], shm) = windows::<2>(&mut rig, 128);
    let (first, second) =
        (rig.connection.objects.wire(attended).unwrap(), rig.connection.objects.wire(other).unwrap());
    paint(&mut rig, other, shm, 128, 3);
    let start = rig.now;
    let mut shown = Vec::new();
    while !shown.contains(&second) {
        paint(&mut rig, attended, shm, 128, shown.len() as u8 + 4);
        rig.now += FRAME;
        rig.flush(1);
        shown.extend(left(&mut rig));
    }
    let waited = rig.now.since(start);
    assert!(waited <= Duration::from_millis(250) + FRAME, "{waited:?}");
    assert!(shown.iter().filter(|surface| **surface == first).count() > 10, "it had its turns: {shown:?}");
}

#[test]
fn pixels_of_a_hidden_window_wait_until_it_is_seen_but_an_acknowledged_size_does_not() {
    let mut rig = Rig::new();
    let ([window], shm) = windows::<1>(&mut rig, 128);
    let (role, _) = rig.toplevel(window);
    let wire = rig.connection.objects.wire(window).unwrap();
    rig.tell(&ToApp::Visible { surface: wire, visible: false });
    rig.units();
    paint(&mut rig, window, shm, 128, 3);
    rig.now += 100 * FRAME;
    rig.flush(u64::MAX);
    assert_eq!(
        (left(&mut rig), rig.connection.next_timeout().is_some_and(|due| due <= rig.now)),
        (vec![], false)
    );
    rig.request(role, "set_window_geometry", [0, 0, 9, 9].map(Arg::Int).into());
    rig.commit(window);
    rig.flush(u64::MAX);
    assert_eq!(left(&mut rig), [wire]);
    paint(&mut rig, window, shm, 128, 4);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(left(&mut rig), []);
    rig.tell(&ToApp::Visible { surface: wire, visible: true });
    rig.flush(u64::MAX);
    assert_eq!(left(&mut rig), [wire]);
}

#[test]
fn the_whole_content_leaves_again_when_it_is_wanted() {
    let mut rig = Rig::new();
    let ([window], shm) = windows::<1>(&mut rig, 8);
    paint(&mut rig, window, shm, 8, 5);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    rig.units();
    let wire = rig.connection.objects.wire(window).unwrap();
    rig.tell(&ToApp::Refresh { surface: wire });
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(left(&mut rig), [wire]);
    let update = rig.updates.last().unwrap();
    let mut shown = wayferry_pixels::Content::new(update.size, update.format);
    wayferry_pixels::Decoder::new().apply(&mut shown, &update.chunks).unwrap();
    assert_eq!((update.fresh, shown.pixels()), (true, &[5; 256][..]));
    // Of a surface that has nothing, or is gone, there is nothing to send.
    rig.tell(&ToApp::Refresh { surface: WireId(wire.0 + 1000) });
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(left(&mut rig), []);
    assert!(rig.connection.end().is_none());
}

/// The link takes nothing: what is replaced is held at the display, whose patience is bounded.
#[test]
fn a_window_that_never_pauses_does_not_replace_its_commits_without_end() {
    let mut rig = Rig::new();
    let ([window], shm) = windows::<1>(&mut rig, 128);
    rig.sent.clear();
    for value in 0..200 {
        paint(&mut rig, window, shm, 128, value);
        rig.now += FRAME;
        for (turn, content) in [(Turn::First, u64::from(value == 0)), (Turn::Rest, 0)] {
            let credit = Credit { content, ..Credit::default() };
            rig.connection.flush(rig.now, turn, &mut credit.clone(), &mut |_, _| Some(50_000));
        }
        rig.collect();
    }
    let replaced = rig.sent.iter().filter(|message| matches!(message, ToDisplay::Superseded { .. })).count();
    assert!((1..64).contains(&replaced), "{replaced}");
    assert!(rig.connection.end().is_none());
    // A small commit of another window passes all the same.
    let compositor = rig.bind("wl_compositor");
    let small = rig.surface(compositor);
    paint(&mut rig, small, shm, 4, 1);
    rig.units();
    paint(&mut rig, small, shm, 4, 2);
    rig.now += FRAME;
    rig.flush(0);
    assert_eq!(left(&mut rig), [rig.connection.objects.wire(small).unwrap()]);
}

/// An animation goes on while the link is silent: when it is back, the user is not shown all of what has happened.
#[test]
fn few_commits_leave_while_none_is_applied() {
    let mut rig = Rig::new();
    let ([window], shm) = windows::<1>(&mut rig, 4);
    let mut left = 0;
    let mut frames = |rig: &mut Rig, count: u64| {
        let mut units = Vec::new();
        for _ in 0..count {
            left += 1;
            paint(rig, window, shm, 4, left as u8);
            rig.now += FRAME;
            rig.flush(u64::MAX);
            units.extend(rig.unapplied_units());
        }
        units
    };
    assert!(frames(&mut rig, 6).len() >= 5, "a tenth of a second is no silence");
    let units = frames(&mut rig, 174);
    assert!((25..50).contains(&units.len()), "{} in three seconds", units.len());
    // Something else is heard, as after an outage: the newest need not wait for what was lost before it.
    rig.now += FRAME;
    let credit = Credit { heard: Some(rig.now), ..Credit::ENDLESS };
    paint(&mut rig, window, shm, 4, 0xfe);
    rig.connection.flush(rig.now, Turn::Rest, &mut credit.clone(), &mut ());
    rig.collect();
    let units = rig.unapplied_units();
    assert_eq!(units.len(), 1);
    let last = units.last().unwrap();
    paint(&mut rig, window, shm, 4, 0xff);
    rig.now += FRAME;
    rig.tell(&ToApp::Applied { surface: last.surface, unit: last.number });
    rig.flush(u64::MAX);
    assert_eq!(rig.units().len(), 1, "the newest leaves at once");
    assert!(frames(&mut rig, 6).len() >= 5);
}

/// The display side holds what waits for pixels, and ends a program that makes it hold too much.
#[test]
fn regression_a_long_silence_leaves_few_commits_behind() {
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    let wire = rig.connection.objects.wire(surface).unwrap();
    let mut units = rig.unapplied_units();
    for round in 0..1_500_u32 {
        let buffer = rig.buffer(shm, 4, 4, round as u8);
        rig.attach(surface, buffer);
        rig.commit(surface);
        rig.now += 3 * FRAME;
        rig.flush(u64::MAX);
        units.extend(rig.unapplied_units());
    }
    assert_eq!(units.len(), 64, "a minute and more without a word");
    let unit = units.last().unwrap().number;
    rig.tell(&ToApp::Applied { surface: wire, unit });
    rig.flush(u64::MAX);
    assert_eq!(rig.units().len(), 1, "and then the newest");
}

/// A program that waits for its frame callback before it goes on must not wait for as long as the link is away.
#[test]
fn regression_a_program_draws_once_a_second_while_the_link_is_silent() {
    let mut rig = Rig::new();
    let ([window], shm) = windows::<1>(&mut rig, 128);
    let mut drawn = 0_u32;
    let mut answered = true;
    let mut callback = 0;
    for _ in 0..60 * 60 {
        if answered {
            drawn += 1;
            callback = rig.frame(window);
            paint(&mut rig, window, shm, 128, drawn as u8);
        }
        rig.now += FRAME;
        // All that the link takes is the first picture.
        let credit = Credit { content: u64::from(drawn == 1), ..Credit::default() };
        rig.connection.flush(rig.now, Turn::Rest, &mut credit.clone(), &mut ());
        rig.unapplied_units();
        rig.connection.on_timeout(rig.now);
        answered = names(&rig.events()).contains(&(callback, "done"));
    }
    assert!((50..70).contains(&drawn), "{drawn} in a minute");
}

/// A program in virtual time, and when its commits came and left.
struct Play {
    rig: Rig,
    window: u32,
    shm: u32,
    /// Commits so far.
    drawn: u32,
    /// When the newest commit came.
    came: Time,
    /// For each unit: when the newest commit in it came, and when it left.
    left: Vec<(Time, Time)>,
    /// For each callback: when it was answered.
    answered: Vec<Time>,
    /// How far the display is, and when its compositor begins frames.
    display: Option<(Duration, Duration)>,
}

impl Play {
    fn new() -> Self {
        let mut rig = Rig::new();
        let ([window], shm) = windows::<1>(&mut rig, 8);
        let (came, left, answered) = (rig.now, Vec::new(), Vec::new());
        Self { rig, window, shm, drawn: 0, came, left, answered, display: None }
    }

    fn draw(&mut self) -> u32 {
        self.drawn += 1;
        self.came = self.rig.now;
        let callback = self.rig.frame(self.window);
        paint(&mut self.rig, self.window, self.shm, 8, self.drawn as u8);
        callback
    }

    /// A turn of the run loop. Gives the callbacks that are answered.
    fn turn(&mut self) -> Vec<u32> {
        let now = self.rig.now;
        self.rig.connection.on_timeout(now);
        let rtt = self.display.map_or(Duration::ZERO, |(delay, _)| 2 * delay);
        self.rig.flush_with(Credit { content: u64::MAX, rtt, ..Credit::default() });
        if let Some((_, phase)) = self.display {
            let frames = (now.since_start() - phase).as_nanos() / FRAME.as_nanos();
            let time_ns = HostTime::new(phase + FRAME * frames as u32).0;
            self.rig.tell(&ToApp::Beat { time_ns });
        }
        self.left.extend(self.rig.units().iter().map(|_| (self.came, now)));
        let done: Vec<u32> =
            self.rig.events().iter().filter(|event| event.name == "done").map(|event| event.object).collect();
        self.answered.extend(done.iter().map(|_| now));
        done
    }

    /// Runs a program for `frames` frames that draws for so long after each callback. The run loop is late by up to
    /// `late`.
    fn by_callbacks(&mut self, frames: u32, draws: Duration, late: Duration) {
        let (end, mut ready) = (self.rig.now + FRAME * frames, self.rig.now);
        let mut callback = 0;
        while self.rig.now < end {
            let due = self.rig.connection.next_timeout().unwrap_or(end).min(ready).min(end);
            let late = late * (self.drawn * 7 % 10) / 10;
            self.rig.now = self.rig.now.max(due + late);
            if ready <= self.rig.now {
                callback = self.draw();
                ready = end + FRAME;
            }
            if self.turn().contains(&callback) {
                ready = self.rig.now + draws;
            }
        }
    }

    /// The longest that a commit has waited.
    fn longest_wait(&self) -> Duration {
        self.left.iter().map(|(came, left)| *left - *came).max().unwrap_or(Duration::MAX)
    }
}

/// Each commit waited for a whole period: it was due a period after the last one, and so was the callback.
#[test]
fn regression_what_is_drawn_with_each_callback_leaves_at_once_at_the_full_rate() {
    for draws in
        [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(8), Duration::from_millis(15)]
    {
        let mut play = Play::new();
        play.by_callbacks(600, draws, Duration::ZERO);
        assert_eq!(play.longest_wait(), Duration::ZERO, "drawing for {draws:?}");
        assert!((599..=601).contains(&play.left.len()), "{} units, drawing for {draws:?}", play.left.len());
    }
}

#[test]
fn a_run_loop_that_is_late_neither_loses_frames_nor_lets_a_commit_wait() {
    let mut play = Play::new();
    play.by_callbacks(600, Duration::from_millis(2), Duration::from_millis(5));
    assert_eq!(play.longest_wait(), Duration::ZERO);
    assert!((599..=601).contains(&play.left.len()), "{} units", play.left.len());
}

/// One that misses its tick waits for the next, as at any compositor.
#[test]
fn a_program_that_takes_longer_than_a_frame_draws_with_each_second_tick() {
    let mut play = Play::new();
    play.by_callbacks(600, Duration::from_millis(20), Duration::ZERO);
    assert_eq!(play.longest_wait(), Duration::ZERO);
    assert!((299..=301).contains(&play.left.len()), "{} units", play.left.len());
}

#[test]
fn a_program_that_never_waits_has_its_newest_commit_leave_at_each_tick() {
    let mut play = Play::new();
    // Each commit has a pool of its own, of which a program may have so many.
    let (step, end) = (Duration::from_micros(900), play.rig.now + FRAME * 200);
    let mut next = play.rig.now;
    while play.rig.now < end {
        let due = play.rig.connection.next_timeout().unwrap_or(end).min(next);
        play.rig.now = play.rig.now.max(due);
        if next <= play.rig.now {
            play.draw();
            next = play.rig.now + step;
        }
        play.turn();
    }
    assert!(play.longest_wait() <= step, "{:?}", play.longest_wait());
    assert!((200..=202).contains(&play.left.len()), "{} units", play.left.len());
    let apart = |pair: &[(Time, Time)]| pair[1].1 - pair[0].1;
    assert!(play.left.windows(2).skip(2).all(|pair| apart(pair) == FRAME));
}

/// Otherwise it would draw at once, find the interval taken, and have each frame wait from then on.
#[test]
fn the_first_commit_after_a_pause_leaves_at_once_and_its_callback_comes_with_the_next_tick() {
    let mut play = Play::new();
    for pause in [37, 500, 12_345] {
        play.rig.now += Duration::from_millis(pause);
        play.turn();
        (play.left, play.answered) = Default::default();
        let began = play.rig.now;
        play.by_callbacks(60, Duration::from_micros(500), Duration::ZERO);
        assert_eq!(play.left[0], (began, began));
        assert_eq!(play.longest_wait(), Duration::ZERO);
        assert!(play.answered[0] > began && play.answered[0] - began <= FRAME);
    }
}

#[test]
fn ticks_get_into_phase_with_the_compositor_and_the_rate_stays() {
    let (delay, phase) = (Duration::from_millis(20), Duration::from_millis(9));
    let mut play = Play::new();
    play.display = Some((delay, phase));
    play.by_callbacks(900, Duration::from_micros(500), Duration::ZERO);
    assert_eq!(play.longest_wait(), Duration::ZERO);
    // Half a period more or less was gone over.
    assert!((899..=902).contains(&play.left.len()), "{} units", play.left.len());
    let arrives = play.answered.last().unwrap().since_start() + delay;
    let into = Duration::from_nanos(((arrives - phase).as_nanos() % FRAME.as_nanos()) as u64);
    assert!(into.abs_diff(FRAME / 4) < Duration::from_millis(1), "{into:?} into a frame");
}
