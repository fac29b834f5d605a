//! Formats of other layouts than displays have: they are shown by their rules.

use std::os::fd::AsFd;

use wayferry_stage::Image;

use super::client::{Client, Layout, Plane};
use super::ferry::Ferry;
use super::gl::{Bo, Gl};
use super::memory::{Exporter, Memory};
use super::{HEIGHT, WIDTH};

/// What a pixel of the test's pictures shows: red, green and blue.
fn colour(x: u32, y: u32) -> [u8; 3] {
    [x as u8, (y * 2) as u8, (x + y) as u8]
}

/// Shows a picture in a buffer of another format, whose pixels have eight bytes at most.
fn shows_pixels(ferry: &Ferry, fourcc: &[u8; 4], pixel: impl Fn([u8; 3]) -> Vec<u8>) {
    let title = String::from_utf8_lossy(fourcc).into_owned();
    let mut client = Client::new(&ferry.socket(), &title);
    let layout = Layout { width: WIDTH, height: HEIGHT, offset: 64, stride: WIDTH * 8 + 24 };
    let memory = Memory::new(Exporter::Udmabuf, (layout.offset + layout.stride * HEIGHT) as usize);
    for y in 0..HEIGHT {
        let row: Vec<u8> = (0..WIDTH).flat_map(|x| pixel(colour(x, y))).collect();
        memory.write((layout.offset + y * layout.stride) as usize, &row);
    }
    let plane = Plane { fd: memory.fd.as_fd(), fourcc: u32::from_le_bytes(*fourcc), modifier: 0, layout };
    let buffer = client.import(0, &plane);
    client.commit(&buffer, [0, 0, WIDTH, HEIGHT]);
    let mut picture = Image::new(WIDTH, HEIGHT, 0);
    for y in 0..HEIGHT {
        for (x, shown) in (0..).zip(picture.row_mut(y)) {
            let [red, green, blue] = colour(x, y).map(u32::from);
            *shown = 0xff00_0000 | red << 16 | green << 8 | blue;
        }
    }
    ferry.shows(&title, &picture);
}

/// Ten bits a channel, either way round, and floats: the display has eight.
#[test]
fn formats_with_more_bits_are_shown_as_they_were_drawn() {
    let ferry = Ferry::start("memory");
    let tens = |alpha: u32, [top, middle, low]: [u8; 3]| {
        let ten = |channel: u8| u32::from(channel) << 2 | u32::from(channel) >> 6;
        let word = alpha << 30 | ten(top) << 20 | ten(middle) << 10 | ten(low);
        word.to_le_bytes().to_vec()
    };
    shows_pixels(&ferry, b"XR30", |colour| tens(0, colour));
    shows_pixels(&ferry, b"AR30", |colour| tens(3, colour));
    shows_pixels(&ferry, b"XB30", |[red, green, blue]| tens(0, [blue, green, red]));
    shows_pixels(&ferry, b"AB30", |[red, green, blue]| tens(3, [blue, green, red]));
    let halves = |[red, green, blue]: [u8; 3]| {
        let channels = [red, green, blue, 255].map(|channel| half(f32::from(channel) / 255.0));
        channels.into_iter().flat_map(u16::to_le_bytes).collect()
    };
    shows_pixels(&ferry, b"AB4H", halves);
    shows_pixels(&ferry, b"XB4H", halves);
}

/// The 16-bit float next to a number from 0 to 1.
fn half(value: f32) -> u16 {
    if value < 2f32.powi(-14) {
        return (value * 2f32.powi(24)).round() as u16;
    }
    let bits = value.to_bits() + (1 << 12);
    ((bits >> 13) - ((127 - 15) << 10)) as u16
}

/// A film: luma and chroma in two buffers, of an odd width, and later a part of it anew.
#[test]
fn a_film_is_shown_in_its_colours() {
    let ferry = Ferry::start("memory");
    let mut client = Client::new(&ferry.socket(), "film");
    let (width, height) = (WIDTH - 1, HEIGHT - 1);
    let luma = Layout { width, height, offset: 0, stride: 256 };
    let chroma = Layout { offset: 128, stride: 320, ..luma };
    let memory =
        [256 * HEIGHT, 128 + 320 * HEIGHT].map(|length| Memory::new(Exporter::Udmabuf, length as usize));
    let y_of = |frame: u32, x: u32, y: u32| 16 + ((x + 3 * y + 7 * frame) % 220) as u8;
    let uv_of = |frame: u32, x: u32, y: u32| [40 + x as u8, 200 - (y + 5 * frame) as u8];
    let draw = |frame: u32, rows: std::ops::Range<u32>| {
        for y in rows {
            let row: Vec<u8> = (0..width).map(|x| y_of(frame, x, y)).collect();
            memory[0].write((y * luma.stride) as usize, &row);
            let row: Vec<u8> = (0..width.div_ceil(2)).flat_map(|x| uv_of(frame, x, y / 2)).collect();
            memory[1].write((chroma.offset + y / 2 * chroma.stride) as usize, &row);
        }
    };
    draw(0, 0..height);
    let buffer = client.import_all(
        0,
        &[(&memory[0], luma), (&memory[1], chroma)].map(|(memory, layout)| Plane {
            fd: memory.fd.as_fd(),
            fourcc: FILM,
            modifier: 0,
            layout,
        }),
    );
    client.commit(&buffer, [0, 0, width, height]);
    let shows =
        |changed: std::ops::Range<u32>| {
            ferry.shows_what("film", |shown| {
                (0..height).all(|y| {
                    let frame = u32::from(changed.contains(&y));
                    shown.row(y).iter().zip(0..).all(|(pixel, x)| {
                        is_about(*pixel, film(y_of(frame, x, y), uv_of(frame, x / 2, y / 2)))
                    })
                })
            });
        };
    shows(0..0);
    // Of the last row before and the first behind, the chroma is the same.
    draw(1, 40..60);
    client.commit(&buffer, [0, 40, width, 20]);
    shows(40..60);
}

/// Whether a pixel has this red, green and blue, but for rounding.
fn is_about(pixel: u32, should: [f64; 3]) -> bool {
    let is = [pixel >> 16 & 0xff, pixel >> 8 & 0xff, pixel & 0xff];
    is.into_iter().zip(should).all(|(is, should)| (f64::from(is) - should).abs() <= 1.0)
}

/// Red, green and blue of a film that says nothing of its colours and is small (ITU-R BT.601).
fn film(y: u8, [u, v]: [u8; 2]) -> [f64; 3] {
    let luma = (f64::from(y) - 16.0) * 255.0 / 219.0;
    let (u, v) = ((f64::from(u) - 128.0) * 255.0 / 224.0, (f64::from(v) - 128.0) * 255.0 / 224.0);
    let colours = [luma + 1.402 * v, luma - 0.344_136 * u - 0.714_136 * v, luma + 1.772 * u];
    colours.map(|channel| channel.clamp(0.0, 255.0).round())
}

const FILM: u32 = u32::from_le_bytes(*b"NV12");

/// Formats that the reader has tried with this GPU are read as it draws them.
#[test]
fn gpu_formats_that_are_offered_are_read() {
    let (ferry, gl) = (Ferry::start("auto"), Gl::new());
    let mut client = Client::new(&ferry.socket(), "formats");
    client.roundtrip();
    let formats = std::mem::take(&mut client.heard.formats);
    let names: Vec<String> =
        formats.iter().map(|fourcc| String::from_utf8_lossy(&fourcc.to_le_bytes()).into_owned()).collect();
    drop(client);
    let mut drawn = Vec::new();
    for (fourcc, name) in formats.iter().zip(&names) {
        let Some(canvas) = gl.canvas_of(WIDTH, HEIGHT, *fourcc) else { continue };
        let mut client = Client::new(&ferry.socket(), name);
        let Bo { fd, modifier, offset, stride } = &canvas.bo;
        let layout = Layout { width: WIDTH, height: HEIGHT, offset: *offset, stride: *stride };
        let plane = Plane { fd: fd.as_fd(), fourcc: *fourcc, modifier: *modifier, layout };
        let buffer = client.import(0, &plane);
        gl.fill(&canvas, [0, 0, WIDTH, HEIGHT], [255, 40, 200]);
        gl.fill(&canvas, [10, 20, 30, 40], [7, 255, 0]);
        gl.flush();
        client.commit(&buffer, [0, 0, WIDTH, HEIGHT]);
        let mut picture = Image::new(WIDTH, HEIGHT, 0xffff_28c8);
        picture.fill_rect(10, 20, 30, 40, 0xff07_ff00);
        ferry.shows(name, &picture);
        drawn.push(name.as_str());
    }
    let expected = ["AB24", "XB24", "AR24", "XR24", "AB4H", "XB4H"];
    assert!(expected.iter().all(|name| drawn.contains(name)), "{drawn:?}");
    assert!(names.iter().any(|name| name == "NV12"), "{names:?}");
}

/// A film whose planes a GPU draws, of which the lower half changes.
#[test]
fn gpu_a_film_is_read_by_a_gpu() {
    let (ferry, gl) = (Ferry::start("auto"), Gl::new());
    let mut client = Client::new(&ferry.socket(), "film");
    let canvas = |width, height, name: &[u8; 4]| {
        gl.canvas_of(width, height, u32::from_le_bytes(*name)).expect("the driver has such planes")
    };
    let canvases = [canvas(WIDTH, HEIGHT, b"R8  "), canvas(WIDTH / 2, HEIGHT / 2, b"GR88")];
    let planes = canvases.each_ref().map(|canvas| {
        let Bo { fd, modifier, offset, stride } = &canvas.bo;
        let layout = Layout { width: WIDTH, height: HEIGHT, offset: *offset, stride: *stride };
        Plane { fd: fd.as_fd(), fourcc: FILM, modifier: *modifier, layout }
    });
    let buffer = client.import_all(0, &planes);
    let fill = |y: u32, height: u32, [luma, u, v]: [u8; 3]| {
        gl.fill(&canvases[0], [0, y, WIDTH, height], [luma, 0, 0]);
        gl.fill(&canvases[1], [0, y / 2, WIDTH / 2, height / 2], [u, v, 0]);
        gl.flush();
    };
    let shows = |upper: [u8; 3], lower: [u8; 3]| {
        let [upper, lower] = [upper, lower].map(|[y, u, v]| film(y, [u, v]));
        ferry.shows_what("film", |shown| {
            (0..HEIGHT).all(|y| {
                let should = if y < HEIGHT / 2 { upper } else { lower };
                shown.row(y).iter().all(|pixel| is_about(*pixel, should))
            })
        });
    };
    fill(0, HEIGHT, [200, 90, 160]);
    client.commit(&buffer, [0, 0, WIDTH, HEIGHT]);
    shows([200, 90, 160], [200, 90, 160]);
    fill(HEIGHT / 2, HEIGHT / 2, [70, 200, 30]);
    client.commit(&buffer, [0, HEIGHT / 2, WIDTH, HEIGHT / 2]);
    shows([200, 90, 160], [70, 200, 30]);
}
