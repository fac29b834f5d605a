//! `wayferry send` and `wayferry fetch`: files between the two machines of a session, through the session.
//!
//! A program of a session says what it sends to the session's control socket; at the desk, the display that shows the
//! session is told, on a socket of its own ([`wayferry_host::edge::counter`]). What becomes of a file is decided on the
//! other side. Invariant: a file is sent with the size that it had when it was opened, or not at all.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
use serde_json::Value;
use wayferry_proto::Time;

use crate::error::{Error, SessionError};
use crate::flags::{FetchFlags, SendFlags as Send};
use crate::info;
use crate::open_url::CONTROL;
use crate::tell::{Progress, notice, print};
use crate::user_dirs;
use wayferry_host::control::{self, Answer, Request};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::wait::Interests;
use wayferry_host::edge::{counter, offer, peer};
use wayferry_host::files::folder;
use wayferry_host::passing;
use wayferry_host::sanitize::sanitize;

/// Where the other side's files are kept: `~/Downloads/wayferry/NAME`. `None` without a home.
pub(crate) fn place(name: &str) -> Option<PathBuf> {
    Some(user_dirs::home()?.join("Downloads/wayferry").join(folder(name)))
}

/// What the folder is named for of a `host` as the user calls it, or where no host was named, of a session that calls
/// itself so. The second is a peer's word, and none that is a host's: ssh knows no host with a space in its name.
pub(crate) fn origin(host: Option<&str>, session: Option<&str>) -> String {
    match (host, session) {
        (Some(host), _) => host.to_owned(),
        (None, Some(session)) => format!("session {session}"),
        (None, None) => "by ticket".to_owned(),
    }
}

/// Sends files to the other side; gives the exit code.
pub(crate) fn send(flags: &Send) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let way = Way::find(flags.to.as_deref(), true)?;
    for path in &flags.files {
        let fail = |source| SessionError::File { path: path.clone(), source };
        // A FIFO without a writer would wait, and no signal would end that.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(fail)?;
        let about = file.metadata().map_err(fail)?;
        let name = path.file_name().unwrap_or(OsStr::new("file")).to_string_lossy().into_owned();
        let is_made_up = about.len() == 0 && file.read_at(&mut [0], 0).is_ok_and(|count| count > 0);
        if !about.is_file() || is_made_up {
            return Err(failed(&name, "it is no plain file"));
        }
        let request = Request::Send { size: about.len(), name: name.clone() };
        let mut call = way.call(&request, &name).map_err(|why| failed(&name, &why))?;
        pass(&mut call, file, about.len(), &signals)?;
        match call.answer(&signals)? {
            Some(Answer::Done) => {}
            Some(Answer::Not(why)) => return Err(failed(&name, &why)),
            _ => return Err(failed(&name, "the session has ended")),
        }
    }
    Ok(0)
}

/// Fetches files from the machine of the programs; gives the exit code.
pub(crate) fn fetch(flags: &FetchFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let way = Way::find(flags.from.as_deref(), false)?;
    for path in &flags.files {
        let mut call = way.call(&Request::Fetch(path.clone()), path).map_err(|why| failed(path, &why))?;
        match call.answer(&signals)? {
            Some(Answer::Kept(kept)) => drop(print(line(&kept).as_bytes())?),
            Some(Answer::Not(why)) => return Err(failed(path, &why)),
            _ => return Err(failed(path, "the display has ended")),
        }
    }
    Ok(0)
}

/// A path for who reads stdout: all of it, and on one line.
fn line(path: &str) -> String {
    path.replace(char::is_control, "\u{fffd}") + "\n"
}

/// A socket that takes orders.
struct Way {
    path: PathBuf,
}

impl Way {
    /// That of the session around this program, or that of the display here which shows `place`, or the only one.
    fn find(place: Option<&str>, may_be_inside: bool) -> Result<Self, Error> {
        if let (true, None, Some(path)) = (may_be_inside, place, std::env::var_os(CONTROL)) {
            return Ok(Self { path: path.into() });
        }
        let mut shown = info::documents()?;
        let directory = offer::directory().unwrap_or_default();
        shown.retain(|document| is_meant(document, place) && orders(document, &directory).is_some());
        match &shown[..] {
            [one] => Ok(Self { path: orders(one, &directory).unwrap_or_default() }),
            [] => Err(SessionError::NoSession(match place {
                Some(place) => format!("nothing that is called `{}` is shown here", sanitize(place)),
                None => "no session is shown here".into(),
            })
            .into()),
            several => {
                let places = several.iter().map(|one| one["place"].as_str().map_or("?".into(), sanitize));
                let places = places.collect::<Vec<_>>().join("`, `");
                Err(SessionError::NoSession(format!("several are shown here: name one of `{places}`")).into())
            }
        }
    }

    /// Says what is wanted, of the file that the user calls so.
    fn call(&self, request: &Request, name: &str) -> Result<Call, String> {
        let socket = peer::connect_at_once(&self.path)
            .map_err(|error| format!("`{}` does not answer: {error}", self.path.display()))?;
        let line = control::line(request);
        if line.len() > control::MAX_LINE {
            return Err("its name is too long".into());
        }
        passing::send(&socket, &line, &[]).map_err(|error| error.to_string())?;
        Ok(Call { socket, heard: Vec::new(), name: name.to_owned(), answer: None })
    }
}

/// One file, for which an answer comes.
struct Call {
    socket: OwnedFd,
    heard: Vec<u8>,
    name: String,
    answer: Option<Answer>,
}

impl Call {
    /// Waits for the answer; `None` when there is none.
    fn answer(&mut self, signals: &Signals) -> Result<Option<Answer>, Error> {
        while self.answer.is_none() {
            signals.wait_readable(&[self.socket.as_fd()], None)?;
            if !self.hear()? {
                break;
            }
        }
        Ok(self.answer.take())
    }

    /// Takes what has been said. Gives whether more may come.
    fn hear(&mut self) -> Result<bool, Error> {
        let goes_on = passing::receive(&self.socket, &mut self.heard, &mut Vec::new()).unwrap_or(false);
        while self.answer.is_none()
            && let Some(answer) = control::take(&mut self.heard).map_err(SessionError::Bootstrap)?
        {
            match answer {
                Answer::Waits => notice(&format!("`{}` waits for others that are on their way", self.name)),
                answer => self.answer = Some(answer),
            }
        }
        Ok(goes_on)
    }
}

/// Where a display takes orders; viewers take none, and no side of programs.
fn orders(document: &Value, directory: &Path) -> Option<PathBuf> {
    let pid = document["pid"].as_u64().filter(|_| document["role"] == "display")?;
    Some(directory.join(counter::name(u32::try_from(pid).ok()?))).filter(|path| path.exists())
}

/// Whether a display shows the place that the user means: all of it, or its host or its name alone.
fn is_meant(document: &Value, place: Option<&str>) -> bool {
    let (Some(place), Some(shown)) = (place, document["place"].as_str()) else { return place.is_none() };
    let (host, name) = shown.rsplit_once(':').unwrap_or((shown, ""));
    place == shown || place == host || place.strip_prefix(':').is_some_and(|place| place == name)
}

/// Passes a file's bytes on, until they are all gone or the other side has answered.
fn pass(call: &mut Call, mut file: File, size: u64, signals: &Signals) -> Result<(), Error> {
    let name = call.name.clone();
    let fail = |source| SessionError::File { path: Path::new(&name).to_owned(), source };
    let mut progress = Progress::new(&name, size);
    let (mut piece, mut at, mut end) = (vec![0; 256 << 10], 0, 0);
    let mut left = size;
    loop {
        if at == end && left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            (at, end) = (0, file.read(&mut piece[..most]).map_err(fail)?);
            left -= end as u64;
            if end == 0 {
                // It has become shorter: the other side sees that.
                left = 0;
            }
        }
        if at == end {
            let _ = rustix::net::shutdown(&call.socket, Shutdown::Write);
            return Ok(());
        }
        let mut interests = Interests::default();
        interests.add(&call.socket, PollFlags::IN | PollFlags::OUT);
        interests.read(signals);
        let ready = interests.wait(Time::ZERO)?;
        signals.check()?;
        if ready.flags(call.socket.as_fd()).contains(PollFlags::IN)
            && (!call.hear()? || call.answer.is_some())
        {
            // It has answered already, or has ended.
            return Ok(());
        }
        match rustix::net::send(&call.socket, &piece[at..end], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => {
                at += count;
                progress.add(count as u64);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // It says why, or has ended.
            Err(_) => return Ok(()),
        }
    }
}

fn failed(name: &str, why: &str) -> Error {
    Error::Transfer { name: name.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wayferry_host::edge::socket::RuntimeDir;

    use super::*;

    #[test]
    fn regression_a_session_puts_files_into_the_folder_of_a_host_by_its_name() {
        assert_eq!(origin(Some("ann@host"), Some("foot")), "ann@host");
        for own_word in [origin(None, Some("ann@host")), origin(None, None)] {
            assert!(folder(&own_word).contains(' '), "{own_word}");
        }
    }

    #[test]
    fn regression_a_long_path_is_cut_where_a_script_reads_it() {
        let path = format!("/home/ann/Downloads/wayferry/{}/{}.pdf", "h".repeat(200), "f".repeat(190));
        assert_eq!(line(&path), format!("{path}\n"));
        assert_eq!(line("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b\n");
    }

    #[test]
    fn regression_a_viewer_is_taken_for_a_display_that_takes_orders() {
        let dir = RuntimeDir::private().expect("a directory");
        std::fs::write(dir.path().join("orders-2"), "").expect("written");
        let orders = |role: &str, pid: u32| orders(&json!({ "role": role, "pid": pid }), dir.path());
        assert_eq!(orders("display", 2), Some(dir.path().join("orders-2")));
        assert_eq!((orders("display", 3), orders("app", 2)), (None, None));
    }

    #[test]
    fn a_display_is_meant_by_its_place_or_a_part_of_it() {
        let shown = json!({ "place": "ann@host:foot" });
        for (place, meant) in [
            (None, true),
            (Some("ann@host:foot"), true),
            (Some("ann@host"), true),
            (Some(":foot"), true),
            (Some("host"), false),
            (Some("foot"), false),
            (Some(""), false),
        ] {
            assert_eq!(is_meant(&shown, place), meant, "{place:?}");
        }
        assert!(!is_meant(&json!({ "place": null }), Some("x")));
    }
}
