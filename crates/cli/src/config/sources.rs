//! Where settings are found: the environment, and one file.
//!
//! Invariant: what is read of the file has a limit, and nothing but a regular file is read.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::file::{Entry, File, Place, Value};
use super::pattern::Target;
use crate::error::Error;
use crate::user_dirs;

/// What there is, as it was found.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Variables without their prefix, in the form of options.
    variables: Vec<(String, Result<String, ()>)>,
    /// Where the file is looked for.
    pub(super) path: Option<PathBuf>,
    text: Option<Result<String, String>>,
}

impl Sources {
    /// Looks at the environment and for the file.
    pub(crate) fn load() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.to_str()?.strip_prefix(PREFIX)?.to_lowercase().replace('_', "-");
            Some((name, value.into_string().map_err(drop)))
        });
        let directory =
            user_dirs::named("XDG_CONFIG_HOME").or_else(|| Some(user_dirs::home()?.join(".config")));
        let path = directory.map(|directory| directory.join("wayferry/config.toml"));
        let text = path.as_deref().and_then(read);
        Self { variables: variables.collect(), path, text }
    }

    #[cfg(test)]
    pub(super) fn of(variables: &[(&str, &str)], file: Option<&str>) -> Self {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), Ok((*value).to_owned())));
        let text = file.map(|text| Ok(text.to_owned()));
        Self { variables: variables.collect(), path: Some("config.toml".into()), text }
    }

    /// What is said of the options that are `known`.
    ///
    /// # Errors
    /// The file, or a variable, cannot be read.
    pub(super) fn entries(&self, known: &BTreeSet<&str>, host: Option<&OsStr>) -> Result<Said, Error> {
        let mut entries = Vec::new();
        for (name, value) in self.variables.iter().filter(|(name, _)| known.contains(name.as_str())) {
            let variable = variable(name);
            let Ok(value) = value else {
                let what = "it is not valid Unicode".to_owned();
                return Err(Error::Config { place: format!("${variable}"), what });
            };
            let place = Place::Variable(variable);
            entries.push(Entry { name: name.clone(), value: Value::Text(value.clone()), place });
        }
        let file = match (&self.path, &self.text) {
            (Some(path), Some(Ok(text))) => File::parse(path, text)?,
            (Some(path), Some(Err(what))) => {
                return Err(Error::Config { place: path.display().to_string(), what: what.clone() });
            }
            _ => File::default(),
        };
        let target = host.map(Target::new);
        let is_known = |entry: &&Entry| known.contains(entry.name.as_str());
        entries.extend(file.entries(target.as_ref()).filter(is_known).cloned());
        let unknown = file.all().filter(|entry| !known.contains(entry.name.as_str()));
        let notes = unknown.map(|entry| {
            let near = nearest(known, &entry.name).filter(|(likeness, _)| *likeness > ALIKE);
            let near = near.map(|(_, name)| format!("; did you mean `{name}`?")).unwrap_or_default();
            format!("{}: no setting is called `{}`, it is ignored{near}", entry.place, entry.name)
        });
        // A variable may be another program's, but for one that is almost a setting's.
        let mistyped = self.variables.iter().filter(|(name, _)| !known.contains(name.as_str()));
        let mistyped = mistyped.filter_map(|(name, _)| {
            let (_, near) = nearest(known, name).filter(|(likeness, _)| *likeness > ALMOST)?;
            Some(format!(
                "${}: no setting is called so, it is ignored; did you mean `{}`?",
                variable(name),
                variable(near)
            ))
        });
        let notes = notes.chain(mistyped).take(MAX_NOTES);
        Ok(Said { notes: notes.collect(), all: file.all().filter(is_known).cloned().collect(), entries })
    }
}

/// What the sources say.
pub(super) struct Said {
    /// For the host, the most important first.
    pub(super) entries: Vec<Entry>,
    /// Everything in the file, for whichever host.
    pub(super) all: Vec<Entry>,
    /// What is not known.
    pub(super) notes: Vec<String>,
}

/// The text of a small file, or why it cannot be had; `None` where there is none.
pub(crate) fn read(path: &Path) -> Option<Result<String, String>> {
    let cannot = |error: std::io::Error| format!("it cannot be read: {error}");
    let found = match fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
        Err(error) => return Some(Err(cannot(error))),
        Ok(found) => found,
    };
    if !found.is_file() {
        return Some(Err("it is not a regular file".into()));
    }
    let mut bytes = Vec::new();
    let taken = fs::File::open(path).and_then(|file| file.take(MAX_TEXT + 1).read_to_end(&mut bytes));
    Some(match taken {
        Err(error) => Err(cannot(error)),
        Ok(_) if bytes.len() as u64 > MAX_TEXT => Err(format!("it is longer than {MAX_TEXT} bytes")),
        Ok(_) => String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            format!("line {line} is not valid UTF-8")
        }),
    })
}

/// The name that is most like another, and how much.
fn nearest<'a>(known: &BTreeSet<&'a str>, name: &str) -> Option<(f64, &'a str)> {
    let name: String = name.chars().take(64).collect();
    let near = known.iter().map(|other| (strsim::jaro(other, &name), *other));
    near.max_by(|one, other| one.0.total_cmp(&other.0))
}

/// The variable of a setting.
fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase().replace('-', "_"))
}

/// In front of a setting's variable.
pub(super) const PREFIX: &str = "WAYFERRY_";
/// From which likeness on a name may be meant by another, and must be.
const ALIKE: f64 = 0.8;
const ALMOST: f64 = 0.9;
/// Bytes of the file.
const MAX_TEXT: u64 = 256 << 10;
/// Names that are told to be unknown.
const MAX_NOTES: usize = 8;
