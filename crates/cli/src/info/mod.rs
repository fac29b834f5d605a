//! `wayferry info`: how this user's sessions on this machine fare.
//!
//! Running sides have sockets in one directory ([`wayferry_host::edge::offer`]); each is asked for its document, and
//! what no side answers any more is removed. Nothing is asked of another machine. Invariant: for any behaviour of the
//! sides, it ends after [`PATIENCE`].

mod text;

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use serde_json::Value;
use wayferry_proto::Time;

use crate::error::Error;
use crate::flags::InfoFlags;
use crate::tell::{notice, print};
use wayferry_host::clock::Clock;
use wayferry_host::edge::counter;
use wayferry_host::edge::offer;
use wayferry_host::edge::peer;
use wayferry_host::edge::wait::Interests;
use wayferry_host::sanitize::json;

pub(crate) use text::{Document, attention, by_link};

/// Prints what the sides tell; gives the exit code.
pub(crate) fn run(flags: &InfoFlags) -> Result<u8, Error> {
    let documents = documents()?;
    let text = if flags.json { json(&Value::Array(documents), true) } else { words(&documents) };
    print(text.as_bytes())
}

/// What the sides tell that run here.
pub(crate) fn documents() -> Result<Vec<Value>, Error> {
    let clock = Clock::start();
    match offer::directory().filter(|directory| offer::is_private(directory)) {
        Some(directory) => ask_all(&directory, &clock, clock.now() + PATIENCE),
        None => Ok(Vec::new()),
    }
}

fn words(documents: &[Value]) -> String {
    match documents {
        [] => "no sessions\n".into(),
        documents => documents.iter().map(text::paragraph).collect::<Vec<_>>().join("\n"),
    }
}

/// The documents of all sides that answer until `deadline`; both sides of a session stand together.
fn ask_all(directory: &Path, clock: &Clock, deadline: Time) -> Result<Vec<Value>, Error> {
    let mut called = Vec::new();
    for path in sockets(directory) {
        // Without waiting: a side that is stopped would make that last.
        match peer::connect_at_once(&path) {
            Ok(socket) => called.push((path, Some(socket))),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => remove(directory, &path),
            // It has just ended.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => called.push((path, None)),
        }
    }
    let mut documents = Vec::new();
    for (path, socket) in called {
        match socket.map(|socket| hear(&socket, clock, deadline)).transpose()?.flatten() {
            Some(document) => documents.push(document),
            None => notice(&format!("`{}` does not answer", path.display())),
        }
    }
    let place =
        |document: &Value| ["session", "role"].map(|field| document[field].as_str().map(str::to_owned));
    documents.sort_by_cached_key(place);
    Ok(documents)
}

/// The sockets of this user's sides, by name.
fn sockets(directory: &Path) -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let is_side = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(offer::is_name)
            && entry.metadata().is_ok_and(|of| of.file_type().is_socket() && of.uid() == user)
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.filter(is_side).take(MAX_SIDES).map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

/// Takes away what a side left that was killed; of a display, also where it took orders.
fn remove(directory: &Path, path: &Path) {
    let _ = fs::remove_file(path);
    let name = path.file_name().and_then(|name| name.to_str());
    let pid = name.and_then(|name| name.strip_prefix("display-")).and_then(|pid| pid.parse().ok());
    if let Some(pid) = pid {
        let _ = fs::remove_file(directory.join(counter::name(pid)));
    }
    // Fails while sockets are in it.
    let _ = fs::remove_dir(directory);
}

/// The whole document; `None` when it does not come, or is none.
fn hear(socket: &OwnedFd, clock: &Clock, deadline: Time) -> Result<Option<Value>, Error> {
    let mut text = vec![0; MAX_DOCUMENT];
    let mut length = 0;
    while length < text.len() {
        match rustix::io::read(socket, &mut text[length..]) {
            Ok(0) => return Ok(serde_json::from_slice(&text[..length]).ok().filter(Value::is_object)),
            Ok(count) => length += count,
            Err(Errno::AGAIN) => {
                let now = clock.now();
                if now >= deadline {
                    return Ok(None);
                }
                let mut interests = Interests::default();
                interests.read(socket);
                interests.until(Some(deadline));
                interests.wait(now)?;
            }
            Err(Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// How long all sides together may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Sides that are asked; no user has as many.
const MAX_SIDES: usize = 256;
/// Bytes of a document: many times those of this version.
const MAX_DOCUMENT: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;
    use wayferry_host::edge::socket::RuntimeDir;

    /// A side that has said `text` to the first caller before it was asked.
    fn side(directory: &Path, name: &str, text: &'static [u8]) -> std::thread::JoinHandle<()> {
        let listener = UnixListener::bind(directory.join(name)).expect("a socket");
        std::thread::spawn(move || {
            let (mut caller, _) = listener.accept().expect("a caller");
            caller.write_all(text).expect("it listens");
        })
    }

    #[test]
    fn every_side_is_heard_and_sides_of_a_session_stand_together() {
        let home = RuntimeDir::private().expect("a directory");
        let texts: [(&str, &[u8]); 3] = [
            ("app-2", br#"{"session":"b","role":"app"}"#),
            ("display-1", br#"{"session":"a","role":"display"}"#),
            ("display-3", br#"{"session":"b","role":"display"}"#),
        ];
        let sides = texts.map(|(name, text)| side(home.path(), name, text));
        let clock = Clock::start();
        let documents = ask_all(home.path(), &clock, clock.now() + PATIENCE).expect("asked");
        let found: Vec<_> =
            documents.iter().map(|of| (of["session"].as_str(), of["role"].as_str())).collect();
        assert_eq!(
            found,
            [("a", "display"), ("b", "app"), ("b", "display")].map(|(a, b)| (Some(a), Some(b)))
        );
        sides.into_iter().for_each(|side| side.join().expect("its end"));
    }

    #[test]
    fn stale_sockets_are_removed_and_nothing_else() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        fs::create_dir(&directory).expect("made");
        for name in ["app-1", "precious"] {
            drop(UnixListener::bind(directory.join(name)).expect("a stale socket"));
        }
        fs::write(directory.join("app-2"), "a file").expect("written");
        let clock = Clock::start();
        assert!(ask_all(&directory, &clock, clock.now()).expect("asked").is_empty());
        let mut left: Vec<_> =
            fs::read_dir(&directory).expect("there").flatten().map(|of| of.file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["app-2", "precious"]);
    }

    #[test]
    fn regression_the_socket_for_orders_of_a_display_that_was_killed_stays() {
        let home = RuntimeDir::private().expect("a directory");
        let directory = home.path().join("wayferry");
        fs::create_dir(&directory).expect("a directory");
        for name in ["display-2", "orders-2"] {
            drop(UnixListener::bind(directory.join(name)).expect("a socket"));
        }
        let clock = Clock::start();
        assert!(ask_all(&directory, &clock, clock.now() + PATIENCE).expect("asked").is_empty());
        assert!(!directory.exists(), "nothing is left");
    }

    #[test]
    fn sides_that_say_nothing_or_nonsense_are_left_out() {
        let home = RuntimeDir::private().expect("a directory");
        let _silent = UnixListener::bind(home.path().join("app-1")).expect("a socket");
        let nonsense = side(home.path(), "app-2", b"{\"role\":");
        let list = side(home.path(), "app-3", b"[]");
        let clock = Clock::start();
        let answers: Vec<_> = sockets(home.path())
            .iter()
            .map(|path| peer::connect_at_once(path).expect("it listens"))
            .zip([clock.now(), clock.now() + PATIENCE, clock.now() + PATIENCE])
            .map(|(socket, deadline)| hear(&socket, &clock, deadline).expect("polled"))
            .collect();
        assert_eq!(answers, [None, None, None]);
        nonsense.join().expect("its end");
        list.join().expect("its end");
    }

    #[test]
    fn no_sessions_is_a_word_too() {
        assert_eq!(words(&[]), "no sessions\n");
    }
}
