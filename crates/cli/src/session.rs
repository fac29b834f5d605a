//! From flags to what a session is told; shared by all commands that make one.

use std::sync::Arc;

use wayferry_host::error::Error as SessionError;
use wayferry_host::settings::{DEFAULT_QUALITY, Settings};
use wayferry_host::trace::{Half, TraceFile};
use wayferry_net::quic::Options;

use crate::flags::OwnFlags;
use crate::tell::reporter;

/// What the user has chosen.
pub(crate) fn settings(own: &OwnFlags) -> Settings {
    let default = Settings::default();
    Settings {
        allow: own.side.allow.clone(),
        deny: own.begin.deny.clone(),
        compress: own.begin.pixels.compress.unwrap_or_default(),
        lossy: (!own.begin.pixels.lossless).then_some(own.begin.pixels.quality.unwrap_or(DEFAULT_QUALITY)),
        threads: own.begin.pixels.threads.map_or(default.threads, usize::from),
        silence: own.side.silence,
        ..default
    }
}

/// What the flags say of QUIC.
pub(crate) fn options(own: &OwnFlags) -> Options {
    let mut options = Options { qlog: own.side.qlog.clone(), ..Options::default() };
    if let Some(silence) = own.side.silence {
        options.idle_timeout = silence;
        // Often enough that one lost packet is not silence.
        options.keep_alive = options.keep_alive.min(silence / 4);
    }
    options
}

/// The trace that was asked for, of one half or of both.
///
/// # Errors
/// The file cannot be made.
pub(crate) fn trace_file(own: &OwnFlags, half: Option<Half>) -> Result<Option<Arc<TraceFile>>, SessionError> {
    own.side.trace.as_deref().map(|path| TraceFile::create(path, half, reporter())).transpose()
}
