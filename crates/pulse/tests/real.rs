//! Real programs play to the server; what is mixed is what they played, bit for bit.

#[path = "real/stage.rs"]
mod stage;

use stage::{Stage, spoken};

#[test]
fn paplay_is_heard_bit_for_bit() {
    let stage = Stage::new();
    let noise = noise(1, 48_000);
    let file = stage.file("noise.wav", &wav(&noise));
    stage.run("paplay", &[file.to_str().unwrap()]);
    assert_heard(&stage, &noise);
}

#[test]
fn paplay_with_little_latency_is_heard_bit_for_bit() {
    let stage = Stage::new();
    let noise = noise(2, 48_000);
    let file = stage.file("noise.wav", &wav(&noise));
    stage.run("paplay", &["--latency-msec=60", file.to_str().unwrap()]);
    assert_heard(&stage, &noise);
}

#[test]
fn pacat_is_heard_bit_for_bit() {
    let stage = Stage::new();
    let noise = noise(3, 48_000);
    let file = stage.file("noise.raw", &raw(&noise));
    let format = ["--playback", "--raw", "--format=s16le", "--rate=48000", "--channels=2"];
    stage.run("pacat", &[&format[..], &[file.to_str().unwrap()]].concat());
    assert_heard(&stage, &noise);
}

#[test]
fn ffmpeg_is_heard_bit_for_bit() {
    let stage = Stage::new();
    // It ends when it has written the last, not when that is heard.
    let noise = noise(4, 48_000);
    let file = stage.file("noise.wav", &wav(&noise));
    let source = ["-nostdin", "-i", file.to_str().unwrap()];
    stage.run("ffmpeg", &[&source[..], &["-f", "pulse", "-buffer_duration", "100", "noise"]].concat());
    assert_begin_heard(&stage, &noise, 36_000);
}

#[test]
fn ffplay_is_heard_bit_for_bit() {
    let stage = Stage::new();
    // It ends when it has written the last, not when that is heard.
    let noise = noise(5, 96_000);
    let file = stage.file("noise.wav", &wav(&noise));
    stage.run("ffplay", &["-nodisp", "-autoexit", file.to_str().unwrap()]);
    assert_begin_heard(&stage, &noise, 80_000);
}

#[test]
fn sox_is_heard_bit_for_bit() {
    let stage = Stage::new();
    let noise = noise(6, 48_000);
    let file = stage.file("noise.wav", &wav(&noise));
    stage.run("sox", &["-q", file.to_str().unwrap(), "-t", "pulseaudio", "default"]);
    assert_heard(&stage, &noise);
}

#[test]
fn mpv_is_heard_bit_for_bit() {
    let stage = Stage::new();
    let noise = noise(7, 48_000);
    let file = stage.file("noise.wav", &wav(&noise));
    stage.run("mpv", &["--no-config", "--ao=pulse", "--no-video", file.to_str().unwrap()]);
    assert_heard(&stage, &noise);
}

#[test]
fn aplay_is_heard_bit_for_bit() {
    let stage = Stage::new();
    let noise = noise(8, 48_000);
    let file = stage.file("noise.wav", &wav(&noise));
    stage.file("asound.conf", b"pcm.!default { type pulse }\nctl.!default { type pulse }\n");
    stage.run("aplay", &["-q", file.to_str().unwrap()]);
    assert_heard(&stage, &noise);
}

#[test]
fn gstreamer_is_heard_bit_for_bit() {
    let stage = Stage::new();
    let noise = noise(9, 48_000);
    let file = stage.file("noise.wav", &wav(&noise));
    let source = format!("location={}", file.display());
    stage.run("gst-launch-1.0", &["-q", "filesrc", &source, "!", "wavparse", "!", "pulsesink"]);
    assert_heard(&stage, &noise);
}

#[test]
fn espeak_is_heard_as_it_speaks() {
    let stage = Stage::new();
    let words = "Wayferry shows remote programs, and they are heard, too.";
    let written = stage.run("espeak-ng", &["--stdout", words]).stdout;
    stage.run("espeak-ng", &[words]);
    // It has one channel at 22 050 Hz, so what is heard is another sound of the same shape.
    let spoken: Vec<i16> =
        written[44..].as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes)).collect();
    let (spoken, heard) = (envelope(&spoken, 22_050 / 50), envelope(&stage.recorded(), 2 * 48_000 / 50));
    assert!(
        spoken.len() > 100 && heard.len().abs_diff(spoken.len()) <= 2,
        "{} {}",
        spoken.len(),
        heard.len()
    );
    assert!(alike(&spoken, &heard) > 0.98, "{}", alike(&spoken, &heard));
}

#[test]
#[ignore = "Firefox is large: `make test-full` installs it"]
fn firefox_is_heard() {
    let stage = Stage::new();
    let noise = noise(10, 96_000);
    stage.file("noise.wav", &wav(&noise));
    let page = stage.file("page.html", b"<audio src=noise.wav autoplay></audio>");
    stage.file(
        "user.js",
        b"user_pref('media.autoplay.default', 0);\nuser_pref('media.autoplay.blocking_policy', 0);",
    );
    let directory = page.parent().unwrap().to_str().unwrap();
    let page = format!("file://{}", page.display());
    let words = ["--headless", "--no-remote", "--profile", directory, &page];
    let loud = |recorded: &[i16]| recorded.iter().filter(|sample| **sample != 0).count();
    stage.run_until("firefox-esr", &words, |recorded| loud(recorded) >= noise.len());
    // It rounds otherwise than others.
    let recorded = stage.recorded();
    let first = recorded.iter().position(|sample| *sample != 0).unwrap();
    let off = recorded[first..].iter().zip(&noise).map(|(heard, played)| heard.abs_diff(*played)).max();
    assert!(off <= Some(1) || stage.late() > 0, "{off:?}");
}

#[test]
fn pactl_tells_of_the_server() {
    let stage = Stage::new();
    let said = |arguments: &[&str]| String::from_utf8(stage.run("pactl", arguments).stdout).unwrap();
    let info = said(&["info"]);
    assert!(info.contains("Default Sink: wayferry"), "{info}");
    assert!(info.contains("Default Sample Specification: float32le 2ch 48000Hz"), "{info}");
    let sinks = said(&["list", "sinks"]);
    assert!(sinks.contains("Description: Wayferry") && sinks.contains("Mute: no"), "{sinks}");
    for what in ["sources", "modules", "cards", "clients", "sink-inputs", "source-outputs", "samples"] {
        said(&["list", what]);
    }
    said(&["stat"]);
    said(&["set-sink-volume", "wayferry", "50%"]);
    said(&["set-sink-mute", "@DEFAULT_SINK@", "1"]);
    let sinks = said(&["list", "sinks"]);
    assert!(sinks.contains("Mute: yes") && sinks.contains(" 50% "), "{sinks}");
}

#[test]
fn parec_records_bit_for_bit() {
    let stage = Stage::new();
    // It records until nothing reads it.
    let command = "parec --raw --format=s16le --rate=48000 --channels=2 --latency-msec=20 | head -c 192000";
    assert_spoken(&stage.run("sh", &["-c", command]).stdout, 192_000);
}

#[test]
fn ffmpeg_records_bit_for_bit() {
    let stage = Stage::new();
    let source = ["-nostdin", "-loglevel", "error", "-f", "pulse", "-channels", "2", "-sample_rate", "48000"];
    let rest = ["-i", "default", "-t", "1", "-f", "s16le", "-"];
    assert_spoken(&stage.run("ffmpeg", &[&source[..], &rest].concat()).stdout, 150_000);
}

#[test]
fn a_program_that_knows_alsa_alone_records_bit_for_bit() {
    let stage = Stage::new();
    stage.file("asound.conf", b"pcm.!default { type pulse }\nctl.!default { type pulse }\n");
    let format = ["-q", "-t", "raw", "-f", "S16_LE", "-r", "48000", "-c", "2", "-d", "1", "-D", "default"];
    assert_spoken(&stage.run("arecord", &format).stdout, 192_000);
}

/// Frames that no two tests share, loud and soft, without a frame of silence.
fn noise(seed: u64, frames: usize) -> Vec<i16> {
    let mut state = seed;
    let mut sample = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 48) as u16).cast_signed() | 1
    };
    (0..2 * frames).map(|_| sample()).collect()
}

fn raw(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

fn wav(samples: &[i16]) -> Vec<u8> {
    let data = raw(samples);
    let length = data.len() as u32;
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((length + 36).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend([1u16, 2].iter().flat_map(|field| field.to_le_bytes()));
    file.extend([48_000u32, 192_000].iter().flat_map(|field| field.to_le_bytes()));
    file.extend([4u16, 16].iter().flat_map(|field| field.to_le_bytes()));
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    file.extend(data);
    file
}

/// How loud each so many samples are, without the silence around them.
fn envelope(samples: &[i16], step: usize) -> Vec<f64> {
    let is_loud = |sample: &i16| sample.unsigned_abs() > 200;
    let first = samples.iter().position(is_loud).unwrap_or(0);
    let last = samples.iter().rposition(is_loud).unwrap_or(0);
    let power = |samples: &[i16]| samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>();
    samples[first..=last].chunks(step).map(|samples| (power(samples) / samples.len() as f64).sqrt()).collect()
}

/// How much of one is the other: 1 if they differ in nothing but their loudness.
fn alike(one: &[f64], other: &[f64]) -> f64 {
    let product = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

/// All of it was heard once, and nothing else; without a gap, but where its program was late.
fn assert_heard(stage: &Stage, noise: &[i16]) {
    assert_begin_heard(stage, noise, noise.len() / 2);
}

/// At least so many frames of the begin were heard.
fn assert_begin_heard(stage: &Stage, noise: &[i16], frames: usize) {
    let recorded = stage.recorded();
    // No sample of the noise is 0.
    let parts: Vec<&[i16]> = recorded.split(|sample| *sample == 0).filter(|part| !part.is_empty()).collect();
    let heard = parts.concat();
    let same = heard.iter().zip(noise).take_while(|(heard, played)| heard == played).count();
    assert!(
        same >= 2 * frames && same == heard.len(),
        "{same} of {} samples, {} heard",
        noise.len(),
        heard.len()
    );
    assert!(parts.len() <= 1 + stage.late(), "{} parts, and {} times late", parts.len(), stage.late());
}

/// Of so many bytes at least, all are the microphone's, one after the other.
#[track_caller]
fn assert_spoken(bytes: &[u8], least: usize) {
    assert!(bytes.len() >= least, "{} bytes were recorded", bytes.len());
    let samples: Vec<i16> = bytes.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes)).collect();
    let begins = |from: &usize| (0..8).all(|at| samples[at] == spoken(from + at));
    let from = (0..960_000).find(begins).expect("what was recorded begins with what was spoken");
    let wrong = samples.iter().enumerate().find(|(at, sample)| **sample != spoken(from + at));
    assert_eq!(wrong, None, "recorded from {from} on");
}
