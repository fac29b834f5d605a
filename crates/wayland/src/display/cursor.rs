//! Cursors for compositors without cursor-shape: the named shape, drawn from the local theme.
//!
//! Reads theme files, and owns one surface per pointer and one buffer per shape. Only the first image of an animated
//! cursor is shown. Invariant: a shape always has an image, if need be the built-in arrow.

use std::collections::HashMap;

use wayferry_pixels::{Format, Size};
use wayland_backend::protocol::MessageDesc;
use xcursor::CursorTheme;
use xcursor::parser::parse_xcursor;

use crate::action::End;
use crate::message::{Request, WireArg, WireId};
use crate::wire::Arg;

use super::connection::{Connection, known};
use super::objects::Own;
use super::ops;
use super::requests::ints;

/// Bytes of a cursor file that are read at most.
const MAX_FILE: u64 = 4 << 20;

/// Largest side of a cursor image.
const MAX_SIDE: u32 = 512;

/// What has been drawn so far.
#[derive(Debug)]
pub(super) struct Cursors {
    theme: String,
    size: u32,
    /// By shape.
    drawn: HashMap<u32, Drawn>,
    /// Our surfaces, by the pointer or tablet tool that shows them.
    surfaces: HashMap<WireId, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Drawn {
    buffer: u32,
    size: Size,
    hotspot: (i32, i32),
}

/// One cursor image, premultiplied `argb8888`.
#[derive(Debug)]
struct Image {
    size: Size,
    hotspot: (i32, i32),
    pixels: Vec<u8>,
}

impl Cursors {
    pub(super) fn new(theme: String, size: u32) -> Self {
        Self { theme, size, drawn: HashMap::new(), surfaces: HashMap::new() }
    }
}

impl Connection {
    /// Answers a request that the compositor cannot be asked.
    pub(super) fn emulate(&mut self, request: &Request, desc: &MessageDesc) -> Result<(), End> {
        let Some(object) = self.objects.of(request.object) else { return Ok(()) };
        if (object.interface.name, desc.name) != ("wp_cursor_shape_device_v1", "set_shape") {
            return Ok(());
        }
        let pointer = object.origin.iter().copied().find(|id| {
            let name = self.objects.of(*id).map(|object| object.interface.name);
            matches!(name, Some("wl_pointer" | "zwp_tablet_tool_v2"))
        });
        match (pointer, &request.args[..]) {
            (Some(pointer), [WireArg::Uint(serial), WireArg::Uint(shape)]) => {
                self.show_shape(pointer, *serial, *shape)
            }
            _ => Ok(()),
        }
    }

    fn show_shape(&mut self, pointer: WireId, serial: u32, shape: u32) -> Result<(), End> {
        let Some(pointer_id) = self.objects.live(pointer) else { return Ok(()) };
        let drawn = self.draw(shape)?;
        let surface = match self.cursors.surfaces.get(&pointer) {
            Some(surface) => *surface,
            None => {
                let version = self.helpers.compositor_version;
                let surface = self.objects.own(known("wl_surface"), version, Own::Helper)?;
                self.send(
                    self.helpers.compositor,
                    ops::COMPOSITOR_CREATE_SURFACE,
                    vec![Arg::NewId(surface)],
                )?;
                self.cursors.surfaces.insert(pointer, surface);
                surface
            }
        };
        let (x, y) = drawn.hotspot;
        let mut args = vec![Arg::Uint(serial), Arg::Object(surface)];
        args.extend(ints(&[x, y]));
        self.send(pointer_id, self.set_cursor_opcode(pointer), args)?;
        let args = vec![Arg::Object(drawn.buffer), Arg::Int(0), Arg::Int(0)];
        self.send(surface, ops::SURFACE_ATTACH, args)?;
        // Sides are at most 512.
        let (width, height) = (drawn.size.width() as i32, drawn.size.height() as i32);
        self.send(surface, ops::SURFACE_DAMAGE, ints(&[0, 0, width, height]))?;
        self.send(surface, ops::SURFACE_COMMIT, vec![])
    }

    fn set_cursor_opcode(&self, pointer: WireId) -> u16 {
        let interface = self.objects.of(pointer).map(|object| object.interface);
        interface.and_then(|interface| crate::tables::request_opcode(interface, "set_cursor")).unwrap_or(0)
    }

    fn draw(&mut self, shape: u32) -> Result<Drawn, End> {
        // Only known shapes are kept apart, so the map stays small whatever numbers come.
        let key = if names(shape).is_empty() { 0 } else { shape };
        if let Some(drawn) = self.cursors.drawn.get(&key) {
            return Ok(*drawn);
        }
        let image = load(&self.cursors.theme, self.cursors.size, shape).unwrap_or_else(arrow);
        let buffer = self.make_static_buffer(image.size, Format::Argb8888, &image.pixels)?;
        let drawn = Drawn { buffer, size: image.size, hotspot: image.hotspot };
        self.cursors.drawn.insert(key, drawn);
        Ok(drawn)
    }

    /// A pointer is gone, and with it our surface on it.
    pub(super) fn cursors_forget(&mut self, pointer: WireId) -> Result<(), End> {
        if let Some(surface) = self.cursors.surfaces.remove(&pointer) {
            self.send(surface, ops::SURFACE_DESTROY, vec![])?;
            self.objects.own_destroyed(surface);
        }
        Ok(())
    }
}

fn load(theme: &str, size: u32, shape: u32) -> Option<Image> {
    let theme = CursorTheme::load(theme);
    let path = names(shape).iter().find_map(|name| theme.load_icon(name))?;
    let length = std::fs::metadata(&path).ok()?.len();
    if length > MAX_FILE {
        return None;
    }
    let images = parse_xcursor(&std::fs::read(path).ok()?)?;
    let image = images.into_iter().min_by_key(|image| image.size.abs_diff(size))?;
    if image.width.max(image.height) > MAX_SIDE {
        return None;
    }
    let expected = image.width as usize * image.height as usize * 4;
    // The file holds little-endian argb words, which is what `argb8888` is.
    let pixels = image.pixels_rgba;
    let size = Size::new(image.width, image.height).ok()?;
    let hotspot = (i32::try_from(image.xhot).ok()?, i32::try_from(image.yhot).ok()?);
    (pixels.len() == expected).then_some(Image { size, hotspot, pixels })
}

/// Names under which themes have a shape of `wp_cursor_shape_device_v1`, the usual one first; none if there is no
/// such shape.
fn names(shape: u32) -> &'static [&'static str] {
    match shape {
        1 => &["default", "left_ptr"],
        2 => &["context-menu", "left_ptr"],
        3 => &["help", "question_arrow", "left_ptr_help"],
        4 => &["pointer", "hand2", "hand1"],
        5 => &["progress", "left_ptr_watch", "half-busy"],
        6 => &["wait", "watch"],
        7 => &["cell", "plus"],
        8 => &["crosshair", "cross"],
        9 => &["text", "xterm", "ibeam"],
        10 => &["vertical-text", "xterm"],
        11 => &["alias", "dnd-link", "link"],
        12 => &["copy", "dnd-copy"],
        13 => &["move", "fleur", "dnd-move"],
        14 => &["no-drop", "dnd-no-drop", "dnd-none", "forbidden"],
        15 => &["not-allowed", "crossed_circle", "forbidden"],
        16 => &["grab", "openhand", "hand1"],
        17 => &["grabbing", "closedhand", "fleur"],
        18 => &["e-resize", "right_side"],
        19 => &["n-resize", "top_side"],
        20 => &["ne-resize", "top_right_corner"],
        21 => &["nw-resize", "top_left_corner"],
        22 => &["s-resize", "bottom_side"],
        23 => &["se-resize", "bottom_right_corner"],
        24 => &["sw-resize", "bottom_left_corner"],
        25 => &["w-resize", "left_side"],
        26 => &["ew-resize", "sb_h_double_arrow", "size_hor"],
        27 => &["ns-resize", "sb_v_double_arrow", "size_ver"],
        28 => &["nesw-resize", "fd_double_arrow", "size_bdiag"],
        29 => &["nwse-resize", "bd_double_arrow", "size_fdiag"],
        30 => &["col-resize", "sb_h_double_arrow", "split_h"],
        31 => &["row-resize", "sb_v_double_arrow", "split_v"],
        32 => &["all-scroll", "fleur", "size_all"],
        33 => &["zoom-in", "left_ptr"],
        34 => &["zoom-out", "left_ptr"],
        _ => &[],
    }
}

/// An arrow for hosts without any cursor theme: black with a white rim.
fn arrow() -> Image {
    const ROWS: [&[u8]; 17] = [
        b"O          ",
        b"OO         ",
        b"O#O        ",
        b"O##O       ",
        b"O###O      ",
        b"O####O     ",
        b"O#####O    ",
        b"O######O   ",
        b"O#######O  ",
        b"O########O ",
        b"O#####OOOOO",
        b"O##O##O    ",
        b"O#O O##O   ",
        b"OO  O##O   ",
        b"O    O##O  ",
        b"     O##O  ",
        b"      OO   ",
    ];
    let pixel = |cell: &u8| match cell {
        b'#' => [0, 0, 0, 255],
        b'O' => [255; 4],
        _ => [0; 4],
    };
    let pixels = ROWS.iter().flat_map(|row| row.iter().flat_map(pixel)).collect();
    let size = Size::new(ROWS[0].len() as u32, ROWS.len() as u32).expect("a small image");
    Image { size, hotspot: (0, 0), pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_arrow_is_a_whole_image() {
        let image = arrow();
        assert_eq!(image.pixels.len(), image.size.width() as usize * image.size.height() as usize * 4);
        assert_eq!(&image.pixels[..4], [255; 4]);
    }

    #[test]
    fn every_shape_of_version_1_has_names() {
        assert!((1..=34).all(|shape| !names(shape).is_empty()));
        assert!(names(0).is_empty() && names(35).is_empty());
    }

    #[test]
    fn a_theme_that_does_not_exist_gives_nothing() {
        assert!(load("no such theme, surely", 24, 35).is_none());
    }
}
