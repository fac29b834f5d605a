//! Puts the page for browsers into the program, if it was built: the packed files that `scripts/build-page` leaves.
//!
//! Without them the program is built all the same, and `wayferry share` says what is missing. Cargo would run this on
//! every build if it were told of a folder that is not there, so `scripts/build-page` touches this file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let packed = here.join("../../target/page/packed");
    let mut files = match fs::read_dir(&packed) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    files.sort();
    let mut list = String::from("&[\n");
    for path in &files {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        fs::write(out.join(name), fs::read(path)?)?;
        list += &format!("    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/\", {name:?}))),\n");
    }
    list += "]\n";
    if !files.is_empty() {
        println!("cargo::rerun-if-changed={}", packed.display());
    }
    fs::write(out.join(Path::new("page.rs")), list)
}
