//! `wayferry conn`: one side of a session with inherited sockets, for tests and for programs that bring their own link.
//!
//! `--role app` serves the program whose Wayland socket is the descriptor WAYFERRY_APP_FD; `--role display` shows it on
//! the compositor behind WAYLAND_SOCKET (one connection for everything) or else WAYLAND_DISPLAY. The link is the
//! descriptor WAYFERRY_LINK_FD, carried as a byte stream without any secret: the process that made the descriptors is
//! trusted. Invariant: both end with 0 when their peer closes.

use std::os::fd::OwnedFd;

use wayferry_proto::{Session, Side};
use wayferry_wayland::End;

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, Role};
use crate::inherit::take_fds;
use crate::session::{settings, trace_file};
use crate::tell::reporter;
use wayferry_host::app_side::{AppSide, AppSideConfig, Displays, Outcome as AppOutcome};
use wayferry_host::carriers;
use wayferry_host::clock::Clock;
use wayferry_host::display_side::{Compositor, DisplaySide, Outcome as DisplayOutcome, Watched};
use wayferry_host::edge::signals::Signals;
use wayferry_host::link::Link;
use wayferry_host::trace::Half;

/// Runs one side until its peer closes; gives the exit code.
pub(crate) fn run(own: &OwnFlags, role: Role) -> Result<u8, Error> {
    // The inherited descriptors first: see `take_fds`.
    let clean = match role {
        Role::App => {
            let [link, program] = take_fds(["WAYFERRY_LINK_FD", "WAYFERRY_APP_FD"])?;
            app(own, link, program)
        }
        Role::Display if std::env::var_os("WAYLAND_SOCKET").is_some() => {
            let [link, socket] = take_fds(["WAYFERRY_LINK_FD", "WAYLAND_SOCKET"])?;
            display(own, link, Compositor::Only(socket))
        }
        Role::Display => {
            let [link] = take_fds(["WAYFERRY_LINK_FD"])?;
            display(own, link, Compositor::from_environment()?)
        }
    };
    match clean {
        // A link that just ends is how the other side closes here.
        Err(Error::Session(SessionError::Lost(_))) => Ok(0),
        other => other,
    }
}

fn app(own: &OwnFlags, link: OwnedFd, program: OwnedFd) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let clock = Clock::start();
    let config = AppSideConfig {
        core: settings(own).programs(&clock),
        compress: own.begin.pixels.compress.unwrap_or_default(),
        oneshot: true,
        stats: own.side.stats,
    };
    let session = Session::new(settings(own).session(Side::App, &clock));
    let link = Link::new(session, carriers::byte_stream(link)?);
    let side = AppSide::new(config, clock, Displays::only(link, clock.now()), reporter())
        .with_recordings(own.begin.record.clone())
        .with_trace(trace_file(own, Some(Half::App))?);
    match side.with_signals(&signals).with_connection(program).run()? {
        AppOutcome::Exit(code) => Ok(code),
        AppOutcome::DisplayLeft => Ok(0),
        AppOutcome::ConnectionEnded(end) => Ok(ended(end)?),
    }
}

fn display(own: &OwnFlags, link: OwnedFd, compositor: Compositor) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let clock = Clock::start();
    let watched = Watched::new(compositor, clock, Some(&signals))?;
    let session = Session::new(settings(own).session(Side::Display, &clock));
    let link = Link::new(session, carriers::byte_stream(link)?);
    let trace = trace_file(own, Some(Half::Display))?;
    let side = DisplaySide::new(watched, clock, link, own.side.stats, reporter())
        .with_allowed(own.side.allow.clone())
        .with_title_prefix(own.show.title_prefix.clone().unwrap_or_default())
        .with_trace(trace);
    match side.with_signals(&signals).run()? {
        DisplayOutcome::Exit(code) => Ok(code),
        DisplayOutcome::HostLeft | DisplayOutcome::Stopped => Ok(0),
        DisplayOutcome::ConnectionEnded(end) => Ok(ended(end)?),
    }
}

fn ended(end: End) -> Result<u8, SessionError> {
    match end {
        End::Closed => Ok(0),
        End::AppViolation(what) => Err(SessionError::AppViolation(what)),
        End::CompositorError(what) => Err(SessionError::Compositor(what)),
        End::PeerViolation(what) => Err(SessionError::PeerViolation(what)),
        End::TooMuch(limit) => Err(SessionError::AppViolation(format!("limit exceeded: {limit}"))),
    }
}
