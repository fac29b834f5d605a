//! `wayferry demo` and what the command line says of itself.

use crate::rig::{Compositor, Home, Picture, Sway, until};

#[test]
fn the_demo_needs_no_compositor() {
    let home = Home::new();
    let picture = home.file("demo.png");
    let words = ["demo", "--duration", "2", "--rtt", "20", "--png", &picture.display().to_string()];
    let summary = String::from_utf8(home.wayferry_and_lab().args(words).run()).expect("text");
    for figure in ["fps", "p50", "p95", "bytes"] {
        assert!(summary.contains(figure), "`{figure}` is missing: {summary}");
    }
    let last = summary.lines().last().expect("a line");
    assert!(last.starts_with("19 of 20 keys: ") && last.contains(" instead of "), "{summary}");
    assert!(last.ends_with("; nothing lost"), "{summary}");
    assert!(!summary.contains("at once"), "the answers are as soon: {summary}");
    let shown = Picture::from_png(&picture).expect("a picture");
    assert_eq!(shown.size(), (1288, 668), "two windows, and the text below");
    assert!(shown.colours() > 10, "an empty picture");
}

#[test]
fn the_demo_tells_how_soon_keys_are_seen_where_the_link_is_far() {
    let home = Home::new();
    let picture = home.file("demo.png").display().to_string();
    let words = ["demo", "--duration", "6", "--rtt", "200", "--loss", "0", "--png", &picture];
    let summary = String::from_utf8(home.wayferry_and_lab().args(words).run()).expect("text");
    let told = |line: &&str| {
        ["keys shown at once; keys seen: p50 ", "; without prediction: p50 "]
            .iter()
            .all(|part| line.contains(part))
    };
    assert_eq!(summary.lines().filter(told).count(), 2, "one of each session: {summary}");
}

#[test]
fn the_demo_types_by_itself_in_one_window_of_the_desktop() {
    let sway = Sway::with_output(1400, 800);
    let picture = sway.home().file("demo.png");
    let mut demo = sway
        .home()
        .wayferry_and_lab()
        .env("WAYLAND_DISPLAY", sway.display())
        .args(["demo", "--duration", "60", "--rtt", "20", "--png", &picture.display().to_string()])
        .start();
    let window = sway.window("the demo", |window| window.title == "Wayferry demo");
    until("keys that are seen", || demo.stdout().contains("key to picture").then_some(()));
    assert!(sway.screenshot().colours() > 10, "an empty window");
    // The user has seen enough.
    sway.message(&[&format!("[con_id={}] kill", window.id)]);
    assert!(demo.ended().success(), "{}", demo.stderr());
    assert!(demo.stdout().contains("nothing lost"), "{}", demo.stdout());
    sway.empty();
}

/// `make demo` runs in a clone.
#[test]
fn regression_the_picture_of_the_demo_is_news_to_git() {
    let home = Home::new();
    home.wayferry_and_lab();
    let lab = home.file("wayferry-lab").display().to_string();
    let help = home.launch(&lab).args(["demo", "--help"]).run();
    let help = String::from_utf8(help).expect("text");
    let (name, _) =
        help.split_once("[default: wayferry").and_then(|(_, rest)| rest.split_once(']')).expect("a name");
    let ignored = include_str!("../.gitignore").lines().any(|line| line == format!("/wayferry{name}"));
    assert!(ignored && include_str!("../README.md").contains(&format!("`wayferry{name}`")), "{name}");
}

#[test]
fn a_picture_that_cannot_be_written_is_told_before_anything_is_shown() {
    let home = Home::new();
    let picture = home.file("nowhere").join("demo.png").display().to_string();
    let mut demo = home.wayferry_and_lab().args(["demo", "--stage", "--png", &picture]).start();
    assert_eq!(demo.ended().code(), Some(74), "{}", demo.stderr());
    let messages = demo.stderr();
    assert!(messages.contains(&picture) && messages.contains("\nhint: "), "{messages}");
    assert_eq!(demo.stdout(), "", "nothing was shown");
}

#[test]
fn the_demo_shows_a_program_on_the_compositor_that_is_there() {
    let sway = Sway::start();
    let picture = sway.home().file("demo.png").display().to_string();
    let script = "head -n 1 > heard";
    let mut demo = sway
        .home()
        .wayferry_and_lab()
        .env("WAYLAND_DISPLAY", sway.display())
        .args(["demo", "--rtt", "60", "--loss", "2", "--png", &picture, "--", "foot", "sh", "-c", script])
        .start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.type_text("demo");
    sway.keys(&["-k", "Return"]);
    assert!(demo.ended().success(), "{}", demo.stderr());
    assert_eq!(sway.home().read_when("heard", |_| true), b"demo\n");
    sway.empty();
}

#[test]
fn wrong_use_is_told_in_two_lines() {
    let home = Home::new();
    for words in [&["--no-such-option"][..], &["no-such-command"], &["host", "--listen", "nonsense"]] {
        let mut program = home.wayferry().args(words.iter().copied()).start();
        assert_eq!(program.ended().code(), Some(64), "{words:?}: {}", program.stderr());
        let messages = program.stderr();
        assert!(messages.starts_with("error: ") && messages.contains("\nhint: "), "{words:?}: {messages}");
    }
}

#[test]
fn help_names_every_command() {
    let help = String::from_utf8(Home::new().wayferry().arg("--help").run()).expect("text");
    for command in ["ssh", "host", "attach", "demo", "info"] {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(command)),
            "`{command}` is missing: {help}"
        );
    }
}
