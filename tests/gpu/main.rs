//! Programs with GPU buffers in whole sessions. `make test-gpu` runs these in virtual machines, since few others let
//! tests make dmabufs: those whose names begin with `gpu_` where there is a GPU, the others where there is none.
//!
//! No test asserts speed: the machines are emulated.

mod client;
mod endurance;
mod ferry;
mod formats;
mod gl;
mod memory;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayferry_gpu::Syncobjs;
use wayferry_stage::Image;

use client::{Buffer, Client, Layout, Plane};
use ferry::{Ferry, until};
use gl::{Bo, FOURCC, Gl};
use memory::Exporter;

const WIDTH: u32 = 250;
const HEIGHT: u32 = 120;
/// Neither is what the width would give.
const ODD: Layout = Layout { width: WIDTH, height: HEIGHT, offset: 4096 + 64, stride: 1024 };

/// Draws frames, each other rows of one picture, with two buffers; keeps what is to be seen.
struct Painter {
    buffers: Vec<Buffer>,
    /// Rows that each buffer lacks of the picture.
    stale: Vec<Vec<u32>>,
    picture: Image,
    frame: u32,
}

impl Painter {
    fn new(client: &Client, exporter: Exporter, layout: Layout) -> Self {
        let buffers: Vec<Buffer> = (0..2).map(|number| client.buffer(number, exporter, layout)).collect();
        let stale = vec![(0..HEIGHT).collect(); 2];
        Self { buffers, stale, picture: Image::new(WIDTH, HEIGHT, 0xff00_0000), frame: 0 }
    }

    /// Draws the next frame, in a buffer that is free, and shows it.
    fn paint(&mut self, client: &mut Client) {
        let number = self.frame as usize % 2;
        let rows = match self.frame {
            0 => 0..HEIGHT,
            frame => {
                let first = frame * 7 % HEIGHT;
                first..(first + 9).min(HEIGHT)
            }
        };
        for y in rows.clone() {
            for (x, pixel) in (0..).zip(self.picture.row_mut(y)) {
                *pixel = 0xff00_0000 | (x & 0xff) << 16 | (y & 0xff) << 8 | self.frame & 0xff;
            }
        }
        self.stale.iter_mut().for_each(|stale| stale.extend(rows.clone()));
        for y in std::mem::take(&mut self.stale[number]) {
            self.buffers[number].row(y, self.picture.row(y));
        }
        client.show(&self.buffers[number], rows);
        self.frame += 1;
    }
}

fn sixty_frames(gpu: &str, exporter: Exporter) {
    let ferry = Ferry::start(gpu);
    let mut client = Client::new(&ferry.socket(), "frames");
    assert!(client.has_dmabuf(), "it is offered to programs");
    assert_eq!(client.has_timelines(), gpu == "auto", "only a GPU has timelines");
    let mut painter = Painter::new(&client, exporter, ODD);
    for frame in 0..60 {
        if frame >= 2 {
            until("a free buffer", || {
                client.hear();
                let mine = client.heard.released.iter().filter(|number| **number == frame % 2).count();
                (mine >= frame / 2).then_some(())
            });
        }
        painter.paint(&mut client);
        ferry.shows("frames", &painter.picture);
    }
    client.roundtrip();
    let mut releases: BTreeMap<usize, usize> = BTreeMap::new();
    client.heard.released.iter().for_each(|number| *releases.entry(*number).or_default() += 1);
    assert_eq!(releases, BTreeMap::from([(0, 30), (1, 30)]), "each buffer comes back once for each frame");
    assert_eq!(client.heard.failed, 0);
}

#[test]
fn every_frame_in_a_udmabuf_is_shown_as_it_was_drawn() {
    sixty_frames("memory", Exporter::Udmabuf);
}

#[test]
fn every_frame_of_a_heap_is_shown_as_it_was_drawn() {
    sixty_frames("memory", Exporter::Heap);
}

/// The reader is killed: a window that is there stays, and goes on when there is another reader.
#[test]
fn a_window_outlives_the_reader() {
    let ferry = Ferry::start("memory");
    let mut client = Client::new(&ferry.socket(), "outlives");
    let mut painter = Painter::new(&client, Exporter::Udmabuf, ODD);
    painter.paint(&mut client);
    ferry.shows("outlives", &painter.picture);
    for _ in 0..3 {
        let reader = ferry.reader();
        ferry.kill_reader(reader);
        painter.paint(&mut client);
        ferry.shows("outlives", &painter.picture);
        assert_ne!(ferry.reader(), reader);
    }
    client.roundtrip();
}

#[test]
fn a_reader_has_its_socket_and_few_rights() {
    let ferry = Ferry::start("memory");
    let reader = ferry.reader();
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{reader}/{file}")).expect("it is there");
    let (status, limits) = (read("status"), read("limits"));
    for right in ["NoNewPrivs:\t1\n", "Seccomp:\t2\n"] {
        assert!(status.contains(right), "{right:?}: {status}");
    }
    assert!(
        limits.lines().any(|line| line.starts_with("Max data size") && line.contains("4294967296")),
        "{limits}"
    );
    assert_eq!(read("oom_score_adj"), "500\n");
    let open = std::fs::read_dir(format!("/proc/{reader}/fd")).expect("its descriptors").flatten();
    let open: Vec<_> = open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
    let is_its = |file: &std::path::PathBuf| {
        let name = file.to_string_lossy();
        name == "/dev/null" || name.starts_with("socket:")
    };
    assert!(!open.is_empty() && open.iter().all(is_its), "{open:?}");
}

/// Programs come and go, some in the middle of a frame: nothing of them stays open.
#[test]
fn two_hundred_programs_leave_nothing_behind() {
    let ferry = Ferry::start("memory");
    let visit = |number: u32| {
        let mut client = Client::new(&ferry.socket(), "visit");
        let mut painter = Painter::new(&client, Exporter::Udmabuf, ODD);
        (0..=number % 3).for_each(|_| painter.paint(&mut client));
    };
    (0..10).for_each(visit);
    let open = |ferry: &Ferry| (ferry.open_by_host(), ferry.open_by_reader());
    let before = ferry.at_rest(open);
    (0..200).for_each(visit);
    let after = ferry.at_rest(open);
    assert!(after.0 <= before.0 + 2 && after.1 <= before.1 + 2, "before {before:?}, after {after:?}");
}

/// Frames that a GPU draws, some of them large and some small, are shown as they were drawn.
#[test]
fn gpu_every_frame_that_a_gpu_draws_is_shown() {
    let (ferry, gl) = (Ferry::start("auto"), Gl::new());
    println!("drawn by {}", gl.renderer());
    let mut client = Client::new(&ferry.socket(), "gl");
    assert!(client.has_dmabuf(), "it is offered to programs");
    let canvases: Vec<_> = (0..3).map(|_| gl.canvas(WIDTH, HEIGHT)).collect();
    let buffers: Vec<_> = (0..3)
        .zip(&canvases)
        .map(|(number, canvas)| {
            let Bo { fd, modifier, offset, stride } = &canvas.bo;
            let layout = Layout { width: WIDTH, height: HEIGHT, offset: *offset, stride: *stride };
            client.import(number, &Plane { fd: fd.as_fd(), fourcc: FOURCC, modifier: *modifier, layout })
        })
        .collect();
    for frame in 0..100u32 {
        let number = frame as usize % 3;
        if frame >= 3 {
            until("a free buffer", || {
                client.hear();
                let mine = client.heard.released.iter().filter(|released| **released == number).count();
                (mine >= frame as usize / 3).then_some(())
            });
        }
        let (back, front) = ([frame as u8 * 2, 40, 200], [255, frame as u8, 7]);
        let place = [frame * 13 % (WIDTH - 40), frame * 7 % (HEIGHT - 30), 40, 30];
        gl.fill(&canvases[number], [0, 0, WIDTH, HEIGHT], back);
        gl.fill(&canvases[number], place, front);
        gl.flush();
        client.commit(&buffers[number], [0, 0, WIDTH, HEIGHT]);
        let pixel = |[red, green, blue]: [u8; 3]| {
            0xff00_0000 | u32::from(red) << 16 | u32::from(green) << 8 | u32::from(blue)
        };
        let mut picture = Image::new(WIDTH, HEIGHT, pixel(back));
        let [x, y, width, height] = place.map(u32::cast_signed);
        picture.fill_rect(x, y, width, height, pixel(front));
        ferry.shows("gl", &picture);
    }
    client.roundtrip();
    assert_eq!((client.heard.released.len(), client.heard.failed), (100, 0));
}

/// A frame that its program has not drawn yet is not read, however long that takes; the other windows go on.
#[test]
fn gpu_a_frame_is_read_once_its_program_has_drawn_it() {
    let (ferry, gl) = (Ferry::start("auto"), Gl::new());
    let device = std::fs::metadata("/dev/dri/renderD128").expect("a GPU").rdev();
    let timelines = Syncobjs::open(device).expect("the kernel has timelines");
    let ((drawn, drawn_fd), (read, read_fd)) =
        (timelines.create().expect("one"), timelines.create().expect("one"));
    let mut other = Client::new(&ferry.socket(), "other");
    let mut painter = Painter::new(&other, Exporter::Udmabuf, ODD);
    painter.paint(&mut other);
    ferry.shows("other", &painter.picture);
    let before = ferry.at_rest(Ferry::open_by_host);

    let mut client = Client::new(&ferry.socket(), "late");
    let points = client.synchronise(drawn_fd.as_fd(), read_fd.as_fd());
    let canvas = gl.canvas(WIDTH, HEIGHT);
    let Bo { fd, modifier, offset, stride } = &canvas.bo;
    let layout = Layout { width: WIDTH, height: HEIGHT, offset: *offset, stride: *stride };
    let plane = Plane { fd: fd.as_fd(), fourcc: FOURCC, modifier: *modifier, layout };
    let buffer = client.import(0, &plane);
    let whole = [0, 0, WIDTH, HEIGHT];
    let is_read = read.reached(1).expect("a descriptor");
    let is_ready = || poll(&mut [PollFd::new(&is_read, PollFlags::IN)], Some(&Timespec::default())) == Ok(1);
    gl.fill(&canvas, whole, [255, 0, 0]);
    gl.flush();
    points.set(1);
    client.commit(&buffer, whole);
    client.roundtrip();
    painter.paint(&mut other);
    ferry.shows("other", &painter.picture);
    assert!(!is_ready(), "it was read before it was drawn");
    gl.fill(&canvas, whole, [0, 0, 255]);
    gl.finish();
    drawn.reach(1);
    ferry.shows("late", &Image::new(WIDTH, HEIGHT, 0xff00_00ff));
    until("the buffer", || is_ready().then_some(()));

    // This one is never drawn.
    points.set(2);
    client.commit(&buffer, whole);
    client.roundtrip();
    drop((client, points));
    painter.paint(&mut other);
    ferry.shows("other", &painter.picture);
    let after = ferry.at_rest(Ferry::open_by_host);
    assert!(after <= before + 2, "before {before}, after {after}");
}

/// What a program draws with OpenGL crosses without a single buffer of shared memory.
fn draws_on_the_gpu(program: &[&str], pictures: usize) {
    let ferry = Ferry::start("auto");
    let (said, picture) = ferry.run_program(program, pictures);
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    // The pointer's pictures have a pool, of which nothing is used here.
    let (gpu, shared) = (count(".create_immed("), count(".create_buffer("));
    assert!(gpu > 0 && shared == 0, "{gpu} GPU buffers, {shared} of shared memory: {said}");
    let mut colours: Vec<u32> = picture.pixels().to_vec();
    colours.sort_unstable();
    colours.dedup();
    assert!(colours.len() > 3, "an empty picture: {colours:x?}");
}

#[test]
fn gpu_weston_simple_egl_draws_on_the_gpu() {
    draws_on_the_gpu(&["weston-simple-egl"], 20);
}

#[test]
fn gpu_es2gears_draws_on_the_gpu() {
    draws_on_the_gpu(&["es2gears_wayland"], 20);
}

/// Scenes with textures, depth and a window that it fills itself.
#[test]
fn gpu_glmark2_draws_on_the_gpu() {
    let scenes = ["build:duration=2", "texture:duration=2", "shading:duration=2", "desktop:duration=2"];
    let scenes = scenes.into_iter().flat_map(|scene| ["-b", scene]);
    let program: Vec<&str> = ["glmark2-es2-wayland", "-s", "320x240"].into_iter().chain(scenes).collect();
    draws_on_the_gpu(&program, 60);
}

#[test]
fn gpu_gtk_draws_on_the_gpu() {
    draws_on_the_gpu(&["gtk4-demo", "--run=gears"], 5);
}

/// A GPU is no reason to give a buffer to it that lies in ordinary memory: its driver may not import that.
#[test]
fn gpu_a_buffer_in_memory_is_mapped_beside_a_gpu() {
    sixty_frames("auto", Exporter::Udmabuf);
}
