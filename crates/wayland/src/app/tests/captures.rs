//! Programs that ask for pictures of what the display shows.

use std::sync::Arc;

use wayferry_pixels::{Compression, Content, Encoder, Format, Size};

use crate::action::Piece;
use crate::picture;
use crate::workers::Workers;
use crate::workers::slow::Slow;

use super::super::captures::MAX_COPIES;
use super::*;

const STRIDE: u32 = 20;
const SIZE: [u32; 2] = [4, 3];

/// A program that may take pictures, its `zwlr_screencopy_manager_v1` and its output.
struct Camera {
    rig: Rig,
    manager: u32,
    output: u32,
    shm: u32,
}

/// A program's buffer, and its memory.
struct Film {
    memory: OwnedFd,
    buffer: u32,
}

impl Camera {
    fn new() -> Self {
        Self::with_workers(Workers::default())
    }

    fn with_workers(workers: Workers) -> Self {
        let name = "zwlr_screencopy_manager_v1";
        let mut desk = (*desk()).clone();
        desk.snapshot.globals.push(Global { name: 30, interface: name.to_owned(), version: 3 });
        let config = Config { allow: vec![name.to_owned()], workers, ..Config::default() };
        let mut rig = Rig::with_config(config, &Rc::new(desk));
        let (manager, output, shm) = (rig.bind(name), rig.bind("wl_output"), rig.bind("wl_shm"));
        Self { rig, manager, output, shm }
    }

    /// A frame that the display has told the size of.
    fn frame(&mut self) -> u32 {
        let frame = self.rig.id("zwlr_screencopy_frame_v1");
        let args = vec![Arg::NewId(frame), Arg::Int(0), Arg::Object(self.output)];
        self.rig.request(self.manager, "capture_output", args);
        let [width, height] = SIZE;
        self.hear(frame, "buffer", &[1, width, height, STRIDE]);
        frame
    }

    fn hear(&mut self, frame: u32, name: &str, args: &[u32]) {
        let interface = tables::interface("zwlr_screencopy_frame_v1").unwrap();
        let object = self.rig.connection.objects.wire(frame).expect("the display has it");
        let opcode = tables::event_opcode(interface, name).unwrap();
        let args = args.iter().map(|value| WireArg::Uint(*value)).collect();
        self.rig.tell(&ToApp::Event(Request { object, opcode, args }));
    }

    fn film(&mut self, size: [u32; 2], stride: u32) -> Film {
        // There is something before and behind it.
        let memory = file(&vec![0xEE; (stride * size[1] + 8) as usize]);
        let fd = memory.try_clone().unwrap();
        self.film_by(memory, fd, size, stride)
    }

    /// Memory that the session gets by this descriptor.
    fn film_by(&mut self, memory: OwnedFd, fd: OwnedFd, [width, height]: [u32; 2], stride: u32) -> Film {
        let length = stride * height + 8;
        let (pool, buffer) = (self.rig.id("wl_shm_pool"), self.rig.id("wl_buffer"));
        let args = vec![Arg::NewId(pool), Arg::Fd(fd), Arg::Int(length.cast_signed())];
        self.rig.request(self.shm, "create_pool", args);
        let numbers = [4, width, height, stride].map(|number| Arg::Int(number.cast_signed()));
        let args = std::iter::once(Arg::NewId(buffer)).chain(numbers).chain([Arg::Uint(1)]).collect();
        self.rig.request(pool, "create_buffer", args);
        Film { memory, buffer }
    }

    /// Asks for a copy; gives the pipe that its pixels come through, if it was asked for.
    fn copy(&mut self, frame: u32, film: &Film) -> Option<u64> {
        self.rig.pipes.clear();
        self.rig.request(frame, "copy", vec![Arg::Object(film.buffer)]);
        match self.rig.pipes[..] {
            [Action::Collect { pipe }] => Some(pipe),
            [] => None,
            ref other => panic!("{other:?}"),
        }
    }

    /// What comes through a pipe, in pieces, and what a thread makes of it; `None` breaks off.
    fn collected(&mut self, pipe: u64, packed: Option<Vec<u8>>) {
        match packed {
            Some(packed) => self.collect(pipe, &packed),
            None => self.rig.connection.on_collected(self.rig.now, pipe, &Piece::Broken),
        }
        self.settle();
    }

    /// All of it comes.
    fn collect(&mut self, pipe: u64, packed: &[u8]) {
        let pieces = packed.chunks(7).map(|piece| Piece::Bytes(piece.to_vec().into()));
        for piece in pieces.chain([Piece::Whole]) {
            self.rig.connection.on_collected(self.rig.now, pipe, &piece);
        }
    }

    /// Waits for threads.
    fn settle(&mut self) {
        while let Some(due) = self.rig.connection.captures.due(self.rig.now, false) {
            self.rig.now = due;
            self.rig.connection.on_timeout(due);
            std::thread::yield_now();
        }
        self.rig.collect();
    }

    /// What a frame has said.
    fn said(&mut self, frame: u32) -> Vec<&'static str> {
        self.rig.events().into_iter().filter(|event| event.object == frame).map(|event| event.name).collect()
    }
}

impl Film {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; (STRIDE * SIZE[1] + 8) as usize];
        assert_eq!(rustix::io::pread(&self.memory, &mut bytes, 0), Ok(bytes.len()));
        bytes
    }
}

/// A picture of which each byte is one more than the one before it, packed.
fn packed() -> Vec<u8> {
    let mut content = Content::new(Size::new(SIZE[0], SIZE[1]).unwrap(), Format::Xrgb8888);
    for y in 0..SIZE[1] {
        let row: Vec<u8> = (0..16).map(|x| (y * 16 + x) as u8).collect();
        content.write_row(y, 0, &row);
    }
    [&picture::pack(&mut Encoder::new(Compression::default()), content)[..], picture::LAST].concat()
}

/// The program's memory with the picture in it, and nothing else touched.
fn filled() -> Vec<u8> {
    let mut bytes = vec![0xEE; (STRIDE * SIZE[1] + 8) as usize];
    for y in 0..SIZE[1] as usize {
        let start = 4 + y * STRIDE as usize;
        (0..16).for_each(|x| bytes[start + x] = (y * 16 + x) as u8);
    }
    bytes
}

#[test]
fn a_picture_is_there_before_the_program_hears_so() {
    for ready_first in [true, false] {
        let mut camera = Camera::new();
        let frame = camera.frame();
        assert_eq!(camera.said(frame), ["buffer"]);
        let film = camera.film(SIZE, STRIDE);
        let pipe = camera.copy(frame, &film).expect("it is asked for");
        let crossed = camera.rig.sent.last();
        assert!(
            matches!(crossed, Some(ToDisplay::Request(request)) if request.args[..] == [WireArg::Pipe(pipe)]),
            "{crossed:?}"
        );
        // Its buffer may go meanwhile.
        camera.rig.request(film.buffer, "destroy", vec![]);
        if ready_first {
            camera.hear(frame, "ready", &[0, 7, 9]);
            assert_eq!(camera.said(frame), [] as [&str; 0]);
            camera.collected(pipe, Some(packed()));
            camera.settle();
        } else {
            camera.collected(pipe, Some(packed()));
            assert_eq!((camera.said(frame), film.bytes()[4]), (vec![], 0xEE));
            camera.hear(frame, "ready", &[0, 7, 9]);
            camera.settle();
        }
        assert_eq!((camera.said(frame), film.bytes()), (vec!["ready"], filled()));
        // A display that says so again, or something else, is not heard.
        camera.hear(frame, "ready", &[0, 7, 9]);
        camera.hear(frame, "failed", &[]);
        camera.collected(pipe, Some(packed()));
        assert_eq!(camera.said(frame), [] as [&str; 0]);
    }
}

#[test]
fn regression_what_a_thread_does_is_looked_at_every_2_ms_although_a_crew_would_call() {
    let crew = Arc::new(Slow::default());
    let mut camera = Camera::with_workers(Workers::new(Arc::<Slow>::clone(&crew)));
    let (frame, film) = (camera.frame(), camera.film(SIZE, STRIDE));
    let pipe = camera.copy(frame, &film).expect("it is asked for");
    camera.hear(frame, "ready", &[0, 7, 9]);
    camera.said(frame);
    camera.collect(pipe, &packed());
    let now = camera.rig.now;
    let due = |camera: &Camera| camera.rig.connection.captures.due(now, true);
    assert!(due(&camera).is_none_or(|due| due == now), "it is not looked at before it is done");
    crew.wait();
    assert_eq!(due(&camera), Some(now));
    camera.rig.connection.on_timeout(now);
    camera.rig.collect();
    assert_eq!((camera.said(frame), due(&camera), film.bytes()), (vec!["ready"], None, filled()));
}

#[test]
fn what_does_not_come_whole_fails() {
    let cut = packed()[..packed().len() / 2].to_vec();
    for packed in [None, Some(Vec::new()), Some(cut), Some(vec![0xFF; 40])] {
        let mut camera = Camera::new();
        let frame = camera.frame();
        let film = camera.film(SIZE, STRIDE);
        let pipe = camera.copy(frame, &film).expect("it is asked for");
        camera.hear(frame, "ready", &[0, 7, 9]);
        camera.said(frame);
        camera.collected(pipe, packed);
        assert_eq!((camera.said(frame), film.bytes()[4]), (vec!["failed"], 0xEE));
        assert_eq!(camera.rig.connection.end(), None);
    }
}

#[test]
fn a_program_cannot_be_written_to_where_it_did_not_say() {
    let mistakes: [([u32; 2], u32); 3] = [(SIZE, STRIDE + 4), ([3, 3], STRIDE), ([4, 2], STRIDE)];
    for (size, stride) in mistakes {
        let mut camera = Camera::new();
        let frame = camera.frame();
        let film = camera.film(size, stride);
        assert_eq!(camera.copy(frame, &film), None);
        let events = camera.rig.events();
        let error = events.iter().find(|event| event.name == "error").expect("it is told");
        assert!(matches!(error.args[..2], [Arg::Object(on), Arg::Uint(1)] if on == frame), "{error:?}");
    }
    let mut camera = Camera::new();
    let frame = camera.frame();
    let film = camera.film(SIZE, STRIDE);
    camera.copy(frame, &film).expect("it is asked for");
    assert_eq!(camera.copy(frame, &film), None, "twice");
    assert!(camera.rig.events().iter().any(|event| event.name == "error"));
}

/// A program that was told so has its buffer back.
#[test]
fn nothing_is_written_behind_a_failure() {
    let mut camera = Camera::new();
    let (frame, film) = (camera.frame(), camera.film(SIZE, STRIDE));
    let pipe = camera.copy(frame, &film).expect("it is asked for");
    camera.said(frame);
    camera.hear(frame, "failed", &[]);
    assert_eq!(camera.said(frame), ["failed"]);
    camera.hear(frame, "ready", &[0, 7, 9]);
    camera.collected(pipe, Some(packed()));
    assert_eq!((camera.said(frame), film.bytes()[4]), (vec![], 0xEE));
}

#[test]
fn copies_of_destroyed_frames_count_until_their_pixels_have_come() {
    let mut camera = Camera::new();
    let film = camera.film(SIZE, STRIDE);
    let mut pipes = Vec::new();
    for _ in 0..20 {
        let frame = camera.frame();
        pipes.extend(camera.copy(frame, &film));
        camera.rig.request(frame, "destroy", vec![]);
    }
    assert_eq!(pipes.len(), MAX_COPIES);
    pipes.into_iter().for_each(|pipe| camera.collected(pipe, Some(packed())));
    assert_eq!(film.bytes()[4], 0xEE);
    let frame = camera.frame();
    assert!(camera.copy(frame, &film).is_some());
}

/// A program that says that its memory is longer than it is.
#[test]
fn memory_that_is_too_short_stays_so() {
    let mut camera = Camera::new();
    let frame = camera.frame();
    let memory = file(&[0xEE; 8]);
    let film = camera.film_by(memory.try_clone().unwrap(), memory, SIZE, STRIDE);
    let pipe = camera.copy(frame, &film).expect("it is asked for");
    camera.hear(frame, "ready", &[0, 7, 9]);
    camera.said(frame);
    camera.collected(pipe, Some(packed()));
    assert_eq!((camera.said(frame), rustix::fs::fstat(&film.memory).unwrap().st_size), (vec!["failed"], 8));
}

#[test]
fn copies_that_are_under_way_are_limited() {
    let mut camera = Camera::new();
    let film = camera.film(SIZE, STRIDE);
    let mut pipes = Vec::new();
    for _ in 0..MAX_COPIES {
        let frame = camera.frame();
        pipes.push(camera.copy(frame, &film).expect("it is asked for"));
    }
    let frame = camera.frame();
    camera.said(frame);
    assert_eq!((camera.copy(frame, &film), camera.said(frame)), (None, vec!["failed"]));
    camera.collected(pipes[0], None);
    let frame = camera.frame();
    assert!(camera.copy(frame, &film).is_some());
}

#[test]
fn pictures_of_a_display_that_is_gone_fail() {
    let mut camera = Camera::new();
    let (frame, film) = (camera.frame(), camera.film(SIZE, STRIDE));
    let pipe = camera.copy(frame, &film).expect("it is asked for");
    camera.said(frame);
    camera.rig.connection.detach(camera.rig.now);
    camera.rig.collect();
    assert_eq!(camera.said(frame), ["failed"]);
    camera.collected(pipe, Some(packed()));
    assert_eq!((camera.said(frame), film.bytes()[4]), (vec![], 0xEE));
    let frame = camera.rig.id("zwlr_screencopy_frame_v1");
    let args = vec![Arg::NewId(frame), Arg::Int(0), Arg::Object(camera.output)];
    camera.rig.request(camera.manager, "capture_output", args);
    assert_eq!(camera.said(frame), ["failed"]);
    assert_eq!(camera.rig.connection.end(), None);
}

#[test]
fn memory_that_cannot_be_written_to_stays_as_it_is() {
    let mut camera = Camera::new();
    let frame = camera.frame();
    let memory = file(&vec![0xEE; (STRIDE * SIZE[1] + 8) as usize]);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&memory));
    let fd = OwnedFd::from(std::fs::File::open(path).unwrap());
    let film = camera.film_by(memory, fd, SIZE, STRIDE);
    let pipe = camera.copy(frame, &film).expect("it is asked for");
    camera.hear(frame, "ready", &[0, 7, 9]);
    camera.said(frame);
    camera.collected(pipe, Some(packed()));
    assert_eq!((camera.said(frame), film.bytes()[4]), (vec!["failed"], 0xEE));
}
