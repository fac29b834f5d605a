//! What `tests/record/record` writes: keys and frames of a real program, with their times.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wayferry_echo::Key;
use wayferry_pixels::{Rect, Size};

/// A program answering keys.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) size: Size,
    pub(crate) events: Vec<(Duration, Event)>,
}

pub(crate) enum Event {
    Key(Key),
    /// Rows of XRGB in a part of the output.
    Frame(Rect, Vec<u8>),
}

impl Recording {
    /// All of one half of the corpus, by name.
    pub(crate) fn all(half: &str) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(half);
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(format!("{name}.bin")))
    }

    fn read(path: &Path) -> Self {
        let packed = std::fs::read(path).expect("a recording");
        let mut bytes = vec![0; MAX_UNPACKED];
        let mut context = zstd_safe::DCtx::create();
        context.set_parameter(zstd_safe::DParameter::WindowLogMax(27)).expect("a window");
        let length = context.decompress(&mut bytes[..], &packed).expect("a whole recording");
        let mut reader = Reader(&bytes[..length]);
        let (width, height, colours) = (reader.u16(), reader.u16(), reader.u32());
        let palette: Vec<[u8; 4]> = (0..colours).map(|_| reader.u32().to_le_bytes()).collect();
        let mut events = Vec::new();
        while !reader.0.is_empty() {
            events.push(reader.event(&palette));
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        Self { name, size: Size::new(width.into(), height.into()).expect("a size"), events }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn event(&mut self, palette: &[[u8; 4]]) -> (Duration, Event) {
        let (kind, at) = (self.u8(), Duration::from_micros(self.u32().into()));
        if kind == 0 {
            return (at, Event::Key(Key { code: self.u16(), modifiers: self.u8(), group: 0 }));
        }
        let [x, y, width, height] = [(); 4].map(|()| u32::from(self.u16()));
        let index = |reader: &mut Self| match palette.len() {
            ..=256 => usize::from(reader.u8()),
            _ => usize::from(reader.u16()),
        };
        let pixels = (0..width * height).flat_map(|_| palette[index(self)]).collect();
        (at, Event::Frame(Rect::new(x, y, width, height), pixels))
    }

    fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().expect("a whole event");
        self.0 = rest;
        *taken
    }
}

/// Bytes of the longest recording; pages that are not written cost nothing.
const MAX_UNPACKED: usize = 128 << 20;
