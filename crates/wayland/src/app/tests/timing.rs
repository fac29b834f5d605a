//! `wp_fifo` and `wp_commit_timing` on the app side: what waits, for how long, and what ends the wait.

use super::*;

/// A window whose commits may be timed.
struct Timed {
    surface: u32,
    shm: u32,
    fifo: u32,
    timer: u32,
}

impl Rig {
    fn timed(&mut self) -> Timed {
        let (surface, shm) = self.window();
        let manager = self.bind("wp_fifo_manager_v1");
        let fifo = self.id("wp_fifo_v1");
        self.request(manager, "get_fifo", vec![Arg::NewId(fifo), Arg::Object(surface)]);
        let manager = self.bind("wp_commit_timing_manager_v1");
        let timer = self.id("wp_commit_timer_v1");
        self.request(manager, "get_timer", vec![Arg::NewId(timer), Arg::Object(surface)]);
        self.pass(FRAME);
        self.units();
        self.events();
        Timed { surface, shm, fifo, timer }
    }

    /// Time passes, in turns of a millisecond.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = (self.now + Duration::from_millis(1)).min(end);
            self.connection.on_timeout(self.now);
            self.flush(u64::MAX);
        }
    }

    fn set_timestamp(&mut self, timed: &Timed, at: Time) {
        let (at, second) = (at.since_start().as_nanos() as u64, 1_000_000_000);
        let args = [0, (at / second) as u32, (at % second) as u32].map(Arg::Uint);
        self.request(timed.timer, "set_timestamp", args.into());
    }

    /// Commits a new buffer behind a barrier, as a swap chain does; gives the buffer.
    fn swap(&mut self, timed: &Timed, value: u8) -> u32 {
        let buffer = self.buffer(timed.shm, 4, 4, value);
        self.attach(timed.surface, buffer);
        self.request(timed.fifo, "wait_barrier", vec![]);
        self.request(timed.fifo, "set_barrier", vec![]);
        self.commit(timed.surface);
        buffer
    }

    /// A synchronised subsurface, and its `wl_subsurface`.
    fn child_of(&mut self, timed: &Timed) -> (u32, u32) {
        let (compositor, subcompositor) = (self.bind("wl_compositor"), self.bind("wl_subcompositor"));
        let (child, subsurface) = (self.surface(compositor), self.id("wl_subsurface"));
        let args = vec![Arg::NewId(subsurface), Arg::Object(child), Arg::Object(timed.surface)];
        self.request(subcompositor, "get_subsurface", args);
        (child, subsurface)
    }

    /// The pixels of a surface that has content.
    pub(super) fn content(&self, surface: u32) -> &[u8] {
        self.connection.surfaces[&surface].painter.content().unwrap().pixels()
    }

    /// The buffers that came back since.
    pub(super) fn released(&mut self) -> Vec<u32> {
        let events = self.events();
        events.iter().filter(|event| event.name == "release").map(|event| event.object).collect()
    }
}

#[test]
fn regression_a_frame_for_later_is_shown_later() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let at = rig.now + Duration::from_millis(500);
    rig.set_timestamp(&timed, at);
    let buffer = rig.buffer(timed.shm, 4, 4, 9);
    rig.attach(timed.surface, buffer);
    rig.commit(timed.surface);
    rig.pass(Duration::from_millis(499));
    assert!(rig.units().is_empty() && rig.released().is_empty());
    assert_eq!(rig.connection.next_timeout(), Some(at));
    rig.pass(Duration::from_millis(1));
    assert_eq!((rig.units().len(), rig.released()), (1, vec![buffer]));
}

#[test]
fn commits_behind_one_that_waits_are_applied_after_it_and_its_state_with_it() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let at = rig.now + Duration::from_millis(100);
    rig.set_timestamp(&timed, at);
    rig.request(timed.surface, "set_buffer_scale", vec![Arg::Int(2)]);
    rig.commit(timed.surface);
    rig.request(timed.surface, "set_buffer_scale", vec![Arg::Int(4)]);
    rig.commit(timed.surface);
    let scales = |units: Vec<Unit>| {
        let state = units.into_iter().flat_map(|unit| unit.state);
        state.map(|request| request.args).collect::<Vec<_>>()
    };
    rig.pass(Duration::from_millis(99));
    assert_eq!(scales(rig.units()), [[WireArg::Int(0)]; 0]);
    rig.pass(Duration::from_millis(50));
    let last = scales(rig.units());
    assert_eq!(last.last().unwrap(), &[WireArg::Int(4)], "{last:?}");
}

#[test]
fn a_commit_for_the_far_future_waits_for_a_bounded_time() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let at = rig.now + Duration::from_secs(1_000_000);
    rig.set_timestamp(&timed, at);
    rig.commit(timed.surface);
    assert!(rig.units().is_empty());
    rig.pass(Duration::from_secs(10));
    assert_eq!(rig.units().len(), 1);
}

/// N buffers made N × 60 frames a second, and of six queued frames two were shown.
#[test]
fn regression_fifo_commits_are_applied_one_a_tick_and_none_is_dropped() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let buffers: Vec<u32> = (10..16).map(|value| rig.swap(&timed, value)).collect();
    assert_eq!(rig.released(), buffers[..1], "the first finds no barrier");
    for next in 1..=6 {
        rig.pass(FRAME);
        assert_eq!(rig.released(), buffers.get(next..=next).unwrap_or_default(), "tick {next}");
    }
    let units = rig.units();
    assert_eq!(units.len(), 6);
    assert!(units.iter().all(|unit| matches!(unit.content, UnitContent::Update(_))));
}

#[test]
fn fifo_makes_up_for_a_turn_that_came_late() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let (begin, count) = (rig.now, 31);
    (0..count).for_each(|value| {
        rig.swap(&timed, value);
    });
    rig.flush(u64::MAX);
    let mut released = rig.released().len();
    rig.now += Duration::from_millis(20);
    while released < usize::from(count) {
        rig.connection.on_timeout(rig.now);
        rig.flush(u64::MAX);
        rig.units();
        released += rig.released().len();
        rig.now = rig.now.max(rig.connection.next_timeout().unwrap_or(rig.now));
    }
    let took = rig.now.since(begin);
    assert!(took < 31 * FRAME + Duration::from_millis(4), "30 frames took {took:?}");
}

#[test]
fn fifo_waits_for_a_link_that_does_not_keep_up() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let buffers: Vec<u32> = (10..13).map(|value| rig.swap(&timed, value)).collect();
    for _ in 0..100 {
        rig.now += Duration::from_millis(10);
        rig.connection.on_timeout(rig.now);
    }
    assert_eq!(rig.released(), buffers[..1], "the first has not left");
    rig.flush(u64::MAX);
    rig.pass(2 * FRAME);
    assert_eq!(rig.released(), buffers[1..]);
}

#[test]
fn a_commit_that_does_not_wait_passes_a_barrier() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    rig.swap(&timed, 10);
    rig.released();
    let buffer = rig.buffer(timed.shm, 4, 4, 11);
    rig.attach(timed.surface, buffer);
    rig.commit(timed.surface);
    assert_eq!(rig.released(), [buffer]);
}

#[test]
fn a_child_that_is_synchronised_waits_with_its_parent() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let (child, _) = rig.child_of(&timed);
    let at = rig.now + Duration::from_millis(50);
    let mut frames = Vec::new();
    for value in [1, 2] {
        let buffer = rig.buffer(timed.shm, 2, 2, value);
        rig.attach(child, buffer);
        rig.commit(child);
        if value == 1 {
            rig.set_timestamp(&timed, at);
        }
        rig.commit(timed.surface);
        frames.push(buffer);
    }
    assert_eq!(rig.released(), frames[..1], "what was committed before anything waited is read already");
    rig.pass(Duration::from_millis(100));
    assert_eq!(rig.released(), frames[1..]);
    // The later commits of both wait no longer than the first: one unit may stand for all.
    assert!(rig.units().iter().any(|unit| !unit.children.is_empty()));
    assert_eq!(rig.content(child), [2; 16]);
}

/// The parent's next commit found nothing that waits, and the child's was for one that waits: never shown, and older
/// pixels replaced newer ones with the one after that.
#[test]
fn regression_a_childs_commit_is_applied_with_the_last_that_it_waited_behind() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let (child, _) = rig.child_of(&timed);
    let at = rig.now + Duration::from_millis(50);
    rig.set_timestamp(&timed, at);
    rig.commit(timed.surface);
    let (buffer, frame) = (rig.buffer(timed.shm, 2, 2, 2), rig.frame(child));
    rig.attach(child, buffer);
    rig.commit(child);
    assert_eq!(rig.released(), []);
    rig.pass(Duration::from_millis(100));
    rig.commit(timed.surface);
    rig.pass(Duration::from_millis(100));
    let told = names(&rig.events());
    assert!(told.contains(&(buffer, "release")) && told.contains(&(frame, "done")), "{told:?}");
    assert_eq!(rig.content(child), [2; 16]);
    let newer = rig.buffer(timed.shm, 2, 2, 3);
    rig.attach(child, newer);
    rig.commit(child);
    let at = rig.now + Duration::from_millis(50);
    rig.set_timestamp(&timed, at);
    rig.commit(timed.surface);
    rig.pass(Duration::from_millis(100));
    assert_eq!(rig.content(child), [3; 16], "it does not go back");
}

#[test]
fn a_destroyed_childs_commit_reaches_no_other_surface() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let (child, subsurface) = rig.child_of(&timed);
    let at = rig.now + Duration::from_millis(50);
    rig.set_timestamp(&timed, at);
    rig.commit(timed.surface);
    let buffer = rig.buffer(timed.shm, 2, 2, 2);
    rig.attach(child, buffer);
    rig.commit(child);
    rig.pass(Duration::from_millis(100));
    let (compositor, wire) = (rig.bind("wl_compositor"), rig.connection.objects.name(child).unwrap());
    rig.request(subsurface, "destroy", vec![]);
    rig.request(child, "destroy", vec![]);
    rig.tell(&ToApp::Deleted(wire));
    assert!(rig.released().contains(&buffer));
    // The same id.
    rig.request(compositor, "create_surface", vec![Arg::NewId(child)]);
    let at = rig.now + Duration::from_millis(50);
    rig.set_timestamp(&timed, at);
    rig.commit(timed.surface);
    rig.pass(Duration::from_millis(100));
    assert!(!rig.connection.surfaces[&child].mapped());
}

#[test]
fn what_builds_on_a_commit_that_waits_has_it_applied() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let at = rig.now + Duration::from_millis(50);
    rig.set_timestamp(&timed, at);
    let manager = rig.bind("wp_content_type_manager_v1");
    let kind = rig.id("wp_content_type_v1");
    rig.request(manager, "get_surface_content_type", vec![Arg::NewId(kind), Arg::Object(timed.surface)]);
    rig.commit(timed.surface);
    assert!(rig.units().is_empty());
    rig.request(kind, "destroy", vec![]);
    assert_eq!(rig.units().len(), 1);
}

#[test]
fn a_destroyed_surface_gives_back_what_waited() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let buffers: Vec<u32> = (10..13).map(|value| rig.swap(&timed, value)).collect();
    let frame = rig.frame(timed.surface);
    rig.swap(&timed, 13);
    rig.request(buffers[1], "destroy", vec![]);
    rig.events();
    rig.request(timed.surface, "destroy", vec![]);
    let told = names(&rig.events());
    assert!(told.contains(&(buffers[2], "release")) && !told.contains(&(buffers[1], "release")), "{told:?}");
    assert!(!told.iter().any(|(_, name)| *name == "error"));
    assert!(rig.connection.objects.of(frame).is_none());
    rig.pass(Duration::from_secs(1));
    assert!(rig.connection.end().is_none());
}

#[test]
fn fifo_goes_on_without_a_display() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let buffers: Vec<u32> = (10..16).map(|value| rig.swap(&timed, value)).collect();
    rig.connection.detach(rig.now);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.released(), buffers);
}

#[test]
fn too_many_waiting_commits_are_applied_early() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let at = rig.now + Duration::from_secs(5);
    rig.set_timestamp(&timed, at);
    for _ in 0..=super::super::timing::MAX_QUEUED {
        rig.commit(timed.surface);
    }
    rig.flush(u64::MAX);
    assert_eq!(rig.units().len(), 1);
    assert!(rig.connection.end().is_none());
}

/// What a program is told that does something wrong: `wrong` gives the object that is to be named.
fn error_of(wrong: impl Fn(&mut Rig, &Timed) -> u32) -> u32 {
    let mut rig = Rig::new();
    let timed = rig.timed();
    let object = wrong(&mut rig, &timed);
    let (named, code) = rig.error().expect("an error");
    assert_eq!(named, object);
    code
}

#[test]
fn regression_a_second_timer_or_fifo_is_an_error() {
    for (manager, request, made) in [
        ("wp_commit_timing_manager_v1", "get_timer", "wp_commit_timer_v1"),
        ("wp_fifo_manager_v1", "get_fifo", "wp_fifo_v1"),
    ] {
        let code = error_of(|rig, timed| {
            let manager = rig.bind(manager);
            let id = rig.id(made);
            rig.request(manager, request, vec![Arg::NewId(id), Arg::Object(timed.surface)]);
            manager
        });
        assert_eq!(code, 0, "already exists");
    }
}

#[test]
fn regression_a_wrong_timestamp_is_an_error() {
    let code = error_of(|rig, timed| {
        rig.request(timed.timer, "set_timestamp", [0, 5, 1_000_000_000].map(Arg::Uint).into());
        timed.timer
    });
    assert_eq!(code, 0, "invalid timestamp");
    let code = error_of(|rig, timed| {
        rig.set_timestamp(timed, rig.now);
        rig.set_timestamp(timed, rig.now);
        timed.timer
    });
    assert_eq!(code, 1, "timestamp exists");
}

#[test]
fn regression_timing_of_a_destroyed_surface_is_an_error() {
    let code = error_of(|rig, timed| {
        rig.request(timed.surface, "destroy", vec![]);
        rig.set_timestamp(timed, rig.now);
        timed.timer
    });
    assert_eq!(code, 2);
    for request in ["set_barrier", "wait_barrier"] {
        let code = error_of(|rig, timed| {
            rig.request(timed.surface, "destroy", vec![]);
            rig.request(timed.fifo, request, vec![]);
            timed.fifo
        });
        assert_eq!(code, 0, "{request}");
    }
}

#[test]
fn another_timer_may_follow_one_that_was_destroyed() {
    let mut rig = Rig::new();
    let timed = rig.timed();
    rig.request(timed.timer, "destroy", vec![]);
    let manager = rig.bind("wp_commit_timing_manager_v1");
    let id = rig.id("wp_commit_timer_v1");
    rig.request(manager, "get_timer", vec![Arg::NewId(id), Arg::Object(timed.surface)]);
    assert!(rig.error().is_none());
}
