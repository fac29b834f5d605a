//! From flags to what sessions and Wayland halves are told; shared by all commands that make a session.

use std::sync::Arc;

use wayferry_proto::{Capabilities, Compression, Config, Kinds, Repair, Side};
use wayferry_wayland::HAS_VIDEO;

use crate::error::SessionError;
use crate::flags::{Compress, Delivery, OwnFlags};
use crate::run::Clock;
use crate::trace::{Half, TraceFile};

/// What a session of ours starts with; secrets and ids are added by the caller.
pub(crate) fn session_config(side: Side, own: &OwnFlags, clock: &Clock) -> Config {
    let mut config = Config::new(side);
    config.start = clock.now();
    config.clock_origin = clock.origin();
    config.capabilities = if HAS_VIDEO { Capabilities::VIDEO } else { Capabilities::NONE };
    config.compression = match own.compress.unwrap_or_default() {
        Compress::None => vec![Compression::None],
        Compress::Lz4 => vec![Compression::Lz4, Compression::None],
        Compress::Zstd(_) => vec![Compression::Zstd, Compression::Lz4, Compression::None],
    };
    match own.delivery.unwrap_or_default() {
        Delivery::Total => {
            config.main_only = Kinds::ALL;
            config.repair = Repair::Off;
        }
        Delivery::Partial => config.repair = Repair::Off,
        Delivery::Repair => {}
    }
    config
}

/// What each program's connection is told.
pub(crate) fn app_core(own: &OwnFlags, clock: &Clock) -> wayferry_wayland::app::Config {
    wayferry_wayland::app::Config {
        allow: own.allow.clone(),
        deny: own.deny.clone(),
        title_prefix: own.title_prefix.clone().unwrap_or_default(),
        lossy: (!own.lossless).then_some(own.quality.unwrap_or(DEFAULT_QUALITY)),
        threads: own.threads.map_or_else(default_threads, usize::from),
        clock_start: clock.origin(),
        ..Default::default()
    }
}

/// Of pictures that are lossy for now: faults are hard to see, at an eighth of the bytes.
const DEFAULT_QUALITY: u8 = 75;

/// More threads than this gain little: the rest of the way is one thread's.
fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

/// The trace that was asked for, of one half or of both.
///
/// # Errors
/// The file cannot be made.
pub(crate) fn trace_file(own: &OwnFlags, half: Option<Half>) -> Result<Option<Arc<TraceFile>>, SessionError> {
    own.trace.as_ref().map(|path| TraceFile::create(path, half)).transpose()
}
