//! `wayferry list`, `ticket`, `detach` and `stop`: sessions of this machine over their control sockets, those of
//! another through ssh.
//!
//! Invariant: each of these ends, with any behaviour of a session, after [`PATIENCE`] on this machine, `stop` after
//! [`END_PATIENCE`].

use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, SessionError};
use crate::flags::{self, DetachFlags, ListFlags, OwnFlags, TicketFlags, VersionFlags, Which};
use crate::info::{attention, by_link};
use crate::remote::{self, BROKEN, MISSING, again};
use crate::tell::{notice, print, step};
use wayferry_host::control::{self, Answer, Request};
use wayferry_host::edge::programs::exit_code;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::random_name;
use wayferry_host::passing;
use wayferry_host::sanitize::{json, sanitize};
use wayferry_host::sessions;

/// Lists sessions; gives the exit code.
pub(crate) fn list(own: &OwnFlags, flags: &ListFlags) -> Result<u8, Error> {
    let documents = match &flags.host {
        None => here()?,
        // Its own words could do anything to this terminal.
        Some(host) => match there(own, host)? {
            Ok(documents) => documents,
            Err(code) => return Ok(code),
        },
    };
    let text = if flags.json { json(&Value::Array(documents), true) } else { table(&documents) };
    print(text.as_bytes())
}

/// What the sessions of this machine tell.
pub(crate) fn here() -> Result<Vec<Value>, Error> {
    let signals = Signals::new()?;
    let mut documents = Vec::new();
    for name in sessions::names() {
        let Ok((_, socket)) = sessions::call(Some(&name)) else { continue };
        match ask(&socket, &signals)? {
            Some(document) => documents.push(document),
            None => notice(&format!("the session `{name}` does not answer")),
        }
    }
    Ok(documents)
}

/// What the sessions of another machine tell, or the exit code of what has failed there and has said so.
pub(crate) fn there(own: &OwnFlags, host: &str) -> Result<Result<Vec<Value>, u8>, Error> {
    let (code, answer) = ask_over_ssh(own, host, &["list".to_owned(), "--json".to_owned()])?;
    if code != 0 {
        return Ok(Err(code));
    }
    let documents: Option<Vec<Value>> = serde_json::from_slice(&answer).ok();
    let none = || SessionError::PeerViolation(format!("`wayferry list --json` on `{host}` is no JSON array"));
    Ok(Ok(documents.ok_or_else(none)?))
}

/// Prints the version of this program, or of another machine's; gives the exit code.
pub(crate) fn version(own: &OwnFlags, flags: &VersionFlags) -> Result<u8, Error> {
    match &flags.host {
        Some(host) => over_ssh(own, host, &["--version".to_owned()]),
        None => print(format!("wayferry {}\n", flags::version()).as_bytes()),
    }
}

/// Lets a session's display leave, or the viewers; gives the exit code.
pub(crate) fn detach(own: &OwnFlags, flags: DetachFlags) -> Result<u8, Error> {
    let request = match flags.viewer {
        Some(number) => Request::DetachView(number),
        None if flags.views => Request::DetachViews,
        None => Request::Detach,
    };
    order(own, flags.which.which, &request)
}

/// Prints a ticket that lets one more display in, or takes those back that were not used; gives the exit code.
pub(crate) fn ticket(own: &OwnFlags, flags: TicketFlags) -> Result<u8, Error> {
    let request = match flags.revoke {
        true => Request::Revoke,
        false => Request::Ticket { view: flags.view, good_for: flags.good_for, page: flags.page },
    };
    order(own, flags.which.which, &request)
}

/// Ends a session; gives the exit code.
pub(crate) fn stop(own: &OwnFlags, which: Option<Which>) -> Result<u8, Error> {
    order(own, which, &Request::Stop)
}

/// What a session answers, and what it is called, if that is known; or the exit code of what has failed on the other
/// machine and has said so. `read` makes out what is printed there.
pub(crate) fn ask_session(
    own: &OwnFlags,
    which: &Which,
    request: &Request,
    read: impl FnOnce(Vec<u8>) -> Option<(Option<String>, Answer)>,
) -> Result<Result<(Option<String>, Answer), u8>, Error> {
    match which {
        Which::Here(name) => match ask_here(name.as_deref(), request)? {
            (name, answer @ Answer::Not(_)) => Err(refused(&name, answer)),
            (name, answer) => Ok(Ok((Some(name), answer))),
        },
        Which::There { host, session } => {
            let (code, printed) = ask_over_ssh(own, host, &words(request, session.clone()))?;
            if code != 0 {
                return Ok(Err(code));
            }
            let what = "what it said answers no such order";
            Ok(Ok(read(printed).ok_or_else(|| SessionError::PeerViolation(what.into()))?))
        }
        Which::Ticket(_) | Which::Stdin => Err(no_ticket()),
    }
}

/// Has a session do this, here or elsewhere, and prints what it gives; gives the exit code.
pub(crate) fn order(own: &OwnFlags, which: Option<Which>, request: &Request) -> Result<u8, Error> {
    let name = match which.unwrap_or(Which::Here(None)) {
        Which::Here(name) => name,
        Which::There { host, session } => return over_ssh(own, &host, &words(request, session)),
        Which::Ticket(_) | Which::Stdin => return Err(no_ticket()),
    };
    match ask_here(name.as_deref(), request)? {
        (_, Answer::Done) => Ok(0),
        (_, Answer::Ticket(ticket)) => print(format!("{}\n", sanitize(&ticket)).as_bytes()),
        (name, answer) => Err(refused(&name, answer)),
    }
}

/// Why an answer is not what an order is for.
fn refused(name: &str, answer: Answer) -> Error {
    match answer {
        Answer::Not(why) => SessionError::NoSession(format!("`{name}`: {why}")).into(),
        _ => SessionError::PeerViolation("what it said answers no such order".into()).into(),
    }
}

/// What the `wayferry` of another machine is called with.
fn words(request: &Request, session: Option<String>) -> Vec<String> {
    let words = control::Word::encode(request);
    words.split(' ').map(str::to_owned).chain(session.map(|name| format!(":{name}"))).collect()
}

fn no_ticket() -> Error {
    Error::usage("a ticket is for `attach` only")
}

/// What a session of this machine is called, and what it answers.
fn ask_here(name: Option<&str>, request: &Request) -> Result<(String, Answer), Error> {
    let signals = Signals::new()?;
    let (name, socket) = sessions::call(name)?;
    say(&socket, request)?;
    let mut heard = Vec::new();
    loop {
        match control::take::<Answer>(&mut heard) {
            Ok(Some(answer)) => return Ok((name, answer)),
            Ok(None) => {}
            Err(what) => return Err(SessionError::PeerViolation(what).into()),
        }
        let patience = if *request == Request::Stop { END_PATIENCE } else { PATIENCE };
        let ready = signals.wait_readable(&[socket.as_fd()], Some(patience))?;
        if !ready[0] || !passing::receive(&socket, &mut heard, &mut Vec::new()).unwrap_or(false) {
            return Err(SessionError::NoSession(format!("`{name}` does not answer")).into());
        }
    }
}

/// The figures of a session; `None` when they do not come.
fn ask(socket: &OwnedFd, signals: &Signals) -> Result<Option<Value>, Error> {
    if say(socket, &Request::Info).is_err() {
        return Ok(None);
    }
    let mut text = Vec::new();
    while signals.wait_readable(&[socket.as_fd()], Some(PATIENCE))?[0] {
        match passing::receive(socket, &mut text, &mut Vec::new()) {
            Ok(true) if text.len() <= MAX_DOCUMENT => {}
            Ok(false) => return Ok(serde_json::from_slice(&text).ok().filter(Value::is_object)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn say(socket: &OwnedFd, request: &Request) -> Result<(), SessionError> {
    passing::send(socket, &control::line(request), &[])
        .map_err(|source| SessionError::System { doing: "speaking to the session", source })
}

/// The same order to the other machine's own wayferry.
fn over_ssh(own: &OwnFlags, host: &str, words: &[String]) -> Result<u8, Error> {
    let (code, answer) = ask_over_ssh(own, host, words)?;
    print(&answer).map(|_| code)
}

/// The same; gives its exit code and its answer.
fn ask_over_ssh(own: &OwnFlags, host: &str, words: &[String]) -> Result<(u8, Vec<u8>), Error> {
    let mark = random_name();
    let line = remote::marked_line(own, &mark, words);
    let mut command = Command::new(own.reach.ssh());
    command.args(&own.reach.ssh_options).args(["-T", "--", host, &line]).stdout(Stdio::piped());
    step(&format!("running {command:?}"));
    let failed = |source| {
        let program = own.reach.ssh().to_string_lossy().into_owned();
        SessionError::Program { program, source }
    };
    let mut ssh = command.spawn().map_err(failed)?;
    let answer = ssh.stdout.take().map(|stdout| answer_of(stdout, &mark)).transpose()?.unwrap_or_default();
    match exit_code(ssh.wait().map_err(failed)?) {
        BROKEN => Err(remote::broken(own, host)),
        MISSING => {
            let order = words.first().map_or("", String::as_str);
            let session = words.last().and_then(|word| word.strip_prefix(':')).map(str::to_owned);
            let which = Which::There { host: host.to_owned(), session };
            Err(remote::missing(own, host, &format!("{order} {}", again(own, &which))))
        }
        code => Ok((code, answer)),
    }
}

/// What follows the line with `mark`; what a login has printed before is no answer.
fn answer_of(stdout: impl Read, mark: &str) -> Result<Vec<u8>, Error> {
    let mut lines = BufReader::new(stdout.take(MAX_ANSWER));
    let fail = |source| SessionError::System { doing: "reading ssh's output", source };
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(fail)? == 0 {
            return Ok(Vec::new());
        }
        if line.trim_ascii() == mark.as_bytes() {
            break;
        }
    }
    let mut answer = Vec::new();
    lines.read_to_end(&mut answer).map_err(fail)?;
    Ok(answer)
}

/// Sessions in columns.
pub(crate) fn table(documents: &[Value]) -> String {
    if documents.is_empty() {
        return "no sessions\n".into();
    }
    let head = ["SESSION", "PROGRAMS", "DISPLAY", "SINCE"].map(str::to_owned);
    columns(&std::iter::once(head).chain(documents.iter().flat_map(rows)).collect::<Vec<_>>())
}

/// Rows as lines, each cell as wide as the widest of its column.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// A session, and below it the viewers.
fn rows(document: &Value) -> Vec<[String; 4]> {
    let name = document["name"].as_str().map(sanitize).unwrap_or_default();
    let since = |of: &Value, field: &str| of[field].as_u64().map(span).unwrap_or_default();
    let programs = document["programs"].as_u64().unwrap_or(0).to_string();
    let session = [name, programs, attention(document).unwrap_or_default(), since(document, "state_seconds")];
    let viewers = document["viewers"].as_array().into_iter().flatten().map(|viewer| {
        let from = viewer["from"].as_str().map_or("here or through ssh".into(), sanitize);
        let number = viewer["id"].as_u64().map(|id| format!(" {id}")).unwrap_or_default();
        let by = by_link(viewer, "software");
        [String::new(), String::new(), format!("view{number} from {from}{by}"), since(viewer, "seconds")]
    });
    std::iter::once(session).chain(viewers).collect()
}

/// A time that has passed, as people say it.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// How long a session may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take to end, with its programs.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of what another machine answers, with what its login prints.
const MAX_ANSWER: u64 = 4 << 20;
/// Bytes of a document.
const MAX_DOCUMENT: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sessions_stand_in_columns() {
        let documents = [
            json!({ "name": "foot", "programs": 1, "state": "attached", "state_seconds": 59, "link": 4,
                "peer_software": "a browser" }),
            json!({ "name": "a\u{1b}[2J", "programs": 12, "state": "detached", "state_seconds": 90_000, "views": 2,
                "viewers": [{ "id": 1, "from": "192.0.2.7:5", "seconds": 60, "link": 3, "software": "a\u{1b}b" },
                    { "id": 2, "from": null, "seconds": 3, "link": null, "software": "wayferry" }] }),
        ];
        assert_eq!(
            table(&documents),
            "SESSION  PROGRAMS  DISPLAY                                  SINCE\n\
             foot     1         attached by link 4 (a browser)           59 s\n\
             a\u{fffd}[2J    12        detached, 2 views                        1 d 1 h\n\
             \x20                  view 1 from 192.0.2.7:5 by link 3 (a\u{fffd}b)  1 min\n\
             \x20                  view 2 from here or through ssh          3 s\n"
        );
        assert_eq!(table(&[]), "no sessions\n");
    }

    #[test]
    fn spans() {
        assert_eq!(
            [0, 60, 3_599, 3_600, 86_399].map(span),
            ["0 s", "1 min", "59 min", "1 h 0 min", "23 h 59 min"]
        );
    }
}
