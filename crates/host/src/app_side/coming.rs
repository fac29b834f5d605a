//! Displays come and go; the session stays.
//!
//! What a display knew of the programs goes with it; each program's core announces everything anew to the next one.
//! Orders from the control socket are carried out here, too. Which display the session has is decided in `displays`.
//! Invariant: no order is answered twice.

use std::os::fd::OwnedFd;

use serde_json::Value;
use wayferry_proto::admission::{Entry, Role};
use wayferry_proto::succession::Presence;
use wayferry_proto::{Candidate, CloseReason, Header, Side, Time};
use wayferry_wayland::app::Kept;
use wayferry_wayland::encoder;

use super::ending::Done;
use super::links::NO_LINK;
use super::sound::Sound;
use super::{AppSide, pixel_compression};
use crate::control::Answer;
use crate::control_server::{Call, ControlServer, answer};
use crate::info::{Figures, State};
use crate::link::Link;

impl AppSide<'_> {
    /// Carries out the orders from the control socket.
    pub(super) fn take_calls(&mut self, now: Time) {
        while let Some(call) = self.control_server.as_mut().and_then(ControlServer::poll_call) {
            match call {
                Call::Display(entry, candidate) => self.take_candidate(now, entry, *candidate),
                Call::Info(socket) => self.tell_document(now, &socket),
                Call::Detach(socket) => {
                    self.send_display_away(now);
                    answer(&socket, &Answer::Done);
                }
                Call::DetachViews(socket) => {
                    let none = self.views.count() == 0;
                    self.views.dismiss(now);
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
                    let any = self.send_guests_away(now, revoked);
                    answer(&socket, &if any { Answer::Done } else { Answer::Not(NO_LINK.into()) });
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
        let free = self.views.free();
        self.control_server.iter_mut().for_each(|server| server.set_free(free));
    }

    /// A display was let in. It is turned away if it is known no more: another came right after it, or an order that
    /// was carried out since has sent it away.
    fn take_candidate(&mut self, now: Time, Entry { role, link }: Entry, candidate: Candidate<Link>) {
        let mut admission = self.control_server.as_mut().map(ControlServer::admission);
        if admission.as_mut().is_some_and(|admission| !admission.knows(role, &candidate)) {
            let replaced =
                role == Role::Active && admission.is_some_and(|admission| admission.stay().is_some());
            let mut link = candidate.begin(now);
            // Its first words tell it that it was let in.
            link.session.on_timeout(now);
            link.transmit(now);
            link.session.close(if replaced { CloseReason::Gone } else { CloseReason::Done });
            return link.transmit(now);
        }
        match role {
            Role::Active => {
                let stay = admission.and_then(|admission| admission.stay());
                self.take_display(now, candidate, stay);
            }
            Role::View => self.views.take(now, candidate, link),
        }
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
            .with_link(self.active_link())
            .with_views(self.views.viewers(now), self.views.figures())
            .document()
    }
}

/// Callers of `stop` that get an answer at the end.
const MAX_STOPPING: usize = 16;

#[cfg(test)]
mod tests {
    use rustix::net::{RecvFlags, SendFlags};
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use wayferry_net::Fingerprint;
    use wayferry_proto::{Capabilities, Config, Secret};

    use super::*;
    use crate::admission::Admission;
    use crate::admission::tests::{come, hello_as};
    use crate::app_side::displays::tests::app_side;
    use crate::clock::Clock;
    use crate::control::{self, Request};
    use crate::edge::part::{Loop, alone};
    use crate::edge::socket::RuntimeDir;
    use crate::edge::wait::Ready;
    use crate::event::Reporter;
    use crate::sessions::Named;

    fn secret(byte: u8) -> Secret {
        Secret::from([byte; 32])
    }

    /// A session with a control socket, and without programs.
    fn session(dir: &Path) -> AppSide<'static> {
        let reporter = Reporter::new(drop);
        let named = Named::claim_in(dir, &[dir.to_owned()], "foot", true).expect("free");
        let config = Config { capabilities: Capabilities::RESUME, ..Config::new(Side::App) };
        let admission = Admission::new(None, Fingerprint([7; 32]), config, reporter.clone());
        let server = ControlServer::new(named, admission, reporter.clone());
        app_side(Clock::start(), reporter).with_control_server(server)
    }

    fn admission<'a>(side: &'a mut AppSide<'_>) -> &'a mut Admission {
        side.control_server.as_mut().expect("it has one").admission()
    }

    /// A display comes, with what it was given for its first visit, or with nothing but its incarnation.
    fn visit(side: &mut AppSide<'_>, number: u8, first: Option<Role>) {
        let (certificate, now) = (Fingerprint([number; 32]), side.hub.clock.now());
        let given = first.map(|role| {
            admission(side).invite(role, certificate, secret(100 + number), None, now);
            secret(100 + number)
        });
        let said = hello_as(given.unwrap_or(secret(200)), secret(number));
        admission(side).add(come(said), certificate, now);
    }

    /// A turn in which this order is heard.
    fn order(side: &mut AppSide<'_>, dir: &Path, request: &Request) -> String {
        let socket = OwnedFd::from(UnixStream::connect(dir.join("foot")).expect("it listens"));
        rustix::net::send(&socket, &control::line(request), SendFlags::NOSIGNAL).expect("there is room");
        let ready = alone::ready(side);
        turn(side, &ready);
        let mut heard = [0; 64];
        let (length, _) = rustix::net::recv(&socket, &mut heard, RecvFlags::DONTWAIT).expect("an answer");
        String::from_utf8_lossy(&heard[..length]).into_owned()
    }

    fn turn(side: &mut AppSide<'_>, ready: &Ready) {
        let now = side.hub.clock.now();
        assert_eq!(side.turn(now, ready).expect("it goes on"), None);
    }

    #[test]
    fn regression_who_is_sent_away_comes_again_in_the_same_turn_and_stays() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut side = session(dir.path());
        visit(&mut side, 1, Some(Role::Active));
        visit(&mut side, 2, Some(Role::View));
        visit(&mut side, 3, Some(Role::View));
        turn(&mut side, &Ready::default());
        assert_eq!((side.hub.link.presence(), side.views.count()), (Presence::Attached, 2));

        visit(&mut side, 1, None);
        assert_eq!(order(&mut side, dir.path(), &Request::Detach), "done\n");
        assert_eq!(side.hub.link.presence(), Presence::Detached);
        visit(&mut side, 2, None);
        assert_eq!(order(&mut side, dir.path(), &Request::DetachView(1)), "done\n");
        assert_eq!(side.views.count(), 1);
        visit(&mut side, 3, None);
        assert_eq!(order(&mut side, dir.path(), &Request::DetachViews), "done\n");
        assert_eq!(side.views.count(), 0);
        (1..4).for_each(|number| visit(&mut side, number, None));
        turn(&mut side, &Ready::default());
        assert_eq!((side.hub.link.presence(), side.views.count()), (Presence::Detached, 0));
    }

    #[test]
    fn regression_who_comes_as_another_is_sent_away_cannot_come_again() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut side = session(dir.path());
        visit(&mut side, 1, Some(Role::Active));
        visit(&mut side, 2, Some(Role::View));
        turn(&mut side, &Ready::default());
        visit(&mut side, 3, Some(Role::Active));
        assert_eq!(order(&mut side, dir.path(), &Request::Detach), "done\n");
        assert_eq!(side.hub.link.presence(), Presence::Attached);
        assert!(admission(&mut side).stay().is_some(), "it was not meant");
        visit(&mut side, 4, Some(Role::View));
        assert_eq!(order(&mut side, dir.path(), &Request::DetachViews), "done\n");
        assert_eq!(side.views.count(), 1);
        visit(&mut side, 4, None);
        let come = admission(&mut side).turn(Time::ZERO);
        assert_eq!(come.len(), 1, "it was not meant");
    }
}
