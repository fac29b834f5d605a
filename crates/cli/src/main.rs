//! The `wayferry` program: remote Wayland windows over QUIC.
//!
//! Raw flags become checked values in [`flags`], each command lives in a module of its own, and every way to fail is a
//! variant of [`error::Error`] with its exit code. Messages go to stderr, data to stdout.

mod attach;
mod browser;
mod complete;
mod config;
mod conn;
mod desktop_entry;
mod doctor;
mod error;
mod flags;
mod generate;
mod host;
mod info;
mod inherit;
mod lab;
mod launcher;
mod leaving;
mod manage;
mod memory;
mod open_url;
mod pass_on;
mod remote;
mod screen;
mod session;
mod session_bus;
mod share;
mod ssh;
mod status;
mod tell;
mod tethered;
mod through;
mod ticket_file;
mod trace;
mod transfer;
mod trust;
mod user_dirs;
mod viewer;

use std::process::ExitCode;

use crate::error::Error;
use crate::flags::{Command, Events, Flags};
use crate::tell::Sink;

fn main() -> ExitCode {
    if complete::is_asked() {
        return ExitCode::from(complete::run());
    }
    if open_url::is_called() {
        return ExitCode::from(open_url::run());
    }
    let code = match Flags::parse(std::env::args_os()).and_then(run_command) {
        Ok(code) => code,
        Err(error) => {
            // A signal needs no words: the user sent it.
            if !matches!(&error, Error::Session(error) if error.is_signal()) {
                tell::last_words(&error);
            }
            error.code()
        }
    };
    // Last words may still be on their way, and an inherited descriptor is not ours to leave changed.
    wayferry_net::byte_stream::wait_for_ends();
    tell::erase();
    ExitCode::from(code)
}

/// Runs the command; gives the exit code.
fn run_command(flags: Flags) -> Result<u8, Error> {
    let own = flags.own;
    tell::set_up(&own.common, flags.command.is_far())?;
    match own.common.events {
        // The first descriptor that this process makes its own.
        Some(Events::Descriptor(number)) => tell::open(Sink::new(inherit::take(number)?)),
        Some(Events::Stdout) => tell::open(Sink::stdout()?),
        None => {}
    }
    flags.notes.iter().for_each(|text| tell::notice(text));
    match flags.command {
        Command::Conn(flags) => conn::run(&own, flags.role),
        Command::Host(host) => host::run(&own, &host),
        Command::Attach(attach) => attach::run(&own, &attach),
        Command::Ssh(flags) => ssh::run(&own, &flags),
        Command::Desktop(_) => Err(flags::bare_desktop()),
        Command::Screen(flags) => screen::run(&flags),
        Command::Through(flags) => through::run(&own, &flags.words),
        Command::List(flags) => manage::list(&own, &flags),
        Command::Status(flags) => status::run(&own, &flags),
        Command::DesktopEntry(flags) => desktop_entry::run(&own, &flags),
        Command::Doctor(flags) => doctor::run(&own, &flags),
        Command::Ticket(flags) => manage::ticket(&own, flags),
        Command::Share(flags) => share::run(&own, &flags),
        Command::Detach(flags) => manage::detach(&own, flags),
        Command::Stop(flags) => manage::stop(&own, flags.which),
        Command::Meet { session, view, page } => launcher::meet(session.as_deref(), view, page),
        Command::Demo(_) | Command::Bench(_) => lab::run(&own),
        Command::Config(flags) => config::show(&flags),
        Command::Help(flags) => flags::help(flags.command.as_deref()),
        Command::Version(flags) => manage::version(&own, &flags),
        Command::Info(flags) => info::run(&flags),
        Command::Send(flags) => transfer::send(&flags),
        Command::Fetch(flags) => transfer::fetch(&flags),
        Command::Trace(flags) => trace::run(&flags),
        Command::GpuReader { how } => {
            how.0.iter().for_each(wayferry_host::read_gpu_buffers);
            Ok(0)
        }
        Command::Tethered { parent, command } => tethered::run(parent, &command),
        Command::Man { to: None } => generate::man(),
        Command::Man { to: Some(folder) } => generate::man_to(&folder),
        Command::Completions { shell } => generate::completions(shell),
    }
}
