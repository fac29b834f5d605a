//! Programs whose buffers are on a GPU, against a reader that answers when the test says so.

use std::collections::BTreeMap;

use wayferry_gpu::fake::Reader;
use wayferry_gpu::{Ask, Fourcc, MAX_PLANES, Modifier, Offer};

use super::super::dmabuf::MAX_OPEN_PLANES;
use super::*;

const XR24: Fourcc = Fourcc::new(*b"XR24");
const AR24: Fourcc = Fourcc::new(*b"AR24");
const TILED: Modifier = Modifier(0x0100_0000_0000_0002);
const DEVICE: u64 = 0xe280;
const SIDE: i32 = 4;
const BYTES: usize = (SIDE * SIDE * 4) as usize;

/// Of `zwp_linux_buffer_params_v1`.
const ERRORS: [&str; 8] = [
    "already_used",
    "plane_idx",
    "plane_set",
    "incomplete",
    "invalid_format",
    "invalid_dimensions",
    "out_of_bounds",
    "invalid_wl_buffer",
];

/// A program that draws on a GPU, and the reader of its buffers.
struct Gpu {
    rig: Rig,
    reader: Reader,
    compositor: u32,
    dmabuf: u32,
}

/// A plane as it is added: its file, index, offset, stride and modifier.
struct Added {
    file: OwnedFd,
    index: u32,
    offset: u32,
    stride: u32,
    modifier: Modifier,
}

fn offer() -> Offer {
    let pairs =
        [(XR24, TILED), (XR24, Modifier::INVALID), (XR24, Modifier::LINEAR), (AR24, Modifier::INVALID)];
    Offer::that_takes(|_| true, Some(DEVICE), pairs).unwrap()
}

fn plane(bytes: &[u8]) -> Added {
    let stride = (SIDE * 4) as u32;
    Added { file: file(bytes), index: 0, offset: 0, stride, modifier: Modifier::INVALID }
}

impl Gpu {
    fn new() -> Self {
        Self::offering(offer(), 5)
    }

    /// One that binds a version of what it is offered.
    fn offering(offer: Offer, version: u32) -> Self {
        let config = Config { gpu: Some(Rc::new(offer)), ..Config::default() };
        let mut rig = Rig::with_config(config, &desk());
        let compositor = rig.bind("wl_compositor");
        let dmabuf = rig.bind_at("zwp_linux_dmabuf_v1", version);
        Self { rig, reader: Reader::default(), compositor, dmabuf }
    }

    fn params(&mut self) -> u32 {
        let params = self.rig.id("zwp_linux_buffer_params_v1");
        self.rig.request(self.dmabuf, "create_params", vec![Arg::NewId(params)]);
        params
    }

    fn add(&mut self, params: u32, plane: Added) {
        let Added { file, index, offset, stride, modifier } = plane;
        let (high, low) = modifier.halves();
        let numbers = [index, offset, stride, high, low].map(Arg::Uint);
        self.rig.request(params, "add", std::iter::once(Arg::Fd(file)).chain(numbers).collect());
    }

    fn create(&mut self, params: u32, width: i32, fourcc: Fourcc, flags: u32) {
        let args = vec![Arg::Int(width), Arg::Int(SIDE), Arg::Uint(fourcc.0), Arg::Uint(flags)];
        self.rig.request(params, "create", args);
    }

    /// A buffer that may be used at once, of pixels all of whose bytes are `value`; the reader knows nothing of it yet.
    fn buffer(&mut self, value: u8) -> u32 {
        self.buffer_of(file(&[value; BYTES]))
    }

    fn buffer_of(&mut self, memory: OwnedFd) -> u32 {
        let params = self.params();
        self.add(params, Added { file: memory, ..plane(&[]) });
        let buffer = self.immediately(params);
        self.rig.request(params, "destroy", vec![]);
        buffer
    }

    fn immediately(&mut self, params: u32) -> u32 {
        let buffer = self.rig.id("wl_buffer");
        let numbers = [Arg::Int(SIDE), Arg::Int(SIDE), Arg::Uint(XR24.0), Arg::Uint(0)];
        self.rig.request(
            params,
            "create_immed",
            std::iter::once(Arg::NewId(buffer)).chain(numbers).collect(),
        );
        buffer
    }

    /// A surface with content, which was drawn with `value`.
    fn window(&mut self, value: u8) -> u32 {
        let surface = self.rig.surface(self.compositor);
        self.show(surface, value);
        self.settle();
        assert_eq!(self.rig.content(surface), [value; BYTES]);
        self.rig.events();
        self.rig.units();
        surface
    }

    /// A synchronised subsurface, and its `wl_subsurface`.
    fn child_of(&mut self, parent: u32) -> (u32, u32) {
        let subcompositor = self.rig.bind("wl_subcompositor");
        let (child, subsurface) = (self.rig.surface(self.compositor), self.rig.id("wl_subsurface"));
        let args = vec![Arg::NewId(subsurface), Arg::Object(child), Arg::Object(parent)];
        self.rig.request(subcompositor, "get_subsurface", args);
        (child, subsurface)
    }

    /// Commits a new buffer.
    fn show(&mut self, surface: u32, value: u8) -> u32 {
        let buffer = self.buffer(value);
        self.rig.attach(surface, buffer);
        self.rig.commit(surface);
        buffer
    }

    /// What the connection asks now.
    fn ask(&mut self) {
        self.rig.connection.on_timeout(self.rig.now);
        while let Some(ask) = self.rig.connection.poll_ask() {
            self.reader.ask(ask);
        }
    }

    /// The reader answers all that it is asked, and nothing waits any more.
    fn settle(&mut self) {
        for _ in 0..4 {
            self.ask();
            while let Some(answer) = self.reader.answer() {
                self.rig.connection.on_answer(self.rig.now, answer);
                self.ask();
            }
            self.rig.pass(FRAME);
        }
    }

    /// The reader answers one thing.
    fn answer(&mut self) {
        self.ask();
        let answer = self.reader.answer().expect("something is asked");
        self.rig.connection.on_answer(self.rig.now, answer);
        self.rig.collect();
    }

    /// The pixels of a surface, and the buffers that came back since.
    fn shown(&mut self, surface: u32) -> (Vec<u8>, Vec<u32>) {
        (self.rig.content(surface).to_vec(), self.rig.released())
    }

    fn reads(&mut self) -> usize {
        self.ask();
        self.reader.waiting().filter(|ask| matches!(ask, Ask::Read { .. })).count()
    }

    /// The name of the error that ended the program.
    fn error(&mut self) -> Option<&'static str> {
        let events = self.rig.events();
        let error = events.iter().find(|event| event.object == 1 && event.name == "error")?;
        match error.args[..] {
            [Arg::Object(id), Arg::Uint(code), _]
                if self.rig.interfaces[&id] == "zwp_linux_buffer_params_v1" =>
            {
                Some(ERRORS[code as usize])
            }
            _ => Some("another"),
        }
    }

    fn named(&mut self, name: &str) -> Vec<u32> {
        let events = self.rig.events();
        events.iter().filter(|event| event.name == name).map(|event| event.object).collect()
    }
}

impl Rig {
    fn bind_at(&mut self, interface: &'static str, version: u32) -> u32 {
        let offers = self.connection.offering.offers();
        let name = offers.iter().find(|offer| offer.interface == interface).expect("it is offered").name;
        let (registry, id) = (self.id("wl_registry"), self.id(interface));
        self.request(1, "get_registry", vec![Arg::NewId(registry)]);
        let interface = Arg::Str(Some(interface.as_bytes().to_vec()));
        self.request(registry, "bind", vec![Arg::Uint(name), interface, Arg::Uint(version), Arg::NewId(id)]);
        id
    }
}

#[test]
fn nothing_is_offered_where_nothing_reads() {
    let offers = |rig: &Rig| {
        let offers = rig.connection.offering.offers().iter();
        offers
            .filter(|offer| offer.interface == "zwp_linux_dmabuf_v1")
            .map(|offer| offer.version)
            .collect::<Vec<_>>()
    };
    assert_eq!(offers(&Rig::new()), []);
    assert_eq!(offers(&Gpu::new().rig), [5]);
    let memory = Offer::new(None, [(XR24, Modifier::LINEAR)]).unwrap();
    assert_eq!(offers(&Gpu::offering(memory, 3).rig), [3], "no device is named");
}

#[test]
fn each_version_is_told_formats_in_its_own_way() {
    let told = |version: u32, name: &str| {
        let events = Gpu::offering(offer(), version).rig.events();
        events.into_iter().filter(|event| event.name == name).map(|event| event.args).collect::<Vec<_>>()
    };
    let code = |args: &Vec<Arg>| if let Arg::Uint(code) = args[0] { Fourcc(code) } else { Fourcc(0) };
    let (formats, modifiers) = (told(1, "format"), told(3, "modifier"));
    assert_eq!(formats.iter().map(code).collect::<Vec<_>>(), [XR24, AR24], "each once");
    assert_eq!(modifiers.iter().map(code).collect::<Vec<_>>(), [XR24, XR24, XR24, AR24]);
    assert!(told(1, "modifier").is_empty() && told(4, "modifier").is_empty() && told(4, "format").is_empty());

    let mut gpu = Gpu::new();
    let feedback = gpu.rig.id("zwp_linux_dmabuf_feedback_v1");
    gpu.rig.request(gpu.dmabuf, "get_default_feedback", vec![Arg::NewId(feedback)]);
    let events: Vec<Event> = gpu.rig.events().into_iter().filter(|event| event.object == feedback).collect();
    let order: Vec<&str> = events.iter().map(|event| event.name).collect();
    let expected = [
        "format_table",
        "main_device",
        "tranche_target_device",
        "tranche_flags",
        "tranche_formats",
        "tranche_done",
        "done",
    ];
    assert_eq!(order, expected);
    assert!(matches!(events[0].args[..], [Arg::Fd(_), Arg::Uint(64)]));
    assert!(matches!(&events[1].args[..], [Arg::Array(device)] if *device == DEVICE.to_ne_bytes()));
    let indices: Vec<u8> = [0u16, 1, 2, 3].into_iter().flat_map(u16::to_ne_bytes).collect();
    assert!(matches!(&events[4].args[..], [Arg::Array(offered)] if *offered == indices));
}

/// What a program can do wrong, and the error that it gets for it.
#[test]
fn each_mistake_has_its_error() {
    type Mistake = fn(&mut Gpu, u32);
    let mistakes: [(&str, Mistake); 15] = [
        ("plane_idx", |gpu, params| {
            gpu.add(params, Added { index: MAX_PLANES as u32, ..plane(&[0; BYTES]) })
        }),
        ("plane_set", |gpu, params| (0..2).for_each(|_| gpu.add(params, plane(&[0; BYTES])))),
        ("incomplete", |gpu, params| gpu.create(params, SIDE, XR24, 0)),
        ("incomplete", |gpu, params| {
            gpu.add(params, Added { index: 1, ..plane(&[0; BYTES]) });
            gpu.create(params, SIDE, XR24, 0);
        }),
        ("incomplete", |gpu, params| {
            (0..2).for_each(|index| gpu.add(params, Added { index, ..plane(&[0; BYTES]) }));
            gpu.create(params, SIDE, XR24, 0);
        }),
        ("invalid_format", |gpu, params| {
            gpu.add(params, plane(&[0; BYTES]));
            gpu.create(params, SIDE, Fourcc::new(*b"NV12"), 0);
        }),
        ("invalid_format", |gpu, params| {
            gpu.add(params, Added { modifier: TILED, ..plane(&[0; BYTES]) });
            gpu.create(params, SIDE, AR24, 0);
        }),
        ("invalid_format", |gpu, params| {
            gpu.add(params, Added { modifier: TILED, ..plane(&[0; BYTES]) });
            gpu.add(params, Added { index: 1, ..plane(&[0; BYTES]) });
            gpu.create(params, SIDE, XR24, 0);
        }),
        ("invalid_dimensions", |gpu, params| {
            gpu.add(params, plane(&[0; BYTES]));
            gpu.create(params, 0, XR24, 0);
        }),
        ("invalid_dimensions", |gpu, params| {
            gpu.add(params, plane(&[0; BYTES]));
            gpu.create(params, i32::MAX, XR24, 0);
        }),
        ("out_of_bounds", |gpu, params| {
            gpu.add(params, plane(&[0; BYTES - 1]));
            gpu.create(params, SIDE, XR24, 0);
        }),
        ("out_of_bounds", |gpu, params| {
            gpu.add(params, Added { offset: u32::MAX, stride: u32::MAX, ..plane(&[0; BYTES]) });
            gpu.create(params, SIDE, XR24, 0);
        }),
        ("already_used", |gpu, params| {
            gpu.add(params, plane(&[0; BYTES]));
            (0..2).for_each(|_| gpu.create(params, SIDE, XR24, 0));
        }),
        ("already_used", |gpu, params| {
            gpu.add(params, plane(&[0; BYTES]));
            gpu.create(params, SIDE, XR24, 0);
            gpu.add(params, plane(&[0; BYTES]));
        }),
        ("already_used", |gpu, params| {
            gpu.add(params, plane(&[0; BYTES]));
            gpu.immediately(params);
            gpu.create(params, SIDE, XR24, 0);
        }),
    ];
    for (number, (error, mistake)) in mistakes.into_iter().enumerate() {
        let mut gpu = Gpu::new();
        let params = gpu.params();
        mistake(&mut gpu, params);
        assert_eq!(gpu.error(), Some(error), "mistake {number}");
        assert!(matches!(gpu.rig.connection.end(), Some(End::AppViolation(_))), "mistake {number}");
    }
}

#[test]
fn what_is_no_dmabuf_is_refused() {
    let directory = || OwnedFd::from(std::fs::File::open("/").unwrap());
    let socket =
        || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap().0;
    for file in [file(&[0; BYTES]), directory(), socket()] {
        let mut gpu = Gpu::offering(Offer::new(Some(DEVICE), [(XR24, Modifier::INVALID)]).unwrap(), 5);
        let params = gpu.params();
        gpu.add(params, Added { file, ..plane(&[]) });
        gpu.create(params, SIDE, XR24, 0);
        assert_eq!(gpu.error(), Some("invalid_wl_buffer"));
        assert_eq!(gpu.reads(), 0);
    }
}

#[test]
fn what_was_not_offered_fails_for_programs_that_cannot_know() {
    let mut gpu = Gpu::offering(offer(), 3);
    let params = gpu.params();
    gpu.add(params, Added { modifier: Modifier(7), ..plane(&[0; BYTES]) });
    gpu.create(params, SIDE, XR24, 0);
    assert_eq!(gpu.named("failed"), [params]);
    // Fields of an interlaced picture.
    let params = gpu.params();
    gpu.add(params, plane(&[0; BYTES]));
    gpu.create(params, SIDE, XR24, 2);
    assert_eq!((gpu.named("failed"), gpu.rig.connection.end()), (vec![params], None));
}

#[test]
fn a_buffer_is_created_once_it_is_imported() {
    let mut gpu = Gpu::new();
    let surface = gpu.rig.surface(gpu.compositor);
    let params = gpu.params();
    gpu.add(params, plane(&[9; BYTES]));
    gpu.create(params, SIDE, XR24, 0);
    assert!(gpu.rig.events().iter().all(|event| event.name != "created"));
    gpu.answer();
    let created = gpu.rig.events().into_iter().find(|event| event.name == "created").expect("it is created");
    let [Arg::NewId(buffer)] = created.args[..] else { panic!("{created:?}") };
    gpu.rig.interfaces.insert(buffer, "wl_buffer");
    gpu.rig.attach(surface, buffer);
    gpu.rig.commit(surface);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![9; BYTES], vec![buffer]));
    gpu.rig.request(buffer, "destroy", vec![]);
    gpu.ask();
    assert_eq!(gpu.reader.images(), 0);
}

#[test]
fn what_cannot_be_imported_fails() {
    let mut gpu = Gpu::new();
    let refuse = |gpu: &mut Gpu| {
        gpu.ask();
        let answer = gpu.reader.refuse().expect("it is asked");
        gpu.rig.connection.on_answer(gpu.rig.now, answer);
    };
    let params = gpu.params();
    gpu.add(params, plane(&[0; BYTES]));
    gpu.create(params, SIDE, XR24, 0);
    refuse(&mut gpu);
    assert_eq!(gpu.named("failed"), [params]);
    // The program has a buffer that shows nothing, and is told.
    let surface = gpu.window(1);
    let params = gpu.params();
    gpu.add(params, plane(&[2; BYTES]));
    let buffer = gpu.immediately(params);
    gpu.rig.attach(surface, buffer);
    gpu.rig.commit(surface);
    refuse(&mut gpu);
    assert_eq!(gpu.named("failed"), [params]);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![1; BYTES], vec![buffer]));
    // One that cannot be told any more ends.
    gpu.buffer(3);
    refuse(&mut gpu);
    assert!(matches!(gpu.rig.connection.end(), Some(End::AppViolation(_))));
}

#[test]
fn parameters_that_are_gone_are_told_nothing() {
    let mut gpu = Gpu::new();
    let params = gpu.params();
    gpu.add(params, plane(&[0; BYTES]));
    gpu.create(params, SIDE, XR24, 0);
    gpu.rig.request(params, "destroy", vec![]);
    // The next object has its id.
    let next = params;
    gpu.rig.request(gpu.dmabuf, "create_params", vec![Arg::NewId(next)]);
    gpu.answer();
    assert_eq!((gpu.named("created"), gpu.rig.connection.end()), (vec![], None));
    gpu.ask();
    assert_eq!(gpu.reader.images(), 0, "no program has it");
}

#[test]
fn a_commit_is_applied_with_its_pixels_and_its_buffer_comes_back_once() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    let frame = gpu.rig.frame(surface);
    gpu.rig.pass(FRAME);
    assert_eq!((gpu.reads(), gpu.rig.released()), (1, vec![]));
    assert_eq!(gpu.rig.content(surface), [1; BYTES]);
    assert!(!gpu.rig.connection.stalled(), "other requests go on");
    gpu.answer();
    gpu.answer();
    assert_eq!(gpu.shown(surface), (vec![2; BYTES], vec![buffer]));
    gpu.rig.commit(surface);
    gpu.settle();
    assert_eq!((gpu.rig.units().len(), gpu.named("done")), (1, vec![frame]));
}

/// A program whose buffer is busy draws into the next: of three frames the middle one is never read.
#[test]
fn what_is_replaced_before_it_is_read_is_never_read() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let first = gpu.show(surface, 2);
    assert_eq!(gpu.reads(), 1, "it is being read");
    let second = gpu.show(surface, 3);
    let third = gpu.show(surface, 4);
    assert_eq!((gpu.reads(), gpu.rig.released()), (1, vec![second]), "unread");
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![4; BYTES], vec![first, third]));
}

#[test]
fn a_frame_behind_a_barrier_is_never_replaced() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let manager = gpu.rig.bind("wp_fifo_manager_v1");
    let fifo = gpu.rig.id("wp_fifo_v1");
    gpu.rig.request(manager, "get_fifo", vec![Arg::NewId(fifo), Arg::Object(surface)]);
    let mut shown = Vec::new();
    for value in 2..5 {
        gpu.rig.request(fifo, "wait_barrier", vec![]);
        gpu.rig.request(fifo, "set_barrier", vec![]);
        gpu.show(surface, value);
    }
    for _ in 0..40 {
        gpu.ask();
        if let Some(answer) = gpu.reader.answer() {
            gpu.rig.connection.on_answer(gpu.rig.now, answer);
        }
        shown.push(gpu.rig.content(surface)[0]);
        gpu.rig.pass(Duration::from_millis(5));
        gpu.rig.units();
    }
    shown.dedup();
    assert_eq!(shown, [1, 2, 3, 4]);
}

#[test]
fn only_what_is_damaged_is_read() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.buffer(2);
    gpu.rig.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
    gpu.rig.request(surface, "damage_buffer", [1, 2, 2, 1].map(Arg::Int).into());
    gpu.rig.commit(surface);
    gpu.settle();
    let mut expected = [1; BYTES];
    expected[(2 * SIDE as usize + 1) * 4..][..8].fill(2);
    assert_eq!(gpu.rig.content(surface), expected);
}

#[test]
fn the_first_row_of_a_flipped_buffer_is_the_lowest() {
    let mut gpu = Gpu::new();
    let surface = gpu.rig.surface(gpu.compositor);
    let row = |y: usize| [y as u8; (SIDE * 4) as usize];
    let drawn: Vec<u8> = (0..SIDE as usize).flat_map(row).collect();
    let params = gpu.params();
    gpu.add(params, plane(&drawn));
    let buffer = gpu.rig.id("wl_buffer");
    let numbers = [Arg::Int(SIDE), Arg::Int(SIDE), Arg::Uint(XR24.0), Arg::Uint(1)];
    gpu.rig.request(params, "create_immed", std::iter::once(Arg::NewId(buffer)).chain(numbers).collect());
    gpu.rig.attach(surface, buffer);
    gpu.rig.commit(surface);
    gpu.settle();
    let expected: Vec<u8> = (0..SIDE as usize).rev().flat_map(row).collect();
    assert_eq!(gpu.rig.content(surface), expected);
}

#[test]
fn what_is_destroyed_while_it_is_read_ends_well() {
    // The buffer: its pixels are shown, and its id, which may be another's, is not released.
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    assert_eq!(gpu.reads(), 1);
    gpu.rig.request(buffer, "destroy", vec![]);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![2; BYTES], vec![]));
    gpu.ask();
    assert_eq!(gpu.reader.images(), 1, "that of the window before");

    // The surface: its buffer comes back when it has been read, not before.
    let buffer = gpu.show(surface, 3);
    assert_eq!(gpu.reads(), 1);
    gpu.rig.request(surface, "destroy", vec![]);
    assert_eq!(gpu.rig.released(), []);
    gpu.settle();
    assert_eq!(gpu.rig.released(), [buffer]);

    // Both.
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 3);
    assert_eq!(gpu.reads(), 1);
    gpu.rig.request(surface, "destroy", vec![]);
    gpu.rig.request(buffer, "destroy", vec![]);
    gpu.settle();
    assert_eq!((gpu.rig.released(), gpu.rig.connection.end()), (vec![], None));
}

#[test]
fn what_cannot_be_read_leaves_what_was_there() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let memory = file(&[2; BYTES]);
    let buffer = gpu.buffer_of(memory.try_clone().unwrap());
    rustix::fs::ftruncate(&memory, 8).unwrap();
    gpu.rig.attach(surface, buffer);
    gpu.rig.commit(surface);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![1; BYTES], vec![buffer]));
    assert_eq!(gpu.rig.connection.end(), None);
    gpu.show(surface, 3);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [3; BYTES]);
}

/// What a synchronised subsurface has drawn is shown with its parent's commit, and read then.
#[test]
fn a_subsurface_is_read_with_its_parents_commit() {
    let mut gpu = Gpu::new();
    let parent = gpu.window(1);
    let (child, subsurface) = gpu.child_of(parent);
    let unread = gpu.show(child, 2);
    let buffer = gpu.show(child, 3);
    gpu.settle();
    assert_eq!((gpu.reads(), gpu.rig.released()), (0, vec![unread]), "a newer one has replaced it");
    gpu.rig.units();
    let own = gpu.show(parent, 4);
    assert_eq!(gpu.reads(), 2);
    gpu.answer();
    gpu.answer();
    assert_eq!(gpu.rig.released(), [], "all or nothing");
    gpu.settle();
    assert_eq!(gpu.rig.released(), [buffer, own]);
    let units = gpu.rig.units();
    let [unit] = &units[..] else { panic!("one unit for both: {units:?}") };
    assert_eq!(unit.children.len(), 1);
    assert_eq!((gpu.rig.content(child), gpu.rig.content(parent)), (&[3; BYTES][..], &[4; BYTES][..]));
    // What commits of itself afterwards is in order.
    gpu.show(child, 5);
    gpu.rig.request(subsurface, "set_desync", vec![]);
    gpu.show(child, 6);
    gpu.settle();
    assert_eq!(gpu.rig.content(child), [6; BYTES]);
}

#[test]
fn what_builds_on_a_commit_waits_for_its_pixels() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    gpu.show(surface, 2);
    gpu.child_of(surface);
    // The only request with three arguments.
    let is_it = |sent: &ToDisplay| matches!(sent, ToDisplay::Request(request) if request.args.len() == 3);
    let crossed = |gpu: &Gpu| gpu.rig.sent.iter().any(is_it);
    let sync = gpu.rig.id("wl_callback");
    gpu.rig.request(1, "sync", vec![Arg::NewId(sync)]);
    assert!(gpu.rig.connection.stalled() && !crossed(&gpu));
    assert_eq!(gpu.named("done"), [], "what is behind it does not overtake it");
    gpu.settle();
    gpu.settle();
    assert!(!gpu.rig.connection.stalled() && crossed(&gpu));
    assert_eq!((gpu.rig.content(surface)[0], gpu.named("done")), (2, vec![sync]));
}

/// A window that is destroyed in front of the user has shown its last frame; a reader that hangs does not keep it.
#[test]
fn nothing_waits_for_a_reader_that_hangs() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    assert_eq!(gpu.reads(), 1);
    let sync = gpu.rig.id("wl_callback");
    gpu.rig.request(surface, "destroy", vec![]);
    gpu.rig.request(1, "sync", vec![Arg::NewId(sync)]);
    gpu.rig.pass(Duration::from_secs(6));
    assert_eq!((gpu.named("done"), gpu.rig.connection.end()), (vec![sync], None));
    gpu.settle();
    assert_eq!(gpu.rig.released(), [buffer], "late, and once");
}

#[test]
fn what_no_user_sees_is_not_read() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let wire = gpu.rig.connection.surfaces[&surface].wire;
    gpu.rig.tell(&ToApp::Visible { surface: wire, visible: false });
    let frame = gpu.rig.frame(surface);
    let first = gpu.show(surface, 2);
    gpu.rig.pass(Duration::from_secs(2));
    assert_eq!((gpu.reads(), gpu.named("done")), (0, vec![frame]), "it may draw, slowly");
    let second = gpu.show(surface, 3);
    gpu.rig.pass(Duration::from_secs(2));
    assert_eq!((gpu.reads(), gpu.rig.released()), (0, vec![first]));
    gpu.rig.tell(&ToApp::Visible { surface: wire, visible: true });
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![3; BYTES], vec![second]));
}

/// No more is read than leaves.
#[test]
fn nothing_is_read_while_the_last_frame_waits_for_the_link() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let answer_all = |gpu: &mut Gpu| {
        gpu.ask();
        while let Some(answer) = gpu.reader.answer() {
            gpu.rig.connection.on_answer(gpu.rig.now, answer);
        }
    };
    gpu.show(surface, 2);
    answer_all(&mut gpu);
    assert_eq!(gpu.rig.content(surface), [2; BYTES]);
    for value in 3..9 {
        gpu.show(surface, value);
        answer_all(&mut gpu);
    }
    assert_eq!(gpu.rig.content(surface), [2; BYTES], "it has not left");
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [8; BYTES]);
}

#[test]
fn planes_are_limited_and_parameters_without_buffers_cost_nothing() {
    let mut gpu = Gpu::new();
    for _ in 0..10_000 {
        gpu.params();
    }
    assert_eq!(gpu.rig.connection.end(), None);
    let memory = file(&[7; BYTES]);
    let mut added = Vec::new();
    for _ in 0..=MAX_OPEN_PLANES {
        let params = gpu.params();
        gpu.add(params, Added { file: memory.try_clone().unwrap(), ..plane(&[]) });
        added.push(params);
    }
    let last = *added.last().unwrap();
    gpu.create(last, SIDE, XR24, 0);
    assert_eq!((gpu.named("failed"), gpu.rig.connection.end()), (vec![last], None), "it is held back");
    gpu.rig.request(added[0], "destroy", vec![]);
    let surface = gpu.rig.surface(gpu.compositor);
    gpu.show(surface, 8);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [8; BYTES]);
}

#[test]
fn programs_without_a_display_go_on() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    gpu.rig.connection.detach(gpu.rig.now);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![2; BYTES], vec![buffer]));
    let buffer = gpu.show(surface, 3);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![3; BYTES], vec![buffer]));
}

/// A frame that cannot be read, and then one that draws elsewhere.
#[test]
fn regression_what_could_not_be_read_stayed_as_it_was_for_ever() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let draw = |gpu: &mut Gpu, value: u8, row: i32| {
        let buffer = gpu.buffer(value);
        gpu.rig.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
        gpu.rig.request(surface, "damage_buffer", [0, row, SIDE, 1].map(Arg::Int).into());
        gpu.rig.commit(surface);
    };
    draw(&mut gpu, 2, 0);
    gpu.answer();
    gpu.ask();
    let unread = gpu.reader.refuse().expect("it is asked");
    gpu.rig.connection.on_answer(gpu.rig.now, unread);
    assert_eq!(gpu.rig.content(surface), [1; BYTES]);
    draw(&mut gpu, 3, 1);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [3; BYTES], "all of it");
}

/// A window that another display wants larger is shown with its program's answer: that must be read.
#[test]
fn regression_a_fullscreen_window_never_came_to_another_display() {
    let mut gpu = Gpu::new();
    let surface = gpu.rig.surface(gpu.compositor);
    let (xdg, toplevel) = gpu.rig.toplevel(surface);
    gpu.rig.commit(surface);
    let configure = |rig: &mut Rig, serial: u32, size: i32| {
        // Fullscreen.
        rig.configure(xdg, toplevel, (size, size), &[2], serial);
        let events = rig.events();
        let told = events.into_iter().rfind(|event| event.object == xdg).expect("it is configured");
        let [Arg::Uint(serial)] = told.args[..] else { panic!("{told:?}") };
        rig.request(xdg, "ack_configure", vec![Arg::Uint(serial)]);
    };
    configure(&mut gpu.rig, 7, SIDE);
    gpu.show(surface, 1);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [1; BYTES]);
    gpu.rig.connection.detach(gpu.rig.now);
    gpu.rig.collect();
    gpu.rig.connection.attach(gpu.rig.now, &desk(), Compression::None);
    gpu.rig.collect();
    gpu.rig.units();
    configure(&mut gpu.rig, 3, SIDE * 2);
    gpu.show(surface, 2);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [2; BYTES]);
    assert_ne!(gpu.rig.units().len(), 0, "it is shown");
}

/// A link that is silent answers nothing, and a program must not block in its swap.
#[test]
fn regression_a_silent_link_blocked_programs_that_draw_on_a_gpu() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let first = gpu.rig.frame(surface);
    gpu.show(surface, 2);
    gpu.ask();
    while let Some(answer) = gpu.reader.answer() {
        gpu.rig.connection.on_answer(gpu.rig.now, answer);
    }
    let wait = |gpu: &mut Gpu| {
        for _ in 0..60 {
            gpu.rig.now += Duration::from_millis(100);
            gpu.ask();
        }
    };
    wait(&mut gpu);
    assert_eq!(gpu.named("done"), [first]);
    let second = gpu.rig.frame(surface);
    gpu.show(surface, 3);
    wait(&mut gpu);
    assert_eq!(gpu.named("done"), [second]);
}

/// Subsurfaces without end, all of one large buffer: their pixels would be here all at once.
#[test]
fn regression_pixels_of_many_subsurfaces_take_memory_without_end() {
    let mut gpu = Gpu::new();
    let parent = gpu.window(1);
    gpu.rig.connection.room.limit(3 * BYTES as u64);
    let children: Vec<u32> = (0..8).map(|_| gpu.child_of(parent).0).collect();
    for child in children {
        gpu.show(child, 2);
    }
    gpu.rig.commit(parent);
    gpu.ask();
    assert_eq!(gpu.reads(), 0);
    assert!(matches!(gpu.rig.connection.end(), Some(End::TooMuch(_))), "{:?}", gpu.rig.connection.end());
}

/// What a program or a reader may do in [`every_buffer_comes_back_once`].
#[derive(Debug, Clone)]
enum Step {
    Show { surface: usize, buffer: usize },
    Commit(usize),
    Destroy(usize),
    Hide { surface: usize, visible: bool },
    Answer,
    Fail,
    Pass(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize, 0..5usize).prop_map(|(surface, buffer)| Step::Show { surface, buffer }),
        1 => (0..3usize).prop_map(Step::Commit),
        1 => (0..5usize).prop_map(Step::Destroy),
        1 => (0..3usize, any::<bool>()).prop_map(|(surface, visible)| Step::Hide { surface, visible }),
        3 => Just(Step::Answer),
        1 => Just(Step::Fail),
        2 => (1..30u8).prop_map(Step::Pass),
    ]
}

proptest! {
    /// A program does anything with buffers that are free, and the reader anything in the meantime: a buffer that was
    /// committed comes back exactly once, unless it was destroyed; and at rest what is shown is what was drawn last, or what
    /// was there before if that could not be read.
    #[test]
    fn every_buffer_comes_back_once(steps in proptest::collection::vec(step(), 1..60)) {
        let mut gpu = Gpu::new();
        // A window, a synchronised subsurface of it, and a surface alone.
        let parent = gpu.window(1);
        let (child, _) = gpu.child_of(parent);
        let surfaces = [parent, child, gpu.window(1)];
        let mut buffers: Vec<Option<u32>> = (0..5).map(|value| Some(gpu.buffer(100 + value))).collect();
        let mut busy: BTreeMap<u32, i32> = BTreeMap::new();
        let note = |gpu: &mut Gpu, busy: &mut BTreeMap<u32, i32>| {
            for buffer in gpu.rig.released() {
                *busy.entry(buffer).or_default() -= 1;
            }
        };
        note(&mut gpu, &mut busy);
        busy.clear();
        let mut drawn = BTreeMap::from([(surfaces[0], 1), (surfaces[2], 1)]);
        let mut failed = false;
        for step in steps {
            match step {
                Step::Show { surface, buffer } => {
                    let Some(id) = buffers[buffer] else { continue };
                    if busy.get(&id).is_some_and(|count| *count > 0) {
                        continue;
                    }
                    *busy.entry(id).or_default() += 1;
                    drawn.insert(surfaces[surface], 100 + buffer as u8);
                    gpu.rig.attach(surfaces[surface], id);
                    gpu.rig.commit(surfaces[surface]);
                }
                Step::Commit(surface) => gpu.rig.commit(surfaces[surface]),
                Step::Destroy(buffer) => {
                    if let Some(id) = buffers[buffer].take() {
                        gpu.rig.request(id, "destroy", vec![]);
                        busy.remove(&id);
                    }
                }
                Step::Hide { surface, visible } => {
                    let surface = gpu.rig.connection.surfaces[&surfaces[surface]].wire;
                    gpu.rig.tell(&ToApp::Visible { surface, visible });
                }
                Step::Answer | Step::Fail => {
                    gpu.ask();
                    let is_read = matches!(gpu.reader.waiting().next(), Some(Ask::Read { .. }));
                    let fails = matches!(step, Step::Fail) && is_read;
                    failed |= fails;
                    let answer = if fails { gpu.reader.refuse() } else { gpu.reader.answer() };
                    if let Some(answer) = answer {
                        gpu.rig.connection.on_answer(gpu.rig.now, answer);
                        gpu.rig.collect();
                    }
                }
                Step::Pass(millis) => gpu.rig.pass(Duration::from_millis(millis.into())),
            }
            gpu.rig.units();
            note(&mut gpu, &mut busy);
            prop_assert!(busy.values().all(|count| *count >= 0), "released twice: {busy:?}");
        }
        for surface in surfaces {
            let surface = gpu.rig.connection.surfaces[&surface].wire;
            gpu.rig.tell(&ToApp::Visible { surface, visible: true });
        }
        for _ in 0..3 {
            gpu.rig.commit(surfaces[1]);
            gpu.rig.commit(surfaces[0]);
            gpu.settle();
            gpu.rig.units();
            note(&mut gpu, &mut busy);
        }
        prop_assert!(busy.values().all(|count| *count == 0), "kept: {busy:?}");
        prop_assert_eq!(gpu.rig.connection.end(), None);
        for (surface, value) in drawn {
            prop_assert!(failed || gpu.rig.content(surface) == [value; BYTES]);
        }
        gpu.ask();
        let alive = buffers.iter().flatten().count();
        // Those of the two windows were never destroyed.
        prop_assert_eq!(gpu.reader.images(), alive + 2);
    }
}
