//! `--install-remote`: this program on the other machine, when it is missing there.
//!
//! What is copied must run on a machine of which nothing is known but its kernel and processor: a static build, which
//! is this very program or lies beside it as `wayferry-static`. It goes to `~/.local/bin`, where the remote command
//! looks for it too. It does not bring anything up to date. Invariant: the place holds nothing or a whole program that
//! has run there once, and what was in it before stays.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, SessionError};
use crate::flags::OwnFlags;
use crate::tell::{OwnEvent, tell};
use wayferry_host::edge::programs::exit_code;

use super::failure::Failure;
use super::quote;

/// Copies it through an ssh of its own, which may ask for a password again.
///
/// # Errors
/// [`Error::Install`], or ssh fails.
pub(super) fn install(own: &OwnFlags, options: &[OsString], destination: &OsStr) -> Result<(), Error> {
    let (path, size) = static_build()?;
    tell(&OwnEvent::Copying { path: &path.display().to_string() });
    let file = File::open(&path).map_err(|source| SessionError::File { path, source })?;
    let system = rustix::system::uname();
    let here = format!("{} {}", system.sysname().to_string_lossy(), system.machine().to_string_lossy());
    let line = ["sh", "-c", SCRIPT, "wayferry", &here, &size.to_string()].map(quote).join(" ");
    let program = own.reach.ssh().to_string_lossy().into_owned();
    let failed = |source| SessionError::Program { program: program.clone(), source };
    let mut command = Command::new(own.reach.ssh());
    command.args(options).arg("-T").arg("--").arg(destination).arg(line).stdin(file).stdout(Stdio::piped());
    let mut ssh = command.spawn().map_err(failed)?;
    let mut said = Vec::new();
    if let Some(stdout) = ssh.stdout.take() {
        // What it does not say is not needed either.
        let _ = stdout.take(SAID).read_to_end(&mut said);
    }
    let there = || String::from_utf8_lossy(&said).lines().last().unwrap_or_default().to_owned();
    match exit_code(ssh.wait().map_err(failed)?) {
        0 => Ok(()),
        OTHER_MACHINE => Err(Error::Install(Failure::OtherMachine { here, there: there() })),
        OCCUPIED => Err(Error::Install(Failure::Occupied)),
        TRANSFER => Err(Error::Install(Failure::Transfer)),
        DOES_NOT_RUN => Err(Error::Install(Failure::DoesNotRun)),
        status => Err(Error::Ssh { status }),
    }
}

/// Refuses a machine that is not `$1` and a place that is taken, then writes `$2` bytes of stdin beside the place,
/// tries them and puts them there, unless somebody else has meanwhile. A broken connection looks like the end of the
/// file, therefore the count.
const SCRIPT: &str = "m=$(uname -sm); if [ \"$m\" = \"$1\" ]; then :; else echo \"$m\"; exit 91; fi; \
                      d=$HOME/.local/bin; p=$d/wayferry; t=$d/.wayferry.$$; \
                      if [ -e \"$p\" ] || [ -L \"$p\" ]; then exit 92; fi; \
                      trap 'rm -f \"$t\"' 0; trap 'exit 93' 1 2 15; \
                      mkdir -p \"$d\" && cat >\"$t\" && [ \"$(wc -c <\"$t\")\" -eq \"$2\" ] && chmod 755 \"$t\" || exit 93; \
                      \"$t\" --version </dev/null >/dev/null || exit 94; \
                      ln \"$t\" \"$p\" 2>/dev/null && exit 0; \
                      if [ -e \"$p\" ] || [ -L \"$p\" ]; then exit 92; fi; mv \"$t\" \"$p\" || exit 93";

/// What the script ends with; see [`Failure`].
const OTHER_MACHINE: u8 = 91;
const OCCUPIED: u8 = 92;
const TRANSFER: u8 = 93;
const DOES_NOT_RUN: u8 = 94;

/// Bytes of what the script says that are read.
const SAID: u64 = 4 << 10;

/// This program, if it is static, else the static build beside it; and its size.
fn static_build() -> Result<(PathBuf, u64), Error> {
    let failed = |source| SessionError::File { path: PathBuf::from("/proc/self/exe"), source };
    let itself = std::env::current_exe().map_err(failed)?;
    let beside = itself.with_file_name("wayferry-static");
    let size = |path: &Path| {
        let mut head = Vec::new();
        let mut file = File::open(path).ok()?;
        file.by_ref().take(HEAD).read_to_end(&mut head).ok()?;
        is_static(&head).then(|| Some(file.metadata().ok()?.len()))?
    };
    let mut found = [itself, beside].into_iter().filter_map(|path| size(&path).map(|size| (path, size)));
    found.next().ok_or(Error::Install(Failure::NotStatic))
}

/// Whether a program needs nothing of the machine that it runs on: a 64-bit ELF file of this byte order without an
/// interpreter.
fn is_static(head: &[u8]) -> bool {
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = head.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let program_headers = || {
        let (at, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let kind = |index: u64| number(usize::try_from(at.checked_add(index.checked_mul(size)?)?).ok()?, 4);
        (0..count).map(kind).collect::<Option<Vec<_>>>()
    };
    let is_elf = head.starts_with(b"\x7fELF\x02\x01");
    is_elf && program_headers().is_some_and(|kinds| !kinds.is_empty() && !kinds.contains(&INTERPRETER))
}

/// `PT_INTERP` of elf(5).
const INTERPRETER: u64 = 3;
/// Bytes of a file in which its program headers are.
const HEAD: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use wayferry_host::edge::socket::RuntimeDir;

    #[test]
    fn a_program_of_the_system_needs_an_interpreter_and_a_text_is_no_program() {
        let head = |path: &str| {
            let mut head = Vec::new();
            File::open(path).expect("a file").take(HEAD).read_to_end(&mut head).expect("readable");
            head
        };
        let shell = head("/bin/sh");
        assert!(shell.starts_with(b"\x7fELF") && !is_static(&shell));
        // The same without that header: what it is does not matter here.
        let mut without = shell.clone();
        let at = usize::from(u16::from_le_bytes([shell[32], shell[33]]));
        for index in 0..usize::from(u16::from_le_bytes([shell[56], shell[57]])) {
            let kind = at + index * usize::from(u16::from_le_bytes([shell[54], shell[55]]));
            if without[kind] == 3 {
                without[kind] = 0;
            }
        }
        assert!(is_static(&without));
        assert!(!is_static(&head("/etc/passwd")) && !is_static(&shell[..100]) && !is_static(&[]));
        without[32..40].fill(0xff);
        assert!(!is_static(&without), "headers beyond the end");
    }

    #[test]
    fn the_place_holds_nothing_or_a_whole_program() {
        let dir = RuntimeDir::private().expect("a directory");
        let (place, good) = (dir.path().join(".local/bin/wayferry"), b"#!/bin/sh\nexit 0\n".as_slice());
        let run = |machine: &str, size: usize, content: &[u8]| {
            let (home, input) = (dir.path(), dir.path().join("input"));
            fs::write(&input, content).expect("a file");
            let mut shell = Command::new("sh");
            shell.args(["-c", SCRIPT, "wayferry", machine, &size.to_string()]).env("HOME", home);
            shell.stdin(File::open(input).expect("it")).stdout(Stdio::null()).stderr(Stdio::null());
            let status = shell.status().expect("sh").code();
            let names = fs::read_dir(home.join(".local/bin")).map(Iterator::count).unwrap_or_default();
            (status, names)
        };
        let system = rustix::system::uname();
        let here = format!("{} {}", system.sysname().to_string_lossy(), system.machine().to_string_lossy());
        assert_eq!(run("Linux pdp11", good.len(), good), (Some(91), 0));
        assert_eq!(run(&here, good.len() + 1, good), (Some(93), 0), "cut off");
        assert_eq!(run(&here, 10, b"#!/no/shel"), (Some(94), 0), "does not run");
        assert_eq!(run(&here, good.len(), good), (Some(0), 1));
        let mode = fs::metadata(&place).expect("there").permissions().mode() & 0o7777;
        assert_eq!((fs::read(&place).expect("it").as_slice(), mode), (good, 0o755));
        assert_eq!(run(&here, 17, b"#!/bin/sh\nexit 1\n"), (Some(92), 1), "taken");
        assert_eq!(fs::read(&place).expect("it"), good);
    }
}
