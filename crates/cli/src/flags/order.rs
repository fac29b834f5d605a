//! Brings a command line into the order that clap reads.
//!
//! A user may put Wayferry's own options before the command or behind it, and ssh's options before a host. Here the own
//! ones are moved behind the command, and ssh's words are taken out. It checks no values. Invariant: ssh's words come
//! out in their order, byte for byte; what is neither ours nor ssh's stays where it was.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::which::Which;
use crate::error::Error;
use crate::ssh::args::{SshArgs, takes_next};

/// A command line in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The program, the command, its own options, the rest.
    pub(super) words: Vec<OsString>,
    /// Where more options of the command may be put in: behind its name.
    pub(super) at: usize,
    /// Of `wayferry ssh` and `desktop-entry`, ssh's part of the line.
    pub(super) ssh: Option<Vec<OsString>>,
    /// Of the other commands, ssh's options.
    pub(super) ssh_options: Vec<OsString>,
}

impl Line {
    /// With more options.
    pub(super) fn with(&self, more: &[OsString]) -> Vec<OsString> {
        let (before, after) = self.words.split_at(self.at);
        [before, more, after].concat()
    }

    /// Whether ssh's options are its, and have a host to go to.
    ///
    /// # Errors
    /// They are not.
    pub(super) fn check(&self, has_host: bool) -> Result<(), Error> {
        let words: Vec<OsString> = self.ssh_options.iter().cloned().chain(["host".into()]).collect();
        SshArgs::parse(&words)?;
        if !has_host && !self.ssh_options.is_empty() {
            return Err(Error::usage("ssh's options stand before a host, and none is named"));
        }
        Ok(())
    }

    /// The other machine that a command is about.
    pub(super) fn host(&self, given: &clap::ArgMatches) -> Option<OsString> {
        if let Some(words) = &self.ssh {
            return SshArgs::parse(words).ok().map(|args| args.destination);
        }
        if let Ok(Some(Which::There { host, .. })) = given.try_get_one::<Which>("which") {
            return Some(host.into());
        }
        given.try_get_one::<String>("host").ok().flatten().map(OsString::from)
    }
}

/// Arranges `words`, the program's own name first.
///
/// # Errors
/// One of ssh's options lacks its argument.
pub(super) fn arrange(words: Vec<OsString>, definition: &clap::Command) -> Result<Line, Error> {
    let mut words = words.into_iter().peekable();
    let program = words.next();
    let (mut own, mut name) = (Vec::new(), None);
    while let Some(word) = words.next() {
        if word.as_bytes().starts_with(b"-") {
            let values = values(definition, None, &word);
            own.push(word);
            own.extend(words.by_ref().take(values));
        } else {
            name = Some(word);
            break;
        }
    }
    if name.as_ref().is_some_and(|name| name == "desktop") {
        // It is the next word with an option.
        if let Some(way) = words.next_if(|word| word == "ssh" || word == "through") {
            own.push("--screen".into());
            name = Some(way);
        }
    }
    let Some(name) = name else {
        return Ok(Line { words: program.into_iter().chain(own).collect(), at: 1, ..Line::default() });
    };
    let command = definition.get_subcommands().find(|command| name == *command.get_name());
    let values = |word: &OsString| values(definition, command, word);
    let reaches = command.is_some_and(|command| command.get_arguments().any(|arg| arg.get_id() == "ssh_bin"));
    let mut line = Line { words: program.into_iter().chain([name.clone()]).collect(), ..Line::default() };
    line.at = line.words.len();
    line.words.extend(own);
    if name == "ssh" || name == "desktop-entry" {
        let mut sshs = Vec::new();
        for part in parts(&mut words, &values)? {
            match part {
                Part::Own(words) => line.words.extend(words),
                // An option that ssh does not have.
                Part::Ssh(words) if words[0] == "-h" => line.words.extend(words),
                Part::Ssh(words) => sshs.extend(words),
                Part::Rest(words) => sshs.extend(words),
            }
        }
        line.ssh = Some(sshs);
    } else if reaches && name != "through" {
        for part in parts(&mut words, &values)? {
            match part {
                Part::Ssh(words) if !is_ours(&words[0]) => line.ssh_options.extend(words),
                Part::Own(words) | Part::Ssh(words) | Part::Rest(words) => line.words.extend(words),
            }
        }
    } else {
        line.words.extend(words);
    }
    Ok(line)
}

/// A piece of a line that may have ssh's options in it.
enum Part {
    /// An option of ours with its value.
    Own(Vec<OsString>),
    /// An option of ssh's with its argument.
    Ssh(Vec<OsString>),
    /// A destination, or the second word that is no option and all that follows.
    Rest(Vec<OsString>),
}

/// Up to the second word that is no option: a destination, then a command.
fn parts(
    words: &mut impl Iterator<Item = OsString>,
    values: &impl Fn(&OsString) -> usize,
) -> Result<Vec<Part>, Error> {
    let (mut parts, mut have_destination) = (Vec::new(), false);
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            parts.push(Part::Rest([word].into_iter().chain(words).collect()));
            break;
        } else if bytes.starts_with(b"--") {
            let values = values(&word);
            parts.push(Part::Own([word].into_iter().chain(words.by_ref().take(values)).collect()));
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            let argument = takes_next(&word).then(|| words.next()).flatten();
            parts.push(Part::Ssh([word].into_iter().chain(argument).collect()));
        } else if have_destination {
            parts.push(Part::Rest([word].into_iter().chain(words).collect()));
            break;
        } else {
            have_destination = true;
            parts.push(Part::Rest(vec![word]));
        }
    }
    Ok(parts)
}

/// Whether an option with one dash is Wayferry's where a command of its own stands before it.
fn is_ours(word: &OsString) -> bool {
    ["-h", "-v", "-vv", "-V"].iter().any(|ours| word == ours)
}

/// How many of the words behind it an own option takes: in this command, or, where that does not have it or is not
/// known yet, in each in which it occurs. One that may stand alone takes none.
fn values(definition: &clap::Command, command: Option<&clap::Command>, word: &OsString) -> usize {
    let Some(name) = word.to_str().and_then(|word| word.strip_prefix("--")) else { return 0 };
    let takes = |arg: &clap::Arg| match arg.get_action().takes_values() && !arg.is_require_equals_set() {
        true => arg.get_num_args().map_or(1, |count| count.min_values()),
        false => 0,
    };
    let is_it = |arg: &&clap::Arg| arg.get_long() == Some(name);
    if let Some(arg) = command.and_then(|command| command.get_arguments().find(is_it)) {
        return takes(arg);
    }
    let all = [definition].into_iter().chain(definition.get_subcommands());
    all.flat_map(clap::Command::get_arguments).filter(is_it).map(takes).min().unwrap_or(0)
}
