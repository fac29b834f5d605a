//! Programs that tell by points of timelines when they have drawn, and are told so when that has been read.

use wayferry_gpu::fake::{Timeline, Timelines};
use wayferry_gpu::{Route, Timeline as _};
use wayferry_proto::SurfaceId;

use super::super::super::reads::GpuSurface;
use super::*;

/// Of `wp_linux_drm_syncobj_surface_v1`.
const ERRORS: [&str; 7] = [
    "",
    "no_surface",
    "unsupported_buffer",
    "no_buffer",
    "no_acquire_point",
    "no_release_point",
    "conflicting_points",
];
/// What a buffer holds before it is drawn.
const UNDRAWN: u8 = 0xBB;

/// A program with a window and two timelines: one for what it draws, one for what is read.
struct Synced {
    gpu: Gpu,
    manager: u32,
    surface: u32,
    /// The window's `wp_linux_drm_syncobj_surface_v1`.
    object: u32,
    drawn: (u32, Rc<Timeline>),
    read: (u32, Rc<Timeline>),
}

impl Synced {
    fn new() -> Self {
        Self::lacking_fences(false)
    }

    /// Where a driver attaches fences, or not.
    fn lacking_fences(lacks_fences: bool) -> Self {
        let timelines = Rc::new(Timelines::default());
        let offer = offer().with_timelines(Some(Rc::clone(&timelines) as Rc<dyn wayferry_gpu::Timelines>));
        let mut gpu = Gpu::offering(offer.lacking_fences(lacks_fences), 5);
        let manager = gpu.rig.bind("wp_linux_drm_syncobj_manager_v1");
        let surface = if lacks_fences { gpu.rig.surface(gpu.compositor) } else { gpu.window(1) };
        let object = gpu.rig.id("wp_linux_drm_syncobj_surface_v1");
        gpu.rig.request(manager, "get_surface", vec![Arg::NewId(object), Arg::Object(surface)]);
        let mut import = |number: usize| {
            let id = gpu.rig.id("wp_linux_drm_syncobj_timeline_v1");
            gpu.rig.request(manager, "import_timeline", vec![Arg::NewId(id), Arg::Fd(file(&[]))]);
            (id, timelines.nth(number))
        };
        let (drawn, read) = (import(0), import(1));
        Self { gpu, manager, surface, object, drawn, read }
    }

    fn set(&mut self, name: &'static str, timeline: u32, point: u32) {
        self.gpu.rig.request(self.object, name, vec![Arg::Object(timeline), Arg::Uint(0), Arg::Uint(point)]);
    }

    /// Commits a buffer of that memory, which is drawn and read at these points.
    fn show_at(&mut self, memory: OwnedFd, acquire: u32, release: u32) -> u32 {
        let buffer = self.gpu.buffer_of(memory);
        self.gpu.rig.attach(self.surface, buffer);
        self.set("set_acquire_point", self.drawn.0, acquire);
        self.set("set_release_point", self.read.0, release);
        self.gpu.rig.commit(self.surface);
        buffer
    }

    /// A new buffer, drawn with `value` at once and told at a point.
    fn show(&mut self, value: u8, point: u32) -> u32 {
        self.show_at(file(&[value; BYTES]), point, point)
    }

    fn content(&self) -> u8 {
        self.gpu.rig.content(self.surface)[0]
    }

    fn error(&mut self) -> Option<&'static str> {
        let events = self.gpu.rig.events();
        let error = events.iter().find(|event| event.object == 1 && event.name == "error")?;
        match error.args[..] {
            [Arg::Object(id), Arg::Uint(code), _] if id == self.object => Some(ERRORS[code as usize]),
            [Arg::Object(id), Arg::Uint(0), _] if id == self.manager => Some("surface_exists"),
            [Arg::Object(id), Arg::Uint(1), _] if id == self.manager => Some("invalid_timeline"),
            _ => Some("another"),
        }
    }
}

#[test]
fn timelines_are_offered_where_something_takes_them() {
    let offers = |rig: &Rig| {
        let offers = rig.connection.offering.offers().iter();
        offers.filter(|offer| offer.interface == "wp_linux_drm_syncobj_manager_v1").count()
    };
    assert_eq!((offers(&Rig::new()), offers(&Gpu::new().rig), offers(&Synced::new().gpu.rig)), (0, 0, 1));
}

/// What a program can do wrong, and the error that it gets for it.
#[test]
fn each_mistake_has_its_error() {
    type Mistake = fn(&mut Synced);
    let attach = |synced: &mut Synced| {
        let buffer = synced.gpu.buffer(2);
        synced.gpu.rig.attach(synced.surface, buffer);
    };
    let mistakes: [(&str, Mistake); 11] = [
        ("surface_exists", |synced| {
            let object = synced.gpu.rig.id("wp_linux_drm_syncobj_surface_v1");
            let args = vec![Arg::NewId(object), Arg::Object(synced.surface)];
            synced.gpu.rig.request(synced.manager, "get_surface", args);
        }),
        ("invalid_timeline", |synced| {
            let (pipe, _other) = std::io::pipe().unwrap();
            let id = synced.gpu.rig.id("wp_linux_drm_syncobj_timeline_v1");
            let args = vec![Arg::NewId(id), Arg::Fd(pipe.into())];
            synced.gpu.rig.request(synced.manager, "import_timeline", args);
        }),
        ("no_surface", |synced| {
            synced.gpu.rig.request(synced.surface, "destroy", vec![]);
            synced.set("set_acquire_point", synced.drawn.0, 1);
        }),
        ("unsupported_buffer", |synced| {
            let shm = synced.gpu.rig.bind("wl_shm");
            let buffer = synced.gpu.rig.buffer(shm, SIDE, SIDE, 2);
            synced.gpu.rig.attach(synced.surface, buffer);
            synced.set("set_acquire_point", synced.drawn.0, 1);
            synced.set("set_release_point", synced.read.0, 1);
        }),
        ("no_buffer", |synced| synced.set("set_acquire_point", synced.drawn.0, 1)),
        ("no_buffer", |synced| {
            let null = vec![Arg::Object(0), Arg::Int(0), Arg::Int(0)];
            synced.gpu.rig.request(synced.surface, "attach", null);
            synced.set("set_release_point", synced.read.0, 1);
        }),
        ("no_acquire_point", |_| {}),
        ("no_acquire_point", |synced| synced.set("set_release_point", synced.read.0, 1)),
        ("no_release_point", |synced| synced.set("set_acquire_point", synced.drawn.0, 1)),
        ("conflicting_points", |synced| {
            synced.set("set_acquire_point", synced.read.0, 7);
            synced.set("set_release_point", synced.read.0, 7);
        }),
        ("conflicting_points", |synced| {
            synced.set("set_release_point", synced.drawn.0, 6);
            synced.set("set_acquire_point", synced.drawn.0, 7);
        }),
    ];
    for (number, (error, mistake)) in mistakes.into_iter().enumerate() {
        let mut synced = Synced::new();
        if number > 5 {
            attach(&mut synced);
        }
        mistake(&mut synced);
        synced.gpu.rig.commit(synced.surface);
        assert_eq!(synced.error(), Some(error), "mistake {number}");
        assert_eq!(synced.read.1.reached(), [], "mistake {number}");
    }
}

#[test]
fn points_may_be_set_again_and_go_with_their_object() {
    let mut synced = Synced::new();
    synced.drawn.1.reach(5);
    synced.set("set_acquire_point", synced.drawn.0, 9);
    synced.set("set_release_point", synced.read.0, 8);
    synced.show(2, 5);
    synced.gpu.settle();
    assert_eq!((synced.content(), synced.read.1.reached()), (2, vec![5]));
    // Points of an object that is no more, and commits that have none of their own.
    synced.set("set_release_point", synced.read.0, 7);
    synced.gpu.rig.request(synced.object, "destroy", vec![]);
    synced.gpu.show(synced.surface, 3);
    synced.gpu.settle();
    assert_eq!((synced.content(), synced.read.1.reached(), synced.error()), (3, vec![5], None));
}

#[test]
fn what_is_not_drawn_is_not_read() {
    let mut synced = Synced::new();
    let memory = file(&[UNDRAWN; BYTES]);
    let buffer = synced.show_at(memory.try_clone().unwrap(), 1, 1);
    synced.gpu.settle();
    assert_eq!((synced.content(), synced.drawn.1.awaited()), (1, 1));
    // Destroying the timeline unsets nothing.
    synced.gpu.rig.request(synced.drawn.0, "destroy", vec![]);
    assert_eq!(rustix::io::pwrite(&memory, &[2; BYTES], 0), Ok(BYTES));
    synced.drawn.1.reach(1);
    assert_eq!(synced.read.1.reached(), []);
    synced.gpu.settle();
    assert_eq!((synced.content(), synced.read.1.reached()), (2, vec![1]));
    assert_eq!(synced.gpu.rig.released(), [buffer]);
}

/// Three frames at once: the middle one is read never, and all are given back.
#[test]
fn what_is_replaced_unread_is_given_back() {
    let mut synced = Synced::new();
    synced.show(11, 1);
    synced.gpu.ask();
    (2..=3).for_each(|value| {
        synced.show(10 + value as u8, value);
    });
    assert_eq!(synced.read.1.reached(), [2]);
    synced.drawn.1.reach(3);
    synced.gpu.settle();
    assert_eq!((synced.content(), synced.read.1.reached()), (13, vec![2, 1, 3]));
}

/// A program draws without end: its window stays as it is, its other windows and what it asks go on.
#[test]
fn what_is_never_drawn_holds_up_nothing_else() {
    let mut synced = Synced::new();
    synced.show(9, 1);
    let other = synced.gpu.window(2);
    synced.gpu.show(other, 3);
    synced.gpu.settle();
    assert_eq!((synced.content(), synced.gpu.rig.content(other)[0]), (1, 3));
    let sync = synced.gpu.rig.id("wl_callback");
    synced.gpu.rig.request(synced.surface, "destroy", vec![]);
    synced.gpu.rig.request(1, "sync", vec![Arg::NewId(sync)]);
    synced.gpu.rig.pass(Duration::from_secs(6));
    assert_eq!(synced.gpu.named("done"), [sync]);
    synced.gpu.settle();
    assert_eq!(synced.read.1.reached(), [1], "nobody reads it any more");
    assert_eq!(synced.gpu.reader.waiting().count(), 0);
}

#[test]
fn surfaces_tell_what_was_read_and_what_they_wait_for() {
    let mut synced = Synced::new();
    synced.drawn.1.reach(1);
    synced.show(2, 1);
    synced.gpu.settle();
    let wire = synced.gpu.rig.connection.surfaces[&synced.surface].wire;
    let asked = synced.gpu.rig.now;
    synced.show(3, 2);
    synced.gpu.ask();
    let told: Vec<GpuSurface> = synced.gpu.rig.connection.gpu_surfaces().collect();
    let [GpuSurface { surface, route, read, bytes, took, waits: Some((_, since)) }] = told[..] else {
        panic!("{told:?}");
    };
    assert_eq!((surface, route, read, bytes), (SurfaceId(wire.0), Some(Route::Gpu), 2, 2 * BYTES as u64));
    assert_eq!((took, since), (Duration::from_millis(4), asked));
    synced.drawn.1.reach(2);
    synced.gpu.settle();
    assert!(synced.gpu.rig.connection.gpu_surfaces().all(|told| told.waits.is_none() && told.read == 3));
    synced.gpu.rig.request(synced.object, "destroy", vec![]);
    synced.gpu.rig.request(synced.surface, "destroy", vec![]);
    assert_eq!(synced.gpu.rig.connection.gpu_surfaces().count(), 0);
}

/// Commits that are folded into a window's first, whose child is being read.
#[test]
fn regression_what_was_being_read_was_asked_for_again_and_never_cancelled() {
    let mut synced = Synced::new();
    let root = synced.surface;
    let (child, _) = synced.gpu.child_of(root);
    let object = synced.gpu.rig.id("wp_linux_drm_syncobj_surface_v1");
    synced.gpu.rig.request(synced.manager, "get_surface", vec![Arg::NewId(object), Arg::Object(child)]);
    let (fifos, fifo) = (synced.gpu.rig.bind("wp_fifo_manager_v1"), synced.gpu.rig.id("wp_fifo_v1"));
    synced.gpu.rig.request(fifos, "get_fifo", vec![Arg::NewId(fifo), Arg::Object(root)]);
    let root_object = std::mem::replace(&mut synced.object, object);
    synced.surface = child;
    synced.show(5, 1);
    (synced.object, synced.surface) = (root_object, root);
    synced.show(6, 2);
    assert_eq!(synced.gpu.reads(), 2);
    let mut asked = Vec::new();
    for round in 0..3 {
        for number in 0..65 {
            // The next one does not take its place.
            synced.gpu.rig.request(fifo, "set_barrier", vec![]);
            synced.show(7, 3 + round * 65 + number);
            synced.gpu.ask();
        }
        asked.push(synced.gpu.reads());
    }
    synced.gpu.rig.request(root, "destroy", vec![]);
    for _ in 0..2 {
        synced.gpu.rig.pass(Duration::from_secs(6));
        synced.gpu.settle();
    }
    assert_eq!((synced.gpu.reads(), asked), (0, vec![2; 3]));
}

/// A driver that attaches no fences: a frame that comes without points could be read before it is drawn.
#[test]
fn without_fences_only_what_has_points_is_read() {
    let timelines = Rc::new(Timelines::default());
    let offer =
        offer().with_timelines(Some(timelines as Rc<dyn wayferry_gpu::Timelines>)).lacking_fences(true);
    let mut gpu = Gpu::offering(offer, 5);
    let surface = gpu.rig.surface(gpu.compositor);
    let buffer = gpu.show(surface, 2);
    gpu.settle();
    assert_eq!((gpu.reads(), gpu.rig.released()), (0, vec![buffer]));
    assert!(!gpu.rig.connection.surfaces[&surface].mapped());
    let mut synced = Synced::lacking_fences(true);
    synced.drawn.1.reach(1);
    synced.show(2, 1);
    synced.gpu.settle();
    assert_eq!((synced.content(), synced.read.1.reached()), (2, vec![1]));
}

/// Each point that is waited for is a descriptor of the session's.
#[test]
fn points_that_are_waited_for_are_limited() {
    let mut synced = Synced::new();
    // As many planes as may be open, but for one point.
    let params: Vec<u32> = (0..MAX_OPEN_PLANES / 4).map(|_| synced.gpu.params()).collect();
    let planes = params.iter().flat_map(|params| (0..4).map(|index| (*params, index)));
    // The window's buffer and the two that are shown take one each.
    for (params, index) in planes.take(MAX_OPEN_PLANES - 4) {
        synced.gpu.add(params, Added { index, ..plane(&[0; BYTES]) });
    }
    synced.show(2, 1);
    synced.gpu.ask();
    let (second, first) = (synced.gpu.rig.surface(synced.gpu.compositor), synced.surface);
    let object = synced.gpu.rig.id("wp_linux_drm_syncobj_surface_v1");
    synced.gpu.rig.request(synced.manager, "get_surface", vec![Arg::NewId(object), Arg::Object(second)]);
    (synced.surface, synced.object) = (second, object);
    synced.show(3, 2);
    synced.gpu.ask();
    assert_eq!((synced.drawn.1.awaited(), synced.read.1.reached()), (1, vec![2]), "it is not waited for");
    synced.drawn.1.reach(1);
    synced.gpu.settle();
    assert_eq!((synced.gpu.rig.content(first)[0], synced.gpu.rig.connection.end()), (2, None));
}

/// What may happen in [`every_point_is_reached_once_and_nothing_undrawn_is_shown`].
#[derive(Debug, Clone, Copy)]
enum Step {
    Show,
    Draw,
    Answer,
    Fail,
    Hide(bool),
    Commit,
    Sync,
    Pass(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Show),
        3 => Just(Step::Draw),
        3 => Just(Step::Answer),
        1 => Just(Step::Fail),
        1 => any::<bool>().prop_map(Step::Hide),
        1 => Just(Step::Commit),
        1 => Just(Step::Sync),
        2 => (1..30u8).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn every_point_is_reached_once_and_nothing_undrawn_is_shown(
        steps in proptest::collection::vec(step(), 1..60),
        drawn_at_last in any::<bool>(),
    ) {
        let mut synced = Synced::new();
        let wire = synced.gpu.rig.connection.surfaces[&synced.surface].wire;
        let mut undrawn: std::collections::VecDeque<(u32, OwnedFd)> = Default::default();
        let mut shown = 0;
        let draw = |synced: &Synced, (point, memory): (u32, OwnedFd)| {
            rustix::io::pwrite(&memory, &[100 + point as u8; BYTES], 0).unwrap();
            synced.drawn.1.reach(point.into());
        };
        for step in steps {
            match step {
                Step::Show => {
                    let memory = file(&[UNDRAWN; BYTES]);
                    shown += 1;
                    undrawn.push_back((shown, memory.try_clone().unwrap()));
                    synced.show_at(memory, shown, shown);
                }
                Step::Draw => undrawn.pop_front().into_iter().for_each(|frame| draw(&synced, frame)),
                Step::Answer | Step::Fail => {
                    synced.gpu.ask();
                    // A program whose buffer cannot be imported would end.
                    let is_read = !synced.gpu.reader.waiting().any(|ask| matches!(ask, Ask::Import { .. }));
                    let fails = matches!(step, Step::Fail) && is_read;
                    let reader = &mut synced.gpu.reader;
                    if let Some(answer) = if fails { reader.refuse() } else { reader.answer() } {
                        synced.gpu.rig.connection.on_answer(synced.gpu.rig.now, answer);
                        synced.gpu.rig.collect();
                    }
                }
                Step::Hide(hidden) => {
                    synced.gpu.rig.tell(&ToApp::Visible { surface: wire, visible: !hidden });
                }
                Step::Commit => synced.gpu.rig.commit(synced.surface),
                Step::Sync => {
                    let sync = synced.gpu.rig.id("wl_callback");
                    synced.gpu.rig.request(1, "sync", vec![Arg::NewId(sync)]);
                }
                Step::Pass(millis) => synced.gpu.rig.pass(Duration::from_millis(millis.into())),
            }
            synced.gpu.rig.units();
            prop_assert!(synced.content() != UNDRAWN);
        }
        if drawn_at_last {
            undrawn.into_iter().for_each(|frame| draw(&synced, frame));
        } else {
            synced.gpu.rig.request(synced.object, "destroy", vec![]);
            synced.gpu.rig.request(synced.surface, "destroy", vec![]);
        }
        synced.gpu.rig.tell(&ToApp::Visible { surface: wire, visible: true });
        (0..3).for_each(|_| {
            synced.gpu.rig.pass(Duration::from_secs(6));
            synced.gpu.settle();
            synced.gpu.rig.units();
        });
        let mut reached = synced.read.1.reached();
        reached.sort_unstable();
        prop_assert_eq!(reached, (1..=shown.into()).collect::<Vec<u64>>());
        prop_assert_eq!(synced.gpu.rig.connection.end(), None);
        prop_assert_eq!(synced.gpu.reader.waiting().count(), 0);
    }
}
