//! A check and what it found, and how a user and a script read it.
//!
//! Texts may be another machine's. Invariant: no control character reaches the terminal, and every line fits a terminal
//! of a hundred columns unless one word does not.

use serde_json::{Value, json};

use wayferry_host::sanitize::sanitize;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// Sessions are shown, and something about them is less than it could be.
    Warn,
    /// No session can be shown, or not in the usual way.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    name: String,
    verdict: Verdict,
    /// What there is, or what is wrong and what that means.
    text: String,
    /// What the user can do.
    hint: Option<String>,
}

/// A machine with what was looked at there.
#[derive(Debug)]
pub(super) struct Place {
    /// `here`, or as the user calls it.
    pub(super) name: String,
    pub(super) checks: Vec<Check>,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Check {
    pub(super) fn ok(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, text: text.into(), hint: None }
    }

    pub(super) fn warn(name: &str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        let (text, hint) = (text.into(), Some(hint.into()));
        Self { name: name.into(), verdict: Verdict::Warn, text, hint }
    }

    pub(super) fn fail(name: &str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, ..Self::warn(name, text, hint) }
    }

    /// Whether no session can be shown because of it.
    pub(super) fn is_failed(&self) -> bool {
        self.verdict == Verdict::Fail
    }

    /// As a script reads it; [`Self::parse`] reads it back.
    pub(super) fn document(&self) -> Value {
        json!({
            "check": self.name, "verdict": self.verdict.word(), "text": self.text, "hint": self.hint,
        })
    }

    /// What another machine says that it found there; `None` if it is no check.
    pub(super) fn parse(document: &Value) -> Option<Self> {
        let text = |field: &str| document[field].as_str().map(sanitize);
        let verdict = match document["verdict"].as_str()? {
            "ok" => Verdict::Ok,
            "fail" => Verdict::Fail,
            // Of a later version.
            _ => Verdict::Warn,
        };
        let name = text("check").filter(|name| name.chars().count() <= MAX_NAME)?;
        Some(Self { name, verdict, text: text("text")?, hint: text("hint") })
    }
}

impl Place {
    /// Its checks, as a script reads them.
    pub(super) fn documents(&self) -> impl Iterator<Item = Value> {
        self.checks.iter().map(|check| {
            let mut document = check.document();
            document["place"] = json!(self.name);
            document
        })
    }
}

/// As a user reads it.
pub(super) fn table(places: &[Place]) -> String {
    let names = places.iter().flat_map(|place| &place.checks).map(|check| check.name.chars().count());
    let width = names.max().unwrap_or(0);
    let mut table = String::new();
    for place in places {
        table += &format!("{}\n", if place.name == "here" { place.name.clone() } else { on(&place.name) });
        place.checks.iter().for_each(|check| write(check, width, &mut table));
    }
    table
}

fn on(host: &str) -> String {
    format!("on `{}`", sanitize(host))
}

fn write(check: &Check, width: usize, table: &mut String) {
    let first = format!("  {:4}  {:width$}  ", check.verdict.word(), sanitize(&check.name));
    let margin = " ".repeat(first.chars().count());
    let room = COLUMNS - margin.len().min(COLUMNS / 2);
    let hint = check.hint.as_ref().map(|hint| format!("hint: {hint}"));
    let lines = wrap(&check.text, room).into_iter().chain(hint.iter().flat_map(|hint| wrap(hint, room)));
    for (number, line) in lines.enumerate() {
        let begin = if number == 0 { &first } else { &margin };
        *table += format!("{begin}{line}").trim_end();
        table.push('\n');
    }
}

/// Text in lines of so many columns; at least one.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').map(sanitize) {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            *line = word;
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

/// Columns of a line.
const COLUMNS: usize = 100;
/// Characters of a check's name.
const MAX_NAME: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_stand_in_columns_with_their_hints() {
        let here = vec![
            Check::ok("wayferry", "1.0"),
            Check::warn("UDP", "nothing\u{1b}[2J comes back", "open the port"),
        ];
        let long = Check::fail("compositor", "word ".repeat(30).trim_end(), "start one");
        let places =
            [Place { name: "here".into(), checks: here }, Place { name: "far\n".into(), checks: vec![long] }];
        let expected = format!(
            "here\n\
             \x20 ok    wayferry    1.0\n\
             \x20 warn  UDP         nothing\u{fffd}[2J comes back\n\
             \x20                   hint: open the port\n\
             on `far\u{fffd}`\n\
             \x20 fail  compositor  {}\n\
             \x20                   {}\n\
             \x20                   hint: start one\n",
            ["word"; 16].join(" "),
            ["word"; 14].join(" ")
        );
        assert_eq!(table(&places), expected);
    }

    #[test]
    fn what_another_machine_found_is_read_as_far_as_it_is_understood() {
        for check in [Check::ok("a", "b"), Check::warn("a", "b", "c"), Check::fail("a", "b", "c")] {
            assert_eq!(Check::parse(&check.document()), Some(check));
        }
        let later = json!({ "check": "GPU", "verdict": "great", "text": "\u{9b}2J", "more": 1 });
        assert_eq!(Check::parse(&later).expect("a check").text, "\u{fffd}2J");
        for none in [json!([]), json!({}), json!({ "check": "x".repeat(21), "verdict": "ok", "text": "" })] {
            assert_eq!(Check::parse(&none), None);
        }
    }
}
