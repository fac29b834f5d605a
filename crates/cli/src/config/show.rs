//! `wayferry config`: which settings hold, and where each comes from.

use clap::CommandFactory;
use serde_json::{Map, Value as Json, json};

use super::file::{Place, Value};
use super::{Held, Sources, held, settings};
use crate::error::Error;
use crate::flags::{ConfigFlags, Words};
use crate::tell::print;

/// Prints what holds for a host; gives the exit code.
pub(crate) fn show(flags: &ConfigFlags) -> Result<u8, Error> {
    let sources = Sources::load();
    // The command with all of them.
    let mut definition = Words::command();
    definition.build();
    let settings = settings();
    let command = definition.find_subcommand("ssh").unwrap_or(&settings);
    // What is unknown was told when this command was read.
    let (held, _) = held(command, None, flags.host.as_deref().map(AsRef::as_ref), &sources)?;
    let text = if flags.json {
        document(&held)
    } else {
        table(&held, &sources, flags.effective.then_some(&settings))
    };
    print(text.as_bytes())
}

fn document(held: &[Held]) -> String {
    let value = |value: &Value| match value {
        Value::Yes(yes) => json!(yes),
        Value::Text(text) => json!(text),
        Value::List(list) => json!(list),
        Value::Other(what) => json!(what),
    };
    let entries = held.iter().map(|held| {
        let from = json!({ "value": value(&held.entry.value), "from": held.entry.place.to_string() });
        (held.entry.name.clone(), from)
    });
    format!("{:#}\n", Json::Object(entries.collect::<Map<_, _>>()))
}

/// A line for each setting; with `all`, for those without a value, too.
fn table(held: &[Held], sources: &Sources, all: Option<&clap::Command>) -> String {
    let mut rows: Vec<[String; 3]> = held.iter().map(row).collect();
    let unset = all.into_iter().flat_map(clap::Command::get_arguments).filter(|arg| !arg.is_hide_set());
    rows.extend(
        unset
            .filter_map(clap::Arg::get_long)
            .filter(|name| rows.iter().all(|row| row[0] != *name))
            .map(|name| [name.to_owned(), "-".to_owned(), "default".to_owned()])
            .collect::<Vec<_>>(),
    );
    rows.sort();
    if rows.is_empty() {
        let path = sources
            .path
            .as_ref()
            .map_or("~/.config/wayferry/config.toml".into(), |path| path.display().to_string());
        return format!("nothing is set: `{path}` and the variables {}… may\n", super::sources::PREFIX);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    rows.iter().map(|[name, value, from]| format!("{name:first$}  {value:second$}  {from}\n")).collect()
}

fn row(held: &Held) -> [String; 3] {
    let entry = &held.entry;
    let value = match &entry.value {
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    };
    let from = match &entry.place {
        Place::Line { pattern: Some(pattern), .. } => format!("{} (host \"{pattern}\")", entry.place),
        place => place.to_string(),
    };
    [&entry.name, &value, &from].map(|text| wayferry_host::sanitize::sanitize(text))
}
