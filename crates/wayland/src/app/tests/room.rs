//! A program whose contents are too much together: what waits, what does not, and what ends the wait.

use super::*;

const SIDE: i32 = 8;
const BYTES: u64 = (SIDE * SIDE * 4) as u64;
const SECOND: Duration = Duration::from_secs(1);

/// Windows of one size, and room for three of them.
struct Crowd {
    rig: Rig,
    compositor: u32,
    shm: u32,
    shown: Vec<u32>,
}

impl Crowd {
    fn new() -> Self {
        let mut rig = Rig::new();
        rig.connection.room.limit(3 * BYTES);
        let (compositor, shm) = (rig.bind("wl_compositor"), rig.bind("wl_shm"));
        let mut crowd = Self { rig, compositor, shm, shown: Vec::new() };
        crowd.shown = (1..=3).map(|value| crowd.window(value).0).collect();
        assert_eq!(crowd.rig.units().len(), 3);
        crowd.rig.events();
        crowd
    }

    /// A surface and the buffer that was committed to it.
    fn window(&mut self, value: u8) -> (u32, u32) {
        let surface = self.rig.surface(self.compositor);
        (surface, self.draw(surface, SIDE, value))
    }

    fn draw(&mut self, surface: u32, side: i32, value: u8) -> u32 {
        let buffer = self.rig.buffer(self.shm, side, side, value);
        self.rig.attach(surface, buffer);
        self.rig.commit(surface);
        buffer
    }

    fn pass(&mut self, time: Duration) {
        let end = self.rig.now + time;
        while self.rig.now < end {
            self.rig.now += Duration::from_millis(5);
            self.rig.connection.on_timeout(self.rig.now);
            self.rig.flush(u64::MAX);
        }
    }

    /// The surfaces that units have left of, with content.
    fn left(&mut self) -> Vec<u32> {
        let units = self.rig.units();
        let with = units.iter().filter(|unit| matches!(unit.content, UnitContent::Update(_)));
        with.filter_map(|unit| self.rig.connection.objects.by_wire(unit.surface)).collect()
    }

    fn events_named(&mut self, name: &str) -> Vec<u32> {
        let events = self.rig.events();
        events.iter().filter(|event| event.name == name).map(|event| event.object).collect()
    }

    fn kept(&self) -> u64 {
        self.rig.connection.kept().pixels
    }
}

/// Each surface of a program was given memory here, however many it had: one buffer of its own was enough for all.
#[test]
fn regression_surfaces_without_end_take_memory_without_end() {
    let mut crowd = Crowd::new();
    for value in 4..40 {
        crowd.window(value);
    }
    crowd.pass(SECOND);
    assert_eq!(crowd.rig.connection.end(), None, "it did nothing wrong");
    assert_eq!(crowd.kept(), 3 * BYTES);
    assert_eq!(crowd.left(), []);
    assert_eq!(crowd.events_named("release"), [], "what was not read does not come back");
    assert!(!crowd.rig.connection.stalled(), "only its own requests make room");
}

#[test]
fn what_waits_for_room_is_shown_when_there_is_some() {
    let mut crowd = Crowd::new();
    let (waiting, buffer) = crowd.window(4);
    let unmapped = crowd.shown[0];
    crowd.rig.request(unmapped, "attach", vec![Arg::Object(0), Arg::Int(0), Arg::Int(0)]);
    crowd.rig.commit(unmapped);
    assert!(crowd.rig.connection.next_timeout().is_some_and(|at| at <= crowd.rig.now));
    crowd.pass(FRAME);
    assert_eq!((crowd.left(), crowd.events_named("release")), (vec![waiting], vec![buffer]));
    // The same where a surface goes, and where one gets smaller.
    let (second, _) = crowd.window(5);
    let (third, _) = crowd.window(6);
    crowd.pass(SECOND);
    assert_eq!(crowd.left(), []);
    crowd.rig.request(crowd.shown[1], "destroy", vec![]);
    crowd.pass(FRAME);
    let next = crowd.left();
    assert!(next == [second] || next == [third], "{next:?}");
    let last = if next == [second] { third } else { second };
    crowd.draw(crowd.shown[2], 1, 7);
    crowd.draw(waiting, 1, 8);
    crowd.pass(2 * FRAME);
    assert!(crowd.left().contains(&last));
    assert!(crowd.kept() <= 3 * BYTES);
}

#[test]
fn windows_that_are_shown_go_on_beside_one_that_waits_for_room() {
    let mut crowd = Crowd::new();
    crowd.window(4);
    for value in 5..9 {
        let shown = crowd.shown[0];
        let buffer = crowd.draw(shown, SIDE, value);
        assert_eq!(crowd.events_named("release"), [buffer]);
        crowd.pass(FRAME);
        assert_eq!(crowd.left(), [shown]);
    }
}

/// A program that waits for its frames or its buffers would wait for ever, and with it what could make room.
#[test]
fn a_window_that_waits_for_room_goes_on_drawing_slowly() {
    let mut crowd = Crowd::new();
    let surface = crowd.rig.surface(crowd.compositor);
    let mut last = None;
    let (mut frames, mut drawn) = (0, 0);
    for value in 0..100 {
        let callback = crowd.rig.frame(surface);
        let buffer = crowd.draw(surface, SIDE, value);
        drawn += 1;
        let mut events = Vec::new();
        while !events.contains(&(callback, "done")) {
            crowd.pass(Duration::from_millis(100));
            frames += 1;
            assert!(frames < 11 * drawn, "the frame is not answered");
            events.extend(names(&crowd.rig.events()));
        }
        let released: Vec<u32> =
            events.iter().filter(|(_, name)| *name == "release").map(|(id, _)| *id).collect();
        assert_eq!(released, last.into_iter().collect::<Vec<_>>(), "all but the newest come back");
        last = Some(buffer);
    }
    assert!(frames > 9 * 98, "once a second: {frames}");
    // What is shown in the end is the last.
    crowd.rig.request(crowd.shown[0], "destroy", vec![]);
    crowd.pass(FRAME);
    assert_eq!(crowd.left(), [surface]);
    assert!(
        crowd
            .rig
            .updates
            .last()
            .is_some_and(|update| update.surface.0 == crowd.rig.connection.surfaces[&surface].wire.0)
    );
    assert_eq!(crowd.rig.connection.surfaces[&surface].painter.content().unwrap().pixels()[0], 99);
}

/// Also where commits waited there already that brought something.
#[test]
fn a_window_that_waits_for_room_can_be_unmapped() {
    let mut crowd = Crowd::new();
    let shown = crowd.shown[0];
    crowd.draw(shown, 2 * SIDE, 9);
    crowd.pass(SECOND);
    assert_eq!(crowd.left(), []);
    crowd.rig.request(shown, "attach", vec![Arg::Object(0), Arg::Int(0), Arg::Int(0)]);
    crowd.rig.commit(shown);
    crowd.pass(FRAME);
    assert_eq!(crowd.kept(), 2 * BYTES);
    assert_eq!(crowd.rig.units().last().map(|unit| unit.content), Some(UnitContent::None));
}

#[test]
fn the_room_of_a_surface_is_free_when_it_was_destroyed_while_waiting() {
    let mut crowd = Crowd::new();
    let (waiting, buffer) = crowd.window(4);
    crowd.rig.request(waiting, "destroy", vec![]);
    crowd.pass(FRAME);
    assert_eq!(crowd.events_named("release"), [buffer]);
    assert_eq!((crowd.kept(), crowd.rig.connection.end()), (3 * BYTES, None));
}

/// Order demands what there is no room for: once, but not without end.
#[test]
fn a_program_that_has_order_demand_ever_more_room_is_ended() {
    let mut crowd = Crowd::new();
    let subcompositor = crowd.rig.bind("wl_subcompositor");
    let mut count = 0;
    while crowd.rig.connection.end().is_none() {
        let (child, _) = crowd.window(4);
        let subsurface = crowd.rig.id("wl_subsurface");
        let args = vec![Arg::NewId(subsurface), Arg::Object(child), Arg::Object(crowd.shown[0])];
        crowd.rig.request(subcompositor, "get_subsurface", args);
        count += 1;
        assert!(count < 10);
    }
    assert_eq!(count, 4, "there are twice three");
    assert_eq!(crowd.rig.error(), Some((1, error_code::NO_MEMORY)));
}

/// A child of a window that waits draws on, as often as it likes.
#[test]
fn synchronised_children_of_a_window_that_waits_for_room_force_nothing() {
    let mut crowd = Crowd::new();
    let subcompositor = crowd.rig.bind("wl_subcompositor");
    let parent = crowd.rig.surface(crowd.compositor);
    let child = crowd.rig.surface(crowd.compositor);
    let subsurface = crowd.rig.id("wl_subsurface");
    let args = vec![Arg::NewId(subsurface), Arg::Object(child), Arg::Object(parent)];
    crowd.rig.request(subcompositor, "get_subsurface", args);
    crowd.draw(parent, SIDE, 1);
    for value in 0..100 {
        crowd.draw(child, SIDE, value);
        crowd.pass(FRAME);
    }
    assert_eq!(crowd.kept(), 3 * BYTES);
    assert_eq!(crowd.events_named("release").len(), 99);
    assert_eq!(crowd.rig.connection.end(), None);
}
