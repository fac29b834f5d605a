//! `wayferry status`: what goes on, in a few lines: what is shown here and how its links are, and what runs here or
//! elsewhere.
//!
//! The figures are those of `info` and `list`. Invariant: no text of a document reaches the terminal with control
//! characters in it.

use serde_json::{Value, json};

use crate::error::Error;
use crate::flags::{OwnFlags, StatusFlags};
use crate::info::{self, Document};
use crate::manage;
use crate::tell::print;
use wayferry_host::sanitize::{self, sanitize};

/// Tells what goes on; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &StatusFlags) -> Result<u8, Error> {
    let mut shown = info::documents()?;
    shown.retain(|document| document["role"] == "display");
    let running = match &flags.host {
        None => manage::here()?,
        Some(host) => match manage::there(own, host)? {
            Ok(documents) => documents,
            Err(code) => return Ok(code),
        },
    };
    if flags.json {
        let whole = json!({ "shown": shown, "host": flags.host, "running": running });
        return print(sanitize::json(&whole, true).as_bytes());
    }
    print(words(&shown, flags.host.as_deref(), &running).as_bytes())
}

fn words(shown: &[Value], host: Option<&str>, running: &[Value]) -> String {
    let place = host.map_or("here".to_owned(), |host| format!("on `{}`", sanitize(host)));
    let indent = |text: String| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let shown = match shown {
        [] => "nothing is shown here\n".to_owned(),
        shown => format!("shown here:\n{}", shown.iter().map(display).collect::<String>()),
    };
    let running = match running {
        [] => format!("nothing runs {place}\n"),
        running => format!("running {place}:\n{}", indent(manage::table(running))),
    };
    shown + &running
}

/// A display's line.
fn display(document: &Value) -> String {
    let place = document["place"].as_str().map_or("a session of a ticket".to_owned(), sanitize);
    let programs = match document["programs"].as_u64() {
        Some(1) => "1 program".to_owned(),
        Some(count) => format!("{count} programs"),
        None => "programs unknown".to_owned(),
    };
    let carrier = match document["carrier"].as_str() {
        Some("quic") => "over QUIC",
        Some("byte-stream") => "through ssh or a command",
        _ => "over an unknown link",
    };
    let figures = Document(document);
    let contact = match document["silence_ms"].as_f64() {
        Some(silence) if silence >= STALE_MS => format!(", NO CONTACT for {:.0} s", silence / 1e3),
        _ => String::new(),
    };
    let loss = match (document["carrier"].as_str(), document["lost_percent"].as_f64()) {
        (Some("quic"), Some(_)) => format!(", loss {}", figures.percent("lost_percent")),
        _ => String::new(),
    };
    let round_trip = match document["rtt_ms"].as_f64() {
        Some(_) => figures.time("rtt_ms"),
        None => "not measured yet".to_owned(),
    };
    let since = document["shown_seconds"].as_u64().map(manage::span);
    let since = since.map(|since| format!(", for {since}")).unwrap_or_default();
    format!("  {place}: {programs}, {carrier}, round trip {round_trip}{loss}{since}{contact}\n")
}

/// Silence from which on windows say so, too.
const STALE_MS: f64 = 3e3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_told_in_a_line_each() {
        let shown = [
            json!({ "role": "display", "place": "user@far:foot\u{1b}", "programs": 1, "carrier": "quic",
                "rtt_ms": 103.4, "lost_percent": 1.25, "silence_ms": 20.0, "shown_seconds": 300 }),
            json!({ "role": "display", "place": null, "programs": 2, "carrier": "byte-stream",
                "rtt_ms": null, "lost_percent": null, "silence_ms": 12_000.0, "shown_seconds": 3_600 }),
        ];
        let running = [json!({ "name": "foot", "programs": 1, "state": "attached", "state_seconds": 59 })];
        assert_eq!(
            words(&shown, Some("far"), &running),
            "shown here:\n\
             \x20 user@far:foot\u{fffd}: 1 program, over QUIC, round trip 103.4 ms, loss 1.2 %, for 5 min\n\
             \x20 a session of a ticket: 2 programs, through ssh or a command, round trip not measured yet, \
             for 1 h 0 min, NO CONTACT for 12 s\n\
             running on `far`:\n\
             \x20 SESSION  PROGRAMS  DISPLAY   SINCE\n\
             \x20 foot     1         attached  59 s\n"
        );
        assert_eq!(words(&[], None, &[]), "nothing is shown here\nnothing runs here\n");
    }

    #[test]
    fn a_document_of_another_version_is_told_as_far_as_it_is_understood() {
        assert_eq!(
            display(&json!({})),
            "  a session of a ticket: programs unknown, over an unknown link, round trip not measured yet\n"
        );
    }
}
