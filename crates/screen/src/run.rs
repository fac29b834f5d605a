//! The loop: events of both compositors, what they lead to, and the end.

use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayland_client::EventQueue;
use wayland_client::backend::{ReadEventsGuard, WaylandError};

use crate::error::{End, Error};
use crate::inbox::Inbox;
use crate::screen::{Ended, Screen};
use crate::there::There;
use crate::window::Window;

/// Shows the first screen of the compositor behind `there` as a window of the session behind `session`, until one of
/// them ends, the user closes the window, or one of `stops` is readable.
///
/// # Errors
/// [`Error::Missing`] and [`Error::NoScreen`] before there is a window; the others at any time.
pub fn show(
    there: UnixStream,
    session: UnixStream,
    title: &str,
    stops: &[BorrowedFd<'_>],
) -> Result<Ended, Error> {
    let (there, mut there_events) = There::connect(there)?;
    let (window, mut session_events) = Window::open(session, title)?;
    let mut screen = Screen::new(there, window);
    let mut said = [(End::There, Inbox::default()), (End::Session, Inbox::default())];
    // Which screens there are, and what the session takes.
    there_events.roundtrip(&mut said[0].1).map_err(End::There.dispatch())?;
    session_events.roundtrip(&mut said[1].1).map_err(End::Session.dispatch())?;
    let mut ended = None;
    while ended.is_none() {
        there_events.dispatch_pending(&mut said[0].1).map_err(End::There.dispatch())?;
        session_events.dispatch_pending(&mut said[1].1).map_err(End::Session.dispatch())?;
        for (end, inbox) in &mut said {
            for event in inbox.take() {
                ended = ended.or(screen.hear(*end, event)?);
            }
        }
        screen.step(Instant::now());
        let ends = [(End::There, &there_events), (End::Session, &session_events)];
        ended = ended.or(wait(ends, stops, screen.timeout(Instant::now()))?);
    }
    screen.leave();
    // What is released there is to arrive; a compositor that is gone needs none of it.
    let _ = there_events.flush();
    Ok(ended.unwrap_or(Ended::Stopped))
}

/// Sends what is to be sent, and reads what comes; the end if there is one.
fn wait(
    ends: [(End, &EventQueue<Inbox>); 2],
    stops: &[BorrowedFd<'_>],
    until: Option<Instant>,
) -> Result<Option<Ended>, Error> {
    let mut interests = [PollFlags::IN; 2];
    for ((end, events), interest) in ends.iter().zip(&mut interests) {
        match events.flush() {
            Ok(()) => {}
            Err(WaylandError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                *interest |= PollFlags::OUT;
            }
            // What was said before is still to be read, a reason perhaps; and then the end.
            Err(WaylandError::Io(_)) => {}
            Err(error) => return over(*end, error).map(Some),
        }
    }
    let [Some(there), Some(session)] = ends.map(|(_, events)| events.prepare_read()) else {
        // Something has come already.
        return Ok(None);
    };
    let guards = [there, session];
    let readable = {
        let [there, session] = guards.each_ref().map(ReadEventsGuard::connection_fd);
        let mut waited = vec![
            PollFd::from_borrowed_fd(there, interests[0]),
            PollFd::from_borrowed_fd(session, interests[1]),
        ];
        waited.extend(stops.iter().map(|stop| PollFd::from_borrowed_fd(*stop, PollFlags::IN)));
        let patience = until.map(|until| until.saturating_duration_since(Instant::now()));
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut waited, patience.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Error::system("waiting")(errno.into())),
        }
        let is_readable = |of: &PollFd<'_>| !of.revents().intersection(!PollFlags::OUT).is_empty();
        waited.iter().map(is_readable).collect::<Vec<_>>()
    };
    if readable[2..].contains(&true) {
        return Ok(Some(Ended::Stopped));
    }
    for ((guard, (end, _)), is_readable) in guards.into_iter().zip(ends).zip(readable) {
        if is_readable {
            match guard.read() {
                Ok(_) => {}
                Err(WaylandError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return over(end, error).map(Some),
            }
        }
    }
    Ok(None)
}

/// A connection is over: that is an end like others, unless a compositor says what was wrong.
fn over(end: End, error: WaylandError) -> Result<Ended, Error> {
    match (end, error) {
        (_, error @ WaylandError::Protocol(_)) => Err(end.socket()(error)),
        (End::There, _) => Ok(Ended::ScreenGone),
        (End::Session, _) => Ok(Ended::SessionGone),
    }
}
