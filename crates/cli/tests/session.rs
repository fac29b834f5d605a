//! `wayferry host` and `wayferry attach` on this machine: the stage is the compositor, its scripted client the program.

mod fake;
mod rig;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use wayferry_net::Ticket;
use wayferry_stage::{Client, Config, Endpoint, Global, Input, Link, LinkConfig, Program};

use rig::{Run, Site, nothing_left, picture, stage};

#[test]
fn a_window_crosses_pixel_for_pixel_and_keys_come_back() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut session = site.session(&stage, &["--lossless"]);
    let mut client = Client::connect(&session.socket).expect("the session's socket");
    let window = client.window("hello", 200, 120).expect("a window");
    let image = picture(200, 120);
    client.draw(window, &image).expect("drawn");
    let shown = stage.stage.watch().commit(|commit| commit.attached).expect("shown");
    assert_eq!(shown.title.as_deref(), Some("hello"));
    assert_eq!(stage.stage.screenshot(shown.surface).as_ref(), Some(&image));
    stage.stage.type_text("w");
    let key = client.wait_input(|input| matches!(input, Input::Key { pressed: true, .. })).expect("a key");
    assert!(matches!(key, Input::Key { code: 17, .. }), "{key:?}");
    drop(client);
    // The program ends when its input does, with a status that both sides pass on.
    session.end_program();
    assert_eq!((session.host.code(), session.attach.code()), (7, 7));
    nothing_left(&site);
}

#[test]
fn a_program_that_breaks_the_protocol_ends_alone_and_is_named() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut session = site.session(&stage, &[]);
    let mut good = Client::connect(&session.socket).expect("the session's socket");
    let window = good.window("good", 64, 64).expect("a window");
    let mut bad = UnixStream::connect(&session.socket).expect("the session's socket");
    bad.write_all(&[9, 0, 0, 0, 0, 0, 8, 0]).expect("a request on an object that does not exist");
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut bad, &mut answer).expect("the error and the end");
    assert!(!answer.is_empty(), "the program must be told");
    good.draw(window, &picture(64, 64)).expect("drawn");
    stage.stage.watch().commit(|commit| commit.attached).expect("the good one lives");
    drop(good);
    session.end_program();
    assert_eq!(session.host.code(), 7);
    session.host.happens("program-violation");
}

#[test]
fn a_wrong_secret_is_turned_away_and_the_right_one_still_gets_in() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut host = site.host(&["--"], &["true"]);
    let ticket: Ticket = host.first_line().parse().expect("a ticket");
    let wrong = Ticket { secret: [1; 32].into(), ..ticket.clone() };
    let mut attach = site.attach(&stage, &[], &wrong.to_string());
    attach.fails(28, "authentication failed");
    let mut attach = site.attach(&stage, &[], &ticket.to_string());
    assert_eq!((host.code(), attach.code()), (0, 0));
    nothing_left(&site);
}

#[test]
fn a_ticket_that_nobody_uses_expires() {
    let site = Site::new();
    let mut host = site.host(&["--expire", "0.05", "--"], &["true"]);
    host.first_line();
    host.fails(28, "expired");
    nothing_left(&site);
}

#[test]
fn a_display_name_has_one_owner() {
    let site = Site::new();
    let mut first = site.host(&["--display", "w", "--"], &["true"]);
    first.first_line();
    site.host(&["--display", "w", "--"], &["true"]).fails(77, "`w`");
    first.terminate();
    assert_eq!(first.code(), 143);
    nothing_left(&site);
}

#[test]
fn a_compositor_without_what_windows_need_is_named() {
    let site = Site::new();
    let stage = stage(&Config::default().without(Global::DataDevice));
    let ticket = site.host(&["--"], &["true"]).first_line();
    site.attach(&stage, &[], &ticket).fails(70, "wl_data_device_manager");
}

#[test]
fn without_a_runtime_directory_there_is_a_private_one() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let script = "test -S \"$XDG_RUNTIME_DIR/$WAYLAND_DISPLAY\" && stat -c %a \"$XDG_RUNTIME_DIR\" && echo $XDG_RUNTIME_DIR";
    let mut host = site.host_in("/no/such/directory", &["--"], &["sh", "-c", script]);
    let ticket = host.first_line();
    let mut attach = site.attach(&stage, &[], &ticket);
    assert_eq!((host.code(), attach.code()), (0, 0));
    let lines = host.stdout();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[0], "700");
    assert!(!std::path::Path::new(lines[1]).exists(), "{} is left", lines[1]);
}

#[test]
fn one_shot_serves_one_program_and_ends_with_it() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut session = site.session(&stage, &["--oneshot"]);
    let mut client = Client::connect(&session.socket).expect("the session's socket");
    client.window("only", 64, 64).expect("a window");
    assert!(UnixStream::connect(&session.socket).is_err(), "a second program must not get in");
    drop(client);
    assert_eq!((session.host.code(), session.attach.code()), (0, 0));
    nothing_left(&site);
}

#[test]
fn a_denied_protocol_is_not_offered() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut session = site.session(&stage, &["--deny", "wp_viewporter"]);
    let client = Client::connect(&session.socket).expect("the session's socket");
    let offered = client.globals();
    assert!(offered.iter().any(|(name, _)| name == "wl_compositor"), "{offered:?}");
    assert!(!offered.iter().any(|(name, _)| name == "wp_viewporter"), "{offered:?}");
    drop(client);
    session.end_program();
    assert_eq!(session.host.code(), 7);
}

#[test]
fn a_host_that_is_terminated_ends_its_programs() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut host = site.host(&["--"], &["sh", "-c", "echo $$; exec sleep 1000"]);
    let ticket = host.first_line();
    let mut attach = site.attach(&stage, &[], &ticket);
    let pid = host.next_line();
    host.terminate();
    assert_eq!((host.code(), attach.code()), (143, 0));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "process {pid} is left");
    nothing_left(&site);
}

#[test]
fn the_manual_and_the_completions_know_every_option() {
    let man = Run::new(["man"]).output();
    for (command, option) in [
        ("attach", "--title-prefix"),
        ("ssh", "--compress"),
        ("ssh", "--remote-bin"),
        ("host", "--oneshot"),
        ("attach", "--via"),
        ("host", "--listen"),
    ] {
        // roff writes a hyphen as `\-`.
        assert!(man.contains(&option.replace('-', "\\-")), "{option} is not in the manual");
        let asked = Run::new(["--", "wayferry", command, option]).env("_WAYFERRY_COMPLETE", "bash");
        let offered = asked.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "2").output();
        assert!(offered.lines().any(|line| line == option), "{option} of {command}: {offered}");
    }
    assert!(man.contains("EXIT STATUS"));
}

#[test]
fn each_command_that_the_manual_names_has_a_page() {
    let site = Site::new();
    Run::new(["man", "--to", site.path().to_str().expect("UTF-8")]).output();
    let page = |name: &str| std::fs::read_to_string(site.path().join(name)).unwrap_or_default();
    let whole = page("wayferry.1").replace("\\-", "-");
    let named: Vec<&str> = whole.lines().filter_map(|line| line.strip_suffix("(1)")).collect();
    assert!(named.contains(&"wayferry-ssh") && named.len() > 10, "{named:?}");
    for name in named {
        let text = page(&format!("{name}.1")).replace("\\-", "-");
        assert!(text.contains(&format!(".TH {name} 1")), "{name}: {text}");
        assert!(text.contains("--log") || name == "wayferry-demo", "{name} lacks what every command takes");
    }
}

#[test]
fn regression_words_that_nobody_reads_end_nothing() {
    let (read, write) = std::io::pipe().expect("a pipe");
    drop(read);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wayferry"));
    let status = command.args(["attach", "wf1:AAAA"]).stderr(write).status().expect("wayferry");
    assert_eq!(status.code(), Some(65), "the error keeps its code");
}

#[test]
fn regression_a_session_that_nobody_came_for_ends_with_its_launcher() {
    let site = Site::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wayferry"));
    command.args(["host", "--stdio", "--", "sleep", "1000"]).stdin(std::process::Stdio::null());
    command.env("TMPDIR", site.path()).env("XDG_RUNTIME_DIR", site.path());
    assert!(command.status().expect("wayferry").success());
    let start = std::time::Instant::now();
    while std::fs::read_dir(site.path()).expect("the directory").next().is_some() {
        assert!(start.elapsed() < Duration::from_secs(30), "the session does not end");
        std::thread::yield_now();
    }
}

#[test]
fn events_need_an_open_descriptor() {
    // None that this test, or those beside it, would have open.
    let words = ["host", "--listen", "127.0.0.1:0", "--events", "1019", "--", "true"];
    let (code, said) = Run::new(words).failure();
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("1019"), "{said}");
}

#[test]
fn a_link_that_is_cut_ends_neither_side_and_both_say_so() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut host = site.host(&["--silence", "1", "--"], &["sh", "-c", "echo started; read word; exit 5"]);
    let ticket = host.first_line();
    let address = ticket.parse::<Ticket>().expect("a ticket").addresses[0];
    let link = Link::start(LinkConfig::default(), address).expect("a link");
    let via = link.local_addr().to_string();
    let mut attach = site.attach(&stage, &["--silence", "1", "--via", &via], &ticket);
    assert_eq!(host.next_line(), "started");
    link.set_down(true);
    attach.happens("connection-lost");
    host.happens("display-away");
    link.set_down(false);
    attach.happens("back");
    host.terminate();
    assert_eq!(host.code(), 143);
    assert_eq!(attach.code(), 0);
    nothing_left(&site);
}

#[test]
fn x11_programs_find_the_satellite() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    // Stands in for xwayland-satellite: a program that is started with a display name and makes the X socket.
    let tools = Site::new();
    let log = tools.path().join("log");
    let text = format!("echo $$ $1 $DISPLAY > {0}.new; mv {0}.new {0}; exec sleep 1000", log.display());
    script(&tools, "xwayland-satellite", &text);
    script(&tools, "Xwayland", "echo Xwayland Version 24.1.6 >&2");
    let path = format!("{}:{}", tools.path().display(), std::env::var("PATH").unwrap_or_default());
    let program = format!("while ! test -e {}; do :; done; echo $DISPLAY", log.display());
    let mut host = site.host_with("PATH", &path, &["--xwayland", "--"], &["sh", "-c", &program]);
    let ticket = host.first_line();
    let mut attach = site.attach(&stage, &[], &ticket);
    let display = host.next_line();
    assert_eq!((host.code(), attach.code()), (0, 0));
    let log = std::fs::read_to_string(log).expect("the satellite ran");
    let words: Vec<&str> = log.split_whitespace().collect();
    assert_eq!(words[1..], [display.as_str()], "its own DISPLAY must be empty");
    assert!(!std::path::Path::new(&format!("/proc/{}", words[0])).exists(), "the satellite is left");
}

/// A program of these words, in a directory for a PATH.
fn script(site: &Site, name: &str, text: &str) {
    // By a program of its own: were it open for writing here, a child that another test starts meanwhile would hold it
    // open for a moment too, and it could not be run.
    let write = r#"printf '%s\n' '#!/bin/sh' "$1" > "$0" && chmod 755 "$0""#;
    let mut command = std::process::Command::new("/bin/sh");
    let command = command.args(["-c", write]).arg(site.path().join(name)).arg(text);
    assert!(command.status().is_ok_and(|status| status.success()), "a script");
}

/// The session itself brings one.
#[test]
fn regression_an_address_is_not_opened_where_no_xdg_open_is_installed() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut host = site.host_with("PATH", "/nonexistent", &["--"], &["xdg-open", "https://example.org/"]);
    let ticket = host.first_line();
    let mut attach = site.attach(&stage, &["--open-url", "never"], &ticket);
    // It has begun, and tells that neither side opens it.
    assert_eq!((host.code(), attach.code()), (3, 3));
    nothing_left(&site);
}

#[test]
fn what_x11_programs_lack_is_named_with_a_way_out() {
    let (site, tools) = (Site::new(), Site::new());
    let path = tools.path().display().to_string();
    let fails =
        |how: &str, told: &str| site.host_with("PATH", &path, &[how, "--"], &["/bin/true"]).fails(90, told);
    fails("--xwayland", "`xwayland-satellite` was not found");
    fails("--xwayland=rootful", "`Xwayland` was not found");
    script(&tools, "xwayland-satellite", "exit 1");
    fails("--xwayland=satellite", "`Xwayland` was not found");
    script(&tools, "Xwayland", "echo The X.Org Foundation Xwayland Version 22.1.9 >&2");
    fails("--xwayland", "`Xwayland` 22.1.9 is too old for `xwayland-satellite`, which needs 23.1");
    nothing_left(&site);
}

#[test]
fn a_program_that_floods_its_socket_does_not_end_the_others() {
    let (site, stage) = (Site::new(), stage(&Config::default()));
    let mut session =
        site.session_over(&stage, LinkConfig { rate: Some(10_000_000), ..LinkConfig::default() });
    let socket = session.socket.clone();
    let flood = Program::start(Endpoint::Socket(socket), |client| {
        let window = client.window("flood", 16, 16)?;
        let mut number = 0u64;
        loop {
            number += 1;
            client.set_title(window, &format!("{number} {}", "x".repeat(3000)));
            client.dispatch(Duration::ZERO)?;
        }
    });
    let flood = flood.expect("a thread");
    let mut good = Client::connect(&session.socket).expect("the session's socket");
    let window = good.window("good", 64, 64).expect("a window");
    good.draw(window, &picture(64, 64)).expect("drawn");
    let shown = |commit: &wayferry_stage::Commit| commit.attached && commit.title.as_deref() == Some("good");
    let shown = stage.stage.watch().patience(Duration::from_secs(30)).commit(shown).expect("shown");
    stage.stage.set_focus(Some(shown.surface));
    stage.stage.type_text("wayferry");
    for _ in 0..8 {
        good.wait_input(|input| matches!(input, Input::Key { pressed: true, .. })).expect("a key");
    }
    drop(flood);
    drop(good);
    session.end_program();
    assert_eq!((session.host.code(), session.attach.code()), (7, 7), "{}", session.host.stderr());
    nothing_left(&site);
}

#[test]
fn a_keymap_that_cannot_be_read_is_named() {
    let site = Site::new();
    let compositor = fake::Compositor::start(site.path().join("fake"));
    let ticket = site.host(&["--"], &["true"]).first_line();
    site.attach_to(compositor.socket(), &[], &ticket).fails(79, "keymap");
}

#[test]
fn a_compositor_that_ends_is_named_and_the_session_waits() {
    let (site, on_stage) = (Site::new(), stage(&Config::default()));
    let mut session = site.session(&on_stage, &[]);
    let mut client = Client::connect(&session.socket).expect("the session's socket");
    let window = client.window("window", 64, 64).expect("a window");
    client.draw(window, &picture(64, 64)).expect("drawn");
    on_stage.stage.watch().commit(|commit| commit.attached).expect("shown");
    drop(on_stage);
    session.attach.fails(71, "the compositor ended the connection");
    client.draw(window, &picture(64, 64)).expect("drawn unseen");
    session.host.terminate();
    assert_eq!(session.host.code(), 143);
    drop(client);
    nothing_left(&site);
}
