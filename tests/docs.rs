//! What the documentation claims of the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn docs_security_names_tests_that_exist() {
    let page = include_str!("../docs/security.md");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|line| line.trim_end_matches('|').rsplit('|').next());
    let names: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 15, "the tables have changed their form: {names:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources: String =
        ["crates", "tests"].iter().flat_map(|at| rust_files(&root.join(at))).map(read).collect();
    let missing: Vec<_> = names.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// Where the page of limits says all there are: the halves and what they say, pages, the session, the carriers, the run
/// loops, sound, GPU buffers, predicted text.
const LIMITED: [&str; 15] = [
    "wayland/src",
    "message/src",
    "page/src",
    "page-wasm/src",
    "proto/src",
    "mux/src",
    "net/src",
    "host/src",
    "audio/src",
    "pulse/src",
    "sound/src",
    "gpu/src",
    "echo/src",
    "screen/src",
    "cli/src/screen",
];

#[test]
fn docs_limits_tells_every_limit_and_its_value() {
    let page = include_str!("../docs/limits.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let told: BTreeMap<(String, String), String> = rows
        .map(|row| {
            let words: Vec<&str> = row.split('`').skip(1).step_by(2).take(3).collect();
            let [file, name, value] = words[..] else { panic!("not a file, a name and a value: {row}") };
            assert_eq!(row.split(" | ").count(), 5, "a limit without an answer: {row}");
            ((file.to_owned(), name.to_owned()), value.to_owned())
        })
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut there = BTreeMap::new();
    for file in LIMITED.iter().flat_map(|at| rust_files(&root.join(at))) {
        let name = file.strip_prefix(&root).expect("below it").display().to_string();
        if !name.contains("tests") {
            there.extend(limits(&read(file)).map(|(limit, value)| ((name.clone(), limit), value)));
        }
    }
    assert!(there.len() > 100, "the source has changed its form: {there:?}");
    let missing: Vec<_> = there.keys().filter(|limit| !told.contains_key(limit)).collect();
    assert!(missing.is_empty(), "limits that docs/limits.md lacks: {missing:?}");
    assert_eq!(told, there, "docs/limits.md and the source differ");
}

/// The limits of a module and their values, as the source says them.
fn limits(source: &str) -> impl Iterator<Item = (String, String)> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    source.split("const ").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once(": ")?;
        let is_limit = name.starts_with("MAX_") || name.ends_with("_MAX") || name.ends_with("_LIMIT");
        let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let (_, rest) = rest.split_once(" = ").filter(|_| is_limit && is_name)?;
        let (value, _) = rest.split_once(';')?;
        Some((name.to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
    })
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(path).expect("a source file")
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
