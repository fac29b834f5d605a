//! A display whose process stands still: a suspended laptop, a machine that has other things to do.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wayferry_stage::LinkConfig;

use crate::info::info;
use crate::programs::keeps_changing;
use crate::rig::{Compositor, Program, Session, Sshd, Sway, until};
use crate::sessions::children;

/// The laptop sleeps while a key is down and the picture changes; neither side tells the other.
#[test]
fn a_suspended_display_is_fresh_after_it_wakes_and_no_key_runs_away() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let binary = sshd.home().wayferry().words()[0].clone();
    let options = ["--remote-bin", binary.as_str(), "--silence", "1"];
    let words = ["foot", "-a", "foot", "sh", "-c", SCRIPT];
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let launch = sshd.wayferry(sway.home(), &options, &words);
    let mut ferry = launch.env("WAYLAND_DISPLAY", sway.display()).start();
    let before = sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let heard = || fs::read(sshd.home().file("heard")).unwrap_or_default();
    sway.type_text("a");
    until("a key", || (heard() == b"a").then_some(()));
    let mut held = sway.launch("wtype").args(["-P", "k", "-s", "3600000"]).start();
    until("the key to repeat", || (heard().len() > 4).then_some(()));

    let asleep = suspend(&ferry);
    let state = || {
        let list = sshd.home().wayferry().privileged().args(["list", "--json"]).run();
        let list: serde_json::Value = serde_json::from_slice(&list).expect("JSON");
        list[0]["state"].as_str().map(str::to_owned)
    };
    until("the session to notice", || (state()? == "away").then_some(()));
    // A key that was held when the link went silent is held no more.
    let repeated = heard();
    sshd.home().write("turn", "");
    until("the program to turn red", || sshd.home().file("turned").exists().then_some(()));
    assert_eq!(heard(), repeated, "the key went on without anybody");
    held.kill();
    assert_ne!(sway.screenshot().pixel(640, 360), RED);

    asleep.into_iter().for_each(go_on);
    until("the fresh picture", || (sway.screenshot().pixel(640, 360) == RED).then_some(()));
    let after = sway.window("foot", |window| window.app_id == "foot");
    assert_eq!((before.id, sway.windows().len()), (after.id, 1), "it is the same window");
    sway.type_text("z");
    until("the next key", || heard().ends_with(b"z").then_some(()));
    let keys = heard();
    assert_eq!(&keys[..repeated.len()], &repeated[..]);
    // What sway had still said of the key while the display slept is too old, or is the key's end.
    assert!(keys.len() <= repeated.len() + 2, "{}", String::from_utf8_lossy(&keys));
    sway.type_text("q");
    assert_eq!(ferry.ended().code(), Some(5), "{}", ferry.stderr());
}

/// S16: buffers of 4 MiB hold what comes in 300 ms, or the user is told what to change.
#[test]
fn a_display_that_stands_still_for_a_moment_loses_nothing() {
    let sway = Sway::start();
    let one_way_delay = Duration::from_millis(25);
    let config = LinkConfig { one_way_delay, queue_bytes: 64 << 20, ..LinkConfig::default() };
    let mut session = Session::start_over(&sway, config, &["--lossless"]);
    let script = "while :; do head -c 6000 /dev/urandom | base64; done";
    let mut foot = session.launch("foot").args(["-a", "foot", "sh", "-c", script]).start();
    sway.window("foot", |window| window.app_id == "foot");
    keeps_changing(&sway);
    let app = || info(session.home()).into_iter().find(|side| side["role"] == "app").expect("the app side");
    let number = |field: &str| app()[field].as_f64().unwrap_or_else(|| panic!("{field}: {}", app()));
    // As a start it may have been too fast for the machine that this runs on.
    let lost = number("lost_packets");
    stop(session.attach.pid());
    let waiting = until("what the host goes on sending", || {
        let waiting = datagrams(session.attach.pid()).waiting;
        (waiting > 100_000 && number("silence_ms") > 300.0).then_some(waiting)
    });
    let sent = number("sent_bytes");
    go_on(session.attach.pid());
    until("the host to send as before", || (number("sent_bytes") > sent + 1e6).then_some(()));
    keeps_changing(&sway);
    let after = (datagrams(session.attach.pid()).dropped, number("lost_packets"));
    let told = session.attach.events();
    if let Some(buffer) = told.iter().find(|event| event["event"] == "udp-buffer") {
        assert!(buffer.to_string().contains("sysctl -w net.core.rmem_max=4194304"), "{buffer}");
    } else {
        assert_eq!(after, (0, lost), "dropped and lost, of {waiting} bytes that waited");
    }
    foot.must_run();
    session.must_run();
}

/// What the kernel says of a process's UDP sockets.
struct Datagrams {
    /// Bytes that wait to be read, with the kernel's own for each packet.
    waiting: u64,
    /// Packets that found no room, ever.
    dropped: u64,
}

fn datagrams(process: Pid) -> Datagrams {
    let at = format!("/proc/{}", process.as_raw_nonzero());
    let link = |entry: fs::DirEntry| fs::read_link(entry.path()).ok()?.to_str().map(str::to_owned);
    let files: Vec<String> =
        fs::read_dir(format!("{at}/fd")).expect("of our own").flatten().filter_map(link).collect();
    let mut found = Datagrams { waiting: 0, dropped: 0 };
    for table in ["udp", "udp6"] {
        let text = fs::read_to_string(format!("{at}/net/{table}")).expect("the kernel's table");
        for line in text.lines().skip(1) {
            // proc(5): queues as `tx:rx` in hexadecimal, the inode, and at last the drops.
            let fields: Vec<&str> = line.split_whitespace().collect();
            if files.contains(&format!("socket:[{}]", fields[9])) {
                let (_, waiting) = fields[4].split_once(':').expect("two queues");
                found.waiting += u64::from_str_radix(waiting, 16).expect("a number");
                found.dropped += fields[12].parse::<u64>().expect("a number");
            }
        }
    }
    found
}

/// Stops the display's process and its ssh.
fn suspend(ferry: &Program) -> Vec<Pid> {
    // On a loaded machine a second of silence may have had it connect anew: for that moment it has two.
    let mut all = until("one ssh", || {
        let all = children(ferry.pid());
        (all.len() == 1).then_some(all)
    });
    all.push(ferry.pid());
    all.iter().copied().for_each(stop);
    all
}

pub(crate) fn stop(process: Pid) {
    kill_process(process, Signal::STOP).expect("it runs");
    until("it to stand still", || {
        let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).ok()?;
        status.lines().any(|line| line.starts_with("State:\tT")).then_some(())
    });
}

pub(crate) fn go_on(process: Pid) {
    kill_process(process, Signal::CONT).expect("it is there");
}

/// Writes every key as it comes; changes its picture all the time, and for the last time when a file says so.
const SCRIPT: &str = "cd; stty raw -echo; cat < /dev/tty > heard & \
    while ! [ -e turn ]; do date +%N; sleep 0.02; done; printf \"\\033[48;2;255;0;0m\\033[2J\"; : > turned; \
    until grep -q q heard; do sleep 0.05; done; exit 5";

const RED: [u8; 3] = [255, 0, 0];
