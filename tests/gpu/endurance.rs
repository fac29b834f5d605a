//! Nothing grows: not with frames, not with programs, not with sizes of a window.

use std::os::fd::AsFd;

use wayferry_stage::Image;
use wayland_client::protocol::wl_buffer::WlBuffer;

use super::client::{Client, Layout, Plane};
use super::ferry::{Ferry, until};
use super::gl::{Bo, Canvas, FOURCC, Gl};
use super::{HEIGHT, WIDTH};

/// The buffer of a canvas, the `number`th.
fn import(client: &Client, number: usize, canvas: &Canvas, (width, height): (u32, u32)) -> WlBuffer {
    let Bo { fd, modifier, offset, stride } = &canvas.bo;
    let layout = Layout { width, height, offset: *offset, stride: *stride };
    client.import(number, &Plane { fd: fd.as_fd(), fourcc: FOURCC, modifier: *modifier, layout })
}

/// A colour of its own for each of many frames.
fn colour(frame: u32) -> [u8; 3] {
    [(frame * 37) as u8, (frame * 11) as u8, frame as u8]
}

fn picture((width, height): (u32, u32), frame: u32) -> Image {
    let [red, green, blue] = colour(frame).map(u32::from);
    Image::new(width, height, 0xff00_0000 | red << 16 | green << 8 | blue)
}

/// Descriptors and memory of the session's two processes here.
fn taken(ferry: &Ferry) -> ((usize, usize), (usize, usize)) {
    let open = ferry.at_rest(|ferry| (ferry.open_by_host(), ferry.open_by_reader()));
    (open, ferry.resident())
}

fn has_not_grown(before: ((usize, usize), (usize, usize)), after: ((usize, usize), (usize, usize))) {
    let descriptors = |(host, reader): (usize, usize)| (host + 2, reader + 2);
    let (most_host, most_reader) = descriptors(before.0);
    assert!(after.0.0 <= most_host && after.0.1 <= most_reader, "before {before:?}, after {after:?}");
    let grown = |before: usize, after: usize| after.saturating_sub(before) > GROWTH;
    let (host, reader) = (grown(before.1.0, after.1.0), grown(before.1.1, after.1.1));
    assert!(!host && !reader, "before {before:?}, after {after:?}");
}

#[test]
fn gpu_five_thousand_frames_take_no_more_than_five_hundred() {
    let (ferry, gl) = (Ferry::start("auto"), Gl::new());
    let mut client = Client::new(&ferry.socket(), "frames");
    let canvases: Vec<Canvas> = (0..3).map(|_| gl.canvas(WIDTH, HEIGHT)).collect();
    let buffers: Vec<WlBuffer> =
        (0..3).map(|number| import(&client, number, &canvases[number], (WIDTH, HEIGHT))).collect();
    let whole = [0, 0, WIDTH, HEIGHT];
    let mut draw = |frames: std::ops::Range<u32>| {
        let last = frames.end - 1;
        for frame in frames {
            let number = frame as usize % 3;
            until("a free buffer", || {
                client.hear();
                let mine = client.heard.released.iter().filter(|released| **released == number).count();
                (mine >= frame as usize / 3).then_some(())
            });
            gl.fill(&canvases[number], whole, colour(frame));
            gl.flush();
            client.commit(&buffers[number], whole);
        }
        ferry.shows("frames", &picture((WIDTH, HEIGHT), last));
    };
    draw(0..500);
    let before = taken(&ferry);
    draw(500..5000);
    has_not_grown(before, taken(&ferry));
}

#[test]
fn gpu_two_hundred_programs_leave_nothing_behind() {
    let (ferry, gl) = (Ferry::start("auto"), Gl::new());
    let canvas = gl.canvas(WIDTH, HEIGHT);
    let visit = |number: u32| {
        let mut client = Client::new(&ferry.socket(), "visit");
        let buffer = import(&client, 0, &canvas, (WIDTH, HEIGHT));
        gl.fill(&canvas, [0, 0, WIDTH, HEIGHT], colour(number));
        gl.flush();
        // Some go while they are read, and some once they are shown.
        client.commit(&buffer, [0, 0, WIDTH, HEIGHT]);
        if number.is_multiple_of(4) {
            ferry.shows("visit", &picture((WIDTH, HEIGHT), number));
        }
    };
    (0..20).for_each(visit);
    let before = taken(&ferry);
    (20..220).for_each(visit);
    has_not_grown(before, taken(&ferry));
}

/// A window of another size has other buffers.
#[test]
fn gpu_each_size_of_a_window_is_shown() {
    let (ferry, gl) = (Ferry::start("auto"), Gl::new());
    let mut client = Client::new(&ferry.socket(), "sizes");
    let mut show = |frame: u32| {
        let size = (40 + frame * 53 % 700, 30 + frame * 31 % 500);
        let canvas = gl.canvas(size.0, size.1);
        let buffer = import(&client, frame as usize, &canvas, size);
        gl.fill(&canvas, [0, 0, size.0, size.1], colour(frame));
        gl.flush();
        client.commit(&buffer, [0, 0, size.0, size.1]);
        ferry.shows("sizes", &picture(size, frame));
        buffer.destroy();
    };
    (0..20).for_each(&mut show);
    let before = ferry.at_rest(|ferry| (ferry.open_by_host(), ferry.open_by_reader()));
    (20..60).for_each(&mut show);
    let after = ferry.at_rest(|ferry| (ferry.open_by_host(), ferry.open_by_reader()));
    assert!(after.0 <= before.0 + 2 && after.1 <= before.1 + 2, "before {before:?}, after {after:?}");
}

/// Bytes that a process may take more: 2 kB lost with each frame would be more.
const GROWTH: usize = 8 << 20;
