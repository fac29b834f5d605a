//! `wayferry bench compression`: which setting of `--compress` shows a new picture soonest over a link of some rate.
//!
//! Soonest is the sum of the time to encode on this machine, to send at that rate, and to decode on this machine; in a
//! session the three overlap a little. Invariant: every setting sends the same picture, from the same black.

use std::fs::File;
use std::io::{BufReader, Error as IoError, ErrorKind};
use std::path::Path;

use serde_json::{Value, json};
use wayferry_scenes::codec::Codec;
use wayferry_scenes::{Canvas, Color, Frame, Scene, Sequence, photograph};

use super::pixels::{Wayferry, cpu_time};
use super::progress::Bar;
use super::{document, round, share, write_text};
use crate::error::{Error, SessionError};
use crate::flags::CompressionFlags;
use wayferry_host::settings::Compress;

/// What one setting costs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    compress: Compress,
    bytes: f64,
    encode_ms: f64,
    decode_ms: f64,
}

/// Measures and recommends; gives the exit code.
pub(crate) fn run(flags: &CompressionFlags) -> Result<u8, Error> {
    let pictures = match &flags.png {
        Some(path) => vec![("picture", read_png(path)?)],
        None => vec![("text", text()), ("photograph", photograph(1920, 1080, SEED))],
    };
    let (mut bar, mut rows) = (Bar::new(), Vec::new());
    println!(
        "{:<12}{:<10}{:>10}{:>11}{:>11}{:>11}{:>11}  ms on {} Mbit/s",
        "content", "setting", "bytes", "encode", "send", "decode", "sum", flags.rate
    );
    for (done, (name, picture)) in pictures.iter().enumerate() {
        let mut costs = Vec::new();
        for compress in settings() {
            bar.show(done * settings().count() + costs.len(), pictures.len() * settings().count());
            costs.push(measure(compress, picture)?);
        }
        bar.clear();
        for cost in &costs {
            println!("{}", line(name, *cost, flags.rate));
        }
        let soonest = best(&costs, flags.rate);
        if let Some(best) = soonest {
            println!("{name}: `--compress {}` shows it soonest", word(best.compress));
        }
        rows.extend(costs.iter().map(|cost| row(name, *cost, flags.rate, soonest == Some(*cost))));
    }
    if let Some(path) = &flags.json {
        write_text(path, &format!("{:#}\n", document(&rows)))?;
    }
    Ok(0)
}

fn settings() -> impl Iterator<Item = Compress> {
    [Compress::None, Compress::Lz4].into_iter().chain((1..=9).map(Compress::Zstd))
}

fn word(compress: Compress) -> String {
    match compress {
        Compress::None => "none".into(),
        Compress::Lz4 => "lz4".into(),
        Compress::Zstd(level) => format!("zstd={level}"),
    }
}

/// Medians over a few rounds of black and the picture.
fn measure(compress: Compress, picture: &Canvas) -> Result<Cost, Error> {
    let (width, height) = (picture.width(), picture.height());
    let mut codec = Wayferry::new(compress, width, height)?;
    let black = Canvas::new(width, height, Color(0, 0, 0));
    let (mut encode_ms, mut decode_ms, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        send(&mut codec, &black)?;
        let (encode, decode, length) = send(&mut codec, picture)?;
        encode_ms.push(encode);
        decode_ms.push(decode);
        bytes = length;
    }
    if codec.shown() != picture.pixels().as_flattened() {
        return Err(Error::Inexact(format!("the picture differs after `{}`", word(compress))));
    }
    let cost = Cost {
        compress,
        bytes: bytes as f64,
        encode_ms: share(&encode_ms, 0.5),
        decode_ms: share(&decode_ms, 0.5),
    };
    Ok(cost)
}

/// Milliseconds to encode and to decode, and bytes between.
fn send(codec: &mut Wayferry, picture: &Canvas) -> Result<(f64, f64, usize), Error> {
    let damage = [picture.rect()];
    let (width, height, pixels) = (picture.width(), picture.height(), picture.pixels());
    let frame = Frame { width, height, pixels, damage: &damage, scroll: None };
    codec.draw(&frame);
    let began = cpu_time();
    let messages = codec.encode(&frame);
    let encoded = cpu_time();
    for message in &messages {
        codec.decode(message).map_err(|error| Error::Inexact(error.to_string()))?;
    }
    codec.finish().map_err(|error| Error::Inexact(error.to_string()))?;
    let decoded = cpu_time();
    Ok(((encoded - began) * 1e3, (decoded - encoded) * 1e3, messages.iter().map(Vec::len).sum()))
}

impl Cost {
    fn send_ms(self, rate: f64) -> f64 {
        self.bytes * 8.0 / (rate * 1e3)
    }

    fn sum_ms(self, rate: f64) -> f64 {
        self.encode_ms + self.send_ms(rate) + self.decode_ms
    }
}

fn best(costs: &[Cost], rate: f64) -> Option<Cost> {
    costs.iter().copied().min_by(|one, other| one.sum_ms(rate).total_cmp(&other.sum_ms(rate)))
}

fn line(name: &str, cost: Cost, rate: f64) -> String {
    format!(
        "{name:<12}{:<10}{:>10.0}{:>11.2}{:>11.2}{:>11.2}{:>11.2}",
        word(cost.compress),
        cost.bytes,
        cost.encode_ms,
        cost.send_ms(rate),
        cost.decode_ms,
        cost.sum_ms(rate)
    )
}

fn row(name: &str, cost: Cost, rate: f64, soonest: bool) -> Value {
    json!({
        "content": name,
        "setting": word(cost.compress),
        "rate_mbps": rate,
        "bytes": cost.bytes,
        "encode_ms": round(cost.encode_ms),
        "send_ms": round(cost.send_ms(rate)),
        "decode_ms": round(cost.decode_ms),
        "sum_ms": round(cost.sum_ms(rate)),
        "soonest": soonest,
    })
}

/// A page of text.
fn text() -> Canvas {
    let scene = Scene::new(Sequence::Term, SEED);
    let frame = scene.frame();
    let mut canvas = Canvas::new(frame.width, frame.height, Color(0, 0, 0));
    canvas.pixels_mut().copy_from_slice(frame.pixels);
    canvas
}

/// The picture of a file; what is transparent is black.
fn read_png(path: &Path) -> Result<Canvas, Error> {
    let failed = |source: IoError| SessionError::File { path: path.to_owned(), source };
    let wrong = |error: png::DecodingError| match error {
        png::DecodingError::IoError(source) => failed(source),
        other => failed(IoError::new(ErrorKind::InvalidInput, other)),
    };
    let mut decoder = png::Decoder::new(BufReader::new(File::open(path).map_err(failed)?));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(wrong)?;
    let (width, height) = (reader.info().width, reader.info().height);
    if let Err(error) = wayferry_pixels::Size::new(width, height) {
        return Err(failed(IoError::new(ErrorKind::InvalidInput, error)).into());
    }
    let mut bytes = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut bytes).map_err(wrong)?;
    let mut canvas = Canvas::new(width, height, Color(0, 0, 0));
    let samples = info.color_type.samples();
    for (pixel, source) in canvas.pixels_mut().iter_mut().zip(bytes.chunks_exact(samples)) {
        *pixel = color(source).pixel();
    }
    Ok(canvas)
}

/// Of grey, grey and alpha, red, green and blue, or these and alpha.
fn color(samples: &[u8]) -> Color {
    let over = |value: u8, alpha: u8| (u16::from(value) * u16::from(alpha) / 255) as u8;
    match *samples {
        [red, green, blue] => Color(red, green, blue),
        [red, green, blue, alpha] => Color(over(red, alpha), over(green, alpha), over(blue, alpha)),
        [grey, alpha] => Color(over(grey, alpha), over(grey, alpha), over(grey, alpha)),
        _ => samples.first().map_or(Color(0, 0, 0), |grey| Color(*grey, *grey, *grey)),
    }
}

/// Of the generated content.
const SEED: u64 = 1;

/// How often each setting is tried.
const ROUNDS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(compress: Compress, bytes: f64, time: f64) -> Cost {
        Cost { compress, bytes, encode_ms: time, decode_ms: time / 2.0 }
    }

    #[test]
    fn slow_links_ask_for_fewer_bytes_and_fast_ones_for_less_work() {
        let costs = [
            cost(Compress::None, 8e6, 1.0),
            cost(Compress::Lz4, 2e6, 4.0),
            cost(Compress::Zstd(1), 1e6, 10.0),
            cost(Compress::Zstd(9), 0.9e6, 200.0),
        ];
        let found =
            [1.0, 100.0, 2000.0, 100_000.0].map(|rate| best(&costs, rate).map(|cost| word(cost.compress)));
        assert_eq!(found.map(Option::unwrap_or_default), ["zstd=9", "zstd=1", "lz4", "none"]);
        assert_eq!(costs[0].sum_ms(64.0), 1.0 + 1000.0 + 0.5);
    }

    #[test]
    fn a_row_says_what_the_line_says() {
        let value = row("text", cost(Compress::Zstd(3), 1e6, 10.0), 20.0, true);
        assert_eq!((&value["content"], &value["setting"]), (&json!("text"), &json!("zstd=3")));
        assert_eq!((&value["send_ms"], &value["sum_ms"]), (&json!(400.0), &json!(415.0)));
        assert_eq!(value["soonest"], json!(true));
    }

    #[test]
    fn a_picture_is_measured_and_arrives() {
        let found = measure(Compress::Zstd(1), &photograph(64, 48, 1)).expect("exact");
        assert!((1000.0..20_000.0).contains(&found.bytes), "{found:?}");
    }

    #[test]
    fn colours_of_a_file_become_pixels() {
        assert_eq!(color(&[7]), Color(7, 7, 7));
        assert_eq!(color(&[255, 51]), Color(51, 51, 51));
        assert_eq!(color(&[1, 2, 3]), Color(1, 2, 3));
        assert_eq!(color(&[255, 0, 100, 0]), Color(0, 0, 0));
    }
}
