//! What the user has chosen for a session, and the configurations made from it.

use std::str::FromStr;
use std::time::Duration;

use wayferry_proto::{Capabilities, Compression, Config, Kinds, Repair, Side};
use wayferry_wayland::HAS_VIDEO;
use wayferry_wayland::app;

use crate::clock::Clock;

/// Choices of a session; the default is what is best for most.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Globals that programs are offered although they are refused by default.
    pub allow: Vec<String>,
    /// Globals that programs are not offered although they are by default.
    pub deny: Vec<String>,
    /// How pixels are compressed.
    pub compress: Compress,
    /// How delivery is ordered.
    pub delivery: Delivery,
    /// Quality, from 1 to 100, of pictures that are lossy for now; `None` if nothing may be.
    pub lossy: Option<u8>,
    /// Threads that share the compression of a large picture.
    pub threads: usize,
    /// How long the other side may be silent before the link counts as lost; the session's default without.
    pub silence: Option<Duration>,
}

/// How pixels are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compress {
    /// Not at all.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at this level.
    Zstd(i32),
}

impl Default for Compress {
    /// The level that costs less time than a link of 100 Mbit/s gains by it.
    fn default() -> Self {
        Self::Zstd(1)
    }
}

/// How delivery is ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Everything on one ordered stream.
    Total,
    /// Streams and fences.
    Partial,
    /// The same, and what is lost is rebuilt.
    #[default]
    Repair,
}

impl Delivery {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Partial => "partial",
            Self::Repair => "repair",
        }
    }
}

impl FromStr for Delivery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Total, Self::Partial, Self::Repair];
        all.into_iter().find(|mode| mode.name() == text).ok_or("expected total, partial or repair".into())
    }
}

impl FromStr for Compress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "none" => Ok(Self::None),
            None if text == "lz4" => Ok(Self::Lz4),
            None if text == "zstd" => Ok(Self::Zstd(1)),
            Some(("zstd", level)) => match level.parse() {
                Ok(level @ 1..=19) => Ok(Self::Zstd(level)),
                _ => Err(format!("expected a level from 1 to 19, got `{level}`")),
            },
            _ => Err("expected none, lz4, zstd or zstd=LEVEL".into()),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            compress: Compress::default(),
            delivery: Delivery::default(),
            lossy: Some(DEFAULT_QUALITY),
            threads: std::thread::available_parallelism().map_or(1, usize::from).min(DEFAULT_THREADS),
            silence: None,
        }
    }
}

impl Settings {
    /// What a session starts with; secrets and ids are added by the caller.
    pub fn session(&self, side: Side, clock: &Clock) -> Config {
        let mut config = Config::new(side);
        config.start = clock.now();
        config.clock_origin = clock.origin();
        config.silence = self.silence.unwrap_or(config.silence);
        let video = if HAS_VIDEO { Capabilities::VIDEO } else { Capabilities::NONE };
        // For pages: they read streams in order, and show what the link loses.
        let for_pages = if side == Side::App {
            Capabilities::DATAGRAM_REPAIR.with(Capabilities::LOSS)
        } else {
            Capabilities::NONE
        };
        config.capabilities = video.with(Capabilities::COVER).with(for_pages);
        config.compression = match self.compress {
            Compress::None => vec![Compression::None],
            Compress::Lz4 => vec![Compression::Lz4, Compression::None],
            Compress::Zstd(_) => vec![Compression::Zstd, Compression::Lz4, Compression::None],
        };
        match self.delivery {
            Delivery::Total => {
                config.main_only = Kinds::ALL;
                config.repair = Repair::Off;
            }
            Delivery::Partial => config.repair = Repair::Off,
            Delivery::Repair => {}
        }
        config
    }

    /// The configuration of each program's connection.
    pub fn programs(&self, clock: &Clock) -> app::Config {
        app::Config {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            lossy: self.lossy,
            threads: self.threads,
            clock_start: clock.origin(),
            ..Default::default()
        }
    }
}

/// Default of `Settings::lossy`: faults are hard to see, at an eighth of the bytes.
pub const DEFAULT_QUALITY: u8 = 75;
/// More threads gain little: the rest of the work is on one thread.
const DEFAULT_THREADS: usize = 4;
