//! What an output showed.

use std::collections::HashSet;
use std::fs;
use std::io::BufWriter;
use std::path::Path;

/// Pixels of three bytes, red first, row by row.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// Of these pixels.
    pub(crate) fn of(width: usize, height: usize, pixels: Vec<u8>) -> Self {
        assert_eq!(pixels.len(), width * height * 3, "a truncated picture");
        Self { width, height, pixels }
    }

    /// Reads a binary portable pixmap with 255 as its greatest value: what `grim -t ppm` writes.
    pub(crate) fn from_ppm(bytes: &[u8]) -> Self {
        let mut parts = bytes.splitn(4, |&byte| byte == b'\n' || byte == b' ');
        assert_eq!(parts.next(), Some(&b"P6"[..]), "not a portable pixmap");
        let mut number = || -> usize {
            let text = std::str::from_utf8(parts.next().expect("a header")).expect("a header");
            text.parse().expect("a number in the header")
        };
        let (width, height) = (number(), number());
        let pixels =
            parts.next().and_then(|rest| rest.strip_prefix(b"255\n")).expect("255 as greatest value");
        assert_eq!(pixels.len(), width * height * 3, "a truncated picture");
        Self { width, height, pixels: pixels.to_vec() }
    }

    /// Reads a PNG of 8 bits per channel.
    pub(crate) fn from_png(path: &Path) -> Option<Self> {
        let mut reader = png::Decoder::new(fs::File::open(path).ok()?).read_info().ok()?;
        let mut bytes = vec![0; reader.output_buffer_size()];
        let frame = reader.next_frame(&mut bytes).ok()?;
        let channels = frame.color_type.samples();
        bytes.truncate(frame.buffer_size());
        let pixels = bytes.chunks_exact(channels).flat_map(|pixel| &pixel[..3]).copied().collect();
        Some(Self { width: frame.width as usize, height: frame.height as usize, pixels })
    }

    pub(crate) fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
    }

    /// Width and height.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.width as u32, self.height as u32)
    }

    /// What is inside a rectangle.
    pub(crate) fn part(&self, (x, y): (u32, u32), (width, height): (u32, u32)) -> Self {
        let [x, y, width, height] = [x, y, width, height].map(|value| value as usize);
        let row = |row: usize| &self.pixels[((y + row) * self.width + x) * 3..][..width * 3];
        Self { width, height, pixels: (0..height).flat_map(row).copied().collect() }
    }

    /// How many different colours it has.
    pub(crate) fn colours(&self) -> usize {
        self.pixels.chunks_exact(3).collect::<HashSet<_>>().len()
    }

    /// How many pixels differ in two pictures of one size.
    pub(crate) fn differing(&self, other: &Self) -> usize {
        assert_eq!(self.size(), other.size());
        let pixels = self.pixels.chunks_exact(3).zip(other.pixels.chunks_exact(3));
        pixels.filter(|(ours, theirs)| ours != theirs).count()
    }

    /// Where two pictures differ, in words.
    pub(crate) fn difference(&self, other: &Self) -> String {
        if (self.width, self.height) != (other.width, other.height) {
            return format!("{} x {} against {} x {}", self.width, self.height, other.width, other.height);
        }
        let differ = |&at: &usize| self.pixels[at * 3..at * 3 + 3] != other.pixels[at * 3..at * 3 + 3];
        let places: Vec<_> = (0..self.width * self.height)
            .filter(differ)
            .map(|at| (at % self.width, at / self.width))
            .collect();
        let Some(first) = places.first() else { return "not at all".to_owned() };
        let (left, right) =
            places.iter().fold((usize::MAX, 0), |(low, high), at| (low.min(at.0), high.max(at.0)));
        let last = places[places.len() - 1];
        let colours = (self.pixel(first.0, first.1), other.pixel(first.0, first.1));
        format!(
            "{} pixels in columns {left} to {right}, rows {} to {}; the first has {:?}, should have {:?}",
            places.len(),
            first.1,
            last.1,
            colours.1,
            colours.0
        )
    }

    /// Keeps it as a PNG below `target/` for a look into a failure; gives the path.
    pub(crate) fn keep(&self, name: &str) -> String {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.png", name.replace(' ', "-")));
        let file = BufWriter::new(fs::File::create(&path).expect("a file for the picture"));
        let mut encoder = png::Encoder::new(file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().expect("a picture's header");
        writer.write_image_data(&self.pixels).expect("a picture's pixels");
        path.display().to_string()
    }
}
