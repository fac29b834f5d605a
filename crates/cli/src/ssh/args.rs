//! Reads an ssh command line far enough to know where its options end.
//!
//! Everything after the word `ssh` belongs to ssh and is handed on unchanged; all that is wanted here is the
//! destination, the command, and the few options that decide about terminals. The rules are those of ssh(1): options
//! may be bundled and their arguments attached, options may follow the destination, `--` ends them.
//! Invariant: `options` in their order, then the destination, then the command, mean to ssh what the user wrote.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::error::Error;
use crate::flags::OwnFlags;
use wayferry_host::sessions;

/// An ssh command line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SshArgs {
    /// Options with their arguments, as the user wrote them.
    pub(crate) options: Vec<OsString>,
    /// `[user@]host` or a URI.
    pub(crate) destination: OsString,
    /// The words of the remote command; none means the remote shell.
    pub(crate) command: Vec<OsString>,
    /// How many times `-t` was given.
    pub(crate) force_tty: u8,
    /// Whether `-T` was given last.
    pub(crate) no_tty: bool,
    /// Whether `-n` was given.
    pub(crate) no_stdin: bool,
}

/// Options of ssh that take an argument (OpenSSH 6 to 10).
pub(crate) const WITH_ARGUMENT: &[u8] = b"BbcDEeFIiJLlmOoPpQRSWw";

/// Options of ssh that take none.
pub(crate) const WITHOUT_ARGUMENT: &[u8] = b"46AaCGgfKkMNnqsTtVvXxYy";

/// Options with which ssh runs no remote command, so that there is nothing to show windows of.
const NO_COMMAND: &[u8] = b"fGNOQsVW";

/// Whether an option, or several in one word, takes the word behind it as its argument.
pub(crate) fn takes_next(word: &OsStr) -> bool {
    let letters = word.as_bytes().get(1..).unwrap_or_default();
    letters.iter().position(|letter| WITH_ARGUMENT.contains(letter)).is_some_and(|at| at + 1 == letters.len())
}

impl SshArgs {
    /// Takes `words`, all that stood after `ssh`, apart.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown option, a missing argument or destination, and options that leave no place for
    /// a remote command.
    pub(crate) fn parse(words: &[OsString]) -> Result<Self, Error> {
        let mut args = Self::default();
        let mut rest = words.iter();
        let mut have_destination = false;
        let mut options_ended = false;
        while let Some(word) = rest.next() {
            let bytes = word.as_bytes();
            if !options_ended && bytes == b"--" {
                // As in ssh, it ends the options up to the destination; those after the destination are read again.
                options_ended = true;
            } else if !options_ended && bytes.len() > 1 && bytes[0] == b'-' {
                args.option(word, &mut rest)?;
            } else if !have_destination {
                args.destination = word.clone();
                have_destination = true;
                options_ended = false;
            } else {
                args.command.push(word.clone());
                args.command.extend(rest.by_ref().cloned());
            }
        }
        if !have_destination || args.destination.is_empty() {
            let hint = Some("name one before the program, as in `wayferry ssh user@host foot`".to_owned());
            return Err(Error::Usage { what: "no host is named".to_owned(), hint });
        }
        if args.destination.as_bytes()[0] == b'-' {
            // ssh itself refuses such names; handing one on could only be read as an option.
            return Err(Error::usage(format!("`{}` is not a destination", args.destination.display())));
        }
        Ok(args)
    }

    /// What the session is called there if that name is free and the user has not chosen another.
    pub(crate) fn session_name(&self, own: &OwnFlags) -> Option<String> {
        let line = self.command_line().or_else(|| own.begin.screen.then(|| sessions::SCREEN.to_owned()));
        own.begin.name.is_none().then(|| sessions::name_of(line.as_deref().map(OsStr::new)))
    }

    /// Without a command there is no shell that could want a terminal.
    pub(crate) fn need_no_shell(&mut self) {
        if self.command.is_empty() {
            self.options.push("-T".into());
            self.no_tty = true;
        }
    }

    /// The same words, behind `wayferry` and its own options.
    pub(crate) fn again(&self) -> String {
        let words = self.options.iter().chain([&self.destination]).chain(&self.command);
        let words = words.map(|word| word.to_string_lossy().into_owned());
        std::iter::once("ssh".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// The command as ssh sends it: its words with single spaces between them.
    pub(crate) fn command_line(&self) -> Option<String> {
        if self.command.is_empty() {
            return None;
        }
        let words: Vec<&[u8]> = self.command.iter().map(|word| word.as_bytes()).collect();
        Some(OsString::from_vec(words.join(&b' ')).to_string_lossy().into_owned())
    }

    /// One word of bundled options; takes the next word if the last option wants an argument.
    fn option<'a>(
        &mut self,
        word: &OsString,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), Error> {
        self.options.push(word.clone());
        let letters = &word.as_bytes()[1..];
        for (index, letter) in letters.iter().enumerate() {
            let shown = || OsStr::from_bytes(&[b'-', *letter]).to_string_lossy().into_owned();
            if NO_COMMAND.contains(letter) {
                return Err(Error::usage(format!(
                    "ssh's option `{}` leaves no place for a remote command",
                    shown()
                )));
            }
            if WITH_ARGUMENT.contains(letter) {
                if index + 1 == letters.len() {
                    let argument = rest.next().ok_or_else(|| {
                        Error::usage(format!("ssh's option `{}` needs an argument", shown()))
                    })?;
                    self.options.push(argument.clone());
                }
                return Ok(());
            }
            match letter {
                b't' => self.force_tty = self.force_tty.saturating_add(1),
                b'T' => self.no_tty = true,
                b'n' => self.no_stdin = true,
                _ if WITHOUT_ARGUMENT.contains(letter) => {}
                _ => return Err(Error::usage(format!("ssh has no option `{}`", shown()))),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<SshArgs, Error> {
        SshArgs::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn shape(line: &str) -> (String, String, String) {
        let args = parse(line).expect(line);
        let join = |words: &[OsString]| words.join(OsStr::new(" ")).into_string().expect("UTF-8");
        (join(&args.options), args.destination.into_string().expect("UTF-8"), join(&args.command))
    }

    fn expect(line: &str, options: &str, destination: &str, command: &str) {
        assert_eq!(shape(line), (options.into(), destination.into(), command.into()), "{line}");
    }

    #[test]
    fn finds_the_destination_and_the_command() {
        expect("host", "", "host", "");
        expect("user@host foot -e vi", "", "user@host", "foot -e vi");
        expect("-p 22 host", "-p 22", "host", "");
        expect("-p22 host foot", "-p22", "host", "foot");
        expect("-4Cp 22 host foot", "-4Cp 22", "host", "foot");
        expect("-oPort=22 -o User=x host foot", "-oPort=22 -o User=x", "host", "foot");
        expect("-tt -i key host top", "-tt -i key", "host", "top");
        expect("ssh://u@h:22 foot", "", "ssh://u@h:22", "foot");
    }

    #[test]
    fn options_may_follow_the_destination() {
        expect("host -p 22 foot -p 1", "-p 22", "host", "foot -p 1");
        expect("-v host -4 -- foot -4", "-v -4", "host", "foot -4");
    }

    #[test]
    fn two_dashes_end_the_options() {
        expect("-p 22 -- host foot", "-p 22", "host", "foot");
        expect("host -- -weird", "", "host", "-weird");
        assert!(parse("-- -oProxyCommand=evil foot").is_err());
    }

    #[test]
    fn an_attached_argument_is_not_read_as_options() {
        // In `-itop` the argument of -i is `top`; -t was not given.
        let args = parse("-itop host").expect("parses");
        assert_eq!((args.force_tty, args.options.len()), (0, 1));
        assert_eq!(parse("-vtt host x").expect("parses").force_tty, 2);
    }

    #[test]
    fn every_option_letter_has_one_meaning() {
        for letter in b'0'..=b'z' {
            let with = WITH_ARGUMENT.contains(&letter);
            let without = WITHOUT_ARGUMENT.contains(&letter);
            assert!(!(with && without), "{}", letter as char);
            let word = format!("-{}", letter as char);
            if NO_COMMAND.contains(&letter) {
                assert!(parse(&format!("{word} a host")).is_err(), "{word}");
            } else if with {
                expect(&format!("{word} argument host foot"), &format!("{word} argument"), "host", "foot");
            } else if without {
                expect(&format!("{word} host foot"), &word, "host", "foot");
            } else {
                assert!(parse(&format!("{word} host")).is_err(), "{word}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = |line: &str| parse(line).expect_err(line).to_string();
        assert_eq!(text(""), "no host is named");
        assert!(parse("-p 22").expect_err("no host").hint().contains("user@host foot"));
        assert_eq!(text("-p"), "ssh's option `-p` needs an argument");
        assert_eq!(text("-Z host"), "ssh has no option `-Z`");
        assert_eq!(text("-N host"), "ssh's option `-N` leaves no place for a remote command");
    }

    #[test]
    fn the_command_line_is_joined_as_ssh_does() {
        assert_eq!(parse("host a b").expect("parses").command_line().as_deref(), Some("a b"));
        assert_eq!(parse("host").expect("parses").command_line(), None);
    }
}
