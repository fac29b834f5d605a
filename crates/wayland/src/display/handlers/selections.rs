//! Drag and drop: lists of addresses that may name files of the desk are given by the run loop.

use rustix::pipe::{PipeFlags, pipe_with};

use crate::action::{DragStep, End};
use crate::message::{Request, ToApp, WireArg, WireId};
use crate::wire::Arg;

use super::super::connection::Connection;
use super::super::drags::{HIDDEN, LIST, MARK, Watched};
use super::super::handler::{Asked, Event, Handles};
use super::super::ops;

/// `wl_data_device`.
pub(super) struct DataDevice;

impl Handles for DataDevice {
    /// What a program of a session drags is known by a type of its own.
    fn before(&self, connection: &mut Connection, asked: Asked<'_>, args: &mut [Arg]) {
        if let ("start_drag", Some(Arg::Object(source))) = (asked.desc.name, args.first())
            && *source != 0
        {
            let args = vec![Arg::Str(Some(MARK.to_vec()))];
            let outcome = connection.send(*source, ops::DATA_SOURCE_OFFER, args);
            connection.settle(outcome);
        }
    }

    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        match (event.name, event.args) {
            ("enter", [.., Arg::Object(offer)]) => {
                connection.leave(event.object);
                if let Some(offer) = connection.objects.wire_of(*offer) {
                    connection.state.drags.enter(event.object, offer);
                    connection.reveal(offer);
                }
                Ok(())
            }
            ("selection", [Arg::Object(offer)]) => {
                if let Some(offer) = connection.objects.wire_of(*offer) {
                    connection.state.drags.selected(offer);
                    connection.reveal(offer);
                }
                Ok(())
            }
            ("leave", _) => {
                connection.leave(event.object);
                Ok(())
            }
            ("drop", _) => match connection.state.drags.dropped(event.object) {
                Some((offer, watched)) => {
                    connection.read_list(offer, watched)?;
                    connection.peer.drag(watched.number, DragStep::Dropped);
                    Ok(())
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// No `leave` comes any more, and the program may give the next device this one's name.
    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.leave(object);
        Ok(())
    }
}

/// `wl_data_offer`.
pub(super) struct DataOffer;

impl Handles for DataOffer {
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        if let ("offer", [Arg::Str(Some(kind))]) = (event.name, event.args) {
            connection.state.drags.offered(event.object, kind);
        }
        Ok(())
    }

    /// What may have to be hidden waits until the offer's place is known.
    fn hides(&self, event: Event<'_>) -> bool {
        is_of_mark(event) || matches!(event.args, [Arg::Str(Some(kind))] if HIDDEN.contains(&kind.as_slice()))
    }

    fn answers(&self, connection: &mut Connection, asked: Asked<'_>) -> Result<bool, End> {
        let ("receive", [WireArg::Str(Some(kind)), WireArg::Pipe(pipe)]) =
            (asked.desc.name, &asked.request.args[..])
        else {
            return Ok(false);
        };
        let offer = asked.request.object;
        if connection.state.drags.hides(offer, kind) {
            drop(connection.open_pipe(*pipe)?);
            return Ok(true);
        }
        let watched = if kind == LIST { connection.state.drags.watch(offer) } else { None };
        let Some(watched) = watched else { return Ok(false) };
        connection.read_list(offer, watched)?;
        connection.peer.drag(watched.number, DragStep::Wanted { pipe: *pipe });
        Ok(true)
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        if let Some(drag) = connection.state.drags.remove(object) {
            connection.peer.drag(drag, DragStep::Over);
            connection.tell_held();
        }
        Ok(())
    }
}

/// Every kind of source.
pub(super) struct Source;

impl Handles for Source {
    fn hides(&self, event: Event<'_>) -> bool {
        is_of_mark(event)
    }
}

/// Whether an event is about the type that the program does not know of.
fn is_of_mark(event: Event<'_>) -> bool {
    matches!(event.args.first(), Some(Arg::Str(Some(kind))) if kind == MARK)
}

impl Connection {
    /// What is dragged is not over the program any more, as this device has it.
    fn leave(&mut self, device: WireId) {
        if let Some(drag) = self.state.drags.leave(device) {
            self.peer.drag(drag, DragStep::Over);
        }
    }

    /// Tells the program the types of an offer that need not be hidden from it.
    fn reveal(&mut self, offer: WireId) {
        for kind in self.state.drags.reveal(offer) {
            let args = vec![WireArg::Str(Some(kind.to_vec()))];
            self.tell(&ToApp::Event(Request { object: offer, opcode: OFFER_OFFER, args }));
        }
    }

    /// Has the run loop read the list of an offer, once.
    fn read_list(&mut self, offer: WireId, watched: Watched) -> Result<(), End> {
        let (true, Some(id)) = (watched.new, self.objects.live(offer)) else { return Ok(()) };
        let (read, write) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|_| End::TooMuch("open file descriptors"))?;
        self.send(id, ops::DATA_OFFER_RECEIVE, vec![Arg::Str(Some(LIST.to_vec())), Arg::Fd(write)])?;
        self.peer.drag(watched.number, DragStep::List(read));
        Ok(())
    }
}

/// `wl_data_offer.offer`.
const OFFER_OFFER: u16 = 0;
