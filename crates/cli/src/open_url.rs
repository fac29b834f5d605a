//! `xdg-open`, as programs of a session find it: addresses are opened at the desk.
//!
//! The session has a link of that name to this program in front of its PATH, and in BROWSER. All that is no address, or
//! that no display wants, goes to the next `xdg-open` of this machine, as if this one were not there. Invariant: that
//! one never leads back here.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use wayferry_host::control::{self, Answer, Request};
use wayferry_host::edge::programs::Environment;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::{path, peer};
use wayferry_host::passing;
use wayferry_host::sanitize::sanitize;
use wayferry_host::sessions::Named;
use wayferry_host::url::Url;

/// Whether this program was called as `xdg-open`.
pub(crate) fn is_called() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    Path::new(&name).file_name() == Some(OsStr::new(NAME)) && std::env::var_os(CONTROL).is_some()
}

/// Does as `xdg-open`; gives its exit code.
pub(crate) fn run() -> u8 {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [word] = &words[..] else { return here(&words, false) };
    let Some(url) = Url::quote(word.as_encoded_bytes()) else { return here(&words, false) };
    match ask(&url) {
        Some(Answer::Done) => 0,
        Some(Answer::Not(why)) => {
            eprintln!("error: `{}` was not opened: {}", url.as_str(), sanitize(&why));
            eprintln!(
                "hint: at the display, `wayferry --open-url always` lets this host open addresses there"
            );
            FAILED
        }
        _ => here(&words, true),
    }
}

/// Puts the command into the session, and has programs find it.
pub(crate) fn offer(named: &mut Named, environment: &mut Environment) -> std::io::Result<()> {
    let directory = named.add_commands(std::env::current_exe()?)?;
    let mut set = |name: &str, value: OsString| environment.set.push((name.into(), value));
    set(CONTROL, named.socket().into());
    set("BROWSER", directory.join(NAME).into());
    let old = path::own();
    let fits = old.to_str().is_some_and(|text| text.len() <= MAX_PATH && !text.contains('\n'));
    if fits && let Ok(path) = std::env::join_paths([directory].into_iter().chain(std::env::split_paths(&old)))
    {
        set("PATH", path);
    }
    Ok(())
}

/// What the session says to it; `None` if it says nothing. A user who is asked may take longer than the caller should
/// have to wait: then it is as if it were done.
fn ask(url: &Url) -> Option<Answer> {
    let socket: OwnedFd = peer::connect_at_once(Path::new(&std::env::var_os(CONTROL)?)).ok()?;
    let signals = Signals::new().ok()?;
    let request = control::line(&Request::OpenUrl(url.as_str().to_owned()));
    passing::send(&socket, &request, &[]).ok()?;
    let mut heard = Vec::new();
    loop {
        if let Some(answer) = control::take(&mut heard).ok()? {
            return Some(answer);
        }
        if !signals.wait_readable(&[socket.as_fd()], Some(PATIENCE)).ok()?[0] {
            eprintln!("note: the user at the display has not answered yet");
            return Some(Answer::Done);
        }
        if !passing::receive(&socket, &mut heard, &mut Vec::new()).ok()? {
            return None;
        }
    }
}

/// Becomes this machine's own `xdg-open`; returns if there is none. A display could open it if it `crosses`.
fn here(words: &[OsString], crosses: bool) -> u8 {
    let path = path::own();
    let own = std::env::current_exe().ok();
    let leads_back = |directory: &PathBuf| {
        let file = std::fs::canonicalize(directory.join(NAME)).ok();
        file.is_some() && file == own
    };
    let rest = std::env::split_paths(&path).filter(|directory| !leads_back(directory));
    let path = std::env::join_paths(rest).unwrap_or_default();
    // An empty one leads to the working directory.
    let file = Some(&path).filter(|path| !path.is_empty()).and_then(|path| path::find(NAME, path).ok());
    let Some(file) = file else {
        let (why, hint) = match crosses {
            true => ("no display opens addresses", "`--open-url ask` or `always` at the display, or install"),
            false => ("a display opens http, https and mailto addresses alone", "for all else, install"),
        };
        eprintln!("error: {why}, and no `{NAME}` is installed here");
        eprintln!("hint: {hint} `xdg-utils` here");
        return MISSING;
    };
    let error = Command::new(&file).args(words).env("PATH", path).env_remove("BROWSER").exec();
    eprintln!("error: cannot run `{}`: {error}", file.display());
    FAILED
}

const NAME: &str = "xdg-open";
/// Names the session's control socket to its programs.
pub(crate) const CONTROL: &str = "WAYFERRY_CONTROL";
/// Bytes of a PATH that is passed on: a line to the launcher has no more.
const MAX_PATH: usize = 4096;
/// How long a caller waits for a user.
const PATIENCE: Duration = Duration::from_secs(10);
/// xdg-open(1), "Exit Codes": a required tool could not be found; the action failed.
const MISSING: u8 = 3;
const FAILED: u8 = 4;
