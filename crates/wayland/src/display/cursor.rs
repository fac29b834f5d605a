//! Cursors for compositors without cursor-shape: the named shape, drawn from the local theme.
//!
//! Reads theme files, and knows the surface on each pointer and the buffer of each shape; sends nothing itself. Only
//! the first image of an animated cursor is shown. Invariant: a shape always has an image, if need be the built-in
//! arrow.

use std::collections::HashMap;

use wayferry_pixels::Size;
use xcursor::CursorTheme;
use xcursor::parser::parse_xcursor;

use crate::message::WireId;

/// Bytes of a cursor file that are read at most.
const MAX_FILE: u64 = 4 << 20;

/// Largest side of a cursor image in a theme.
const MAX_SIDE: u32 = 512;

/// Scale of outputs up to which cursors grow.
const MAX_SCALE: i32 = 4;

/// What has been drawn so far.
#[derive(Debug)]
pub(super) struct Cursors {
    theme: String,
    size: u32,
    /// By shape and scale.
    drawn: HashMap<(u32, u32), Drawn>,
    /// Scales of the program's outputs: cursors are drawn for the largest.
    scales: HashMap<WireId, u32>,
    /// Our surfaces, by the pointer or tablet tool that shows them.
    surfaces: HashMap<WireId, u32>,
}

/// A shape that the compositor has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    pub(super) buffer: u32,
    pub(super) size: Size,
    pub(super) hotspot: (i32, i32),
}

/// One cursor image, premultiplied `argb8888`.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) size: Size,
    pub(super) hotspot: (i32, i32),
    /// The size that the theme gives it, of which its sides may differ.
    nominal: u32,
    pub(super) pixels: Vec<u8>,
}

impl Image {
    /// As large as it must be for a nominal size, its sides multiples of `scale`: cursors are few and small, so pixels
    /// are just repeated, and transparent ones added.
    fn fit(self, nominal: u32, scale: u32) -> Self {
        let times = (nominal / self.nominal.max(1)).max(1);
        let (width, height) = (self.size.width(), self.size.height());
        let side = |length: u32| (length * times).next_multiple_of(scale);
        let Ok(size) = Size::new(side(width), side(height)) else { return self };
        let mut pixels = vec![0; size.width() as usize * size.height() as usize * 4];
        for (row, y) in pixels.chunks_exact_mut(size.width() as usize * 4).zip(0..height * times) {
            for (pixel, x) in row.chunks_exact_mut(4).zip(0..width * times) {
                let at = ((y / times * width + x / times) * 4) as usize;
                pixel.copy_from_slice(&self.pixels[at..at + 4]);
            }
        }
        let [x, y] = [self.hotspot.0, self.hotspot.1].map(|at| at.saturating_mul(times.cast_signed()));
        Self { size, hotspot: (x, y), nominal: self.nominal * times, pixels }
    }
}

impl Cursors {
    pub(super) fn new(theme: String, size: u32) -> Self {
        Self { theme, size, drawn: HashMap::new(), scales: HashMap::new(), surfaces: HashMap::new() }
    }

    /// The compositor has told the scale of an output.
    pub(super) fn set_scale(&mut self, output: WireId, scale: i32) {
        self.scales.insert(output, scale.clamp(1, MAX_SCALE).unsigned_abs());
    }

    /// An output is gone.
    pub(super) fn forget_output(&mut self, output: WireId) {
        self.scales.remove(&output);
    }

    /// The largest scale of an output.
    pub(super) fn scale(&self) -> u32 {
        self.scales.values().copied().max().unwrap_or(1)
    }

    /// The surface that a pointer shows.
    pub(super) fn surface_on(&self, pointer: WireId) -> Option<u32> {
        self.surfaces.get(&pointer).copied()
    }

    /// A pointer has a surface of its own from now on.
    pub(super) fn put(&mut self, pointer: WireId, surface: u32) {
        self.surfaces.insert(pointer, surface);
    }

    /// A pointer is gone; gives its surface.
    pub(super) fn take(&mut self, pointer: WireId) -> Option<u32> {
        self.surfaces.remove(&pointer)
    }

    /// A shape that the compositor has at this scale.
    pub(super) fn drawn(&self, shape: u32, scale: u32) -> Option<Drawn> {
        self.drawn.get(&(known(shape), scale)).copied()
    }

    /// The image of a shape.
    pub(super) fn draw(&self, shape: u32, scale: u32) -> Image {
        let image = load(&self.theme, self.size * scale, shape).unwrap_or_else(|| arrow(self.size));
        image.fit(self.size * scale, scale)
    }

    /// The compositor has a shape from now on.
    pub(super) fn keep(&mut self, shape: u32, scale: u32, drawn: Drawn) {
        self.drawn.insert((known(shape), scale), drawn);
    }
}

/// Only known shapes are kept apart, so the map stays small for any numbers that come.
fn known(shape: u32) -> u32 {
    if names(shape).is_empty() { 0 } else { shape }
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
    let nominal = image.size;
    let expected = image.width as usize * image.height as usize * 4;
    // The file holds little-endian argb words, which is what `argb8888` is.
    let pixels = image.pixels_rgba;
    let size = Size::new(image.width, image.height).ok()?;
    let hotspot = (i32::try_from(image.xhot).ok()?, i32::try_from(image.yhot).ok()?);
    (pixels.len() == expected).then_some(Image { size, hotspot, nominal, pixels })
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

/// An arrow of that nominal size for hosts without any cursor theme: black with a white rim.
fn arrow(nominal: u32) -> Image {
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
    Image { size, hotspot: (0, 0), nominal, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_arrow_is_a_whole_image() {
        let image = arrow(24);
        assert_eq!(image.pixels.len(), image.size.width() as usize * image.size.height() as usize * 4);
        assert_eq!(&image.pixels[..4], [255; 4]);
    }

    #[test]
    fn an_image_grows_to_whole_pixels_of_its_scale() {
        let pixels: Vec<u8> = (0..3 * 4).collect();
        let image = Image { size: Size::new(3, 1).unwrap(), hotspot: (2, 0), nominal: 24, pixels };
        let (second, third) = ([4, 5, 6, 7], [8, 9, 10, 11]);
        let image = image.fit(48, 4);
        assert_eq!((image.size.width(), image.size.height(), image.hotspot), (8, 4, (4, 0)));
        assert_eq!([&image.pixels[8..12], &image.pixels[16..20]], [second, third]);
        assert_eq!(&image.pixels[24..32], [0; 8], "and has a transparent rim");
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
