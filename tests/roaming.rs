//! A display that is carried about: its link is cut and its address changes while somebody types and a video plays.
//!
//! The two sides are in network namespaces of their own with a pair of virtual links between them, which needs root.

use std::fs;

use crate::programs::{keeps_changing, mpv};
use crate::rig::{Compositor, Home, Launch, Program, Sway, until};

#[test]
fn a_cut_and_another_address_are_not_noticed_by_who_types_and_watches() {
    let (sway, home) = (Sway::start(), Home::new());
    let lan = Lan::start(&home);
    // Before the programs: its clip is made once.
    let video = mpv(&home).arg("--loop").words().join(" ");
    let typed = "foot -a foot sh -c 'head -n 4 > heard; exit 5'";
    let script = format!("{video} & video=$!; {typed}; code=$?; kill $video; exit $code");
    let listen = format!("{FAR}:4433");
    let host = home.wayferry().args(["host", "--listen", &listen, "--", "sh", "-c", &script]);
    let mut host = lan.far(host).start();
    let ticket = host.first_line();
    let attach = home.wayferry().env("WAYLAND_DISPLAY", socket(&sway)).args(["attach", &ticket]);
    let mut attach = lan.near(attach).start();
    sway.window("the video", |window| window.app_id == "mpv");
    let before = sway.window("foot", |window| window.app_id == "foot");
    sway.message(&["[app_id=foot]", "focus"]);
    sway.window("foot with the focus", |window| window.app_id == "foot" && window.focused);
    type_line(&sway, "one");
    lan.ip("link set near down");
    lan.ip("link set near up");
    keeps_changing(&sway);
    type_line(&sway, "two");
    for (from, to, word) in [("10.9.0.2", "10.9.0.3", "three"), ("10.9.0.3", "10.9.0.2", "four")] {
        lan.ip(&format!("address delete {from}/24 dev near"));
        lan.ip(&format!("address add {to}/24 dev near"));
        keeps_changing(&sway);
        let now = sway.window("foot", |window| window.app_id == "foot");
        assert_eq!(before.id, now.id, "it is the same window");
        type_line(&sway, word);
    }
    home.read_when("heard", |text| text == b"one\ntwo\nthree\nfour\n");
    assert_eq!(attach.ended().code(), Some(5), "{}", attach.stderr());
    assert_eq!(host.ended().code(), Some(5), "{}", host.stderr());
}

/// Both ways, each in the middle of what is copied; the link is slow enough for there to be a middle.
#[test]
fn what_is_being_copied_arrives_whole_over_a_cut_and_another_address() {
    let (sway, home) = (Sway::start(), Home::new());
    let lan = Lan::start(&home);
    lan.slow(&home, "20mbit");
    let options = ["--allow", "zwlr_data_control_manager_v1"];
    let listen = format!("{FAR}:4433");
    let words = ["host", "--listen", &listen, "--", "sh", "-c", TELL];
    let mut host = lan.far(home.wayferry().args(options).args(words)).start();
    let ticket = host.first_line();
    let attach = home.wayferry().env("WAYLAND_DISPLAY", socket(&sway)).args(options);
    let mut attach = lan.near(attach.args(["attach", &ticket])).start();
    let display = home.read_when("display", |name| name.ends_with(b"\n"));
    let display = String::from_utf8(display).expect("a name").trim().to_owned();
    let there = |program: &str| lan.far(home.launch(program)).env("WAYLAND_DISPLAY", &display);
    let here = |program: &str| lan.near(home.launch(program)).env("WAYLAND_DISPLAY", socket(&sway));
    for (copy, paste, seed) in
        [(&there as &dyn Fn(&str) -> Launch, &here as &dyn Fn(&str) -> Launch, 1), (&here, &there, 2)]
    {
        let content = noise(seed);
        let file = home.write("content", &content);
        let mut owner = copy("wl-copy").args(["-f", "-t", KIND]).stdin(file).start();
        until("the offer", || {
            owner.must_run();
            paste("wl-paste").arg("-l").text().filter(|kinds| kinds.starts_with(KIND.as_bytes()))
        });
        let mut reader = paste("wl-paste").args(["-n", "-t", KIND]).start();
        let middle = |enough: usize, what: &dyn Fn()| {
            let got = || fs::metadata(reader.output()).expect("its output").len() as usize;
            until(&format!("{enough} bytes"), || (got() > enough).then_some(()));
            what();
            assert!(got() < SIZE, "it was over before");
        };
        middle(SIZE / 8, &|| lan.ip("link set near down"));
        let mut rest = Vec::new();
        until("nothing to come any more", || {
            rest.push(fs::metadata(reader.output()).expect("its output").len());
            rest.ends_with(&[*rest.last()?; 10]).then_some(())
        });
        lan.ip("link set near up");
        middle(SIZE / 3, &|| lan.ip("address delete 10.9.0.2/24 dev near"));
        lan.ip("address add 10.9.0.3/24 dev near");
        middle(SIZE / 2, &|| lan.ip("address delete 10.9.0.3/24 dev near"));
        lan.ip("address add 10.9.0.2/24 dev near");
        assert!(reader.ended().success(), "{}", reader.stderr());
        assert!(fs::read(reader.output()).expect("its output") == content, "something else arrived");
    }
    host.must_run();
    attach.must_run();
}

/// Bytes that no compression makes fewer.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        // The constants are those of Knuth's MMIX generator.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(SIZE).collect()
}

const SIZE: usize = 6 << 20;

/// No text, so that no compositor converts it.
const KIND: &str = "application/x-noise";

/// A session's program that only tells where others connect to.
const TELL: &str = "echo $XDG_RUNTIME_DIR/$WAYLAND_DISPLAY > display; exec tail -f /dev/null";

fn type_line(sway: &Sway, text: &str) {
    sway.type_text(text);
    sway.keys(&["-k", "Return"]);
}

fn socket(sway: &Sway) -> String {
    sway.home().runtime().join(sway.display()).to_str().expect("a path").to_owned()
}

/// Two namespaces and the link between them; gone with the processes that hold them.
struct Lan {
    near: Program,
    far: Program,
}

/// The address of the side that does not move.
const FAR: &str = "10.9.0.1";

impl Lan {
    fn start(home: &Home) -> Self {
        let hold = || {
            home.launch("tail").privileged().args(["-f", "/dev/null"]).under(&["unshare", "--net"]).start()
        };
        let lan = Self { near: hold(), far: hold() };
        let own = fs::read_link("/proc/self/ns/net").expect("a namespace");
        for side in [&lan.near, &lan.far] {
            let path = format!("/proc/{}/ns/net", side.pid().as_raw_nonzero());
            until("a namespace", || fs::read_link(&path).ok().filter(|other| *other != own).map(drop));
        }
        lan.ip(&format!("link add near type veth peer name far netns {}", lan.far.pid().as_raw_nonzero()));
        lan.ip("address add 10.9.0.2/24 dev near");
        lan.ip("link set near up");
        run(lan.far(home.launch("ip").args(["address", "add", "10.9.0.1/24", "dev", "far"])));
        run(lan.far(home.launch("ip").args(["link", "set", "far", "up"])));
        lan
    }

    fn near(&self, launch: Launch) -> Launch {
        enter(&self.near, launch)
    }

    fn far(&self, launch: Launch) -> Launch {
        enter(&self.far, launch)
    }

    /// Lets no more than this pass, either way.
    fn slow(&self, home: &Home, rate: &str) {
        for (side, device) in [(&self.near, "near"), (&self.far, "far")] {
            let words = ["qdisc", "add", "dev", device, "root", "tbf", "rate", rate];
            run(enter(side, home.launch("tc").args(words).args(["burst", "32kb", "limit", "100kb"])));
        }
    }

    /// `ip` on the near side.
    fn ip(&self, words: &str) {
        let path = format!("--net=/proc/{}/ns/net", self.near.pid().as_raw_nonzero());
        let status =
            std::process::Command::new("nsenter").arg(path).arg("ip").args(words.split(' ')).status();
        assert!(status.expect("`nsenter` of util-linux").success(), "ip {words}");
    }
}

fn enter(side: &Program, launch: Launch) -> Launch {
    launch.privileged().under(&["nsenter", &format!("--net=/proc/{}/ns/net", side.pid().as_raw_nonzero())])
}

fn run(launch: Launch) {
    launch.run();
}
