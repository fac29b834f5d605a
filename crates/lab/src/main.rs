//! `wayferry-lab`: the real program over emulated links, for eyes (`demo`) and for figures (`bench`).
//!
//! Nothing of it is in the shipped program. Invariant: what it shows and measures is the code that ships.

mod bench;
mod demo;
mod emulated;
mod error;
mod flags;
mod sight;
mod tap;
mod tunnel;

use std::process::ExitCode;

use clap::Parser;

use crate::error::Error;
use crate::flags::{BenchCommand, Command, Flags};

fn main() -> ExitCode {
    let code = match parse().and_then(|flags| run(&flags)) {
        Ok(code) => code,
        Err(error) => {
            // A signal needs no words: the user sent it.
            if !matches!(&error, Error::Session(error) if error.is_signal()) {
                eprintln!("error: {error}\nhint: {}", error.hint());
            }
            error.code()
        }
    };
    wayferry_net::byte_stream::wait_for_ends();
    ExitCode::from(code)
}

fn parse() -> Result<Flags, Error> {
    match Flags::try_parse() {
        Ok(flags) => Ok(flags),
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or("wrong use");
            Err(Error::Usage(line.trim_start_matches("error: ").to_owned()))
        }
    }
}

fn run(flags: &Flags) -> Result<u8, Error> {
    let own = &flags.own;
    match &flags.command {
        Command::Demo(demo) => demo::run(own, demo),
        Command::Bench(BenchCommand::Windows(bench)) => bench::windows::run(own, bench),
        Command::Bench(BenchCommand::Sound(flags)) => bench::sound::run(own, flags),
        Command::Bench(BenchCommand::Hol(flags)) => bench::hol::run(own, flags),
        Command::Bench(BenchCommand::Start(bench)) => bench::start::run(bench),
        Command::Bench(BenchCommand::Typing(bench)) => bench::typing::run(bench),
        Command::Bench(BenchCommand::Browser(bench)) => bench::browser::run(bench),
        Command::Bench(BenchCommand::Resume(bench)) => bench::resume::run(bench),
        Command::Bench(BenchCommand::Updates(flags)) => bench::updates::run(flags),
        Command::Bench(BenchCommand::Cc(flags)) => bench::cc::run(flags),
        Command::Bench(BenchCommand::Pixels(flags)) => bench::pixels::run(own, flags),
        Command::Bench(BenchCommand::Compression(flags)) => bench::compression::run(flags),
        Command::Bench(BenchCommand::Merge(flags)) => bench::updates::merge(flags),
    }
}
