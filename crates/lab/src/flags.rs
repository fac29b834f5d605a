//! The command line of `wayferry-lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use wayferry_host::error::Error as SessionError;
use wayferry_host::event::Reporter;
use wayferry_host::settings::{Compress, DEFAULT_QUALITY, Delivery, Settings};
use wayferry_host::trace::TraceFile;
use wayferry_net::quic::{Congestion, Options};
use wayferry_scenes::Sequence;
use wayferry_sim::grid::Grid;

/// Wayferry's laboratory: the real program over emulated links.
#[derive(Debug, Parser)]
#[command(name = "wayferry-lab", version, disable_help_subcommand = true)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) own: OwnFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Both sides on this machine with an emulated link between them.
    Demo(DemoFlags),
    /// Measure Wayferry, on emulated links or in virtual time.
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// Options of the sessions that are shown or measured.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OwnFlags {
    /// Put TEXT in front of every window title.
    #[arg(long, value_name = "TEXT", global = true)]
    pub(crate) title_prefix: Option<String>,
    /// How pixels are compressed: none, lz4, zstd or zstd=LEVEL (1 to 19) [default: zstd=1].
    #[arg(long, value_name = "METHOD", global = true)]
    pub(crate) compress: Option<Compress>,
    /// How what arrives is ordered: total (all in one stream), partial (a picture waits only for itself) or repair (the
    /// same, and lost packets are rebuilt); for comparison [default: repair].
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) delivery: Option<Delivery>,
    /// How much is sent when: copa (keeps queues short), bbr3 or cubic; for comparison [default: copa].
    #[arg(long, value_name = "CONTROLLER", global = true, value_parser = parse_congestion)]
    pub(crate) congestion: Option<Congestion>,
    /// Show every picture as it is, however long it takes.
    #[arg(long, global = true)]
    pub(crate) lossless: bool,
    /// Quality of pictures that are lossy for now, from 1 to 100 [default: 75].
    #[arg(long, value_name = "NUMBER", global = true, conflicts_with = "lossless",
        value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) quality: Option<u8>,
    /// Threads that share the compression of a large picture [default: one per core, at most 4].
    #[arg(long, value_name = "NUMBER", global = true, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: Option<u8>,
    /// Write to FILE when each picture was read, compressed, sent and shown; `wayferry trace` draws it.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) trace: Option<PathBuf>,
    /// Write a qlog file for the connection to DIR.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) qlog: Option<PathBuf>,
}

impl OwnFlags {
    /// What a session is told.
    pub(crate) fn settings(&self) -> Settings {
        let default = Settings::default();
        Settings {
            compress: self.compress.unwrap_or_default(),
            delivery: self.delivery.unwrap_or_default(),
            lossy: (!self.lossless).then_some(self.quality.unwrap_or(DEFAULT_QUALITY)),
            threads: self.threads.map_or(default.threads, usize::from),
            ..default
        }
    }

    /// What QUIC is told.
    pub(crate) fn options(&self) -> Options {
        let congestion = self.congestion.unwrap_or_default();
        Options { qlog: self.qlog.clone(), congestion, ..Options::default() }
    }

    /// The trace of both sides that was asked for.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn trace_file(&self) -> Result<Option<Arc<TraceFile>>, SessionError> {
        self.trace.as_deref().map(|path| TraceFile::create(path, None, reporter())).transpose()
    }
}

/// Writes what happens in a session to stderr, as data.
pub(crate) fn reporter() -> Reporter {
    Reporter::new(|event| {
        if let Ok(text) = serde_json::to_string(&event) {
            eprintln!("note: {text}");
        }
    })
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DemoFlags {
    /// Round-trip time of the link, milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pub(crate) rtt: u32,
    /// Packets that the link loses, per cent.
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub(crate) loss: f64,
    /// Rate of the link, Mbit/s.
    #[arg(long, value_name = "MBITS", default_value_t = 20.0)]
    pub(crate) rate: f64,
    /// Seed of the link's randomness.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// End after this many seconds [default: with the program; 10 with the scripted one].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) duration: Option<Duration>,
    /// Where to write the picture of what the display shows.
    #[arg(long, value_name = "FILE", default_value = "wayferry-demo.png")]
    pub(crate) png: PathBuf,
    /// Use the built-in stage even if there is a compositor.
    #[arg(long)]
    pub(crate) stage: bool,
    /// The program to show [default: a scripted one].
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Window mode on the stage: frame rates, bytes, latencies.
    Windows(BenchFlags),
    /// Sound, keys and pictures over TCP, over QUIC with one stream, and over QUIC with many: who waits for whom.
    ///
    /// A live session is carried through a network namespace of this program's own, where the kernel's TCP and QUIC
    /// meet the same emulated link. It needs /dev/net/tun, namespaces, `unshare`, `ip` and `sox`.
    Hol(HolFlags),
    /// Sound beside a window that could fill the link: how much is made up, and how late it is heard; and how far a
    /// film's sound is from its picture. It needs `sox`, `mpv` and `ffmpeg`.
    Sound(SoundFlags),
    /// From Enter to the first window: `wayferry ssh` beside ssh's own connection, with UDP open and blocked. It needs
    /// /dev/net/tun, namespaces, `unshare`, `ip`, an ssh client and server, and foot.
    Start(StartFlags),
    /// Typing into foot beside a window that never rests, with host and display as processes in networks of their own,
    /// over links that lose, singly and in bursts, and that reorder; and into a shell, with predictions and without,
    /// over far links. It needs /dev/net/tun, namespaces, `unshare`, `ip`, foot and bash.
    Typing(BenchFlags),
    /// Typing into foot that a page in Chromium shows, over links that lose packets, and scrolling there, beside noVNC
    /// before TigerVNC with xterm and before wayvnc with foot in sway; and decoding in the page beside natively. It
    /// needs /dev/net/tun, namespaces, `unshare`, `ip`, foot, perl, chromium, and for noVNC websockify, novnc,
    /// Xtigervnc, xterm, and, as root, wayvnc and sway.
    Browser(BenchFlags),
    /// How soon the windows are fresh again: after an outage, a change of address, with another display or compositor.
    Resume(BenchFlags),
    /// Updates over lossy links in virtual time: blocking, response, overhead, for each delivery and controller.
    Updates(UpdatesFlags),
    /// Congestion controllers in virtual time: queues, start-up, changes of the link, company.
    Cc(CcFlags),
    /// The pixel codec beside plain ones, over generated screens: bytes, processor time, time to paint.
    ///
    /// One thread encodes and decodes, and its processor time is what counts. Targets are those of the
    /// design; paint times are those of the bytes on a link that does nothing else.
    Pixels(PixelsFlags),
    /// Find the compression that shows a picture soonest over a link: time to encode, to send and to decode.
    Compression(CompressionFlags),
    /// Put together what `bench updates --shard` wrote.
    Merge(MergeFlags),
}

#[derive(Debug, Args)]
pub(crate) struct StartFlags {
    /// How often each is measured.
    #[arg(long, value_name = "NUMBER", default_value = "11", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) runs: u16,
    /// Write the results to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SoundFlags {
    /// Run only cases whose name contains TEXT: concealed-percent, lip-sync, click, cpu-percent.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// All modes, round trips of 20, 100 and 300 ms, losses of 0, 1, 3 and 5 %.
    #[arg(long)]
    pub(crate) full: bool,
    /// How long each is measured.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = parse_seconds)]
    pub(crate) seconds: Duration,
    /// Write the results to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct HolFlags {
    /// Links to measure, with commas between: cellular, wifi, lan [default: all].
    #[arg(long, value_name = "LINK,...", value_delimiter = ',')]
    pub(crate) link: Vec<LinkName>,
    /// How long each is measured: in the first half content has 2 Mbit/s, in the second it could fill 100.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    pub(crate) seconds: Duration,
    /// Carry all three at once on one link, instead of one after the other.
    #[arg(long)]
    pub(crate) parallel: bool,
    /// Begin when the clock is a multiple of SECONDS, so that runs on several machines line up.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) sync: Option<Duration>,
    /// Cut the way back in the second half, so that nothing is acknowledged: for comparison.
    #[arg(long)]
    pub(crate) no_acknowledgements: bool,
    #[command(flatten)]
    pub(crate) out: OutFlags,
}

/// An emulated link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkName {
    /// 10 Mbit/s, round trip 60 ms, 300 with its queue full; one packet of a hundred is lost, three in a row.
    Cellular,
    /// 50 Mbit/s, round trip 10 ms, up to 5 ms of jitter; one packet of two hundred is lost.
    Wifi,
    /// 100 Mbit/s, round trip 1 ms, no loss.
    Lan,
}

#[derive(Debug, Args)]
pub(crate) struct PixelsFlags {
    /// Play only these: type, type-whole, gtk, term, page, video, switch, photo, same, same-4k [default: all].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = parse_sequence)]
    pub(crate) sequences: Vec<Sequence>,
    /// Updates of each sequence, after its first picture, which is not counted.
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) frames: u32,
    /// Seed of fonts, words and pictures.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) out: OutFlags,
}

#[derive(Debug, Args)]
pub(crate) struct CompressionFlags {
    /// Rate of the link, Mbit/s.
    #[arg(long, value_name = "MBITS", default_value_t = 20.0, value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// Use this picture instead of generated text and a generated photograph.
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
    /// Write the results to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct UpdatesFlags {
    /// Which combinations to run.
    #[arg(long, value_name = "GRID", default_value = "smoke")]
    pub(crate) grid: GridName,
    /// How many seeds of each [default: 2 for smoke, 20 for the others].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,
    /// Run only part I of N; the file then holds all samples, for `bench merge`.
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub(crate) shard: Option<Shard>,
    /// Run only combinations whose name contains TEXT, such as `non-streaming` or `partial cubic`.
    #[arg(long, value_name = "TEXT", conflicts_with = "shard")]
    pub(crate) only: Option<String>,
    /// Say instead why updates were late, and what became of every packet of the first one for each reason.
    #[arg(long, conflicts_with_all = ["shard", "json", "plot"])]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) out: OutFlags,
}

#[derive(Debug, Args)]
pub(crate) struct MergeFlags {
    /// Files of all shards.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) out: OutFlags,
}

/// Where results go, beside the table.
#[derive(Debug, Args)]
pub(crate) struct OutFlags {
    /// Write the results to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draw the distributions into FILE as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CcFlags {
    /// How many seeds of each scenario.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// Run only scenarios whose name contains TEXT.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Write the results to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// A set of combinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GridName {
    /// A few, to see that everything works.
    Smoke,
    /// The paper's: one factor at a time.
    Paper,
    /// More loss, bursts, typing, mixed sizes, recordings.
    Beyond,
    /// Typing and a busy window over links that lose in every manner, that reorder, or that another flow fills.
    Bursts,
}

impl From<GridName> for Grid {
    fn from(name: GridName) -> Self {
        match name {
            GridName::Smoke => Self::Smoke,
            GridName::Paper => Self::Paper,
            GridName::Beyond => Self::Beyond,
            GridName::Bursts => Self::Bursts,
        }
    }
}

/// One of several equal parts of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    pub(crate) number: u64,
    /// How many there are.
    pub(crate) of: u64,
}

#[derive(Debug, Args)]
pub(crate) struct BenchFlags {
    /// Write the results to FILE as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Run only cases whose name contains TEXT.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Shorter measurements, for a smoke test.
    #[arg(long)]
    pub(crate) quick: bool,
}

fn parse_congestion(text: &str) -> Result<Congestion, String> {
    let all = [Congestion::Copa, Congestion::Bbr3, Congestion::Cubic];
    let found = all.into_iter().find(|congestion| congestion_name(*congestion) == text);
    found.ok_or_else(|| "expected copa, bbr3 or cubic".into())
}

/// As on the command line.
fn congestion_name(congestion: Congestion) -> &'static str {
    match congestion {
        Congestion::Copa => "copa",
        Congestion::Bbr3 => "bbr3",
        Congestion::Cubic => "cubic",
    }
}

fn parse_sequence(text: &str) -> Result<Sequence, String> {
    let names = || Sequence::ALL.map(Sequence::name).join(", ");
    Sequence::named(text).ok_or_else(|| format!("expected some of {}", names()))
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1e6).contains(&rate) => Ok(rate),
        _ => Err("expected Mbit/s, from 0.001 to 1000000".into()),
    }
}

/// `I/N`, with I from 1 to N.
fn parse_shard(text: &str) -> Result<Shard, String> {
    let parse = || {
        let (number, of) = text.split_once('/')?;
        Some(Shard { number: number.parse().ok()?, of: of.parse().ok()? })
    };
    match parse() {
        Some(shard) if (1..=shard.of).contains(&shard.number) => Ok(shard),
        _ => Err(format!("expected I/N with I from 1 to N, got `{text}`")),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a positive number of seconds".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Flags, clap::Error> {
        Flags::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definitions_are_sound() {
        Flags::command().debug_assert();
    }

    #[test]
    fn sequences_are_named_with_commas_between() {
        let flags = parse("wayferry-lab bench pixels --sequences term,same-4k --frames 3").expect("parses");
        let Command::Bench(BenchCommand::Pixels(pixels)) = flags.command else { panic!("not pixels") };
        assert_eq!((pixels.sequences, pixels.frames), (vec![Sequence::Term, Sequence::Same4k], 3));
        for line in [
            "pixels --sequences terminal",
            "pixels --frames 0",
            "compression --rate 0",
            "compression --rate nan",
        ] {
            assert!(parse(&format!("wayferry-lab bench {line}")).is_err(), "{line}");
        }
    }
}
