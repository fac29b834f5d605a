//! The configuration file: what it says, and where.
//!
//! Values for every host stand at its top, those for some in a block `[host."PATTERN"]`. It knows no options.
//! Invariant: every entry knows its line.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::pattern::Target;
use crate::error::Error;

/// One value, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The option's name, without its dashes.
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) place: Place,
}

/// What stands there.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Yes(bool),
    /// A text, or a number as it is written.
    Text(String),
    List(Vec<String>),
    /// Something that no option takes.
    Other(&'static str),
}

impl Value {
    /// Of a flag: whether it is set, if this says that.
    pub(super) fn yes(&self) -> Option<bool> {
        match self {
            Self::Yes(yes) => Some(*yes),
            Self::Text(text) => match text.as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" | "" => Some(false),
                _ => None,
            },
            Self::List(_) | Self::Other(_) => None,
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// This variable of the environment.
    Variable(String),
    /// This line of the file, counted from 1; and the block's pattern.
    Line { path: PathBuf, line: usize, pattern: Option<String> },
}

/// A file that was read.
#[derive(Debug, Default)]
pub(super) struct File {
    blocks: Vec<Block>,
}

/// Entries for the hosts of a pattern, or for every host.
#[derive(Debug)]
struct Block {
    pattern: Option<String>,
    entries: Vec<Entry>,
}

impl File {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It is no TOML, or has something else than values and blocks.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            wrong(path, line(text, at), format!("it is not valid TOML: {what}"))
        })?;
        let reader = Reader { path, text };
        let (mut top, mut blocks) = (table.into_inner(), Vec::new());
        let expected =
            |value| wrong(path, reader.line(value), "expected blocks `[host.\"PATTERN\"]`".to_owned());
        if let Some(hosts) = top.remove("host") {
            let DeValue::Table(patterns) = hosts.get_ref() else { return Err(expected(&hosts)) };
            for (pattern, block) in patterns {
                let DeValue::Table(entries) = block.get_ref() else { return Err(expected(block)) };
                let pattern = pattern.get_ref().to_string();
                blocks.push((block.span().start, reader.block(Some(&pattern), entries)));
            }
        }
        blocks.sort_by_key(|(at, _)| *at);
        let blocks = blocks.into_iter().map(|(_, block)| block);
        Ok(Self { blocks: blocks.chain([reader.block(None, &top)]).collect() })
    }

    /// What is said for a host, the most important first.
    pub(super) fn entries(&self, host: Option<&Target>) -> impl Iterator<Item = &Entry> {
        let fits = move |block: &&Block| match &block.pattern {
            None => true,
            Some(pattern) => host.is_some_and(|host| host.fits(pattern)),
        };
        self.blocks.iter().filter(fits).flat_map(|block| &block.entries)
    }

    /// All entries.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.blocks.iter().flat_map(|block| &block.entries)
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn block(&self, pattern: Option<&str>, entries: &DeTable<'_>) -> Block {
        let mut entries: Vec<Entry> =
            entries.iter().map(|(name, value)| self.entry(pattern, name, value)).collect();
        entries.sort_by_key(|entry| match &entry.place {
            Place::Line { line, .. } => *line,
            Place::Variable(_) => 0,
        });
        Block { pattern: pattern.map(str::to_owned), entries }
    }

    fn entry(
        &self,
        pattern: Option<&str>,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Entry {
        let place = Place::Line {
            path: self.path.to_owned(),
            line: line(self.text, name.span().start),
            pattern: pattern.map(str::to_owned),
        };
        Entry { name: name.get_ref().to_string(), value: Value::of(value.get_ref()), place }
    }

    fn line(&self, value: &Spanned<DeValue<'_>>) -> usize {
        line(self.text, value.span().start)
    }
}

impl Value {
    fn of(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::Boolean(yes) => Self::Yes(*yes),
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Self::Text(number.as_str().replace('_', "")),
            DeValue::Float(number) => Self::Text(number.as_str().replace('_', "")),
            DeValue::Array(list) => {
                let texts = list.iter().map(|value| value.get_ref().as_str().map(str::to_owned));
                texts.collect::<Option<_>>().map_or(Self::Other("a list of other things"), Self::List)
            }
            DeValue::Integer(_) => Self::Other("a number that is not decimal"),
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Table(_) => Self::Other("a table"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes(yes) => write!(f, "{yes}"),
            Self::Text(text) => write!(f, "`{text}`"),
            Self::List(list) => write!(f, "[{}]", list.join(", ")),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            Self::Line { path, line, .. } => write!(f, "{}:{line}", path.display()),
        }
    }
}

fn wrong(path: &Path, line: usize, what: String) -> Error {
    Error::Config { place: format!("{}:{line}", path.display()), what }
}

/// The line of a byte, counted from 1.
fn line(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}
