//! The command line: raw flags as clap reads them, then checked values.
//!
//! Flags are defined and documented here and nowhere else; the manual pages, the completions and the names in the
//! configuration file are made from these definitions. This module starts nothing. Invariant: what belongs to ssh
//! reaches it byte for byte; clap never sees it.

mod commands;
mod order;
mod own;
mod values;
mod which;
mod wrong;

use std::ffi::OsString;
use std::net::SocketAddr;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use wayferry_host::{GPU_HELPER, gpu_helper};

pub(crate) use self::commands::*;
use self::order::arrange;
pub(crate) use self::own::{BeginFlags, CommonFlags, OwnFlags, ReachFlags, ShowFlags, SideFlags};
pub(crate) use self::values::{Events, Gpu, Links, OpenUrl, Role, Switch};
pub(crate) use self::which::Which;
use crate::config;
use crate::error::Error;

/// A command line.
#[derive(Debug)]
pub(crate) struct Flags {
    /// Options that several commands share.
    pub(crate) own: OwnFlags,
    pub(crate) command: Command,
    /// What the user may want to know of where values came from.
    pub(crate) notes: Vec<String>,
}

/// Remote Wayland programs as windows of this desktop, over QUIC.
#[derive(Debug, Parser)]
#[command(name = "wayferry", version, long_version = version(), max_term_width = 100)]
#[command(disable_help_subcommand = true, disable_help_flag = true, help_template = TEMPLATE, after_help = AFTER)]
pub(crate) struct Words {
    #[command(flatten)]
    common: CommonFlags,
    /// Print help.
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort, display_order = 103)]
    help: Option<bool>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program on another machine through ssh and show its windows here
    ///
    /// Options of Wayferry's own, which all begin with two dashes, may stand before or behind the word `ssh`; all else
    /// is ssh's, as for ssh(1).
    #[command(override_usage = "wayferry ssh [OPTIONS] [SSH OPTIONS] DESTINATION [COMMAND ...]", after_help = MORE)]
    Ssh(Box<SshFlags>),
    /// Run a program at the other end of any command that carries stdin and stdout
    ///
    /// `wayferry through kubectl exec -i POD -- foot`, or `docker exec -i NAME`, `srun`, `machinectl shell`. QUIC is
    /// used where an address of the other side can be reached, otherwise everything goes through the command.
    #[command(override_usage = "wayferry through [OPTIONS] COMMAND ... -- PROGRAM ...", after_help = MORE)]
    Through(Box<ThroughFlags>),
    /// Show the whole screen of another machine in one window
    ///
    /// That of a compositor that runs there and can be watched (sway, labwc, others made with wlroots), or one without
    /// a monitor that is started for it, with COMMAND in it. Behind the word `desktop` stands what `ssh` or `through`
    /// takes.
    #[command(
        override_usage = "wayferry desktop ssh [OPTIONS] [SSH OPTIONS] DESTINATION [COMMAND ...]\n       wayferry desktop through [OPTIONS] COMMAND ... -- [PROGRAM ...]"
    )]
    Desktop(DesktopFlags),
    /// Show a session that runs already, here or elsewhere, or that of a ticket
    #[command(after_help = MORE)]
    Attach(Box<AttachFlags>),
    /// Let a session's display leave; its programs go on
    ///
    /// `attach` shows them again. The display cannot come back by itself.
    Detach(DetachFlags),
    /// End a session with its programs
    Stop(WhichFlags),
    /// List the sessions that run here, or on another machine
    List(ListFlags),
    /// Show what is shown here, over which link, and what runs here or on another machine
    Status(StatusFlags),
    /// Show how this user's sessions on this machine fare: loss, repair, round trips, rates
    ///
    /// One paragraph for each side that runs here, or a document for a script. Each side counts what it sends itself;
    /// the other half is known where the other side runs.
    Info(InfoFlags),
    /// Send files to the other machine of a session
    ///
    /// From a program of the session, to the machine that shows it; where a session is shown, to that of its programs.
    /// They are kept in ~/Downloads/wayferry there, and none is overwritten.
    Send(SendFlags),
    /// Fetch files from the machine where a session's programs run, to ~/Downloads/wayferry/HOST
    ///
    /// Their paths are printed.
    Fetch(FetchFlags),
    /// Print an entry for this desktop's menu that runs a program of another machine, or install it
    ///
    /// What stands behind the word is as for `wayferry ssh`; the entry runs that. Other options come from the settings
    /// (docs/settings.md) when it is started. As no terminal is there, ssh must not need one, for a password or a
    /// host's key.
    #[command(override_usage = "wayferry desktop-entry [OPTIONS] [SSH OPTIONS] DESTINATION PROGRAM ...")]
    DesktopEntry(DesktopEntryFlags),
    /// Look for what keeps sessions from being shown, here and on another machine
    ///
    /// A line for each thing that was looked at: ok, warn (sessions are shown, and something about them is less than it
    /// could be) or fail (none is shown), with a hint where something can be done. With HOST a session is started
    /// there, which ends before any program begins, and everything on its way is tried: ssh, forwarding, both programs,
    /// UDP in both directions. It is what a bug report needs.
    Doctor(DoctorFlags),
    /// Run programs here for a display elsewhere, which attaches with a ticket
    ///
    /// The first line on stdout is the ticket for `attach`.
    #[command(after_help = MORE)]
    Host(Box<HostFlags>),
    /// Print a ticket with which one more display can attach to a session that `host` began
    Ticket(TicketFlags),
    /// Show a session in a browser: serve the page here, and print a link
    ///
    /// Who opens the link views the session, up to eight at once, or, with `--control`, has it; then it works once. The
    /// browser goes to the session's own UDP port by itself, or where it does not reach that, by way of this machine.
    /// This serves the page, to its own browsers alone, or with `--https` to all, until Ctrl-C.
    /// `--list` shows the links and who is there by them, `--revoke` takes one back and sends away who came by it.
    #[command(
        override_usage = "wayferry share [OPTIONS] [SSH OPTIONS] [WHICH]\n       wayferry share --list [--json] [WHICH]\n       wayferry share --revoke LINK [WHICH]"
    )]
    Share(Box<ShareFlags>),
    /// Show which settings hold for a host, and where each comes from
    Config(ConfigFlags),
    /// Draw what `--trace` wrote, and print how long each stage takes
    ///
    /// Give the files of both sides to see how long pictures were on their way, too; times are those of the first
    /// file's machine. The stages of a picture: capture (read from the program), encode (compressed, by thread), queue
    /// (waited for the link), wire (first byte out to last byte in), decode, commit (given to the compositor). Those
    /// of sound: capture (until it is encoded), wire, hear (from its arrival until it is heard).
    Trace(TraceFlags),
    /// Both sides on this machine with a bad network between them (`wayferry-lab demo`)
    #[command(disable_help_flag = true)]
    Demo(LabFlags),
    /// Measure on emulated links (`wayferry-lab bench`)
    #[command(disable_help_flag = true, hide = true)]
    Bench(LabFlags),
    /// Print help, of a command if one is named
    Help(HelpFlags),
    /// Print the version, here or on another machine
    Version(VersionFlags),
    /// Meet a session that runs here, for a display at the other end of stdin and stdout.
    #[command(hide = true)]
    Meet {
        /// Which.
        session: Option<String>,
        /// The display is view-only.
        #[arg(long)]
        view: bool,
        /// It is a page, whose browser is there.
        #[arg(long, value_name = "ADDRESS", conflicts_with = "view")]
        page: Option<SocketAddr>,
    },
    /// One side with inherited sockets.
    #[command(hide = true)]
    Conn(Box<ConnFlags>),
    /// Read GPU buffers for the session at the other end of stdin.
    #[command(hide = true)]
    GpuReader {
        /// With what.
        how: Gpu,
    },
    /// Show a screen of this machine as a window of the session.
    #[command(hide = true)]
    Screen(ScreenFlags),
    /// Become a program that ends with the process that started it.
    #[command(hide = true)]
    Tethered {
        /// That process.
        parent: u32,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Print the manual page, or write it and one for each command.
    #[command(hide = true)]
    Man {
        /// The folder for `wayferry.1`, `wayferry-ssh.1` and so on.
        #[arg(long, value_name = "FOLDER")]
        to: Option<std::path::PathBuf>,
    },
    /// Print completions for a shell.
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Flags {
    /// Reads the command line, and what the environment and the configuration file add to it. `--help` and `--version`
    /// print and end the process; without a command there are examples.
    ///
    /// # Errors
    /// [`Error::Usage`], and what is wrong with the configuration.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        Self::parse_with(words, &config::Sources::load())
    }

    fn parse_with(
        words: impl IntoIterator<Item = OsString>,
        sources: &config::Sources,
    ) -> Result<Self, Error> {
        let mut definition = Words::command();
        definition.build();
        let line = arrange(words.into_iter().collect(), &definition)?;
        let first = read(&definition, &line.words)?;
        let filled = match first.matches.subcommand() {
            Some((name, given)) => {
                let command = definition.find_subcommand(name).expect("clap has found it");
                let host = line.host(given);
                line.check(host.is_some())?;
                match config::fill(command, given, host.as_deref(), sources) {
                    // It tells by itself.
                    Err(Error::Config { .. }) if name == "doctor" => config::Filled::default(),
                    Ok(filled) if name == "doctor" => config::Filled { notes: Vec::new(), ..filled },
                    filled => filled?,
                }
            }
            None => config::Filled::default(),
        };
        let read =
            if filled.words.is_empty() { first } else { read(&definition, &line.with(&filled.words))? };
        let Words { common, command, .. } = read.words;
        let Some(mut command) = command else { show_examples() };
        let mut own = OwnFlags { common, ..command.take_groups() };
        own.reach.ssh_options = line.ssh_options;
        match (&mut command, line.ssh) {
            (Command::Ssh(flags), Some(words)) => flags.words = words,
            (Command::DesktopEntry(flags), Some(words)) => flags.words = words,
            _ => {}
        }
        Ok(Self { own, command, notes: filled.notes })
    }
}

/// What clap made of a line.
struct Read {
    matches: clap::ArgMatches,
    words: Words,
}

fn read(definition: &clap::Command, words: &[OsString]) -> Result<Read, Error> {
    let parsed = definition.clone().try_get_matches_from(words).and_then(|matches| {
        let words = Words::from_arg_matches(&matches)?;
        Ok(Read { matches, words })
    });
    match parsed {
        Err(error) if !error.use_stderr() => error.exit(),
        parsed => parsed.map_err(|error| wrong::wrong(definition, words, &error)),
    }
}

impl Command {
    /// Whether the user is at another machine, from which this command was given.
    pub(crate) fn is_far(&self) -> bool {
        match self {
            Self::Meet { .. } => true,
            Self::Host(flags) if flags.bootstrap.is_some() || flags.trunk || flags.stdio || flags.serve => {
                true
            }
            _ => std::env::var_os("SSH_CONNECTION").is_some() && std::env::var_os("SSH_TTY").is_none(),
        }
    }

    /// The options that several commands share.
    fn take_groups(&mut self) -> OwnFlags {
        use std::mem::take;
        let none = OwnFlags::default;
        match self {
            Self::Ssh(flags) => OwnFlags {
                reach: take(&mut flags.reach),
                side: take(&mut flags.side),
                show: take(&mut flags.show),
                begin: take(&mut flags.begin),
                ..none()
            },
            Self::Through(flags) => OwnFlags {
                reach: take(&mut flags.reach),
                side: take(&mut flags.side),
                show: take(&mut flags.show),
                begin: take(&mut flags.begin),
                ..none()
            },
            Self::Attach(flags) => OwnFlags {
                reach: take(&mut flags.reach),
                side: take(&mut flags.side),
                show: take(&mut flags.show),
                ..none()
            },
            Self::Host(flags) => {
                OwnFlags { side: take(&mut flags.side), begin: take(&mut flags.begin), ..none() }
            }
            Self::Conn(flags) => {
                OwnFlags { side: take(&mut flags.side), begin: take(&mut flags.begin), ..none() }
            }
            Self::Detach(flags) => OwnFlags { reach: take(&mut flags.which.reach), ..none() },
            Self::Stop(flags) => OwnFlags { reach: take(&mut flags.reach), ..none() },
            Self::Ticket(flags) => OwnFlags { reach: take(&mut flags.which.reach), ..none() },
            Self::Share(flags) => OwnFlags { reach: take(&mut flags.which.reach), ..none() },
            Self::List(flags) => OwnFlags { reach: take(&mut flags.reach), ..none() },
            Self::Status(flags) => OwnFlags { reach: take(&mut flags.reach), ..none() },
            Self::DesktopEntry(flags) => OwnFlags { reach: take(&mut flags.reach), ..none() },
            Self::Doctor(flags) => OwnFlags { reach: take(&mut flags.reach), ..none() },
            Self::Version(flags) => OwnFlags { reach: take(&mut flags.reach), ..none() },
            _ => none(),
        }
    }
}

/// `desktop` without what it is to reach the other machine by: [`order`] has taken it away otherwise.
pub(crate) fn bare_desktop() -> Error {
    let hint = "say how to get there, as in `wayferry desktop ssh user@host`".to_owned();
    Error::Usage { what: "`desktop` stands before `ssh` or `through`".to_owned(), hint: Some(hint) }
}

/// What `--version` tells: the version, and what this build may not be able to do.
pub(crate) fn version() -> String {
    let gpu = match gpu_helper() {
        _ if cfg!(feature = "egl") => "reads GPU buffers itself, through libEGL".to_owned(),
        Some(helper) => format!("reads GPU buffers by {}", helper.display()),
        None => format!("reads no GPU buffers: it cannot open libEGL, and {GPU_HELPER} is not beside it"),
    };
    format!("{}\n{gpu}", env!("CARGO_PKG_VERSION"))
}

/// Prints the help of a command, or of all.
///
/// # Errors
/// There is no such command.
pub(crate) fn help(name: Option<&str>) -> Result<u8, Error> {
    let line: Vec<OsString> =
        ["wayferry"].into_iter().chain(name).chain(["--help"]).map(OsString::from).collect();
    match read(&Words::command(), &line) {
        Ok(_) => unreachable!("--help ends the process"),
        Err(error) => Err(error),
    }
}

/// What to type first.
fn show_examples() -> ! {
    use std::io::Write;
    // The reader may be gone: that is no trouble of this process.
    let _ = std::io::stdout().write_all(EXAMPLES.as_bytes());
    std::process::exit(0)
}

const EXAMPLES: &str = "\
wayferry shows programs of other machines here, over QUIC. To begin with:

  wayferry ssh user@host foot           run foot on host, with its window here
  wayferry ssh user@host                your shell there, for any number of programs
  wayferry list user@host               what runs there
  wayferry attach user@host:foot        show a session again, here or at another desk
  wayferry demo                         see what it does on a bad network, on this machine

`wayferry help` lists all commands.
";

const TEMPLATE: &str = "{about}\n\n{subcommands}{after-help}";

const MORE: &str = "More options, and more about these: `man wayferry`.";

const AFTER: &str =
    "`wayferry COMMAND --help` tells more of one, `man wayferry` of all; `-v` tells each step.";

#[cfg(test)]
mod tests;
