//! The command line: raw flags as clap reads them, then checked values.
//!
//! Flags are defined and documented here and nowhere else; the manual page and the completions are made from these
//! definitions. This module starts nothing. Invariant: everything after the word `ssh` reaches us byte for byte, clap
//! never sees it.

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use wayferry_host::settings::Compress;
use wayferry_host::sound::{Audio, Mode};
use wayferry_host::{GPU_HELPER, GpuHow, gpu_helper};

use crate::error::Error;

/// Shows remote Wayland programs here, over QUIC.
///
/// `wayferry ssh user@host foot` runs foot on host and shows its window as a window of this desktop. Own options
/// stand before the word `ssh`; all after it is ssh's.
#[derive(Debug, Parser)]
#[command(name = "wayferry", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) own: OwnFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that mean the same for every command that has use for them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OwnFlags {
    /// Put TEXT in front of every window title.
    #[arg(long, value_name = "TEXT", global = true)]
    pub(crate) title_prefix: Option<String>,
    /// What the session is called [default: as its program].
    #[arg(long, value_name = "NAME", global = true, value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// Start the session without a display; `wayferry attach` shows it.
    #[arg(long, global = true)]
    pub(crate) detached: bool,
    /// End a session to which no display has come back for this long [default: never].
    #[arg(long, value_name = "SECONDS", global = true, value_parser = parse_seconds)]
    pub(crate) linger: Option<Duration>,
    /// Name of the Wayland display that programs connect to [default: a random one].
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) display: Option<String>,
    /// Serve one program's connection, and end when it closes.
    #[arg(long, global = true)]
    pub(crate) oneshot: bool,
    /// Where no command is given, make the shell a login shell (with `ssh` it always is).
    #[arg(long, global = true)]
    pub(crate) login_shell: bool,
    /// Tell the compositor here that the windows are those of APP_ID, by a security context, where it offers that. It
    /// may let them do less than other programs.
    #[arg(long, value_name = "APP_ID", global = true)]
    pub(crate) secctx: Option<String>,
    /// Offer a protocol to programs that is refused by default, such as zwlr_screencopy_manager_v1.
    #[arg(long, value_name = "PROTOCOL", global = true)]
    pub(crate) allow: Vec<String>,
    /// Do not offer a protocol to programs.
    #[arg(long, value_name = "PROTOCOL", global = true)]
    pub(crate) deny: Vec<String>,
    /// How pixels are compressed: none, lz4, zstd or zstd=LEVEL (1 to 19) [default: zstd=1].
    #[arg(long, value_name = "METHOD", global = true)]
    pub(crate) compress: Option<Compress>,
    /// UDP port, or range LOW-HIGH of which the first free one is taken [default: any].
    #[arg(long, value_name = "RANGE", global = true, value_parser = parse_ports)]
    pub(crate) port: Option<RangeInclusive<u16>>,
    /// The wayferry binary on the other machine [default: the one in its PATH].
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) remote_bin: Option<String>,
    /// `ssh` copies this program to ~/.local/bin of the other machine when it is missing there; needs a static build
    /// (`make static`).
    #[arg(long, global = true, conflicts_with = "remote_bin")]
    pub(crate) install_remote: bool,
    /// The ssh program to run.
    #[arg(long, value_name = "PATH", global = true, default_value = "ssh")]
    pub(crate) ssh_bin: OsString,
    /// Show X11 programs too, through xwayland-satellite.
    #[arg(long, global = true)]
    pub(crate) xwayland: bool,
    /// Write a qlog file for the connection to DIR.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) qlog: Option<PathBuf>,
    /// Show every picture as it is, however long it takes. Otherwise, where the link is too slow for what changes,
    /// pictures are lossy until they rest; text never is for longer than a moment.
    #[arg(long, global = true)]
    pub(crate) lossless: bool,
    /// What makes videos where the programs run: openh264, or an encoder of FFmpeg's in builds with that, such as
    /// h264_vaapi [default: the first that works, those of GPUs first].
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) encoder: Option<String>,
    /// Quality of pictures that are lossy for now, from 1 to 100 [default: 75].
    #[arg(long, value_name = "NUMBER", global = true, conflicts_with = "lossless",
        value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) quality: Option<u8>,
    /// Threads that share the compression of a large picture [default: one per core, at most 4].
    #[arg(long, value_name = "NUMBER", global = true, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: Option<u8>,
    /// How the session's sound is heard: auto (Opus), off, pcm (without loss), or Opus at so many bits a second, such
    /// as 64k [default: auto; with --view: off]. With `host`, off: programs find no sound server.
    #[arg(long, value_name = "HOW", global = true)]
    pub(crate) audio: Option<Audio>,
    /// How sound crosses the link: hybrid, stream or datagram [default: hybrid].
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) audio_mode: Option<Mode>,
    /// Let viewers hear the session, too.
    #[arg(long, global = true)]
    pub(crate) share_audio: bool,
    /// Let programs of the session record the microphone of this machine; a line tells when one does.
    #[arg(long, global = true)]
    pub(crate) microphone: bool,
    /// Write the session's sound to a file instead of playing it: file:PATH, a WAV file if PATH ends in .wav, otherwise
    /// 16-bit samples.
    #[arg(long, value_name = "SINK", global = true, value_parser = parse_sink)]
    pub(crate) audio_sink: Option<PathBuf>,
    /// How buffers of programs that draw on a GPU are read where they run: auto (by the first GPU that can), off (such
    /// programs draw in software), memory (only those that lie in ordinary memory), or by the GPU of a render node,
    /// such as /dev/dri/renderD128 [default: auto].
    #[arg(long, value_name = "HOW", global = true)]
    pub(crate) gpu: Option<Gpu>,
    /// Record what each program says to a file in DIR, without its pixels: a seed for the fuzz target `pair`.
    #[arg(long, value_name = "DIR", global = true, hide = true)]
    pub(crate) record: Option<PathBuf>,
    /// Write to FILE when each picture was read, compressed, sent and shown; `wayferry trace` draws it.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) trace: Option<PathBuf>,
    /// Write what happens to the open descriptor FD, or to stdout if FD is `-`: a JSON object a line (docs/events.md).
    #[arg(long, value_name = "FD", global = true, allow_hyphen_values = true, value_parser = parse_events)]
    pub(crate) events: Option<Events>,
    /// Print a line of statistics to stderr every second.
    #[arg(long, global = true)]
    pub(crate) stats: bool,
    /// Give the link up after this much silence [default: 60].
    #[arg(long, value_name = "SECONDS", global = true, value_parser = parse_seconds)]
    pub(crate) silence: Option<Duration>,
}

/// Where events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Events {
    /// To stdout.
    Stdout,
    /// To a descriptor that the caller has opened, which is none of the standard three.
    Descriptor(i32),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program on another machine through ssh and show its windows here.
    #[command(override_usage = "wayferry [OPTIONS] ssh [SSH OPTIONS] DESTINATION [COMMAND ...]")]
    Ssh {
        /// ssh's options, the destination and the command, as for ssh(1).
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SSH ARGUMENTS")]
        words: Vec<OsString>,
    },
    /// Run a program at the other end of any command that carries stdin and stdout, and show its windows here.
    ///
    /// `wayferry through kubectl exec -i POD -- foot`, or `docker exec -i NAME`, `srun`, `machinectl shell`. QUIC is
    /// used where an address of the other side can be reached, otherwise everything goes through the command.
    #[command(override_usage = "wayferry [OPTIONS] through COMMAND ... -- PROGRAM ...")]
    Through {
        /// The command, `--`, and the program with its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
        words: Vec<OsString>,
    },
    /// Run programs here for a display elsewhere; the first line on stdout is the ticket for `attach`.
    Host(HostFlags),
    /// Show the windows of a session here: of one that runs already, here or elsewhere, or of a ticket.
    Attach(AttachFlags),
    /// List the sessions that run here, or on another machine.
    List(ListFlags),
    /// Print a ticket with which one more display can attach to a session that `host --listen` began.
    Ticket(TicketFlags),
    /// Let a session's display leave; its programs go on, and `attach` shows them again. It cannot come back by itself.
    Detach(DetachFlags),
    /// End a session with its programs.
    Stop(WhichFlags),
    /// Meet a session that runs here, for a display at the other end of stdin and stdout.
    #[command(hide = true)]
    Meet {
        /// Which.
        session: Option<String>,
        /// The display is view-only.
        #[arg(long)]
        view: bool,
    },
    /// Both sides on this machine with an emulated link between them: `wayferry-lab demo`.
    #[command(disable_help_flag = true)]
    Demo(LabFlags),
    /// Show how this user's sessions on this machine fare: loss, repair, round trips, rates.
    ///
    /// One paragraph for each side that runs here, or a document for a script. Each side counts what it sends itself;
    /// the other half is known where the other side runs.
    Info(InfoFlags),
    /// Draw what `--trace` wrote, and print how long each stage takes.
    ///
    /// Give the files of both sides to see how long pictures were on their way, too; times are those of the first
    /// file's machine. The stages of a picture: capture (read from the program), encode (compressed, by thread), queue
    /// (waited for the link), wire (first byte out to last byte in), decode, commit (given to the compositor). Those
    /// of sound: capture (until it is encoded), wire, hear (from its arrival until it is heard).
    Trace(TraceFlags),
    /// Measure on emulated links: `wayferry-lab bench`.
    #[command(disable_help_flag = true)]
    Bench(LabFlags),
    /// One side with inherited sockets.
    #[command(hide = true)]
    Conn {
        /// Which side.
        #[arg(long)]
        role: Role,
    },
    /// Read GPU buffers for the session at the other end of stdin.
    #[command(hide = true)]
    GpuReader {
        /// With what.
        how: Gpu,
    },
    /// Print the manual page.
    #[command(hide = true)]
    Man,
    /// Print completions for a shell.
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Which half of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Beside the program.
    App,
    /// Beside the compositor.
    Display,
}

/// How GPU buffers of programs are read, if they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu(pub(crate) Option<GpuHow>);

impl FromStr for Gpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self(None)),
            how => match how.parse() {
                Ok(how) => Ok(Self(Some(how))),
                Err(_) => Err("expected auto, off, memory or the path of a render node".to_owned()),
            },
        }
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(how) => how.fmt(f),
            None => f.write_str("off"),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct HostFlags {
    /// Address and UDP port to listen on; port 0 takes any free one.
    #[arg(long, value_name = "ADDR:PORT", required_unless_present_any = ["bootstrap", "stdio", "serve"])]
    pub(crate) listen: Option<SocketAddr>,
    /// Write the ticket to FILE, which only you can read, instead of stdout; it goes with the session.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) ticket_file: Option<PathBuf>,
    /// How long to wait for a display, in seconds [default: for ever].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) expire: Option<Duration>,
    /// For how long the ticket is good: seconds, or a number with s, m, h or d behind it [default: as long as
    /// `--expire`, or 1h]. `wayferry ticket` prints another.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "listen")]
    pub(crate) good_for: Option<Duration>,
    /// Show this certificate (PEM, the own one first, then those between it and an authority) instead of one made for
    /// this run.
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "bootstrap")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Meet the display side at this Unix socket instead of printing a ticket.
    #[arg(long, hide = true)]
    pub(crate) bootstrap: Option<PathBuf>,
    /// Meet the display side on stdin and stdout instead of printing a ticket.
    #[arg(long, hide = true)]
    pub(crate) stdio: bool,
    /// Be the session that a launcher has started; stdin leads to the launcher.
    #[arg(long, hide = true)]
    pub(crate) serve: bool,
    /// The launcher has a terminal and runs the program itself.
    #[arg(long, hide = true)]
    pub(crate) terminal: bool,
    /// Give this line to the user's shell instead of a command.
    #[arg(long, hide = true, conflicts_with = "command")]
    pub(crate) shell_line: Option<String>,
    /// The program and its arguments [default: the user's shell].
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct AttachFlags {
    /// Which session: HOST, HOST:SESSION, :SESSION of this machine, the ticket that `wayferry host` printed, or `-` for
    /// a ticket on stdin, where other users of this machine cannot see it [default: the only session of this machine].
    #[arg(value_name = "WHICH")]
    pub(crate) which: Option<Which>,
    /// Take the ticket from FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "which")]
    pub(crate) ticket_file: Option<PathBuf>,
    /// View only, beside the display that is there: nothing that is typed or clicked here reaches the programs.
    #[arg(long)]
    pub(crate) view: bool,
    /// Connect to this address instead of the ticket's.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) via: Option<String>,
    /// Trust a host with a public certificate for NAME, a host name or address, instead of the one certificate that the
    /// ticket names.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_name: Option<String>,
    /// The authorities that may vouch for NAME (PEM) [default: the system's].
    #[arg(long, value_name = "FILE", requires = "tls_name")]
    pub(crate) ca: Option<PathBuf>,
    /// How long to wait for an answer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ListFlags {
    /// The other machine, as ssh knows it [default: this one].
    pub(crate) host: Option<String>,
    /// Print a JSON array with a document for each session.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TicketFlags {
    #[command(flatten)]
    pub(crate) which: WhichFlags,
    /// It is good for viewing only.
    #[arg(long)]
    pub(crate) view: bool,
    /// For how long it is good: seconds, or a number with s, m, h or d behind it [default: 1h].
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) good_for: Option<Duration>,
    /// Print none, and take back all that were printed and not used.
    #[arg(long, conflicts_with_all = ["view", "good_for"])]
    pub(crate) revoke: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DetachFlags {
    #[command(flatten)]
    pub(crate) which: WhichFlags,
    /// Let the viewers leave, and not the display that has the session.
    #[arg(long)]
    pub(crate) views: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WhichFlags {
    /// Which session: HOST, HOST:SESSION, or :SESSION of this machine [default: the only one of this machine].
    #[arg(value_name = "WHICH")]
    pub(crate) which: Option<Which>,
}

/// Which session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// One of this machine; without a name the only one.
    Here(Option<String>),
    /// One of another machine.
    There {
        /// As ssh knows it.
        host: String,
        /// Without a name the only one.
        session: Option<String>,
    },
    /// That of a ticket.
    Ticket(String),
    /// That of the ticket on stdin.
    Stdin,
}

/// The laboratory reads its own words; see [`crate::lab`].
#[derive(Debug, Args)]
pub(crate) struct LabFlags {
    /// As `wayferry-lab` takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct InfoFlags {
    /// Print a JSON array with a document for each side.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceFlags {
    /// A file that `--trace` wrote, or the files of both sides of a session.
    #[arg(value_name = "FILE", required = true, num_args = 1..=2)]
    pub(crate) files: Vec<PathBuf>,
    /// Draw the timeline into this file.
    #[arg(long, value_name = "OUT")]
    pub(crate) svg: Option<PathBuf>,
    /// Leave out what is over before this time, in seconds since the first picture.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_instant)]
    pub(crate) from: f64,
    /// Leave out what begins after this time.
    #[arg(long, value_name = "SECONDS", value_parser = parse_instant)]
    pub(crate) to: Option<f64>,
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |name: &str| wayferry_host::sessions::check(name).map(|()| name.to_owned());
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let version = text.strip_prefix("wf").and_then(|text| text.split_once(':'));
        if version.is_some_and(|(version, _)| version.parse::<u32>().is_ok()) {
            return Ok(Self::Ticket(text.to_owned()));
        }
        // The last colon: an IPv6 address may come before it, in brackets.
        match text.rsplit_once(':') {
            Some(("", name)) => Ok(Self::Here(Some(named(name)?))),
            Some((host, name)) if !name.contains(']') => {
                Ok(Self::There { host: bare(host)?, session: Some(named(name)?) })
            }
            _ => Ok(Self::There { host: bare(text)?, session: None }),
        }
    }
}

/// A host without the brackets of an IPv6 address, as ssh takes it.
fn bare(host: &str) -> Result<String, String> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.starts_with('-') {
        Err("expected HOST, HOST:SESSION or :SESSION".into())
    } else {
        Ok(host.to_owned())
    }
}

impl Flags {
    /// Reads the command line.
    ///
    /// # Errors
    /// [`Error::Usage`]. `--help` and `--version` print and end the process.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, Error> {
        let (ours, sshs) = split_at_ssh(words.into_iter().collect());
        let command = Self::command().long_version(version());
        let parsed = command.try_get_matches_from(ours).and_then(|matches| Self::from_arg_matches(&matches));
        let mut flags = match parsed {
            Ok(flags) => flags,
            Err(error) if !error.use_stderr() => error.exit(),
            Err(error) => return Err(Error::Usage(first_line(&error))),
        };
        if let (Command::Ssh { words }, Some(sshs)) = (&mut flags.command, sshs) {
            *words = sshs;
        }
        Ok(flags)
    }
}

/// What `--version` tells: the version, and what this build may not be able to do.
fn version() -> String {
    let gpu = match gpu_helper() {
        _ if cfg!(feature = "egl") => "reads GPU buffers itself, through libEGL".to_owned(),
        Some(helper) => format!("reads GPU buffers by {}", helper.display()),
        None => format!("reads no GPU buffers: it cannot open libEGL, and {GPU_HELPER} is not beside it"),
    };
    format!("{}\n{gpu}", env!("CARGO_PKG_VERSION"))
}

/// Cuts the command line behind the word `ssh` where it stands as the command.
fn split_at_ssh(words: Vec<OsString>) -> (Vec<OsString>, Option<Vec<OsString>>) {
    let command = Flags::command();
    let takes_value =
        |word: &str| command.get_opts().any(|option| option.get_long() == word.strip_prefix("--"));
    let mut index = 1;
    while let Some(word) = words.get(index) {
        match word.to_str() {
            Some("ssh") => {
                let rest = words[index + 1..].to_vec();
                // `wayferry ssh --help` alone is a question to us: ssh has no long options.
                if rest.first().is_some_and(|word| word == "--help") {
                    return (words, None);
                }
                return (words[..=index].to_vec(), Some(rest));
            }
            Some(word) if word.starts_with("--") && takes_value(word) => index += 2,
            Some(word) if word.starts_with('-') => index += 1,
            _ => break,
        }
    }
    (words, None)
}

/// What clap has to say, without its usage text: one line is our style.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("wrong use").trim_start_matches("error: ").to_owned();
    match error.kind() {
        clap::error::ErrorKind::MissingRequiredArgument => {
            format!("{first} {}", lines.next().unwrap_or_default()).trim_end().to_owned()
        }
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "no command given".into(),
        _ => first,
    }
}

fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
    match (low.parse::<u16>(), high.parse::<u16>()) {
        (Ok(low), Ok(high)) if low <= high && (low > 0 || high == 0) => Ok(low..=high),
        _ => Err("expected a port or LOW-HIGH".into()),
    }
}

fn parse_sink(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("file:").filter(|path| !path.is_empty() && *path != "-");
    path.map(PathBuf::from).ok_or("expected file:PATH".into())
}

fn parse_name(text: &str) -> Result<String, String> {
    wayferry_host::sessions::check(text).map(|()| text.to_owned())
}

fn parse_instant(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds".into()),
    }
}

/// A number of seconds, or of what the letter behind it says.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [('s', 1.0), ('m', 60.0), ('h', 3_600.0), ('d', 86_400.0)];
    let unit = units.iter().find_map(|(letter, unit)| Some((text.strip_suffix(*letter)?, *unit)));
    let (number, unit) = unit.unwrap_or((text, 1.0));
    match number.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if (1.0..=1e9).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, or a number with s, m, h or d behind it".into()),
    }
}

fn parse_events(text: &str) -> Result<Events, String> {
    let number = text.parse().ok().filter(|number| *number >= 3).map(Events::Descriptor);
    let expected = "expected `-`, or the number of a descriptor from 3 on, as in `--events 3 3>FILE`";
    if text == "-" { Ok(Events::Stdout) } else { number.ok_or_else(|| expected.to_owned()) }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a positive number of seconds".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Flags, Error> {
        Flags::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_definitions_are_sound() {
        Flags::command().debug_assert();
    }

    #[test]
    fn everything_after_ssh_is_sshs() {
        let flags =
            parse("wayferry --compress lz4 --display ssh ssh -p 22 --help host foot --compress zstd -h")
                .expect("parses");
        assert_eq!(flags.own.compress, Some(Compress::Lz4));
        assert_eq!(flags.own.display.as_deref(), Some("ssh"));
        let Command::Ssh { words } = flags.command else { panic!("not ssh") };
        assert_eq!(words.join(std::ffi::OsStr::new(" ")), "-p 22 --help host foot --compress zstd -h");
    }

    #[test]
    fn own_options_stand_on_either_side_of_the_other_commands() {
        for line in ["wayferry --title-prefix X: attach wf1:", "wayferry attach --title-prefix X: wf1:"] {
            assert_eq!(parse(line).expect(line).own.title_prefix.as_deref(), Some("X:"));
        }
    }

    #[test]
    fn host_takes_a_command_after_two_dashes() {
        let flags =
            parse("wayferry host --listen 127.0.0.1:0 --port 60000-61000 -- foot --server").expect("parses");
        assert_eq!(flags.own.port, Some(60000..=61000));
        let Command::Host(host) = flags.command else { panic!("not host") };
        assert_eq!(host.command, ["foot", "--server"]);
    }

    #[test]
    fn wrong_use_is_one_line_and_code_64() {
        for line in [
            "wayferry",
            "wayferry frobnicate",
            "wayferry --nope ssh host",
            "wayferry host -- foot",
            "wayferry host --listen nonsense",
            "wayferry --compress zstd=99 ssh host",
            "wayferry --port 9-1 ssh host",
            "wayferry conn --role both",
            "wayferry attach -x",
            "wayferry through",
            "wayferry attach --ca ca.pem wf1:",
            "wayferry attach --ticket-file t wf1:",
            "wayferry host --listen 127.0.0.1:0 --cert host.crt",
            "wayferry host --listen 127.0.0.1:0 --key host.key",
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.code(), 64, "{line}");
            assert!(!error.to_string().contains('\n') && !error.to_string().is_empty(), "{line}: {error}");
        }
    }

    #[test]
    fn sessions_are_named_with_colons() {
        let which = |text: &str| text.parse::<Which>().expect(text);
        let there = |host: &str, session: Option<&str>| Which::There {
            host: host.to_owned(),
            session: session.map(str::to_owned),
        };
        assert_eq!(which(":foot"), Which::Here(Some("foot".into())));
        assert_eq!(which("user@host"), there("user@host", None));
        assert_eq!(which("user@host:foot-2"), there("user@host", Some("foot-2")));
        assert_eq!(which("[2001:db8::1]:foot"), there("2001:db8::1", Some("foot")));
        assert_eq!(which("[2001:db8::1]"), there("2001:db8::1", None));
        assert_eq!(which("wf1:AAAA"), Which::Ticket("wf1:AAAA".into()));
        assert_eq!(which("wf:AAAA"), there("wf", Some("AAAA")));
        assert_eq!(which("-"), Which::Stdin);
        for text in ["", ":", "host:", "-oProxyCommand=x", "host:a b"] {
            assert!(text.parse::<Which>().is_err(), "{text}");
        }
    }

    #[test]
    fn events_go_to_stdout_or_to_a_descriptor_of_the_callers() {
        let events = |value| {
            Flags::parse(["wayferry", "--events", value, "list"].map(Into::into))
                .map(|flags| flags.own.events)
        };
        assert_eq!(events("-").expect("stdout"), Some(Events::Stdout));
        assert_eq!(events("3").expect("a descriptor"), Some(Events::Descriptor(3)));
        for value in ["2", "-1", "x", ""] {
            assert_eq!(events(value).expect_err("refused").code(), 64, "{value}");
        }
    }

    #[test]
    fn durations_may_have_a_unit() {
        let seconds = |text: &str| parse_duration(text).map(|time| time.as_secs_f64());
        let texts = ["90", "1.5m", "2h", "1d", "30s"];
        assert_eq!(texts.map(|text| seconds(text).expect(text)), [90.0, 90.0, 7_200.0, 86_400.0, 30.0]);
        for text in ["", "h", "0", "0.5", "-1", "1w", "1e99", "nan", "infd", "1hh"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn compression_methods() {
        assert_eq!("none".parse(), Ok(Compress::None));
        assert_eq!("zstd".parse(), Ok(Compress::Zstd(1)));
        assert_eq!("zstd=7".parse(), Ok(Compress::Zstd(7)));
        assert!("lz4=1".parse::<Compress>().is_err());
    }
}
