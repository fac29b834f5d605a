//! `--trace` and `wayferry trace`: timelines of real sessions, on the stage.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use wayferry_stage::{Client, Config, Image, Stage};

/// A directory that is gone at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wft-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn wayferry(runtime: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wayferry"));
    command.args(words).env_remove("WAYLAND_DISPLAY").env("XDG_RUNTIME_DIR", runtime);
    command
}

/// Draws traces; gives the lines of the table by stage, and the picture.
fn draw(dir: &Dir, files: &[&str]) -> (String, String) {
    let svg = dir.file("out.svg");
    let words: Vec<&str> =
        ["trace"].iter().chain(files).chain(&["--from", "0", "--svg", &svg]).copied().collect();
    let output = wayferry(&dir.0, &words).output().expect("wayferry trace");
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).expect("text");
    (table, std::fs::read_to_string(svg).expect("a picture"))
}

#[test]
fn the_demo_writes_a_timeline_of_both_sides() {
    let dir = Dir::new("trace-demo");
    let (trace, png) = (dir.file("trace"), dir.file("png"));
    let words = ["demo", "--stage", "--duration", "1.5", "--rtt", "10", "--trace", &trace, "--png", &png];
    let output = wayferry(&dir.0, &words).output().expect("wayferry demo");
    assert!(output.status.success(), "{output:?}");
    let (table, svg) = draw(&dir, &[&trace]);
    for stage in ["capture", "encode", "queue", "wire", "decode", "commit"] {
        assert!(table.lines().any(|line| line.starts_with(stage)), "{stage}: {table}");
        assert!(svg.contains(&format!("<title>{stage} of update 1: ")), "{stage}");
    }
}

#[test]
fn the_files_of_both_sides_are_joined() {
    let dir = Dir::new("trace-join");
    let (ours, theirs) = (dir.file("app"), dir.file("display"));
    let stage =
        Stage::start(Config { socket: Some(dir.0.join("stage")), ..Config::default() }).expect("a stage");
    let host = ["host", "--listen", "127.0.0.1:0", "--display", "w", "--threads", "2", "--trace", &ours];
    let program = ["--", "sh", "-c", "echo started; read end; exit 0"];
    let mut host = wayferry(&dir.0, &[&host[..], &program].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("wayferry host");
    let mut lines = BufReader::new(host.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let ticket = line();
    let mut attach = wayferry(&dir.0, &["attach", "--trace", &theirs, &ticket])
        .env("WAYLAND_DISPLAY", dir.0.join("stage"))
        .spawn()
        .expect("wayferry attach");
    assert_eq!(line(), "started");
    let mut client = Client::connect(&dir.0.join("w")).expect("the session's socket");
    let window = client.window("timeline", 900, 700).expect("a window");
    // The clocks are known after the first pong, and the buffer is written out with them.
    let told = || std::fs::read_to_string(&ours).is_ok_and(|text| text.contains("\nclock,app,"));
    let mut watch = stage.watch();
    let mut shade = 0xff12_3456;
    while shade == 0xff12_3456 || !told() {
        client.draw(window, &Image::new(900, 700, shade)).expect("drawn");
        watch.commit(|commit| commit.attached).expect("shown");
        shade += 1;
        assert!(shade < 0xff12_3456 + 5_000, "no row about the clocks");
    }
    drop((client, host.stdin.take()));
    assert!(host.wait().expect("host").success() && attach.wait().expect("attach").success());
    let (table, svg) = draw(&dir, &[&theirs, &ours]);
    assert!(table.lines().any(|line| line.starts_with("wire ")), "{table}");
    assert!(svg.contains("link · wire") && svg.contains("<title>wire of update 1: "), "{svg}");
    // 2.5 MB of pixels are more than one section, so the bar of the encoder is more than one.
    assert!(svg.matches("<title>encode of update 1: ").count() > 1, "{svg}");
}

#[test]
fn a_file_that_is_no_trace_is_named() {
    let dir = Dir::new("trace-bad");
    let bad = dir.file("bad");
    let error = |content: &str, words: &[&str]| {
        std::fs::write(&bad, content).expect("a file");
        let Output { status, stderr, .. } = wayferry(&dir.0, words).output().expect("wayferry trace");
        (status.code(), String::from_utf8(stderr).expect("text"))
    };
    let (code, text) = error("wayferry-trace,1,app\nencode,app,x\n", &["trace", &bad]);
    assert_eq!(code, Some(74));
    assert!(text.contains("bad`: line 2 of the trace: expected nine values"), "{text}");
    assert!(text.contains("hint: give a file that the option `--trace`"), "{text}");
    let (code, text) = error("wayferry-trace,1,app\n", &["trace", &bad, &bad]);
    assert_eq!(code, Some(64), "{text}");
    let (code, text) = error("", &["demo", "--stage", "--trace", &dir.file("no/such/directory")]);
    assert_eq!(code, Some(74), "{text}");
}
