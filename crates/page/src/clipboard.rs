//! The clipboard of a page that is a display: whose the selection is, and which bytes go where.
//!
//! It is a program's, or the browser's. What a program selects is fetched at once, for the browser; who pastes it gets
//! it from the program. Invariants: only who has the keyboard selects, or who had it last and does so by an event of
//! then; who has it is told what is selected before it hears of the next key; a source that has lost the selection was
//! told so; each pipe that a program gave is answered once.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wayferry_message::{WireArg, WireId};
use wayferry_proto::{ConnectionId, Time};

use crate::ask::Clipping;
use crate::program::Program;

/// Bytes of text that cross between a program and the browser.
pub const MAX_COPIED_TEXT: usize = 1 << 20;
/// Bytes of a picture that do.
pub const MAX_COPIED_PICTURE: usize = 8 << 20;

/// What a browser can have in its clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clip {
    /// Text in UTF-8.
    Text(Bytes),
    /// A picture, as PNG.
    Picture(Bytes),
}

impl Clip {
    fn bytes(&self) -> &Bytes {
        let (Self::Text(bytes) | Self::Picture(bytes)) = self;
        bytes
    }

    fn kinds(&self) -> &'static [&'static str] {
        match self {
            Self::Text(_) => &TEXT,
            Self::Picture(_) => &PICTURE,
        }
    }

    fn fits(&self) -> bool {
        match self {
            Self::Text(text) => text.len() <= MAX_COPIED_TEXT,
            Self::Picture(picture) => picture.len() <= MAX_COPIED_PICTURE,
        }
    }
}

/// A pipe of a program, by its number there. The app side makes even numbers, and wants bytes through these; what comes
/// through odd ones a program writes.
pub type Pipe = (ConnectionId, u64);

/// What is to be done with pipes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transfer {
    /// These bytes go through it, and no more.
    Send {
        /// Who waits for them.
        to: Pipe,
        /// All of them.
        bytes: Bytes,
    },
    /// What comes through one goes through the other.
    Relay {
        /// Who writes.
        from: Pipe,
        /// Who waits.
        to: Pipe,
    },
    /// What comes is for [`Page::on_collected`](crate::Page::on_collected); what was collected before is not wanted any
    /// more.
    Collect {
        /// Who writes.
        from: Pipe,
        /// Bytes; if there are more, none are wanted.
        most: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    Program { connection: ConnectionId, source: WireId },
    Browser(Clip),
}

/// A program's last time with the keyboard.
#[derive(Debug, Clone, Copy)]
struct Before {
    connection: ConnectionId,
    /// Its serials then: the last before, and the last.
    first: u32,
    last: u32,
    end: Time,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Clipboard {
    owner: Option<Owner>,
    /// Counts the owners: an offer is good for one of them.
    selection: u64,
    /// Who has the keyboard.
    inside: Option<ConnectionId>,
    /// That one's last serial before.
    first: u32,
    /// What that one was told of.
    told: Option<u64>,
    /// Who had the keyboard before, unless another one or the browser has selected since.
    before: Option<Before>,
    /// When the user or a program last did something.
    now: Time,
    transfers: VecDeque<Transfer>,
    /// What is collected, and whether it is a picture.
    collecting: Option<(Pipe, bool)>,
    copied: Option<Clip>,
}

type Programs = BTreeMap<ConnectionId, Program>;

impl Clipboard {
    /// It is so late, or later.
    pub(crate) fn at(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Another program has the keyboard, or none.
    pub(crate) fn enter(&mut self, programs: &mut Programs, inside: Option<ConnectionId>) {
        if self.inside != inside {
            let serial = |of: ConnectionId| programs.get(&of).map(Program::serial);
            let leaving = self.inside.and_then(|connection| {
                Some(Before { connection, first: self.first, last: serial(connection)?, end: self.now })
            });
            self.before = leaving.or(self.before).filter(|before| Some(before.connection) != inside);
            self.first = inside.and_then(serial).unwrap_or_default();
            (self.inside, self.told) = (inside, None);
        }
        self.tell(programs);
    }

    /// A program is gone.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if matches!(self.owner, Some(Owner::Program { connection: owner, .. }) if owner == connection) {
            self.set(None);
        }
        self.inside = self.inside.filter(|inside| *inside != connection);
        self.before = self.before.filter(|before| before.connection != connection);
    }

    /// A program has done something with it.
    pub(crate) fn meet(&mut self, programs: &mut Programs, connection: ConnectionId) {
        let control = programs.get_mut(&connection).and_then(Program::control_mut);
        let clippings = control.map(|control| std::mem::take(&mut control.clippings)).unwrap_or_default();
        for clipping in clippings {
            match clipping {
                Clipping::Device(device) if self.inside == Some(connection) => {
                    self.tell_device(programs, connection, device);
                }
                Clipping::Device(_) => {}
                Clipping::Select { source, serial } => self.select(programs, connection, source, serial),
                Clipping::Refuse(source) => cancel(programs, connection, source),
                Clipping::Gone(source) => {
                    if self.owner == Some(Owner::Program { connection, source }) {
                        self.set(None);
                    }
                }
                Clipping::Receive { selection, kind, pipe } => {
                    self.receive(programs, selection, &kind, (connection, pipe));
                }
            }
            self.tell(programs);
        }
    }

    fn select(
        &mut self,
        programs: &mut Programs,
        connection: ConnectionId,
        source: Option<WireId>,
        serial: u32,
    ) {
        let owner = source.map(|source| Owner::Program { connection, source });
        if owner.is_some() && self.owner == owner {
            return;
        }
        if self.inside == Some(connection) {
            self.before = None;
        } else if !self.was_on_the_way(connection, source, serial) {
            return source.into_iter().for_each(|source| cancel(programs, connection, source));
        }
        self.replace(programs, owner);
        if let Some(source) = source {
            self.fetch(programs, connection, source);
        }
    }

    /// Whether a program without the keyboard selects by an event that it got while it had it, a moment ago: the user
    /// has gone on to another one within a round trip. What is another's it does not clear.
    fn was_on_the_way(&self, connection: ConnectionId, source: Option<WireId>, serial: u32) -> bool {
        let is_own =
            matches!(&self.owner, Some(Owner::Program { connection: owner, .. }) if *owner == connection);
        let of_then = |Before { first, last, end, .. }: Before| {
            let is_its = (1..=last.wrapping_sub(first)).contains(&serial.wrapping_sub(first));
            is_its && self.now.since(end) <= ON_THE_WAY
        };
        let before = self.before.filter(|before| before.connection == connection);
        before.is_some_and(of_then) && (source.is_some() || is_own)
    }

    fn set(&mut self, owner: Option<Owner>) {
        self.owner = owner;
        self.selection += 1;
    }

    /// The selection is another one's; whose it was is told.
    fn replace(&mut self, programs: &mut Programs, owner: Option<Owner>) {
        if let Some(Owner::Program { connection, source }) = self.owner {
            cancel(programs, connection, source);
        }
        self.set(owner);
    }

    /// Has the browser's form of what a program offers collected: text before a picture.
    fn fetch(&mut self, programs: &mut Programs, connection: ConnectionId, source: WireId) {
        let Some(program) = programs.get_mut(&connection) else { return };
        let offered: Vec<&[u8]> = kinds(program, source).collect();
        let known = TEXT.iter().chain(&PICTURE).find(|kind| offered.contains(&kind.as_bytes()));
        let Some(kind) = known.copied() else { return };
        let is_picture = PICTURE.contains(&kind);
        let from = (connection, ask(program, source, kind.as_bytes()));
        let most = if is_picture { MAX_COPIED_PICTURE } else { MAX_COPIED_TEXT };
        self.collecting = Some((from, is_picture));
        self.transfers.push_back(Transfer::Collect { from, most });
    }

    /// Bytes go to who wants them; none where there are none of the kind, or not any more.
    fn receive(&mut self, programs: &mut Programs, selection: u64, kind: &[u8], to: Pipe) {
        let owner = self.owner.as_ref().filter(|_| selection == self.selection);
        let transfer = match owner {
            Some(Owner::Browser(clip)) if clip.kinds().iter().any(|known| known.as_bytes() == kind) => {
                Transfer::Send { to, bytes: clip.bytes().clone() }
            }
            Some(&Owner::Program { connection, source }) => match programs.get_mut(&connection) {
                Some(program) if kinds(program, source).any(|known| known == kind) => {
                    Transfer::Relay { from: (connection, ask(program, source, kind)), to }
                }
                _ => Transfer::Send { to, bytes: Bytes::new() },
            },
            _ => Transfer::Send { to, bytes: Bytes::new() },
        };
        self.transfers.push_back(transfer);
    }

    /// The user pastes what the browser has. What it was known to have does not take the place of what a program has
    /// selected since.
    pub(crate) fn offer(&mut self, programs: &mut Programs, clip: Clip, is_new: bool) {
        let is_programs = matches!(self.owner, Some(Owner::Program { .. }));
        if !clip.fits() || (is_programs && !is_new) || self.owner == Some(Owner::Browser(clip.clone())) {
            return;
        }
        self.replace(programs, Some(Owner::Browser(clip)));
        self.before = None;
        self.tell(programs);
    }

    /// Tells who has the keyboard what is selected, unless it was told.
    pub(crate) fn tell(&mut self, programs: &mut Programs) {
        let Some(inside) = self.inside else { return };
        if self.told.replace(self.selection) != Some(self.selection) {
            let control = programs.get(&inside).and_then(Program::control);
            let devices = control.map(|control| control.client.devices()).unwrap_or_default();
            devices.into_iter().for_each(|device| self.tell_device(programs, inside, device));
        }
    }

    fn tell_device(&self, programs: &mut Programs, connection: ConnectionId, device: WireId) {
        let kinds: Vec<Vec<u8>> = match &self.owner {
            None => Vec::new(),
            Some(Owner::Browser(clip)) => clip.kinds().iter().map(|kind| kind.as_bytes().to_vec()).collect(),
            Some(Owner::Program { connection, source }) => {
                let kinds = programs.get(connection).map(|program| kinds(program, *source));
                kinds.into_iter().flatten().map(<[u8]>::to_vec).collect()
            }
        };
        let Some(program) = programs.get_mut(&connection) else { return };
        let is_any = self.owner.is_some();
        let offer = if is_any { program.make_offer(self.selection) } else { None };
        if let Some(offer) = offer {
            program.event(device, DEVICE_DATA_OFFER, vec![WireArg::NewId(offer)]);
            for kind in kinds {
                program.event(offer, OFFER_OFFER, vec![WireArg::Str(Some(kind))]);
            }
        }
        program.event(device, DEVICE_SELECTION, vec![WireArg::Object(offer.unwrap_or(WireId::NULL))]);
    }

    /// What is to be done with pipes next.
    pub(crate) fn poll_transfer(&mut self) -> Option<Transfer> {
        self.transfers.pop_front()
    }

    /// What was to be collected is there; nothing if it broke off, or was too much.
    pub(crate) fn collected(&mut self, from: Pipe, bytes: Option<Bytes>) {
        let Some((_, is_picture)) = self.collecting.take_if(|(pipe, _)| *pipe == from) else { return };
        let clip = bytes.map(if is_picture { Clip::Picture } else { Clip::Text });
        self.copied = clip.filter(|clip| clip.fits() && !clip.bytes().is_empty());
    }

    /// What the browser is to have, once.
    pub(crate) fn poll_copied(&mut self) -> Option<Clip> {
        self.copied.take()
    }
}

/// The kinds that a source has, if it is there.
fn kinds(program: &Program, source: WireId) -> impl Iterator<Item = &[u8]> {
    program.control().and_then(|control| control.client.kinds(source)).into_iter().flatten()
}

/// Has a source's program write; gives the pipe's number.
fn ask(program: &mut Program, source: WireId, kind: &[u8]) -> u64 {
    let pipe = program.next_pipe();
    program.event(source, SOURCE_SEND, vec![WireArg::Str(Some(kind.to_vec())), WireArg::Pipe(pipe)]);
    pipe
}

/// What a source offers is not wanted any more.
fn cancel(programs: &mut Programs, connection: ConnectionId, source: WireId) {
    if let Some(program) = programs.get_mut(&connection)
        && program.control().is_some_and(|control| control.client.kinds(source).is_some())
    {
        program.event(source, SOURCE_CANCELLED, Vec::new());
    }
}

/// A round trip over the worst of links, and what a program takes to answer.
const ON_THE_WAY: Duration = Duration::from_secs(5);

/// The kinds of text that have the same bytes here, the best known first.
const TEXT: [&str; 3] = ["text/plain;charset=utf-8", "UTF8_STRING", "text/plain"];
const PICTURE: [&str; 1] = ["image/png"];

// Opcodes are the places of events in the protocol's file.

const DEVICE_DATA_OFFER: u16 = 0;
const DEVICE_SELECTION: u16 = 5;
const OFFER_OFFER: u16 = 0;
const SOURCE_SEND: u16 = 1;
const SOURCE_CANCELLED: u16 = 2;
