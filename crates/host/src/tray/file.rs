//! The file of an icon that a program only names.
//!
//! A desk on another machine does not have it: what the name stands for here crosses as a picture. Only PNG is read;
//! how themes inherit from each other is not followed. Invariant: only a regular file is read, no more of it than
//! [`MAX_FILE`], and no larger picture than [`MAX_RAW_SIDE`].

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use wayferry_proto::TrayPicture;

use crate::edge::data_dirs::data_directories;

use super::value::{MAX_RAW_SIDE, Raw};

/// The picture of this name: in a directory of the program's, or where icons are that belong to no theme.
pub(super) fn picture(name: &str, program: &str) -> Option<TrayPicture> {
    let shared: Vec<PathBuf> = data_directories().take(MAX_SHARED).collect();
    candidates(name, program, &shared).iter().find_map(|path| read(path))
}

/// Where it may be, best first.
fn candidates(name: &str, program: &str, shared: &[PathBuf]) -> Vec<PathBuf> {
    if name.is_empty() || name.len() > MAX_NAME || program.len() > MAX_NAME {
        return Vec::new();
    }
    if name.starts_with('/') {
        return vec![name.into()];
    }
    if name.contains('/') || name.starts_with('.') {
        return Vec::new();
    }
    let file = format!("{name}.png");
    let below = |root: &Path| {
        let hicolor = root.join("hicolor");
        let of_size = |size: &u32| {
            let size = hicolor.join(format!("{size}x{size}"));
            ["apps", "status"].map(|kind| size.join(kind).join(&file))
        };
        SIZES.iter().flat_map(of_size).collect::<Vec<_>>()
    };
    let program = Some(Path::new(program)).filter(|path| path.is_absolute());
    let own = program.into_iter().flat_map(|path| [path.join(&file)].into_iter().chain(below(path)));
    let all = shared
        .iter()
        .flat_map(|path| below(&path.join("icons")).into_iter().chain([path.join("pixmaps").join(&file)]));
    own.chain(all).collect()
}

fn read(path: &Path) -> Option<TrayPicture> {
    // A pipe would be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then(|| decode(File::from(file).take(MAX_FILE)))?
}

fn decode(bytes: impl Read) -> Option<TrayPicture> {
    let mut decoder = png::Decoder::new_with_limits(bytes, png::Limits { bytes: MAX_MEMORY });
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().ok()?;
    let (width, height) = reader.info().size();
    if [width, height].iter().any(|side| *side as usize > MAX_RAW_SIDE) {
        return None;
    }
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).ok()?;
    pixels.truncate(info.buffer_size());
    let argb: Vec<u8> = match info.color_type {
        png::ColorType::Rgba => pixels.chunks_exact(4).flat_map(|it| [it[3], it[0], it[1], it[2]]).collect(),
        png::ColorType::GrayscaleAlpha => {
            pixels.chunks_exact(2).flat_map(|it| [it[1], it[0], it[0], it[0]]).collect()
        }
        _ => return None,
    };
    Raw::new(i32::try_from(width).ok()?, i32::try_from(height).ok()?, &argb)?.fit()
}

/// Sizes of icons that are looked for, in this order.
const SIZES: [u32; 6] = [48, 64, 32, 24, 22, 16];
/// Longest name, and longest path of a program's directory, in bytes.
const MAX_NAME: usize = 1024;
/// Directories of data that are looked at.
const MAX_SHARED: usize = 8;
/// Bytes of a file that are read.
const MAX_FILE: u64 = 1 << 20;
/// Bytes that decoding may take.
const MAX_MEMORY: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::edge::socket::RuntimeDir;

    fn png(side: u32, color: png::ColorType, pixel: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, side, side);
        encoder.set_color(color);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(&pixel.repeat((side * side) as usize)).expect("pixels");
        writer.finish().expect("an end");
        bytes
    }

    #[test]
    fn the_file_of_a_name_becomes_a_picture() {
        let home = RuntimeDir::private().expect("a directory");
        let program = home.path().to_str().expect("a plain path");
        fs::write(home.path().join("mail.png"), png(22, png::ColorType::Rgb, &[1, 2, 3])).expect("a file");
        let found = picture("mail", program).expect("a picture");
        assert_eq!((found.size(), &found.argb()[..4]), ((22, 22), &[255, 1, 2, 3][..]));
        // A path, as some programs have it.
        let path = home.path().join("large.png");
        fs::write(&path, png(256, png::ColorType::GrayscaleAlpha, &[9, 128])).expect("a file");
        let found = picture(path.to_str().expect("plain"), "").expect("a picture");
        assert_eq!((found.size(), &found.argb()[..4]), ((64, 64), &[128, 9, 9, 9][..]));
        // One of another theme's form.
        let apps = home.path().join("icons/hicolor/32x32/apps");
        fs::create_dir_all(&apps).expect("directories");
        fs::write(apps.join("talk.png"), png(32, png::ColorType::Rgba, &[1, 2, 3, 4])).expect("a file");
        let found = candidates("talk", "", &[home.path().to_owned()]).iter().find_map(|path| read(path));
        assert_eq!(found.map(|picture| picture.argb()[..4].to_vec()), Some(vec![4, 1, 2, 3]));
    }

    #[test]
    fn what_is_no_small_png_in_a_file_is_no_icon() {
        let home = RuntimeDir::private().expect("a directory");
        let at = |name: &str| home.path().join(name);
        fs::write(at("huge.png"), png(1025, png::ColorType::Grayscale, &[1])).expect("a file");
        fs::write(at("text.png"), "no picture").expect("a file");
        let cut = png(48, png::ColorType::Rgba, &[1, 2, 3, 4]);
        fs::write(at("cut.png"), &cut[..60]).expect("a file");
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe.png"), FileType::Fifo, Mode::from(0o600), 0)
            .expect("a pipe");
        fs::create_dir(at("directory.png")).expect("a directory");
        let program = home.path().to_str().expect("a plain path");
        for name in ["huge", "text", "cut", "pipe", "directory", "none", "", ".", "../x", "a/b"] {
            assert_eq!(picture(name, program), None, "{name}");
        }
        assert!(candidates(&"n".repeat(2000), "", &[]).is_empty());
        assert!(candidates("mail", "relative", &[]).is_empty());
    }
}
