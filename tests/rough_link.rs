//! Real programs over a link that is far, slow and lossy: 200 ms there and back, 2 % lost, some packets late.

use std::time::Duration;

use wayferry_stage::{LinkConfig, Loss, Reorder};

use crate::programs::{colourful_foot, mpv};
use crate::rig::{Compositor, Session, Sway, until};

#[test]
fn foot_looks_the_same_and_hears_every_key() {
    let sway = Sway::start();
    let script = "seq 1 30; head -n 2 > heard; exec cat";
    let mut direct = sway.launch("foot").args(["sh", "-c", script]).start();
    sway.window("foot", |window| window.focused);
    let expected = sway.settled();
    direct.kill();
    sway.empty();

    let mut session = Session::start_over(&sway, rough(None), &[]);
    let _foot = session.launch("foot").args(["sh", "-c", script]).start();
    sway.window("foot", |window| window.focused);
    sway.shows("foot over a rough link", &expected);
    for line in ["one after the other äß€", "and none twice"] {
        sway.type_text(line);
        sway.keys(&["-k", "Return"]);
    }
    let heard =
        session.home().read_when("heard", |text| text.iter().filter(|&&byte| byte == b'\n').count() == 2);
    assert_eq!(String::from_utf8_lossy(&heard), "one after the other äß€\nand none twice\n");
    session.must_run();
}

#[test]
fn interactive_resizing_comes_to_rest_at_the_last_size() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, rough(Some(10_000_000)), &[]);
    let mut foot = session.join(colourful_foot(session.home())).start();
    let window = sway.window("foot", |window| window.focused).id;
    let name = format!("[con_id={window}]");
    sway.message(&[&format!("{name} floating enable")]);
    for step in 0..100 {
        sway.message(&[&format!("{name} resize set {} {}", 300 + 6 * step, 700 - 4 * step)]);
    }
    let over_the_link = until("the last size", || {
        sway.message(&[&format!("{name} move position 50 50")]);
        sway.resize(window, LAST).then_some(())?;
        let shown = sway.settled();
        sway.resize(window, LAST).then_some(shown)
    });
    foot.must_run();
    session.must_run();
    foot.kill();
    sway.empty();

    // The text is laid out anew at each size, so only a terminal that was told the last one shows this picture.
    let _foot = colourful_foot(sway.home()).env("WAYLAND_DISPLAY", sway.display()).start();
    let window = sway.window("foot alone", |window| window.focused).id;
    sway.message(&[&format!("[con_id={window}] floating enable")]);
    until("the last size again", || sway.resize(window, LAST).then_some(()));
    sway.message(&[&format!("[con_id={window}] move position 50 50")]);
    sway.shows("the terminal after its last size", &over_the_link);
}

#[test]
fn what_is_typed_in_an_outage_arrives_once() {
    let sway = Sway::start();
    let mut session = Session::start_over(&sway, rough(None), &[]);
    let _foot = session.launch("foot").args(["sh", "-c", "head -n 1 > heard; exec cat"]).start();
    sway.window("foot", |window| window.focused);
    sway.settled();
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    sway.type_text("into the dark");
    sway.keys(&["-k", "Return"]);
    link.set_down(false);
    assert_eq!(session.home().read_when("heard", |text| text.ends_with(b"\n")), b"into the dark\n");
    session.must_run();
}

#[test]
fn a_paste_arrives_beside_a_video() {
    let sway = Sway::start();
    let options = ["--allow", "zwlr_data_control_manager_v1"];
    let session = Session::start_over(&sway, rough(Some(20_000_000)), &options);
    let mut video = session.join(mpv(session.home()).arg("--loop")).start();
    sway.window("mpv", |window| window.app_id == "mpv");
    let text: Vec<u8> = (0..300_000_u32).map(|at| b'a' + (at % 23) as u8).collect();
    let input = session.home().write("text", &text);
    let _owner =
        session.launch("wl-copy").args(["-f", "-t", "text/plain;charset=utf-8"]).stdin(input).start();
    until("the text", || (sway.launch("wl-paste").arg("-n").text()? == text).then_some(()));
    video.must_run();
}

/// Far, lossy, out of order; and this slow, in bits per second, with a quarter of a second's worth of queue.
fn rough(rate: Option<u64>) -> LinkConfig {
    LinkConfig {
        rate,
        one_way_delay: Duration::from_millis(100),
        queue_bytes: rate.map_or(1 << 20, |rate| rate / 32),
        loss: Loss::Independent(0.02),
        reorder: Some(Reorder { probability: 0.01, by: Duration::from_millis(15) }),
        seed: 7,
        ..LinkConfig::default()
    }
}

/// Where the resizing ends.
const LAST: (i64, i64) = (894, 304);
