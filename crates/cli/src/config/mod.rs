//! Settings: options that hold without being typed, from the environment and from the configuration file.
//!
//! A setting has the name of its option, and its option's parser checks it. What is typed goes before what the
//! environment says, that before the first block of the file that names it and whose pattern fits the host, that before
//! what the file says for every host. It runs nothing. Invariant: a value that holds has passed its option's parser,
//! and no two that hold exclude each other.

mod file;
mod pattern;
mod show;
mod sources;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, CommandFactory};

use self::file::{Entry, Value};
pub(crate) use self::pattern::matches;
pub(crate) use self::show::show;
use self::sources::Said;
pub(crate) use self::sources::Sources;
pub(crate) use self::sources::read as read_text;
use crate::error::Error;
use crate::flags::{BeginFlags, CommonFlags, ReachFlags, ShowFlags, SideFlags, Words};

/// What is put into a command line.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    /// Options, for behind the command's name.
    pub(crate) words: Vec<OsString>,
    /// What the user should know.
    pub(crate) notes: Vec<String>,
}

/// A value that holds.
#[derive(Debug)]
struct Held {
    entry: Entry,
    words: Vec<OsString>,
}

/// Fills in what `given`, a command's own part of a command line, does not say. `host` is the machine that it is about.
///
/// # Errors
/// The file cannot be used, or a value is none of its option's.
pub(crate) fn fill(
    command: &clap::Command,
    given: &ArgMatches,
    host: Option<&OsStr>,
    sources: &Sources,
) -> Result<Filled, Error> {
    if command.is_hide_set() {
        return Ok(Filled::default());
    }
    let (held, notes) = held(command, Some(given), host, sources)?;
    Ok(Filled { words: held.into_iter().flat_map(|held| held.words).collect(), notes })
}

/// What `doctor` tells of the settings.
pub(crate) struct Found {
    /// The file, if there is one.
    pub(crate) path: Option<PathBuf>,
    /// How many values hold.
    pub(crate) held: usize,
    /// What is unknown.
    pub(crate) notes: Vec<String>,
}

/// Looks at the settings, which are to hold for a host.
///
/// # Errors
/// As [`fill`].
pub(crate) fn examine(host: Option<&OsStr>) -> Result<Found, Error> {
    let sources = Sources::load();
    let mut definition = Words::command();
    definition.build();
    // The command with all of them.
    let settings = settings();
    let command = definition.find_subcommand("ssh").unwrap_or(&settings);
    let (held, notes) = held(command, None, host, &sources)?;
    Ok(Found { path: sources.path.filter(|path| path.exists()), held: held.len(), notes })
}

/// The values that hold for a command.
fn held(
    command: &clap::Command,
    given: Option<&ArgMatches>,
    host: Option<&OsStr>,
    sources: &Sources,
) -> Result<(Vec<Held>, Vec<String>), Error> {
    let settings = settings();
    let known: BTreeSet<&str> = settings.get_arguments().filter_map(clap::Arg::get_long).collect();
    let Said { entries, all, notes } = sources.entries(&known, host)?;
    // A mistake does not wait for its host, or its command, to be found.
    all.iter().try_for_each(|entry| words(&settings, entry).map(drop))?;
    let typed = |arg: &clap::Arg| {
        let source = given.and_then(|given| given.try_contains_id(arg.get_id().as_str()).ok().map(|_| given));
        source
            .is_some_and(|given| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine))
    };
    let mut chosen: BTreeSet<String> =
        command.get_arguments().filter(|arg| typed(arg)).map(|arg| arg.get_id().to_string()).collect();
    let mut held = Vec::new();
    for entry in entries {
        let words = words(&settings, &entry)?;
        // Another option of that name, as `share` has, is another thing.
        let meant = settings.get_arguments().find(|arg| arg.get_long() == Some(&entry.name));
        let is_it = |arg: &&clap::Arg| Some(arg.get_id()) == meant.map(clap::Arg::get_id);
        let Some(arg) = command.get_arguments().find(is_it) else { continue };
        let excluded =
            command.get_arg_conflicts_with(arg).iter().any(|other| chosen.contains(other.get_id().as_str()))
                || command.get_arguments().any(|other| {
                    chosen.contains(other.get_id().as_str())
                        && command.get_arg_conflicts_with(other).iter().any(|of| of.get_id() == arg.get_id())
                });
        if !excluded && chosen.insert(arg.get_id().to_string()) {
            held.push(Held { entry, words });
        }
    }
    Ok((held, notes))
}

/// All options that can be settings: those that commands share, but for what is about a single run.
fn settings() -> clap::Command {
    let groups = [
        CommonFlags::augment_args,
        ReachFlags::augment_args,
        SideFlags::augment_args,
        ShowFlags::augment_args,
        BeginFlags::augment_args,
    ];
    groups
        .into_iter()
        .fold(clap::Command::new("wayferry").disable_help_flag(true), |command, group| group(command))
}

/// An entry as options of a command line.
fn words(settings: &clap::Command, entry: &Entry) -> Result<Vec<OsString>, Error> {
    let wrong = |what: String| Error::Config { place: entry.place.to_string(), what };
    let arg = settings.get_arguments().find(|arg| arg.get_long() == Some(&entry.name));
    let Some(arg) = arg else { return Ok(Vec::new()) };
    let option = format!("--{}", entry.name);
    let with = |text: &str| OsString::from(format!("{option}={text}"));
    // An option whose value may be left out is a flag, too.
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue) || arg.is_require_equals_set();
    let yes = Some(&entry.value).filter(|_| is_flag).and_then(Value::yes);
    // So does one that takes nothing but these two words.
    let is_switch = arg.get_possible_values().iter().map(|value| value.get_name()).eq(["on", "off"]);
    let words: Vec<OsString> = match (arg.get_action(), &entry.value) {
        (_, Value::Text(text)) if is_switch && text.is_empty() => Vec::new(),
        (_, value) if is_switch && let Some(yes) = value.yes() => vec![with(if yes { "on" } else { "off" })],
        _ if yes == Some(true) => vec![option.clone().into()],
        _ if yes == Some(false) => Vec::new(),
        (ArgAction::SetTrue, Value::Text(text)) => {
            return Err(wrong(format!("`{}`: expected true or false, got `{text}`", entry.name)));
        }
        (ArgAction::Count, Value::Text(text)) => match text.parse::<u8>() {
            Ok(count) => vec![option.clone().into(); count.min(2).into()],
            Err(_) => return Err(wrong(format!("`{}`: expected a number, got `{text}`", entry.name))),
        },
        (ArgAction::Append, Value::List(list)) => list.iter().map(|text| with(text)).collect(),
        (ArgAction::Append, Value::Text(text)) => {
            text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(with).collect()
        }
        (ArgAction::Set, Value::Text(text)) => vec![with(text)],
        (action, value) => {
            let expected = match action {
                _ if is_switch => "on or off",
                ArgAction::SetTrue => "true or false",
                ArgAction::Count => "a number",
                ArgAction::Append => "a list of texts",
                _ => "a text or a number",
            };
            return Err(wrong(format!("`{}`: expected {expected}, got {value}", entry.name)));
        }
    };
    let line = std::iter::once(OsString::from("wayferry")).chain(words.iter().cloned());
    settings.clone().try_get_matches_from(line).map_err(|error| wrong(refusal(&error, entry)))?;
    Ok(words)
}

/// What a parser said against a value.
fn refusal(error: &clap::Error, entry: &Entry) -> String {
    let text = error.to_string();
    let why = text.lines().next().unwrap_or_default();
    let why = why.rsplit_once(">': ").or_else(|| why.rsplit_once("': ")).map_or(why, |(_, why)| why);
    let why = text.lines().find_map(|line| line.trim().strip_prefix("[possible values: ")).map_or_else(
        || why.trim_start_matches("error: ").to_owned(),
        |values| format!("expected one of {}", values.trim_end_matches(']')),
    );
    format!("`{}`: {why}, got {}", entry.name, entry.value)
}

#[cfg(test)]
mod tests;
