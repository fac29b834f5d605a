//! A session that two browsers show for long: what it holds of memory stays as it is, and every key arrives.
//!
//! `make soak` lets it run for half an hour.

use std::time::{Duration, Instant};

use crate::browser::{control_link, in_front, link, serve, state};
use crate::rig::{Chromium, Home, Session, Sway, TabMemory, until};
use crate::sessions::memory;

#[test]
#[ignore = "takes a minute, or SOAK_MINUTES: `make soak`"]
fn two_browsers_and_the_host_hold_no_more_after_long_and_every_key_arrives() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", TALKER]).start();
    sway.window("foot", |_| true);
    let origin = serve();
    let (home, other) = (Home::new(), Home::new());
    let mut display = Chromium::open(&home, &control_link(&session, &origin));
    state(&mut display, "shown");
    in_front(&mut display);
    let mut viewer = Chromium::open(&other, &link(&session, &origin));
    state(&mut viewer, "shown");
    until("the window at the viewer", || viewer.canvas());

    let (start, time) = (Instant::now(), minutes());
    let (mut typed, mut held) = (String::new(), Vec::new());
    let mut letters = ('a'..='z').cycle();
    while start.elapsed() < time {
        for letter in letters.by_ref().take(KEYS) {
            display.press(&format!("Key{}", letter.to_ascii_uppercase()), &letter.to_string());
            typed.push(letter);
            std::thread::park_timeout(PACE);
        }
        let [TabMemory { heap, wasm }, other] = [display.memory(), viewer.memory()];
        let bytes = [memory(&session.host) << 10, heap, wasm, other.heap, other.wasm];
        held.push(Held { at: start.elapsed(), bytes });
        session.host.must_run();
    }
    let heard = session.home().read_when("typed", |heard| heard.len() >= typed.len());
    assert_eq!(String::from_utf8_lossy(&heard), typed);
    session.home().write("quiet", "");
    until("the same picture in both", || {
        let shown = display.canvas()?;
        (viewer.canvas()? == shown).then_some(())
    });
    println!("{} keys; {:?}\n    to {:?}", typed.len(), held[held.len() / 4], held[held.len() - 1]);
    let grown = grown(&held, time);
    assert!(grown.is_empty(), "{grown:?}: {held:#?}");
    foot.must_run();
    session.host.must_run();
}

/// What was held at a time, in bytes, of each of [`WHAT`].
#[derive(Debug)]
struct Held {
    at: Duration,
    bytes: [usize; WHAT.len()],
}

/// What has more in the last quarter of the time than it had in the second, and both.
fn grown(held: &[Held], time: Duration) -> Vec<(&'static str, usize, usize)> {
    let most = |what: usize, quarter: u32| {
        let part = time * (quarter - 1) / 4..time * quarter / 4;
        let there = held.iter().filter(|held| part.contains(&held.at)).map(|held| held.bytes[what]);
        there.max().expect("somebody looked")
    };
    let quarters = WHAT.iter().enumerate().map(|(what, name)| (*name, most(what, 2), most(what, 4)));
    quarters.filter(|(_, before, after)| *after > before + MORE).collect()
}

fn minutes() -> Duration {
    let minutes = std::env::var("SOAK_MINUTES").map_or(1.0, |text| text.parse().expect("minutes"));
    Duration::from_secs_f64(minutes * 60.0)
}

/// Keeps what is typed, and prints until it is told to be quiet.
const TALKER: &str = "stty -icanon -echo; cat < /dev/tty > typed & \
    while [ ! -e quiet ]; do date; uptime; ls -l /usr/lib | head -n 5; sleep 0.1; done; exec tail -f /dev/null";

const WHAT: [&str; 5] =
    ["host", "display's scripts", "display's WebAssembly", "viewer's scripts", "viewer's WebAssembly"];

/// Keys between two looks at memory, and the pause behind each.
const KEYS: usize = 50;
const PACE: Duration = Duration::from_millis(80);

/// Bytes that are no growth: what an allocator or a collector keeps for later.
const MORE: usize = 4 << 20;
