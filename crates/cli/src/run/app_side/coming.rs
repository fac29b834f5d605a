//! Displays come and go; the session stays.
//!
//! What a display knew of the programs goes with it, and the next one is told everything anew, by each program's core. Orders
//! from the control socket are carried out here, too. Displays that look on have a room of their own, `views`. Invariant: at most
//! one other display is there; whoever leaves is freed once.

use std::os::fd::OwnedFd;

use serde_json::Value;
use wayferry_proto::admission::Role;
use wayferry_proto::{CloseReason, ConnectionId, Header, Side, Time};
use wayferry_wayland::app::Kept;
use wayferry_wayland::blob::Sent;

use super::ending::Done;
use super::{AppSide, Backlog, CleanEnd, Link, Phase, pixel_compression};
use crate::control::{Answer, Told};
use crate::event::SessionEvent;
use crate::info::{Figures, State};
use crate::lobby::{Call, Lobby, answer};
use crate::run::Error;

impl AppSide<'_> {
    /// Does what those on the control socket want.
    pub(super) fn take_calls(&mut self, now: Time) {
        while let Some(call) = self.lobby.as_mut().and_then(Lobby::poll_call) {
            match call {
                Call::Display(Role::Active, link) => self.take_display(now, *link),
                Call::Display(Role::View, link) => self.views.take(now, *link),
                Call::Info(socket) => self.tell_document(now, &socket),
                Call::Detach(socket) => {
                    let is_there = self.hub.link.is_up() || self.hub.link.session.is_suspended();
                    if is_there {
                        self.dismiss_display(now, CloseReason::Done);
                    }
                    // One that is lost, because it was owed too much, could still come again.
                    let was_known = self.forget_display();
                    let word = if is_there || was_known {
                        Answer::Done
                    } else {
                        Answer::Not("no display is there".into())
                    };
                    answer(&socket, &word);
                }
                Call::DetachViews(socket) => {
                    let none = self.views.count() == 0;
                    self.views.dismiss(now);
                    // One that lost its link and has not come again is not let in any more, either.
                    self.lobby.iter_mut().for_each(|lobby| lobby.door().forget_viewers());
                    let word = if none { Answer::Not("no display looks on".into()) } else { Answer::Done };
                    answer(&socket, &word);
                }
                Call::Stop(socket) => {
                    self.stopped = Some(0);
                    // Any other hears that the session does not answer, and it soon will not.
                    if self.stopping.len() < MAX_STOPPING {
                        self.stopping.push(socket);
                    }
                }
                Call::Ended(code) => drop(self.done.get_or_insert(Done::with(code))),
                Call::OwnerLeft => self.abandon(),
            }
        }
        let full = self.views.is_full();
        self.lobby.iter_mut().for_each(|lobby| lobby.set_full(full));
    }

    /// A viewer that has left for good cannot come again.
    pub(super) fn hear_views(&mut self) {
        for incarnation in self.views.take_gone() {
            self.lobby.iter_mut().for_each(|lobby| lobby.door().forget_viewer(incarnation));
        }
    }

    /// Whether nobody came for as long as the user wanted to wait.
    pub(super) fn check_expiry(&mut self, now: Time) -> Result<(), Error> {
        if self.expires.is_some_and(|at| at <= now) {
            return Err(Error::Secret("the ticket expired: no display attached in time".into()));
        }
        Ok(())
    }

    /// A display was let in. The one that is here goes on with it if it is the same; any other has to go.
    fn take_display(&mut self, now: Time, mut link: Link) {
        let session = &self.hub.link.session;
        if link.session.peer().is_some_and(|peer| session.is_late(peer)) {
            return; // the display has given this carrier up for the one that is here
        }
        if link.session.peer().is_some_and(|peer| session.is_of(peer)) {
            let old = std::mem::replace(&mut self.hub.link, Link::nobody(Side::App));
            if link.session.succeed(now, old.session).is_ok() {
                self.hub.link = link;
                self.state_since = now;
                self.forget_backlog();
                self.hub.reporter.report(SessionEvent::DisplayBack);
                return;
            }
            // Its session was over at this very moment.
            self.lose_display(now);
        }
        if link.session.peer().is_some_and(|peer| peer.resuming) {
            link.session.decline(now);
        }
        if self.hub.link.is_up() || self.hub.link.session.is_suspended() {
            self.dismiss_display(now, CloseReason::Gone);
        }
        self.hub.link = link;
        self.state_since = now;
        self.expires = None;
        self.hub.reporter.report(SessionEvent::DisplayAttached { viewer: false });
    }

    /// The connection to the display is over; the programs wait for another.
    pub(super) fn on_display_left(&mut self, now: Time, end: Result<CleanEnd, Error>) {
        match end {
            Ok(_) => drop(self.forget_display()),
            Err(error) => self.hub.reporter.report(SessionEvent::DisplayLost { error }),
        }
        self.lose_display(now);
    }

    /// The display has left for good, or was sent away: it cannot come again by itself. Says whether one was known.
    fn forget_display(&mut self) -> bool {
        self.lobby.as_mut().is_some_and(|lobby| lobby.door().forget_active())
    }

    /// The display may come back on another carrier; meanwhile it is told nothing, and what it is owed is kept.
    pub(super) fn on_carrier_lost(&mut self, now: Time, reason: &CloseReason) {
        self.hub.reporter.report(SessionEvent::DisplayAway { reason: reason.to_string() });
        self.hub.link.lose_carrier();
        self.state_since = now;
    }

    /// What is owed to a display that is away has a limit; beyond it, it will be told all anew.
    pub(super) fn limit_owed(&mut self, now: Time) {
        if self.hub.link.session.is_suspended() && self.hub.link.session.retained() > MAX_OWED {
            self.lose_display(now);
        }
    }

    /// Ends the connection to the display, which hears why.
    fn dismiss_display(&mut self, now: Time, why: CloseReason) {
        self.hub.link.session.close(why);
        self.hub.link.transmit(now);
        self.lose_display(now);
    }

    /// The display is gone: the programs go on without one.
    pub(super) fn lose_display(&mut self, now: Time) {
        self.hub.link = Link::nobody(Side::App);
        self.pipes.clear();
        self.sent_blobs = Sent::default();
        self.forget_backlog();
        for served in self.connections.values_mut() {
            served.core.detach(now);
        }
        self.state_since = now;
        if let Some(lobby) = &mut self.lobby {
            lobby.tell(&Told::Detached);
        }
    }

    /// What was handed to a carrier is measured by what that has sent, and another one begins at nothing.
    fn forget_backlog(&mut self) {
        self.backlog = Backlog::default();
        self.connections.values_mut().for_each(|served| served.handed = 0);
    }

    /// Nobody reads any more what the program says, nor waits for its end.
    fn abandon(&mut self) {
        self.orphaned = true;
        if let Some(outlets) = &mut self.outlets {
            outlets.drain();
        }
    }

    /// Programs that outlived a display are told to the new one, each as a connection that it has not heard of.
    pub(super) fn show_again(&mut self, now: Time) {
        let Some(desk) = self.desk.clone() else { return };
        let compression = pixel_compression(self.config.compress, &self.hub.link.session);
        for (old, mut served) in std::mem::take(&mut self.connections) {
            if served.core.is_attached() {
                self.connections.insert(old, served);
                continue;
            }
            let id = ConnectionId(self.next_connection);
            self.next_connection += 1;
            served.channel = self.hub.link.session.open(Header::Wayland { connection: id });
            served.core.attach(now, &desk, compression);
            self.connections.insert(id, served);
        }
    }

    /// Whether nobody will come for what is still here.
    pub(super) fn is_over(&mut self, now: Time) -> Option<u8> {
        if self.over_at().is_some_and(|at| at <= now) {
            self.hub.reporter.report(SessionEvent::DisplayMissed);
            return Some(0);
        }
        // Of a shell that hung up with its terminal, the programs are left; of a session without any, nothing.
        let bare = self.own.is_none() && self.lobby.is_some();
        let left = bare && self.connections.is_empty() && self.early.is_empty();
        // Whoever wanted it left before any display came.
        let unwanted = self.desk.is_none() && !self.own.is_started() && self.lobby.is_some();
        (self.orphaned && (left || unwanted)).then_some(0)
    }

    /// When [`Self::is_over`] may say so.
    pub(super) fn over_at(&self) -> Option<Time> {
        let waits = !self.hub.link.is_up() && self.desk.is_some() && matches!(self.phase, Phase::Running);
        self.config.linger.filter(|_| waits).map(|linger| self.state_since + linger)
    }

    fn tell_document(&mut self, now: Time, socket: &OwnedFd) {
        let text = self.document(now).to_string();
        let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
        let _ = rustix::net::send(socket, text.as_bytes(), flags);
    }

    /// What this side tells of itself.
    pub(super) fn document(&self, now: Time) -> Value {
        let programs = &self.connections;
        let surfaces =
            programs.iter().flat_map(|(id, served)| served.core.fidelity().map(|surface| (*id, surface)));
        let kept = programs.values().map(|served| served.core.kept());
        let kept = kept.fold(Kept::default(), |sum, one| Kept {
            pixels: sum.pixels + one.pixels,
            state: sum.state + one.state,
        });
        let state = match self.hub.link.is_up() {
            true => State::Attached,
            false if self.hub.link.session.is_suspended() => State::Away,
            false => State::Detached,
        };
        Figures::new(Side::App, &self.hub.link, programs.len(), now)
            .with_place(self.lobby.as_ref().map(Lobby::name), state, now.since(self.state_since))
            .with_kept(kept, self.hub.link.session.retained())
            .with_surfaces(surfaces)
            .with_views(self.views.lookers(now), self.views.figures())
            .document()
    }

    /// Whether the display, once it has gone, may be followed by another.
    pub(super) fn survives(&self) -> bool {
        self.lobby.is_some() && matches!(self.phase, Phase::Running)
    }
}

/// Bytes that are kept for a display that is away.
const MAX_OWED: usize = 16 << 20;
/// Users of `stop` that are told of the end.
const MAX_STOPPING: usize = 16;
