//! `wayferry ssh` against a real ssh server on the loopback device.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::rig::{Compositor, Home, Launch, Network, Sshd, Sway, until};

#[test]
fn a_window_comes_over_and_the_status_goes_back() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut wayferry = ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'read line; exit 7'"]).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(7), "{}", wayferry.stderr());
    assert_eq!(wayferry.error(), None, "{}", wayferry.stderr());
    sway.empty();
}

#[test]
fn where_udp_is_blocked_ssh_carries_it() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::NoUdp, ""));
    let mut wayferry =
        ferry(&sway, &sshd, &[], &["foot", "sh", "-c", "'head -n 1 > $HOME/heard; exit 9'"]).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    wayferry.happens("quic-unreachable");
    sway.settled();
    sway.type_text("carried");
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(9), "{}", wayferry.stderr());
    // Told once, and not as an error.
    assert_eq!((wayferry.count("quic-unreachable"), wayferry.error()), (1, None), "{}", wayferry.stderr());
}

#[test]
fn a_trace_has_both_halves_at_the_end() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let trace = sway.home().file("a.trace").display().to_string();
    let svg = sway.home().file("a.svg").display().to_string();
    let command = ["foot", "sh", "-c", "'read line; exit 7'"];
    let mut wayferry = ferry(&sway, &sshd, &["--trace", &trace], &command).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(7), "{}", wayferry.stderr());
    let table = sway.home().wayferry().privileged().args(["trace", &trace, "--svg", &svg]).run();
    let table = String::from_utf8(table).expect("text");
    for stage in ["encode", "queue", "wire", "decode", "commit"] {
        assert!(table.lines().any(|line| line.starts_with(stage)), "{stage} is missing: {table}");
    }
}

#[test]
fn a_half_of_a_trace_that_is_missing_is_told_with_its_place() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let trace = sway.home().file("a.trace").display().to_string();
    // The first login is let in alone.
    let once = sway
        .home()
        .write("ssh-once", "#!/bin/sh\ncase $* in *-oBatchMode*) exit 255 ;; esac\nexec ssh \"$@\"\n");
    fs::set_permissions(&once, Permissions::from_mode(0o755)).expect("its permissions");
    let options = ["--trace", &trace, "--ssh-bin", &once.display().to_string()];
    let mut wayferry = ferry(&sway, &sshd, &options, &["sh", "-c", "'exit 7'"]).start();
    assert_eq!(wayferry.ended().code(), Some(7), "{}", wayferry.stderr());
    let told = wayferry.stderr();
    assert!(told.contains("the half of the trace that ferry-host has is missing here"), "{told}");
    let line = told.split('`').find(|line| line.starts_with("ssh -F ")).expect("a line that brings it");
    let there = sway.home().file("a.trace.there");
    assert!(!there.exists());
    for (line, comes) in [(line.to_owned(), true), (line.replace(" cat ", " rm "), false)] {
        let mut ssh = sway.home().launch("sh").privileged().args(["-c", &line]).start();
        assert!(ssh.ended().success(), "{line}: {}", ssh.stderr());
        assert_eq!(fs::metadata(&there).is_ok_and(|file| file.len() > 0), comes, "{line}");
    }
}

#[test]
fn without_a_command_the_shell_runs() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let input = sway.home().write("input", "echo display=$WAYLAND_DISPLAY\nexit 5\n");
    let mut wayferry = ferry(&sway, &sshd, &[], &[]).stdin(input).start();
    assert_eq!(wayferry.ended().code(), Some(5), "{}", wayferry.stderr());
    assert!(
        wayferry.stdout().lines().any(|line| line.len() > "display=".len() && line.starts_with("display="))
    );
}

#[test]
fn a_missing_remote_binary_is_named() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let launch = sshd.wayferry(sway.home(), &["--remote-bin", "/no/such/wayferry"], &["true"]);
    let mut wayferry = on(&sway, launch).start();
    assert_eq!(wayferry.ended().code(), Some(72), "{}", wayferry.stderr());
    let error = wayferry.error().expect("it is told");
    assert!(error["text"].as_str().is_some_and(|text| text.contains("`/no/such/wayferry`")), "{error}");
}

#[test]
fn install_remote_brings_what_is_missing_and_only_once() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let bare = |options: &[&str], command: &[&str]| on(&sway, sshd.wayferry(sway.home(), options, command));
    let mut missing = bare(&[], &["true"]).start();
    assert_eq!(missing.ended().code(), Some(72), "{}", missing.stderr());
    let error = missing.error().expect("it is told");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--install-remote")), "{error}");
    stand_in(sway.home(), &remote_binary(sshd.home()));
    let installed = sshd.home().file(".local/bin/wayferry");
    let mut inode = None;
    for copies in [1, 0] {
        let mut wayferry = bare(&["--install-remote"], &["foot", "sh", "-c", "'read line; exit 7'"]).start();
        sway.window("foot", |window| window.app_id == "foot" && window.focused);
        sway.settled();
        sway.keys(&["-k", "Return"]);
        assert_eq!(wayferry.ended().code(), Some(7), "{}", wayferry.stderr());
        assert_eq!(wayferry.count("copying"), copies, "{}", wayferry.stderr());
        let now = fs::metadata(&installed).expect("the copy");
        assert_eq!(now.mode() & 0o7777, 0o755);
        assert_eq!(*inode.get_or_insert(now.ino()), now.ino(), "it was replaced");
    }
    let others = fs::read_dir(sshd.home().file(".local/bin")).expect("the directory").count();
    assert_eq!(others, 1, "something else was left there");
    let mut session = bare(&["--detached"], &["tail", "-f", "/dev/null"]).start();
    assert_eq!(session.ended().code(), Some(0), "{}", session.stderr());
}

#[test]
fn install_remote_sends_nothing_that_cannot_run_there() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let fails = |words: &[&str]| {
        let mut wayferry = on(&sway, sshd.wayferry(sway.home(), &["--install-remote"], &["true"])).start();
        assert_eq!(wayferry.ended().code(), Some(84), "{}", wayferry.stderr());
        let said = wayferry.error().expect("it is told").to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!sshd.home().file(".local/bin/wayferry").exists(), "{said}");
    };
    // The tests' own build is not static, and nothing lies beside it.
    fails(&["static", "make static"]);
    stand_in(sway.home(), "/no/such/program");
    fails(&["does not run"]);
    fs::create_dir_all(sshd.home().file("bin")).expect("a directory");
    let uname = sshd.home().write("bin/uname", "#!/bin/sh\necho Linux pdp11\n");
    fs::set_permissions(uname, Permissions::from_mode(0o755)).expect("its permissions");
    fails(&["`Linux pdp11`"]);
}

/// As a user of another machine would: nothing of this one but its kernel.
#[test]
#[ignore = "heavy: `make test-full` builds the static program that it copies"]
fn install_remote_copies_the_static_build() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/static/wayferry");
    fs::copy(&built, sway.home().file("wayferry")).expect("`make static` makes it");
    let empty = Home::new();
    fs::copy(&built, empty.file("wayferry")).expect("a copy");
    let root = empty.path().display().to_string();
    empty.launch("chroot").privileged().args([root.as_str(), "/wayferry", "--version"]).run();
    let launch =
        sshd.wayferry(sway.home(), &["--install-remote"], &["foot", "sh", "-c", "'read line; exit 7'"]);
    let mut wayferry = on(&sway, launch).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(wayferry.ended().code(), Some(7), "{}", wayferry.stderr());
    assert_eq!(fs::read(sshd.home().file(".local/bin/wayferry")).ok(), fs::read(built).ok());
    sway.empty();
}

/// Puts a static program beside `home`'s wayferry that is as good as the one at `path`: a real static build takes
/// minutes.
fn stand_in(home: &Home, path: &str) {
    let source = home.write(
        "stand-in.c",
        format!(
            "#include <unistd.h>\nint main(int count, char **words) {{ (void)count; execv(\"{path}\", words); return 126; }}\n"
        ),
    );
    let (output, source) = (home.file("wayferry-static").display().to_string(), source.display().to_string());
    home.launch("cc").privileged().args(["-static", "-o", &output, &source]).run();
}

#[test]
fn a_refused_login_is_sshs_own_failure() {
    let (sway, sshd) = (Sway::start(), Sshd::start_with(Network::Plain, "AllowUsers nobody-at-all"));
    let mut wayferry = ferry(&sway, &sshd, &[], &["true"]).start();
    assert_eq!(wayferry.ended().code(), Some(255), "{}", wayferry.stderr());
}

#[test]
fn another_user_who_has_taken_the_sockets_name_is_given_nothing() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let ssh = squatted(sway.home());
    // Only for a command with a terminal a socket is forwarded.
    let mut wayferry = ferry(&sway, &sshd, &["--ssh-bin", &ssh], &["-tt", "foot"]).start();
    assert_eq!(wayferry.ended().code(), Some(85), "{}", wayferry.stderr());
    // The wayferry of the other machine says it on that terminal, and ssh passes it on.
    let said = wayferry.stdout();
    assert!(said.contains("65534") && said.contains("`wayferry through ssh"), "{said}");
    let path = sway.home().read_when("squatter-path", |path| path.ends_with(b"\n"));
    let mut caller =
        UnixStream::connect(String::from_utf8_lossy(&path).trim()).expect("the stranger listens");
    caller.write_all(b"enough\n").expect("the stranger hears");
    caller.shutdown(std::net::Shutdown::Write).expect("a socket");
    let heard = sway.home().read_when("squatter-heard", |heard| heard.ends_with(b"enough\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "enough\n", "the stranger was told something");
    until("the session to be gone", || sshd.home().living().is_empty().then_some(()));
}

#[test]
fn a_forward_of_the_users_own_that_fails_does_not_end_the_session() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its number").port();
    let ssh = sway.home().write("ssh", format!("#!/bin/sh\nexec ssh -L {port}:127.0.0.1:1 \"$@\"\n"));
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).expect("its permissions");
    let ssh = ssh.display().to_string();
    let mut wayferry = ferry(&sway, &sshd, &["--ssh-bin", &ssh], &["foot", "sh", "-c", "'exit 3'"]).start();
    assert_eq!(wayferry.ended().code(), Some(3), "{}", wayferry.stderr());
}

/// An ssh that is watched by another user of both machines, who reads the socket's name in its arguments and is there
/// first.
fn squatted(home: &Home) -> String {
    let squatter = home.write("squatter.py", include_str!("tools/squatter.py"));
    let told = home.file("squatter-path");
    let script = format!(
        "#!/bin/sh\nfor word; do case $word in /tmp/wayferry-*:*) path=${{word%%:*}};; esac; done\n\
         if [ -n \"$path\" ]; then setpriv --reuid=65534 --clear-groups python3 {} \"$path\" &\n\
         while [ ! -S \"$path\" ]; do :; done; echo \"$path\" >{}; fi\nexec ssh \"$@\"\n",
        squatter.display(),
        told.display()
    );
    let ssh = home.write("ssh", script);
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).expect("its permissions");
    ssh.display().to_string()
}

/// Each display brings the keys of its own desk, and takes them along when it goes.
#[test]
fn programs_use_the_agent_of_the_display_that_came_last() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let agent = |name: &str| {
        let (key, socket) = (sway.home().file(name), sway.home().file(&format!("{name}-agent")));
        let (key, socket) = (key.display().to_string(), socket.display().to_string());
        let run = |words: &[&str]| {
            let launch = sway.home().launch(words[0]).privileged().env("SSH_AUTH_SOCK", &socket);
            launch.args(words[1..].iter().copied())
        };
        run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &key]).run();
        let agent = run(&["ssh-agent", "-D", "-a", &socket]).start();
        until("the agent", || Path::new(&socket).exists().then_some(()));
        run(&["ssh-add", "-q", &key]).run();
        (agent, socket)
    };
    let [(_one, first), (_two, second)] = ["one", "two"].map(agent);
    let binary = remote_binary(sshd.home());
    let arguments = sshd.arguments();
    let wayferry = |socket: &str, command: &str| {
        let launch = sway.home().wayferry().privileged().env("SSH_AUTH_SOCK", socket);
        let launch = launch.args(["--remote-bin", binary.as_str(), command, "-A"]);
        on(&sway, launch.args(arguments[..2].iter().map(String::as_str)))
    };
    let script = "'ssh-add -L > $HOME/first; read line; ssh-add -L > $HOME/second; exit 3'";
    let begin = wayferry(&first, "ssh").args(["ferry-host", "foot", "sh", "-c", script]);
    let mut begun = begin.start();
    sway.window("foot", |window| window.app_id == "foot");
    sshd.home().read_when("first", |keys| keys.ends_with(b" one\n"));
    begun.terminate();
    begun.ended();
    sway.empty();
    let mut attach = wayferry(&second, "attach").arg("ferry-host:foot").start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    sway.keys(&["-k", "Return"]);
    assert_eq!(attach.ended().code(), Some(3), "{}", attach.stderr());
    sshd.home().read_when("second", |keys| keys.ends_with(b" two\n"));
}

pub(crate) fn ferry(sway: &Sway, sshd: &Sshd, options: &[&str], command: &[&str]) -> Launch {
    let binary = remote_binary(sshd.home());
    let all: Vec<&str> =
        ["--remote-bin", binary.as_str()].into_iter().chain(options.iter().copied()).collect();
    on(sway, sshd.wayferry(sway.home(), &all, command))
}

/// Shows a session that runs there.
pub(crate) fn attach(sway: &Sway, sshd: &Sshd, session: &str) -> Launch {
    let binary = remote_binary(sshd.home());
    let launch = sway.home().wayferry().privileged().args(["--remote-bin", binary.as_str(), "attach"]);
    let arguments = sshd.arguments();
    let launch = launch.args(arguments[..2].iter().map(String::as_str)).arg(session);
    on(sway, sshd.near(launch))
}

/// Where the other side finds `wayferry`.
fn remote_binary(home: &Home) -> String {
    home.wayferry().words()[0].clone()
}

fn on(sway: &Sway, launch: Launch) -> Launch {
    launch.env("WAYLAND_DISPLAY", sway.display())
}
