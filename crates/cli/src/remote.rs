//! What a shell on another machine is asked to run: that machine's own `wayferry`, wherever it was installed.
//!
//! sshd gives a command a short PATH, in which `~/.cargo/bin` and its like are missing, so those are looked at too. The
//! line is read by the user's shell there, whichever that is; all of it is quoted for `sh`. Invariant: where there is
//! no wayferry, the line ends with [`MISSING`], where it does not run, with [`BROKEN`], and nothing of ours is left
//! there.

use crate::error::Error;
use crate::flags::{OwnFlags, Which};
use crate::ssh::quote;

/// Where a host that is started finds its display.
#[derive(Clone, Copy)]
pub(crate) enum Road<'a> {
    /// Behind this socket, which ssh forwards.
    Forwarded(&'a str),
    /// Behind stdin and stdout, which carry the program's, too.
    Trunk,
    /// Behind stdin and stdout, or nowhere.
    Stdio,
}

/// What to start, and how.
enum Task<'a> {
    /// `host` for a display there.
    Host(Road<'a>),
    /// These words, whose output begins behind a line with this mark: a login may print something before.
    Marked(&'a str),
    /// Questions, whose answers stand between two lines with this mark, and then `host` with these words, for the
    /// display behind this forwarded socket or, where ssh forwards none, behind stdin and stdout.
    Examined(&'a str, &'a str),
    /// These words.
    Plain,
}

/// The line for a session whose display is there.
pub(crate) fn host_line(own: &OwnFlags, road: Road<'_>, words: &[String]) -> String {
    line(own, &Task::Host(road), words)
}

/// The line for these words after `wayferry`, whose output follows a line with `mark`.
pub(crate) fn marked_line(own: &OwnFlags, mark: &str, words: &[String]) -> String {
    line(own, &Task::Marked(mark), words)
}

/// The line that answers what `doctor` asks, between two lines with `mark`, then starts a session with these words.
pub(crate) fn examined_line(own: &OwnFlags, mark: &str, socket: &str, words: &[String]) -> String {
    line(own, &Task::Examined(mark, socket), words)
}

/// The line for these words after `wayferry`.
pub(crate) fn plain_line(own: &OwnFlags, words: &[String]) -> String {
    line(own, &Task::Plain, words)
}

/// What the user is told when the line ended with [`MISSING`]; `again` are the words after `wayferry` and its own
/// options.
pub(crate) fn missing(own: &OwnFlags, destination: &str, again: &str) -> Error {
    Error::RemoteMissing {
        binary: binary(own).to_owned(),
        destination: destination.to_owned(),
        again: again.to_owned(),
    }
}

/// What the user is told when the line ended with [`BROKEN`].
pub(crate) fn broken(own: &OwnFlags, destination: &str) -> Error {
    Error::RemoteBroken { binary: binary(own).to_owned(), destination: destination.to_owned() }
}

/// A session of another machine as words of a command line, with ssh's options.
pub(crate) fn again(own: &OwnFlags, which: &Which) -> String {
    let words = own.reach.ssh_options.iter().map(|word| word.to_string_lossy().into_owned());
    words.chain([which.to_string()]).collect::<Vec<_>>().join(" ")
}

fn binary(own: &OwnFlags) -> &str {
    own.reach.remote_bin.as_deref().unwrap_or("wayferry")
}

fn line(own: &OwnFlags, task: &Task<'_>, words: &[String]) -> String {
    let (run, socket) = match task {
        Task::Examined(_, socket) => (MEET, *socket),
        Task::Host(Road::Forwarded(socket)) => ("exec \"$b\" host --bootstrap \"$s\" \"$@\"", *socket),
        Task::Host(Road::Trunk) => ("exec \"$b\" host --trunk \"$@\"", ""),
        Task::Host(Road::Stdio) => ("exec \"$b\" host --stdio \"$@\"", ""),
        Task::Marked(mark) => ("echo \"$s\"; exec \"$b\" \"$@\"", *mark),
        Task::Plain => ("exec \"$b\" \"$@\"", ""),
    };
    let (script, mark) = match task {
        Task::Examined(mark, _) => (format!("{ASK}{FIND}{run}"), Some(*mark)),
        _ => (format!("{FIND}{run}"), None),
    };
    let all = ["sh", "-c", &script, "wayferry", binary(own), socket].into_iter().chain(mark);
    all.chain(words.iter().map(String::as_str)).map(quote).collect::<Vec<_>>().join(" ")
}

/// What a line ends with when there is no wayferry: a code that neither a shell nor a program gives by chance.
pub(crate) const MISSING: u8 = 72;

/// What a line ends with when there is a wayferry that does not run: a damaged file, or one for another kind of
/// machine.
pub(crate) const BROKEN: u8 = 88;

/// Makes `b` the binary, or tidies the socket `s` up and ends with [`MISSING`] or [`BROKEN`].
const FIND: &str = "b=$1; s=$2; shift 2; \
    case $b in */*) ;; *) command -v \"$b\" >/dev/null 2>&1 || \
    for d in \"$HOME/.local/bin\" \"$HOME/.cargo/bin\" /usr/local/bin /opt/*/bin \"$HOME/.nix-profile/bin\" \
    \"/etc/profiles/per-user/$USER/bin\" /run/current-system/sw/bin /nix/var/nix/profiles/default/bin; do \
    if [ -x \"$d/$b\" ]; then b=$d/$b; break; fi; done;; esac; \
    e() { [ ! -S \"$s\" ] || rm -f \"$s\"; exit \"$1\"; }; \
    command -v \"$b\" >/dev/null 2>&1 || e 72; \"$b\" --version </dev/null >/dev/null 2>&1 || e 88; ";

/// What is asked before the binary is looked for, whose name is the first word; the second is a forwarded socket, the
/// third the mark.
const ASK: &str = "echo \"$3 begin\"; [ ! -S \"$2\" ] || echo forwarded; echo \"machine $(uname -sm)\"; \
    ! command -v \"$1\" >/dev/null 2>&1 || echo in-path; ";

/// What is asked of the binary, which may be of a version that does not know all of it, and then its session.
const MEET: &str = "m=$1; shift; echo \"binary $(command -v \"$b\")\"; \
    echo \"version $(\"$b\" --version </dev/null 2>/dev/null | head -n 1)\"; \
    f=$(\"$b\" doctor --there </dev/null 2>/dev/null) && echo \"facts $f\"; echo \"$m end\"; \
    if [ -S \"$s\" ]; then exec \"$b\" host --bootstrap \"$s\" \"$@\"; fi; exec \"$b\" host --stdio \"$@\"";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Output};

    use super::*;
    use crate::flags::ReachFlags;
    use wayferry_host::edge::socket::RuntimeDir;

    fn own(binary: &str) -> OwnFlags {
        let reach = ReachFlags { remote_bin: Some(binary.into()), ..ReachFlags::default() };
        OwnFlags { reach, ..OwnFlags::default() }
    }

    fn sh(line: &str, home: &std::path::Path) -> Output {
        Command::new("/bin/sh").arg("-c").arg(line).env("HOME", home).output().expect("sh")
    }

    #[test]
    fn the_line_survives_the_remote_shell() {
        let dir = RuntimeDir::private().expect("a directory");
        let words = ["--title-prefix=it's: ".to_owned(), "--shell-line=foot -e 'a b'".to_owned()];
        let said = sh(&host_line(&own("echo"), Road::Forwarded("/tmp/s"), &words), dir.path());
        let expected = "host --bootstrap /tmp/s --title-prefix=it's:  --shell-line=foot -e 'a b'\n";
        assert_eq!(String::from_utf8_lossy(&said.stdout), expected);
        let said = sh(&plain_line(&own("echo"), &["list".into(), "--json".into()]), dir.path());
        assert_eq!(String::from_utf8_lossy(&said.stdout), "list --json\n");
    }

    #[test]
    fn a_binary_that_cargo_installed_is_found_although_sshd_does_not_look_there() {
        let dir = RuntimeDir::private().expect("a directory");
        for place in [".local/bin", ".cargo/bin", ".nix-profile/bin"] {
            let home = dir.path().join(place.replace('/', "-"));
            std::fs::create_dir_all(home.join(place)).expect("a directory");
            let binary = home.join(place).join("wayferry-installed");
            std::fs::write(&binary, "#!/bin/sh\necho here \"$@\"\n").expect("a file");
            std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).expect("its permissions");
            let said = sh(&plain_line(&own("wayferry-installed"), &["list".into()]), &home);
            assert_eq!(String::from_utf8_lossy(&said.stdout), "here list\n", "{place}");
        }
    }

    #[test]
    fn what_a_login_prints_is_told_from_an_answer() {
        let dir = RuntimeDir::private().expect("a directory");
        let said = sh(&marked_line(&own("echo"), "mark", &["[]".into()]), dir.path());
        assert_eq!(String::from_utf8_lossy(&said.stdout), "mark\n[]\n");
    }

    #[test]
    fn what_doctor_asks_is_answered_between_the_marks_before_the_session_begins() {
        let dir = RuntimeDir::private().expect("a directory");
        let said = sh(&examined_line(&own("echo"), "m", "/no/socket", &["--x y".into()]), dir.path());
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[2]), ("m begin", "in-path"), "{text}");
        assert!(lines[1].starts_with("machine ") && lines[3].starts_with("binary "), "{text}");
        assert_eq!(lines[4..], ["version --version", "facts doctor --there", "m end", "host --stdio --x y"]);
        let said = sh(&examined_line(&own("/no/such"), "m", "/no/socket", &[]), dir.path());
        assert_eq!(said.status.code(), Some(MISSING.into()));
        assert!(said.stdout.starts_with(b"m begin\n"));
    }

    #[test]
    fn a_binary_that_is_missing_or_broken_has_a_code_of_its_own_and_leaves_no_socket() {
        let dir = RuntimeDir::private().expect("a directory");
        let socket = dir.path().join("s");
        let broken = dir.path().join("broken");
        std::fs::write(&broken, [0x7f, b'E', b'L', b'F', 0]).expect("a file");
        std::fs::set_permissions(&broken, PermissionsExt::from_mode(0o755)).expect("its permissions");
        for (binary, code) in [("/no/such/wayferry", MISSING), (broken.to_str().expect("text"), BROKEN)] {
            let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
            let road = Road::Forwarded(socket.to_str().expect("text"));
            let line = host_line(&own(binary), road, &[]);
            assert_eq!((sh(&line, dir.path()).status.code(), socket.exists()), (Some(code.into()), false));
        }
        // A program that is not there is another matter.
        let line = plain_line(&own("env"), &["sh".into(), "-c".into(), "exit 127".into()]);
        assert_eq!(sh(&line, dir.path()).status.code(), Some(127));
    }
}
