//! Displays come and go; the session stays.
//!
//! What a display knew of the programs goes with it; each program's core announces everything anew to the next one.
//! Orders from the control socket are carried out here, too. Which display the session has is decided in `displays`.
//! Invariant: no order is answered twice.

use std::os::fd::OwnedFd;

use serde_json::Value;
use wayferry_proto::admission::{Entry, Role};
use wayferry_proto::succession::Presence;
use wayferry_proto::{Header, Side, Time};
use wayferry_wayland::app::Kept;
use wayferry_wayland::encoder;

use super::ending::Done;
use super::links::NO_LINK;
use super::sound::Sound;
use super::{AppSide, pixel_compression};
use crate::control::Answer;
use crate::control_server::{Call, ControlServer, answer};
use crate::info::{Figures, State};

impl AppSide<'_> {
    /// Carries out the orders from the control socket.
    pub(super) fn take_calls(&mut self, now: Time) {
        while let Some(call) = self.control_server.as_mut().and_then(ControlServer::poll_call) {
            match call {
                Call::Display(Entry { role: Role::Active, .. }, candidate) => {
                    self.take_display(now, *candidate);
                }
                Call::Display(Entry { role: Role::View, link }, candidate) => {
                    self.views.take(now, *candidate, link);
                }
                Call::Info(socket) => self.tell_document(now, &socket),
                Call::Detach(socket) => {
                    self.send_display_away(now);
                    answer(&socket, &Answer::Done);
                }
                Call::DetachViews(socket) => {
                    let none = self.views.count() == 0;
                    self.views.dismiss(now);
                    // A viewer that lost its link and has not come back must not be let in either.
                    self.control_server.iter_mut().for_each(|server| server.admission().forget_viewers());
                    let word =
                        if none { Answer::Not("the session has no viewers".into()) } else { Answer::Done };
                    answer(&socket, &word);
                }
                Call::DetachView(number, socket) => {
                    let sent_away = self.views.dismiss_one(now, number);
                    let there = sent_away.is_some();
                    if let (Some(incarnation), Some(server)) = (sent_away.flatten(), &mut self.control_server)
                    {
                        server.admission().forget_viewer(incarnation);
                    }
                    let none = || Answer::Not(format!("the session has no viewer {number}"));
                    answer(&socket, &if there { Answer::Done } else { none() });
                }
                Call::Links(socket) => answer(&socket, &Answer::Links(self.links(now))),
                Call::LinksRevoked(revoked, socket) => {
                    self.send_guests_away(now, revoked);
                    answer(&socket, &if revoked.any { Answer::Done } else { Answer::Not(NO_LINK.into()) });
                }
                Call::Stop(socket) => {
                    self.ending.stopped = Some(0);
                    // Callers beyond the limit get no answer: their socket closes, and soon the session is gone.
                    if self.ending.stopping.len() < MAX_STOPPING {
                        self.ending.stopping.push(socket);
                    }
                }
                Call::OpenUrl(url, socket) => self.urls.ask(&mut self.hub.link.session, url, socket),
                Call::Send(size, name, socket) => self.send_file(size, &name, socket),
                Call::Ended(code) => drop(self.ending.done.get_or_insert(Done::with(code))),
                Call::OwnerLeft => self.abandon(),
            }
        }
        let full = self.views.is_full();
        self.control_server.iter_mut().for_each(|server| server.set_full(full));
    }

    /// A viewer that has left for good cannot come again.
    pub(super) fn hear_views(&mut self) {
        for incarnation in self.views.take_gone() {
            self.control_server.iter_mut().for_each(|server| server.admission().forget_viewer(incarnation));
        }
    }

    /// The launcher is gone, which read what the program writes, and waited for its end.
    fn abandon(&mut self) {
        self.hub.link.orphan();
        if let Some(outlets) = &mut self.outlets {
            outlets.drain();
        }
    }

    /// Announces programs that outlived a display to the new one, each as a new connection.
    pub(super) fn show_again(&mut self, now: Time) {
        let Some(desk) = self.desk.clone() else { return };
        let compression = pixel_compression(self.config.compress, &self.hub.link.session);
        for (old, mut program) in std::mem::take(&mut self.programs.connections) {
            if program.core.is_attached() {
                self.programs.connections.insert(old, program);
                continue;
            }
            let id = self.programs.next_id();
            program.channel = self.hub.link.session.open(Header::Wayland { connection: id });
            program.core.attach(now, &desk, compression);
            self.programs.connections.insert(id, program);
        }
    }

    fn tell_document(&mut self, now: Time, socket: &OwnedFd) {
        let text = self.document(now).to_string();
        let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
        let _ = rustix::net::send(socket, text.as_bytes(), flags);
    }

    /// This side's figures, as a document.
    pub(super) fn document(&self, now: Time) -> Value {
        let programs = &self.programs.connections;
        let surfaces =
            programs.iter().flat_map(|(id, program)| program.core.fidelity().map(|surface| (*id, surface)));
        let on_gpu = programs
            .iter()
            .flat_map(|(id, program)| program.core.gpu_surfaces().map(|surface| (*id, surface)));
        let kept = programs.values().map(|program| program.core.kept());
        let kept = kept.fold(Kept::default(), |sum, one| Kept {
            pixels: sum.pixels + one.pixels,
            state: sum.state + one.state,
        });
        let state = match self.hub.link.presence() {
            Presence::Attached => State::Attached,
            Presence::Away => State::Away,
            Presence::Detached => State::Detached,
        };
        Figures::new(Side::App, &self.hub.link, programs.len(), now)
            .with_place(
                self.control_server.as_ref().map(ControlServer::name),
                state,
                self.hub.link.lasts(now),
            )
            .with_kept(kept, self.hub.link.session.retained())
            .with_surfaces(surfaces)
            .with_sound(self.sound.as_ref().map(Sound::document))
            .with_microphone(self.sound.as_ref().map(Sound::microphone_document))
            .with_encoder(encoder::in_use())
            .with_gpu(self.gpu.as_ref().map(|gpu| gpu.document(now, on_gpu)))
            .with_link(self.control_server.as_ref().and_then(|server| server.admission_there().active_link()))
            .with_views(self.views.viewers(now), self.views.figures())
            .document()
    }
}

/// Callers of `stop` that get an answer at the end.
const MAX_STOPPING: usize = 16;
