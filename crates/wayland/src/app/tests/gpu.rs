//! Programs whose buffers are on a GPU, against a reader that answers when the test says so.

use std::collections::BTreeMap;

use wayferry_gpu::fake::Reader;
use wayferry_gpu::{Ask, Fourcc, MAX_PLANES, Modifier, Offer};

use super::super::dmabuf::MAX_OPEN_PLANES;
use super::*;

mod frames;
mod points;
mod returns;

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
