//! What a user is told of a command line that clap refuses: one line of what is wrong, one of what to type.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;

/// The error of a command line.
pub(super) fn wrong(definition: &clap::Command, words: &[OsString], error: &clap::Error) -> Error {
    let command = words.get(1).and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let argument = text(error, ContextKind::InvalidArg);
    let foreign = argument.as_deref().filter(|_| error.kind() == ErrorKind::UnknownArgument);
    if let (Some(command), Some(option)) = (command, foreign)
        && let Some(users) = users(definition, option)
    {
        return Error::Usage {
            what: format!("`{option}` means nothing to `{command}`"),
            hint: Some(format!(
                "it is an option of {users}; `wayferry {command} --help` lists those of `{command}`"
            )),
        };
    }
    let is_shown = |name: &String| definition.find_subcommand(name).is_none_or(|sub| !sub.is_hide_set());
    let suggestion =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(|kind| text(error, kind).filter(is_shown));
    let hint = suggestion.map(|suggestion| format!("did you mean `{suggestion}`?"));
    let known = command.filter(|name| definition.get_subcommands().any(|sub| sub.get_name() == *name));
    let help = known.map(|name| format!("`wayferry {name} --help` lists its options"));
    Error::Usage { what: first_line(error), hint: hint.or(help) }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        // The most like one is the last.
        ContextValue::Strings(texts) => texts.last().cloned(),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

/// The commands that know an option.
fn users(definition: &clap::Command, option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    let knows = |command: &&clap::Command| {
        !command.is_hide_set()
            && command.get_arguments().any(|arg| arg.get_long() == Some(name) && !arg.is_hide_set())
    };
    let names: Vec<String> = definition
        .get_subcommands()
        .filter(knows)
        .map(|command| format!("`{}`", command.get_name()))
        .collect();
    match &names[..] {
        [] => None,
        [one] => Some(one.clone()),
        [most @ .., last] => Some(format!("{} and {last}", most.join(", "))),
    }
}

/// What clap has to say, without its usage text: one line is our style.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("wrong use").trim_start_matches("error: ").to_owned();
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            format!("{first} {}", lines.next().unwrap_or_default()).trim_end().to_owned()
        }
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(values)) if !values.is_empty() => {
                format!("{first}: expected one of {}", values.join(", "))
            }
            _ => first,
        },
        _ => first,
    }
}
