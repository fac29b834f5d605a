//! Where a display takes orders of its user: a Unix socket beside the one that gives its figures.
//!
//! A caller says one line ([`Request`]), and hears an answer when that is done, for which the side cares. Invariant: a
//! caller that says nothing is dropped after `PATIENCE`, one of at most `MAX_VISITORS`.

use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_proto::Time;

use super::offer::{SharedDir, directory, listen};
use super::part::{Hub, Part};
use super::socket::Listener;
use super::wait::{Interests, Ready};
use crate::control::{Answer, Request, Word};
use crate::control_server::{Heard, answer, hear_line};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// See the module.
#[derive(Debug)]
pub struct Counter {
    listener: Listener,
    visitors: Vec<Visitor>,
    calls: Vec<(Request, OwnedFd)>,
    rests_until: Time,
    // Dropped after the socket in it.
    _directory: SharedDir,
}

#[derive(Debug)]
struct Visitor {
    socket: OwnedFd,
    heard: Vec<u8>,
    until: Time,
}

/// The socket of a display of this process's number.
pub fn name(pid: u32) -> String {
    format!("orders-{pid}")
}

impl Counter {
    /// Of this process. `None` where it has no place; a failure is reported.
    pub fn new(reporter: &Reporter) -> Option<Self> {
        let directory = directory()?;
        let made = listen(&directory, &name(std::process::id())).map(|(shared, listener)| Self {
            listener,
            visitors: Vec::new(),
            calls: Vec::new(),
            rests_until: Time::ZERO,
            _directory: shared,
        });
        made.map_err(|error| {
            let reason = format!("`{}`: {error}", directory.display());
            reporter.report(SessionEvent::InfoUnavailable { reason });
        })
        .ok()
    }

    /// What callers want.
    pub(crate) fn take_calls(&mut self) -> Vec<(Request, OwnedFd)> {
        std::mem::take(&mut self.calls)
    }

    fn accept(&mut self, now: Time) {
        while self.visitors.len() < MAX_VISITORS {
            match self.listener.accept() {
                Ok(Some(socket)) => {
                    self.visitors.push(Visitor { socket, heard: Vec::new(), until: now + PATIENCE });
                }
                Ok(None) => return,
                // Most likely no descriptors are left; callers wait in the queue.
                Err(_) => {
                    self.rests_until = now + REST;
                    return;
                }
            }
        }
    }

    fn hear(&mut self, now: Time, mut visitor: Visitor) {
        match hear_line(&visitor.socket, &mut visitor.heard) {
            Heard::Line(text) => match Request::decode(&text) {
                Some(request) => self.calls.push((request, visitor.socket)),
                None => answer(&visitor.socket, &Answer::Not("a display knows no such order".into())),
            },
            Heard::Nothing if now < visitor.until => self.visitors.push(visitor),
            Heard::Nothing | Heard::End => {}
        }
    }
}

impl Part for Counter {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        // That it rests needs no deadline: pings wake the loop every second.
        if self.visitors.len() < MAX_VISITORS && now >= self.rests_until {
            interests.read(&self.listener);
        }
        interests.until(self.visitors.iter().map(|visitor| visitor.until).min());
        self.visitors.iter().for_each(|visitor| interests.read(&visitor.socket));
    }

    fn turn(&mut self, now: Time, _hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        if ready.has(&self.listener) {
            self.accept(now);
        }
        std::mem::take(&mut self.visitors).into_iter().for_each(|visitor| self.hear(now, visitor));
        Ok(())
    }
}

/// Callers that have not said what they want.
const MAX_VISITORS: usize = 8;
/// How long each may take for that.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long callers wait when no descriptors are left.
const REST: Duration = Duration::from_secs(1);
