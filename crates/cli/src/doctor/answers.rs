//! What another machine answers over ssh's stdout, taken apart.
//!
//! Lines of ours stand between two that carry a mark; what a login prints comes before. All of it may be made up by a
//! hostile machine. Invariant: what is kept is bounded, and safe for a terminal.

use serde_json::Value;

use super::check::Check;
use wayferry_host::sanitize::sanitize;

/// What was answered so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// What a login printed: how many bytes, and the first line.
    pub(super) noise: Option<(usize, String)>,
    /// The questions were reached.
    pub(super) began: bool,
    /// All were answered.
    pub(super) ended: bool,
    /// sshd has made the socket.
    pub(super) forwarded: bool,
    /// The binary is in the PATH of a command.
    pub(super) in_path: bool,
    /// As `uname -sm` says.
    pub(super) machine: Option<String>,
    /// Where it was found.
    pub(super) binary: Option<String>,
    /// Its version.
    pub(super) version: Option<String>,
    /// What it found on its machine.
    pub(super) facts: Option<Vec<Check>>,
}

/// The line of a mark before the questions' answers, and the one behind them.
pub(super) const BEGIN: &str = "begin";
pub(super) const END: &str = "end";

impl Answers {
    /// Reads what has come, up to the second mark.
    pub(super) fn parse(said: &[u8], mark: &str) -> Self {
        let (begin, end) = (format!("{mark} {BEGIN}"), format!("{mark} {END}"));
        let mut answers = Self::default();
        let mut at = 0;
        for line in said.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line);
            let text = text.trim_end();
            // A login may end without a line feed.
            if !answers.began && line.ends_with(b"\n") && text.ends_with(&begin) {
                answers.began = true;
                let noise = &said[..at + text.len().saturating_sub(begin.len()).min(line.len())];
                answers.noise = first_line(noise).map(|first| (noise.len(), first));
            } else if answers.began && text == end {
                answers.ended = true;
                break;
            } else if answers.began && line.ends_with(b"\n") {
                answers.line(text);
            }
            at += line.len();
        }
        if !answers.began {
            answers.noise = first_line(said).map(|first| (said.len(), first));
        }
        answers
    }

    fn line(&mut self, text: &str) {
        let (key, value) = text.split_once(' ').unwrap_or((text, ""));
        let shown = || Some(sanitize(value));
        match key {
            "forwarded" => self.forwarded = true,
            "in-path" => self.in_path = true,
            "machine" => self.machine = shown(),
            "binary" => self.binary = shown(),
            "version" => self.version = Some(sanitize(value.strip_prefix("wayferry ").unwrap_or(value))),
            "facts" => {
                let list: Option<Vec<Value>> = serde_json::from_str(value).ok();
                self.facts = list.map(|list| list.iter().take(MAX_FACTS).filter_map(Check::parse).collect());
            }
            // Of a later version.
            _ => {}
        }
    }
}

/// The first line that is not empty.
fn first_line(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(sanitize)
}

/// Checks that another machine may tell of.
const MAX_FACTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_stand_between_the_marks() {
        let said =
            b"Welcome\n\x1b[1mto far\nm begin\nforwarded\nbinary /opt/x/bin/wayferry\nversion wayferry 9.1\n\
            nonsense\nfacts [{\"check\":\"GPU\",\"verdict\":\"ok\",\"text\":\"x\"},7]\nm end\nbinary /evil\n";
        let answers = Answers::parse(said, "m");
        assert_eq!(answers.noise, Some((19, "Welcome".into())));
        assert!(answers.began && answers.ended && answers.forwarded && !answers.in_path);
        assert_eq!(answers.binary.as_deref(), Some("/opt/x/bin/wayferry"));
        assert_eq!(answers.version.as_deref(), Some("9.1"));
        assert_eq!(answers.facts, Some(vec![Check::ok("GPU", "x")]));
    }

    #[test]
    fn a_login_that_prints_no_line_feed_hides_nothing() {
        let answers = Answers::parse(b"\x1b]0;far\x07m begin\nm end\n", "m");
        assert!(answers.began && answers.ended);
        assert_eq!(answers.noise, Some((8, "\u{fffd}]0;far\u{fffd}".into())));
        assert_eq!(Answers::parse(b"m begin\n", "m").noise, None);
    }

    #[test]
    fn what_is_not_complete_is_no_answer() {
        assert_eq!(Answers::parse(b"", "m"), Answers::default());
        assert!(!Answers::parse(b"m begin", "m").began);
        assert!(!Answers::parse(b"other begin\nbinary x\n", "m").began);
        let cut = Answers::parse(b"m begin\nmachine Linux\nbinary /x", "m");
        assert_eq!((cut.machine.as_deref(), cut.binary, cut.ended), (Some("Linux"), None, false));
        let many = format!(
            "m begin\nfacts [{}{{}}]\nm end\n",
            r#"{"check":"a","verdict":"ok","text":"b"},"#.repeat(99)
        );
        assert_eq!(Answers::parse(many.as_bytes(), "m").facts.map(|facts| facts.len()), Some(MAX_FACTS));
    }
}
