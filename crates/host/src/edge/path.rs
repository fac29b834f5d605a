//! Programs by their names, as execvp(3) finds them.
//!
//! Nothing is started here. Invariant: what is found can be run.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where this process looks.
pub fn own() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into())
}

/// The program of that name in the directories of `path`; a name with a slash in it is a path itself.
///
/// # Errors
/// There is none, or only what cannot be run.
pub fn find(name: impl AsRef<OsStr>, path: &OsStr) -> io::Result<PathBuf> {
    let name = name.as_ref();
    let directories = match name.as_bytes().contains(&b'/') {
        true => vec![PathBuf::new()],
        false => std::env::split_paths(path).collect(),
    };
    let mut kind = io::ErrorKind::NotFound;
    for file in directories.iter().map(|directory| directory.join(name)) {
        match can_run(&file) {
            Some(true) => return Ok(file),
            Some(false) => kind = io::ErrorKind::PermissionDenied,
            None => {}
        }
    }
    Err(kind.into())
}

/// Whether a file is a program; `None` if there is none.
fn can_run(file: &Path) -> Option<bool> {
    let found = std::fs::metadata(file).ok()?;
    Some(found.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::edge::socket::RuntimeDir;

    #[test]
    fn the_first_that_can_be_run_is_found() {
        let dir = RuntimeDir::private().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for (name, mode) in [("a/x", 0o644), ("b/x", 0o755), ("c/x", 0o755), ("a/y", 0o644)] {
            fs::create_dir_all(at(name).parent().expect("a directory")).expect("made");
            fs::write(at(name), "").expect("written");
            fs::set_permissions(at(name), Permissions::from_mode(mode)).expect("set");
        }
        let path = std::env::join_paths(["a", "b", "c"].map(at)).expect("plain names");
        let kind = |name: &str| find(name, &path).expect_err("it cannot be run").kind();
        assert_eq!(find("x", &path).expect("a program"), at("b/x"));
        assert_eq!(find(at("c/x"), &path).expect("a program"), at("c/x"));
        assert_eq!((kind("y"), kind("z")), (io::ErrorKind::PermissionDenied, io::ErrorKind::NotFound));
        assert_eq!(find(at("a"), &path).expect_err("a directory").kind(), io::ErrorKind::PermissionDenied);
    }
}
