//! What the tests of the stage share.

#![allow(dead_code, reason = "each test binary compiles all of it and uses a part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use wayferry_stage::{Client, Config, Image, Stage};

/// A stage and a client on it.
pub(crate) fn start(config: Config) -> (Stage, Client) {
    let stage = Stage::start(config).unwrap();
    let client = Client::from_stream(stage.connect().unwrap()).unwrap();
    (stage, client)
}

/// A picture in which every place looks different.
pub(crate) fn checkers(width: u32, height: u32) -> Image {
    let mut image = Image::new(width, height, 0);
    for y in 0..height {
        for x in 0..width {
            image.set(x, y, 0xff00_0000 | ((x * 7) & 255) << 16 | ((y * 5) & 255) << 8 | (x ^ y) & 255);
        }
    }
    image
}

/// A directory of a test's own, removed at its end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("stage-{}-{count}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
