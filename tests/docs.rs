//! What the documentation claims of the tests.

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
