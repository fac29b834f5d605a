//! Options that several commands share, in groups by what they are about.
//!
//! A command takes the groups that mean something to it and no other, so that an option without a meaning is refused.
//! Invariant: an option's name has one meaning in all groups and commands.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use wayferry_host::edge::xwayland::How;
use wayferry_host::settings::Compress;
use wayferry_host::sound::{Audio, Mode};
use wayferry_wayland::display::Wishes;

use super::values::{
    Events, Gpu, OpenUrl, Switch, parse_events, parse_name, parse_number, parse_ports, parse_seconds,
    parse_sink, parse_xwayland,
};

/// All groups; those that a command does not take have their defaults.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnFlags {
    pub(crate) common: CommonFlags,
    pub(crate) reach: ReachFlags,
    pub(crate) side: SideFlags,
    pub(crate) show: ShowFlags,
    pub(crate) begin: BeginFlags,
}

/// Of every command: what it tells, and where.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CommonFlags {
    /// Tell each step; twice, tell more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 100)]
    pub(crate) verbose: u8,
    /// Write what is told to FILE, too, with the time.
    #[arg(long, value_name = "FILE", global = true, display_order = 101)]
    pub(crate) log: Option<PathBuf>,
    /// Write what happens to descriptor FD, or to stdout if FD is `-`, as JSON.
    ///
    /// An object a line (docs/events.md).
    #[arg(long, value_name = "FD", global = true, allow_hyphen_values = true, value_parser = parse_events)]
    #[arg(hide_short_help = true, display_order = 102)]
    pub(crate) events: Option<Events>,
}

/// Of commands that have to do with another machine: how it is reached.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReachFlags {
    /// The wayferry binary on the other machine [default: the one in its PATH].
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_bin: Option<String>,
    /// The ssh program to run [default: ssh].
    #[arg(long, value_name = "PATH")]
    pub(crate) ssh_bin: Option<OsString>,
    /// Options of ssh that stood before the host.
    #[arg(skip)]
    pub(crate) ssh_options: Vec<OsString>,
}

/// Of commands that are a side of a session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SideFlags {
    /// Offer a protocol to programs that is refused by default.
    ///
    /// Such as zwlr_screencopy_manager_v1, with which they can take pictures of the whole screen.
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) allow: Vec<String>,
    /// How sound is heard: auto, off, pcm, or at so many bits a second, such as 64k.
    ///
    /// auto, or a rate, is Opus, and off with `--view`; pcm is without loss. With `host`, off: programs find no sound
    /// server.
    #[arg(long, value_name = "HOW")]
    pub(crate) audio: Option<Audio>,
    /// How sound crosses the link: hybrid, stream or datagram [default: hybrid].
    #[arg(long, value_name = "MODE", hide_short_help = true)]
    pub(crate) audio_mode: Option<Mode>,
    /// Keep files that `wayferry send` brings: on or off [default: on].
    ///
    /// In ~/Downloads/wayferry, in a folder named for the other machine, or for the session where its programs run;
    /// none is ever overwritten. off: `send` and `fetch` are refused in both directions. With `host`, which lets in who
    /// has a ticket, off is the default: who attaches can read your files there.
    #[arg(long, value_name = "WHETHER", hide_possible_values = true)]
    pub(crate) files: Option<Switch>,
    /// Show notifications of programs here: on or off [default: on].
    ///
    /// Off where a session begins: it has no D-Bus of its own, and programs use that of the login there.
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub(crate) notifications: Option<Switch>,
    /// Show icons of programs in the tray here: on or off [default: on].
    ///
    /// Where a session begins without its own D-Bus (`--notifications off`), there are none.
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub(crate) tray: Option<Switch>,
    /// Give the link up after this much silence [default: 60].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) silence: Option<Duration>,
    /// Write a qlog file for the connection to DIR.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) qlog: Option<PathBuf>,
    /// Write to FILE where the time goes; `wayferry trace` draws it.
    ///
    /// `ssh` brings what the other machine wrote at the end, to FILE.there.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Print a line of statistics every second.
    #[arg(long)]
    pub(crate) stats: bool,
}

/// Of commands that show a session here.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShowFlags {
    /// Put TEXT in front of every window title.
    ///
    /// Windows of a ticket's session have its address there unless this says otherwise.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title_prefix: Option<String>,
    /// Tell the compositor that the windows are APP_ID's, by a security context.
    ///
    /// Where it offers that. It may let them do less than other programs.
    #[arg(long, value_name = "APP_ID", hide_short_help = true)]
    pub(crate) secctx: Option<String>,
    /// Let programs record the microphone of this machine; a line tells when one does.
    #[arg(long)]
    pub(crate) microphone: bool,
    /// Open addresses here that programs open: never, ask or always [default: ask].
    ///
    /// Only http, https and mailto.
    ///
    /// ask: once for each display, on the terminal, or by a notification where that is ssh's. Without both they are not
    /// opened, and you are told.
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) open_url: Option<OpenUrl>,
    /// Draw what is typed before it is answered: auto, never or always [default: auto].
    ///
    /// auto: where the answer takes long (docs/echo.md). With APP_ID=WHEN behind a comma, for single programs, as in
    /// auto,foot=always.
    #[arg(long, value_name = "WHEN")]
    pub(crate) predict: Option<Wishes>,
    /// Write the sound to a file instead of playing it: file:PATH.
    ///
    /// A WAV file if PATH ends in .wav, otherwise 16-bit samples.
    #[arg(long, value_name = "SINK", value_parser = parse_sink, hide_short_help = true)]
    pub(crate) audio_sink: Option<PathBuf>,
}

/// Of commands that begin a session.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BeginFlags {
    /// What the session is called [default: as its program].
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// Begin without a display; `wayferry attach` shows it.
    #[arg(long)]
    pub(crate) detached: bool,
    /// End a session that has had no display for this long [default: never].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) linger: Option<Duration>,
    /// Name of the Wayland display that programs connect to [default: a random one].
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) display: Option<String>,
    /// Serve one program's connection, and end when it closes.
    #[arg(long, hide_short_help = true)]
    pub(crate) oneshot: bool,
    /// Do not offer a protocol to programs.
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) deny: Vec<String>,
    /// UDP port, or range LOW-HIGH: the first free one is taken [default: any].
    #[arg(long, value_name = "RANGE", value_parser = parse_ports)]
    pub(crate) port: Option<RangeInclusive<u16>>,
    /// Show X11 programs, too: each window by itself, or all in one (rootful).
    ///
    /// satellite, or nothing: each window by itself, through xwayland-satellite. rootful: all in one window, with a
    /// window manager if one is installed there.
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "satellite")]
    #[arg(value_parser = parse_xwayland)]
    pub(crate) xwayland: Option<How>,
    /// Let viewers hear the session, too.
    #[arg(long, hide_short_help = true)]
    pub(crate) share_audio: bool,
    #[command(flatten)]
    pub(crate) pixels: PixelFlags,
    /// Show the whole screen: `wayferry desktop` says so.
    #[arg(long, hide = true)]
    pub(crate) screen: bool,
    /// Record what each program says to a file in DIR, without its pixels: a seed for the fuzz target `pair`.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) record: Option<PathBuf>,
}

/// How pixels are read and coded where the programs run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PixelFlags {
    /// Show every picture as it is, however long it takes.
    ///
    /// Otherwise, where the link is too slow for what changes, pictures are lossy until they rest; text never is for
    /// longer than a moment.
    #[arg(long)]
    pub(crate) lossless: bool,
    /// Quality of pictures that are lossy for now, from 1 to 100 [default: 75].
    #[arg(long, value_name = "NUMBER", conflicts_with = "lossless", value_parser = parse_number::<100>)]
    pub(crate) quality: Option<u8>,
    /// How pixels are compressed: none, lz4, zstd or zstd=LEVEL [default: zstd=1].
    ///
    /// LEVEL is from 1 to 19.
    #[arg(long, value_name = "METHOD")]
    pub(crate) compress: Option<Compress>,
    /// Threads that share the compression of a large picture [default: one per core, at most 4].
    #[arg(long, value_name = "NUMBER", value_parser = parse_number::<64>, hide_short_help = true)]
    pub(crate) threads: Option<u8>,
    /// What makes videos where the programs run [default: the first that works, those of GPUs first].
    ///
    /// openh264, or an encoder of FFmpeg's in builds with that, such as h264_vaapi.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) encoder: Option<String>,
    /// How GPU buffers of programs are read: auto, off, memory, or a render node.
    ///
    /// They are those of programs that draw on a GPU. auto: by the first GPU that can; off: such programs draw in
    /// software; memory: only those that lie in ordinary memory; a render node, such as /dev/dri/renderD128: by that
    /// GPU [default: auto].
    #[arg(long, value_name = "HOW")]
    pub(crate) gpu: Option<Gpu>,
}

impl ReachFlags {
    /// The ssh to run.
    pub(crate) fn ssh(&self) -> OsString {
        self.ssh_bin.clone().unwrap_or_else(|| "ssh".into())
    }
}
