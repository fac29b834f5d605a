//! What the user is told besides a command's own output: lines on stderr, and with `--events` the same as data.
//!
//! Much of it is caused by a peer, and much of that by strangers, who may do it a thousand times a second: so lines are
//! cut short, and only so many are written. Here events get their words; that a thing happened is for others to find
//! out. Invariant: one write per message, so that the lines of two processes on one terminal do not mix; and nothing
//! blocks.

mod limit;
mod log;
mod progress;
mod sink;

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use serde::Serialize;

use self::limit::{BURST, Limit, STEP};
use self::log::Log;
use self::progress::Done;
pub(crate) use self::progress::{Progress, erase};
pub(crate) use self::sink::Sink;
use crate::error::{self, Error, SessionError};
use crate::flags::CommonFlags;
use wayferry_host::event::{Reporter, SessionEvent};
use wayferry_host::sanitize::sanitize;

/// What this program tells by itself, beside what happens in a session.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum OwnEvent<'a> {
    /// The session goes on without this display; `place` is what `attach` and `stop` take.
    SessionGoesOn { place: &'a str },
    /// The session has detached this display, or has ended.
    SessionLeft,
    /// A session of the wanted name runs there already; this one is called otherwise.
    NameTaken { wanted: &'a str, name: &'a str, place: &'a str },
    /// This program is copied to the other machine.
    Copying { path: &'a str },
    /// The host's certificate is verified for this name, with these authorities.
    TrustNamed { name: &'a str, roots: &'a str },
    /// Anything else that the user may want to know.
    Note { text: &'a str },
    /// The command ends with this; `code` is its exit code (docs/exit-codes.md).
    Error { code: u8, text: &'a str, hint: &'a str },
}

/// Sends events to `--events` from now on.
pub(crate) fn open(sink: Sink) {
    // Called once, before there are threads.
    let _ = EVENTS.set(Mutex::new(sink));
}

/// Does as the user has chosen from now on. Where this process `is_far`, what it tells goes to a user at another
/// machine, and names this one.
///
/// # Errors
/// The log cannot be written to.
pub(crate) fn set_up(common: &CommonFlags, is_far: bool) -> Result<(), Error> {
    // Called once, before there are threads.
    let _ = VERBOSE.set(common.verbose);
    if is_far {
        let _ = MACHINE.set(rustix::system::uname().nodename().to_string_lossy().into_owned());
    }
    if let Some(path) = &common.log {
        let _ = LOG.set(Mutex::new(Log::open(path)?));
    }
    Ok(())
}

/// Tells what is being done now, to who has asked for that.
pub(crate) fn step(text: &str) {
    let shown = VERBOSE.get().is_some_and(|level| *level > 0) && may_tell();
    tell_line(shown, &format!("step: {}", sanitize(text)));
}

/// Writes a command's own output to stdout; gives the exit code. A reader that has gone has read enough.
///
/// # Errors
/// Stdout takes no more.
pub(crate) fn print(bytes: &[u8]) -> Result<u8, Error> {
    // Stdout may be the same terminal.
    erase();
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(no_room_in_stdout(source).into())
        }
        _ => Ok(0),
    }
}

/// Why stdout takes no more; with its name, if it is a file.
pub(crate) fn no_room_in_stdout(source: std::io::Error) -> SessionError {
    let name = std::fs::read_link("/proc/self/fd/1").ok();
    match name.filter(|path| path.is_absolute()) {
        Some(path) => SessionError::File { path, source },
        None => SessionError::System { doing: "writing to stdout", source },
    }
}

/// Takes what happens in a session: tells the user in words, and `--events` as it is.
pub(crate) fn reporter() -> Reporter {
    Reporter::new(|event| {
        if let SessionEvent::FileDropped { name, .. } | SessionEvent::FileNotDropped { name, .. } = &event {
            progress::end(name, &mut FILE.lock().unwrap_or_else(PoisonError::into_inner));
        }
        with_sink(|sink| sink.report(&event));
        // How far a file is has a line of its own, and would leave no room for notes.
        if !matches!(event, SessionEvent::FileProgress { .. })
            && VERBOSE.get().is_some_and(|level| *level > 1)
            && let Ok(text) = serde_json::to_string(&event)
        {
            step(&text);
        }
        match words(&event) {
            Words::None => {}
            Words::Step(text) => step(&text),
            Words::Note(text) => note(&text),
            Words::Trouble(error) => trouble(error),
            Words::Progress(done) => {
                let mut file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
                done.show(&mut file);
            }
        }
    })
}

/// Tells the user something that this program has to say by itself.
pub(crate) fn tell(event: &OwnEvent<'_>) {
    with_sink(|sink| sink.write(event));
    note(&match event {
        OwnEvent::SessionGoesOn { place } => format!(
            "the session goes on: `wayferry attach {place}` shows it again, `wayferry stop {place}` ends it"
        ),
        OwnEvent::SessionLeft => {
            "detached by the session, or the session has ended; see `wayferry list`".to_owned()
        }
        OwnEvent::NameTaken { wanted, name, place } => format!(
            "a session `{wanted}` runs there already, and `wayferry attach {place}` shows it; this one is `{name}`"
        ),
        OwnEvent::Copying { path } => format!("copying `{path}` to ~/.local/bin on the other machine"),
        OwnEvent::TrustNamed { name, roots } => {
            format!("the certificate is verified for `{name}` with {roots}")
        }
        OwnEvent::Note { text } => (*text).to_owned(),
        OwnEvent::Error { .. } => return,
    });
}

/// Tells the user something that does no harm, and that no script has use for.
pub(crate) fn notice(text: &str) {
    tell(&OwnEvent::Note { text });
}

/// An amount of bytes for people.
fn amount(bytes: u64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB"];
    let power = (0..4).take_while(|power| bytes >= 1000_u64.pow(power + 1)).count();
    match power {
        0 => format!("{bytes} bytes"),
        _ => format!("{:.1} {}", bytes as f64 / 1000_f64.powi(power as i32), units[power]),
    }
}

/// Tells the user why the command ends. It is the last thing told, so it is never left out.
pub(crate) fn last_words(error: &Error) {
    let (text, hint) = (error.to_string().replace('\n', " "), error.hint());
    with_sink(|sink| sink.write(&OwnEvent::Error { code: error.code(), text: &text, hint: &hint }));
    // The reader may be gone or slow: that is no trouble of this process.
    let (erasing, machine) = (progress::erasing(), machine());
    let told = format!("{erasing}error: {machine}{text}\nhint: {hint}\n");
    let _ = std::io::stderr().write_all(told.as_bytes());
    log(&format!("error: {text}"));
}

fn with_sink(write: impl FnOnce(&mut Sink)) {
    if let Some(sink) = EVENTS.get() {
        // It may lead to the same terminal.
        erase();
        write(&mut sink.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What a user reads of an event.
enum Words<'a> {
    /// Nothing.
    None,
    /// It is as it is: who wants to know has asked.
    Step(String),
    /// It does no harm.
    Note(String),
    /// The session goes on after it.
    Trouble(&'a SessionError),
    /// A file is so far.
    Progress(Done<'a>),
}

fn words(event: &SessionEvent) -> Words<'_> {
    use SessionEvent as Event;
    Words::Note(match event {
        Event::DisplayAttached { .. } | Event::DisplayBack => return Words::None,
        Event::ProgramViolation { error } | Event::ProgramNotStarted { error } => {
            return Words::Trouble(error);
        }
        Event::NoTray { reason } => {
            return Words::Step(format!("icons of programs are not shown in the tray: {reason}"));
        }
        Event::FileProgress { name, done, bytes, others } => {
            return Words::Progress(Done { name, done: *done, size: *bytes, others: *others });
        }
        Event::DisplayAway { reason } => format!("the display is away: {reason}"),
        Event::DisplayLost { error } => format!("display lost: {error}"),
        Event::DisplayRejected { error } => format!("display rejected: {error}"),
        Event::ViewerLost { reason } => format!("viewer lost: {reason}"),
        Event::DisplayMissed => "no display came back in time".into(),
        Event::DisplayEnded => "the display ended the session".into(),
        Event::ProgramLeftOthers => {
            "the program has ended; the session goes on for what it has started".into()
        }
        Event::ProgramsWait { reason } => format!("a program waits to be served: {reason}"),
        Event::ProgramRefused { reason } => format!("cannot serve a program: {reason}"),
        Event::ProgramEnded { reason } => format!("a program's connection ended: {reason}"),
        Event::NoQuic { reason } => format!("no QUIC: {reason}"),
        Event::ControlLost { reason } => format!("the session's control socket is gone: {reason}"),
        Event::InfoUnavailable { reason } => format!("`wayferry info` cannot show this session: {reason}"),
        Event::ConnectionLost { reason } => format!("connection lost ({reason}); reconnecting"),
        Event::Back => "reconnected".into(),
        Event::QuicUnreachable { port, reason } => format!(
            "no QUIC to UDP port {port} ({reason}); the session goes the other way, which is slower on a bad network, \
             until QUIC answers; a firewall that lets UDP to that port pass helps (`--port` chooses it)"
        ),
        Event::QuicReached { again: false } => return Words::None,
        Event::QuicReached { again: true } => "QUIC answers: the session goes over it from now on".into(),
        Event::QuicSilent => {
            "nothing comes over UDP any more; the session goes the other way until it does".into()
        }
        Event::Silent { seconds } => format!("no contact for {seconds} s"),
        Event::Heard => "contact restored".into(),
        Event::Replaced => "another display shows the session now".into(),
        Event::Dismissed => "another display shows the session now, or this one was detached".into(),
        Event::NoSound { reason } => format!("no sound: {reason}"),
        Event::NoGpu { reason } => format!("programs draw in software: {reason}"),
        Event::SoundLost { reason } => format!("sound is lost: {reason}"),
        Event::SoundBack => "sound is back".into(),
        Event::MicrophoneOpen => "the microphone is open: a program of the session records it".into(),
        Event::MicrophoneClosed => "the microphone is closed".into(),
        Event::NoMicrophone { reason } => {
            format!("a program wants to record, and there is no microphone: {reason}")
        }
        Event::UrlOpened { url } => format!("opened here for a program of the session: {url}"),
        Event::FileKept { path, bytes } => {
            format!("a file has come ({}): {}", amount(*bytes), path.display())
        }
        Event::FileRefused { name, reason } => format!("the file `{name}` did not come: {reason}"),
        Event::FileDropping { name, bytes } => {
            format!("the file `{name}`, which was dropped, is sent ({})", amount(*bytes))
        }
        Event::FileDropped { name, path, bytes } => {
            format!("the file `{name}` was dropped and is there ({}): {path}", amount(*bytes))
        }
        Event::FileNotDropped { name, reason } => format!("the file `{name}` was not dropped: {reason}"),
        Event::UrlRefused { url, reason } => {
            format!("a program of the session wanted this opened here, {reason}: {url}")
        }
        Event::NoNotifications { reason } => format!("notifications of programs are not shown: {reason}"),
        Event::CompositorRefused { reason } => {
            format!("cannot connect a program to the compositor: {reason}")
        }
        Event::TraceEnded { reason } => format!("the trace ends here: {reason}"),
        Event::UdpBuffer { text }
        | Event::Xwayland { reason: text }
        | Event::Warning { text }
        | Event::Stats { line: text } => text.clone(),
    })
}

fn note(text: &str) {
    tell_line(may_tell(), &format!("note: {}{}", machine(), sanitize(text)));
}

fn trouble(error: &SessionError) {
    let shown = may_tell();
    tell_line(shown, &format!("error: {}{}", machine(), sanitize(&error.to_string())));
    tell_line(shown, &format!("hint: {}", error::hint(error)));
}

/// In front of a line, where its reader is at another machine.
fn machine() -> String {
    MACHINE.get().map(|name| format!("on `{}`: ", sanitize(name))).unwrap_or_default()
}

/// Writes a line to the log, and to the user if it is `shown`.
fn tell_line(shown: bool, text: &str) {
    log(text);
    if shown {
        line(text);
    }
}

/// Writes a line to the log, and tells the user once if it takes no more.
fn log(text: &str) {
    let Some(log) = LOG.get() else { return };
    let written = log.lock().unwrap_or_else(PoisonError::into_inner).line(text);
    if let Err(why) = written {
        line(&format!("note: {}{}", machine(), sanitize(&why)));
    }
}

/// Whether something may be told now; if so, tells how much was left out before it.
fn may_tell() -> bool {
    let now = Instant::now();
    let mut limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = limit.get_or_insert_with(|| (now, Limit::new(BURST, STEP)));
    let skipped = limit.1.take(now.duration_since(limit.0));
    if let Some(skipped @ 1..) = skipped {
        line(&format!("note: {skipped} more notes were left out"));
    }
    skipped.is_some()
}

fn line(text: &str) {
    // ssh may have put the terminal into raw mode, where a line feed alone does not return to the first column.
    let end = if std::io::stderr().is_terminal() { "\r\n" } else { "\n" };
    // The reader may be gone or slow: that is no trouble of this process.
    let _ = std::io::stderr().write_all(format!("{}{text}{end}", progress::erasing()).as_bytes());
}

/// Where `--events` leads.
static EVENTS: OnceLock<Mutex<Sink>> = OnceLock::new();

/// How much the user wants to be told: nothing more, steps, everything.
static VERBOSE: OnceLock<u8> = OnceLock::new();

/// What this machine is called, where the user is at another.
static MACHINE: OnceLock<String> = OnceLock::new();

/// Where `--log` leads.
static LOG: OnceLock<Mutex<Log>> = OnceLock::new();

/// The file that was dropped, and of which it is shown how far it is.
static FILE: Mutex<Option<Progress>> = Mutex::new(None);

/// Of this process, since its first note.
static LIMIT: Mutex<Option<(Instant, Limit)>> = Mutex::new(None);

#[cfg(test)]
mod tests {
    /// The names and fields of an enum's variants, from its source.
    fn variants(source: &str, name: &str) -> Vec<(String, Vec<String>)> {
        let (_, rest) = source.split_once(&format!("enum {name}")).expect("it is there");
        let (body, _) = rest.split_once("\n}\n").expect("it ends");
        let code =
            body.lines().map(str::trim).filter(|line| !line.starts_with("///") && !line.starts_with("#["));
        let code = code.collect::<Vec<_>>().join(" ");
        let words = code.split(|character: char| !(character.is_alphanumeric() || "_:".contains(character)));
        let mut variants: Vec<(String, Vec<String>)> = Vec::new();
        let mut depth_of_fields = None;
        for word in words.filter(|word| !word.is_empty()) {
            match (word.strip_suffix(':'), variants.last_mut()) {
                (Some(field), Some((_, fields))) => {
                    fields.push(field.to_owned());
                    depth_of_fields = Some(());
                }
                // A field's type follows its name.
                _ if depth_of_fields.take().is_some() || word == "a" || word == "str" => {}
                _ => variants.push((kebab(word), Vec::new())),
            }
        }
        variants
    }

    fn kebab(name: &str) -> String {
        let parts = name.char_indices().map(|(at, letter)| match letter.is_uppercase() && at > 0 {
            true => format!("-{}", letter.to_lowercase()),
            false => letter.to_lowercase().to_string(),
        });
        parts.collect()
    }

    #[test]
    fn docs_events_lists_every_event_with_its_fields() {
        let page = include_str!("../../../docs/events.md");
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        let documented: Vec<(String, Vec<String>)> = rows
            .map(|row| {
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                let fields = cells[2].split(", ").filter(|field| !field.is_empty());
                (
                    cells[1].trim_matches('`').to_owned(),
                    fields.map(|field| field.trim_matches('`').to_owned()).collect(),
                )
            })
            .collect();
        let mut expected = variants(include_str!("../../host/src/event.rs"), "SessionEvent");
        expected.extend(variants(include_str!("tell.rs"), "OwnEvent<'a>"));
        expected.push(("dropped".to_owned(), vec!["count".to_owned()]));
        assert_eq!(documented, expected);
    }
}
