//! What each command takes beside the options that it shares with others.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use wayferry_net::quic::PageOrigin;
use wayferry_proto::admission::LinkId;

use super::own::{BeginFlags, ReachFlags, ShowFlags, SideFlags};
use super::values::{Links, Role, parse_duration, parse_instant, parse_listen, parse_ports, parse_seconds};
use super::which::Which;

#[derive(Debug, Args)]
pub(crate) struct SshFlags {
    #[command(flatten)]
    pub(crate) begin: BeginFlags,
    #[command(flatten)]
    pub(crate) show: ShowFlags,
    #[command(flatten)]
    pub(crate) side: SideFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    /// Copy this program to ~/.local/bin of the other machine when it is missing there.
    ///
    /// Needs a static build (`make static`).
    #[arg(long, conflicts_with = "remote_bin")]
    pub(crate) install_remote: bool,
    /// ssh's options, the destination and the command, as for ssh(1).
    #[arg(skip)]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ThroughFlags {
    #[command(flatten)]
    pub(crate) begin: BeginFlags,
    #[command(flatten)]
    pub(crate) show: ShowFlags,
    #[command(flatten)]
    pub(crate) side: SideFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    /// The command, `--`, and the program with its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DesktopFlags {
    /// `ssh` or `through`, with what that takes.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WAY")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ScreenFlags {
    /// The socket of the compositor to look at first.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) of: Option<PathBuf>,
    /// Where this user's compositors have their sockets.
    #[arg(long, value_name = "DIR")]
    pub(crate) runtime_dir: PathBuf,
    /// Give this line to the user's shell instead of a command.
    #[arg(long, conflicts_with = "command")]
    pub(crate) shell_line: Option<String>,
    /// What to run in it; its end is the end.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct HostFlags {
    /// Address, or name, and UDP port to listen on; a port alone: on every address.
    ///
    /// Port 0 takes any free one.
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_listen, required_unless_present_any = ["bootstrap", "trunk", "stdio", "serve"])]
    pub(crate) listen: Option<SocketAddr>,
    /// Write the ticket to FILE, which only you can read, instead of stdout.
    ///
    /// It goes with the session.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) ticket_file: Option<PathBuf>,
    /// How long to wait for a display, in seconds [default: for ever].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) expire: Option<Duration>,
    /// How long the ticket is good, such as 90s or 2h [default: as `--expire`, or 1h].
    ///
    /// Seconds, or a number with s, m, h or d behind it. `wayferry ticket` prints another.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, requires = "listen")]
    pub(crate) good_for: Option<Duration>,
    /// Show this certificate (PEM) instead of one made for this run.
    ///
    /// The own one first, then those between it and an authority.
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "bootstrap")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Where no command is given, make the shell a login shell.
    #[arg(long, hide_short_help = true)]
    pub(crate) login_shell: bool,
    #[command(flatten)]
    pub(crate) begin: BeginFlags,
    #[command(flatten)]
    pub(crate) side: SideFlags,
    /// Meet the display side at this Unix socket instead of printing a ticket.
    #[arg(long, hide = true)]
    pub(crate) bootstrap: Option<PathBuf>,
    /// Meet the display side on stdin and stdout, which carry the program's, too.
    #[arg(long, hide = true)]
    pub(crate) trunk: bool,
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
    /// HOST, HOST:SESSION, :SESSION of this machine, a ticket, or `-` for a ticket on stdin.
    ///
    /// Other users of this machine can see a ticket on a command line. ssh's options stand before HOST; a host may be
    /// ssh://USER@HOST:PORT/SESSION, too [default: the only session of this machine].
    #[arg(value_name = "WHICH")]
    pub(crate) which: Option<Which>,
    /// View only, beside the display that is there.
    ///
    /// Nothing that is typed or clicked here reaches the programs.
    #[arg(long)]
    pub(crate) view: bool,
    /// Take the ticket from FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "which")]
    pub(crate) ticket_file: Option<PathBuf>,
    /// Connect to this address instead of the ticket's.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) via: Option<String>,
    /// Trust a host by a public certificate for NAME.
    ///
    /// NAME is a host name or an address. Otherwise the one certificate that the ticket names is trusted.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_name: Option<String>,
    /// The authorities that may vouch for NAME (PEM) [default: the system's].
    #[arg(long, value_name = "FILE", requires = "tls_name")]
    pub(crate) ca: Option<PathBuf>,
    /// How long to wait for an answer to a ticket, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) show: ShowFlags,
    #[command(flatten)]
    pub(crate) side: SideFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ListFlags {
    /// The other machine, as ssh knows it, ssh's options before it [default: this one].
    pub(crate) host: Option<String>,
    /// Print a JSON array with a document for each session.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
}

#[derive(Debug, Args)]
pub(crate) struct TicketFlags {
    #[command(flatten)]
    pub(crate) which: WhichFlags,
    /// It is good for viewing only.
    #[arg(long)]
    pub(crate) view: bool,
    /// For how long it is good, such as 90s or 2h [default: 1h].
    ///
    /// Seconds, or a number with s, m, h or d behind it.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) good_for: Option<Duration>,
    /// It is for a page from ORIGIN, such as http://localhost:8000, in a browser.
    ///
    /// From then on the session's port speaks WebTransport, too. The ticket names a certificate for it that browsers
    /// pin, and which is valid for a week at least.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) page: Option<PageOrigin>,
    /// Print none, and take back all that were printed and not used.
    #[arg(long, conflicts_with_all = ["view", "good_for", "page"])]
    pub(crate) revoke: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShareFlags {
    #[command(flatten)]
    pub(crate) which: WhichFlags,
    /// Who opens the link has the session, in place of the display that is there.
    ///
    /// It works once. Without, up to eight may view by it, and nothing that they type or click reaches the programs.
    #[arg(long)]
    pub(crate) control: bool,
    /// How long the link is good, such as 2h [default: 1h, with `--control` 10m].
    ///
    /// At most 24h, with `--control` 1h. Who has come by then may stay.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) good_for: Option<Duration>,
    /// Open it in this desktop's browser.
    #[arg(long)]
    pub(crate) open: bool,
    /// Serve the page at this port [default: one that is free, with `--https` 443].
    #[arg(long = "port", value_name = "PORT")]
    pub(crate) serve_port: Option<u16>,
    /// Serve the page over HTTPS at all addresses of this machine, for browsers elsewhere.
    ///
    /// CERT and KEY are files in PEM: the certificate, with those between it and an authority that browsers know behind
    /// it, and its key.
    #[arg(long, value_names = ["CERT", "KEY"], num_args = 2)]
    pub(crate) https: Option<Vec<PathBuf>>,
    /// What browsers call this machine [default: the first DNS name of the certificate].
    #[arg(long = "name", value_name = "NAME", requires = "https")]
    pub(crate) https_name: Option<String>,
    /// Show the links that are good, or by which somebody is there.
    #[arg(long, conflicts_with_all = SERVING)]
    pub(crate) list: bool,
    /// Take back this link, or `all`, and send away who came by it, for good.
    ///
    /// LINK is its number in `--list`.
    #[arg(long, value_name = "LINK", conflicts_with_all = SERVING, conflicts_with_all = ["list", "json"])]
    pub(crate) revoke: Option<Links>,
    /// Print the link, or the list, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what the session answers to a request for a link for pages from there, and serve nothing.
    #[arg(long, hide = true, value_name = "ORIGIN", conflicts_with_all = ["open", "serve_port", "https", "json"])]
    pub(crate) origin: Option<PageOrigin>,
    /// Let no display in any more by this link; who came by it may stay.
    #[arg(long, hide = true, value_name = "LINK", conflicts_with_all = SERVING, conflicts_with_all = ["list", "json", "revoke"])]
    pub(crate) close: Option<LinkId>,
    /// At which address this machine was reached.
    #[arg(long, hide = true, value_name = "ADDRESS", requires = "origin")]
    pub(crate) reached: Option<IpAddr>,
    /// Serve the files of this folder in place of the page.
    #[arg(long, hide = true, value_name = "FOLDER")]
    pub(crate) page_files: Option<PathBuf>,
}

/// What means nothing where no link is made.
const SERVING: [&str; 7] = ["control", "good_for", "open", "serve_port", "https", "https_name", "origin"];

#[derive(Debug, Args)]
pub(crate) struct DetachFlags {
    #[command(flatten)]
    pub(crate) which: WhichFlags,
    /// Let the viewers leave, and not the display that has the session.
    #[arg(long)]
    pub(crate) views: bool,
    /// Let this viewer leave; NUMBER is the one in `wayferry list`.
    ///
    /// It cannot come back by itself. A link by which it came is still good: see `wayferry share --revoke`.
    #[arg(long, value_name = "NUMBER", conflicts_with = "views")]
    pub(crate) viewer: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct WhichFlags {
    /// HOST, HOST:SESSION, or :SESSION of this machine, ssh's options before HOST.
    ///
    /// A host may be ssh://USER@HOST:PORT/SESSION, too [default: the only session of this machine].
    #[arg(value_name = "WHICH")]
    pub(crate) which: Option<Which>,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
}

/// The laboratory reads its own words; see [`crate::lab`].
#[derive(Debug, Args)]
pub(crate) struct LabFlags {
    /// As `wayferry-lab` takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusFlags {
    /// The machine whose sessions are listed, as ssh knows it, ssh's options before it [default: this one].
    pub(crate) host: Option<String>,
    /// Print a JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SendFlags {
    /// What is sent.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Which session, where several are shown: as `status` calls it, its host, or :NAME.
    #[arg(long, value_name = "SESSION")]
    pub(crate) to: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct FetchFlags {
    /// Paths there, from the home directory on.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Which session, where several are shown: as `status` calls it, its host, or :NAME.
    #[arg(long, value_name = "SESSION")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DesktopEntryFlags {
    /// Write it to ~/.local/share/applications, where desktops look, and print its path.
    ///
    /// A file that is there and has something else in it stays as it is.
    #[arg(long)]
    pub(crate) install: bool,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    /// ssh's options, the destination and the command, as for ssh(1).
    #[arg(skip)]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// The other machine, as ssh knows it, ssh's options before it [default: only this one].
    pub(crate) host: Option<String>,
    /// Print a JSON array with a document for each check.
    #[arg(long)]
    pub(crate) json: bool,
    /// UDP port, or range LOW-HIGH, to try there, as for `ssh` [default: any].
    #[arg(long, value_name = "RANGE", value_parser = parse_ports)]
    pub(crate) port: Option<RangeInclusive<u16>>,
    /// Tell a `doctor` of another machine what this one has.
    #[arg(long, hide = true, conflicts_with_all = ["host", "json", "port"])]
    pub(crate) there: bool,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
}

#[derive(Debug, Args)]
pub(crate) struct InfoFlags {
    /// Print a JSON array with a document for each side.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TraceFlags {
    /// A file that `--trace` wrote, or both of a session [default: with FILE.there].
    #[arg(value_name = "FILE", required = true, num_args = 1..=2)]
    pub(crate) files: Vec<PathBuf>,
    /// Draw the worst second, or what `--from` and `--to` choose, into this file.
    ///
    /// The worst second is the one in which the update is shown, or the sound heard, that took longest.
    #[arg(long, value_name = "OUT")]
    pub(crate) svg: Option<PathBuf>,
    /// Leave out what is over before, in seconds since the first picture.
    #[arg(long, value_name = "SECONDS", value_parser = parse_instant)]
    pub(crate) from: Option<f64>,
    /// Leave out what begins after this time.
    #[arg(long, value_name = "SECONDS", value_parser = parse_instant)]
    pub(crate) to: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFlags {
    /// As ssh knows it, for what its blocks say [default: what holds for every host].
    pub(crate) host: Option<String>,
    /// Print what is set and what is not, not only what is.
    #[arg(long)]
    pub(crate) effective: bool,
    /// Print a JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HelpFlags {
    /// Of which command.
    pub(crate) command: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct VersionFlags {
    /// The other machine, as ssh knows it, ssh's options before it [default: this one].
    pub(crate) host: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ConnFlags {
    /// Which side.
    #[arg(long)]
    pub(crate) role: Role,
    #[command(flatten)]
    pub(crate) begin: BeginFlags,
    #[command(flatten)]
    pub(crate) side: SideFlags,
}
