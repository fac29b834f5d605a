//! Reads GPU buffers for a session of a wayferry that cannot open libEGL: `wayferry-gpu-reader auto`, or the path of a
//! render node. The session is at the other end of its stdin.

use std::process::ExitCode;

use wayferry_gpu::{How, read};

fn main() -> ExitCode {
    match std::env::args().nth(1).map(|how| how.parse::<How>()) {
        Some(Ok(how)) => read(&how),
        Some(Err(why)) => return fail(&why),
        None => return fail("a session of wayferry starts this"),
    }
    ExitCode::SUCCESS
}

fn fail(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}
