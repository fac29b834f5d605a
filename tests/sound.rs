//! Sound of a session: programs play over there, and it is heard here.

use std::collections::HashMap;

use crate::rig::{Compositor, Home, Launch, PATIENCE, Program, Sway, attach_to, host, poll};

/// A session whose sound is written to a file.
struct Heard {
    host: Program,
    attach: Program,
    sway: Sway,
    home: Home,
}

impl Heard {
    fn start(options: &[&str]) -> Self {
        let (sway, home) = (Sway::start(), Home::new());
        let script = "printenv PULSE_SERVER > server; exec tail -f /dev/null";
        let mut host = host(&home, &[], &["sh", "-c", script]);
        let ticket = host.first_line();
        let sink = format!("--audio-sink=file:{}", sway_file(&sway, "heard.raw"));
        let options = [&[sink.as_str()], options].concat();
        let attach = attach_to(&sway, &options, &[&ticket]);
        home.read_when("server", |text| text.ends_with(b"\n"));
        Self { host, attach, sway, home }
    }

    /// A program that plays in the session.
    fn launch(&self, program: &str) -> Launch {
        let server = self.home.read_when("server", |text| text.ends_with(b"\n"));
        let server = String::from_utf8(server).expect("a path");
        self.home.launch(program).env("PULSE_SERVER", server.trim_end())
    }

    /// What has been heard so far.
    fn heard(&self) -> Vec<u8> {
        std::fs::read(sway_file(&self.sway, "heard.raw")).unwrap_or_default()
    }

    /// Waits until all of `sound` has been heard, at once and unchanged; gives where.
    fn hears(&self, sound: &[u8]) -> usize {
        poll(PATIENCE, || find(&self.heard(), sound)).unwrap_or_else(|| {
            let heard = self.heard();
            let info = self.sway.home().wayferry().args(["info", "--json"]).text();
            eprintln!("{}", String::from_utf8_lossy(&info.unwrap_or_default()));
            panic!("{} bytes were heard, of {} at once {}", heard.len(), sound.len(), longest(&heard, sound))
        })
    }
}

fn sway_file(sway: &Sway, name: &str) -> String {
    sway.home().file(name).display().to_string()
}

fn find(all: &[u8], sound: &[u8]) -> Option<usize> {
    let first = &sound[..64];
    let starts = all.chunks_exact(4).enumerate().filter(|(at, _)| all[at * 4..].starts_with(first));
    let mut whole = starts.filter(|(at, _)| all[at * 4..].starts_with(sound));
    whole.next().map(|(at, _)| at * 4)
}

/// The length of the longest run of `sound` that was heard.
fn longest(heard: &[u8], sound: &[u8]) -> usize {
    let (heard, sound) = (heard.as_chunks::<4>().0, sound.as_chunks::<4>().0);
    let places: HashMap<_, _> = sound.iter().enumerate().map(|(at, frame)| (frame, at)).collect();
    let (mut longest, mut run, mut last) = (0, 0, None);
    for frame in heard {
        let place = places.get(frame).copied();
        let follows = place.is_some() && place == last.map(|last| last + 1);
        run = if follows { run + 1 } else { usize::from(place.is_some()) };
        (longest, last) = (run.max(longest), place);
    }
    longest * 4
}

/// Frames of 16-bit stereo, no two tests the same, none of them silent.
fn noise(seed: u64, frames: usize) -> Vec<u8> {
    let mut state = seed;
    let mut sample = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 48) as u16 | 1).to_le_bytes()
    };
    (0..2 * frames).flat_map(|_| sample()).collect()
}

/// The same as a WAV file.
fn wav(samples: &[u8]) -> Vec<u8> {
    let length = u32::try_from(samples.len()).expect("short");
    let parts: [&[u8]; 8] = [
        b"RIFF",
        &(length + 36).to_le_bytes(),
        b"WAVEfmt \x10\0\0\0\x01\0\x02\0",
        &48_000_u32.to_le_bytes(),
        &192_000_u32.to_le_bytes(),
        b"\x04\0\x10\0data",
        &length.to_le_bytes(),
        samples,
    ];
    parts.concat()
}

#[test]
fn what_programs_play_is_heard_bit_for_bit() {
    let mut session = Heard::start(&["--audio", "pcm"]);
    let path = session.home.file("noise.wav").display().to_string();
    // Those that end when they have written their last, not when it was heard, have more than is looked for.
    let programs: [(&[&str], usize); 3] = [
        (&["paplay"], 48_000),
        (&["sox", "-q", "PATH", "-t", "pulseaudio", "default"], 48_000),
        (&["ffplay", "-nodisp", "-autoexit", "-loglevel", "error"], 96_000),
    ];
    for (seed, (words, frames)) in (1..).zip(programs) {
        let sound = noise(seed, frames);
        std::fs::write(&path, wav(&sound)).expect("a file");
        let named = words.contains(&"PATH");
        let words = words[1..].iter().map(|word| if *word == "PATH" { &path } else { *word });
        let launch =
            session.launch(programs[seed as usize - 1].0[0]).env("SDL_VIDEODRIVER", "dummy").args(words);
        if named { launch } else { launch.arg(&path) }.run();
        session.hears(&sound[..48_000 * 4]);
    }
    session.host.must_run();
    session.attach.must_run();
}
