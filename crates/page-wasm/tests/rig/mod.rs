//! What an app side says of a small window, and how streams are read in a browser, for tests.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;

use wayferry_message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_proto::{
    Arrival, CloseReason, ConnectionId, Event, Header, StreamId, SurfaceId, Transmit, UpdateHeader, UpdateSeq,
};

pub(crate) const PROGRAM: ConnectionId = ConnectionId(1);
pub(crate) const SURFACE: WireId = WireId(8);
pub(crate) const KEYBOARD: WireId = WireId(22);

/// One direction: streams are read in order, as a page's are.
#[derive(Default)]
pub(crate) struct Way {
    pub(crate) lengths: BTreeMap<StreamId, u64>,
}

impl Way {
    /// What the other side receives.
    pub(crate) fn carry(&mut self, transmit: Transmit) -> Option<Vec<Arrival>> {
        Some(match transmit {
            Transmit::Data { stream, bytes, finish } => {
                let offset = self.lengths.entry(stream).or_default();
                let data = Arrival::Data { stream, offset: *offset, bytes: bytes.clone() };
                *offset += bytes.len() as u64;
                let end = finish.then_some(Arrival::Finished { stream, length: *offset });
                [data].into_iter().chain(end).collect()
            }
            Transmit::Reset { stream, code } => vec![Arrival::Reset { stream, code }],
            Transmit::Stop { stream, code } => vec![Arrival::Stopped { stream, code }],
            Transmit::Datagram { bytes } => vec![Arrival::Datagram { bytes }],
            Transmit::Close { code, reason } => {
                vec![Arrival::Closed { reason: CloseReason::from_wire(code, &reason) }]
            }
            Transmit::Open { .. } | Transmit::Prioritise { .. } => return None,
        })
    }
}

/// Two rows of four red pixels.
pub(crate) const RED: [u8; 13] = [0, 11, 0, 1, 0, 0, 0, 3, 1, 0, 0, 255, 7];

/// The update that brings them.
pub(crate) fn header() -> UpdateHeader {
    UpdateHeader {
        connection: PROGRAM,
        surface: SurfaceId(SURFACE.0),
        seq: UpdateSeq(1),
        size: (4, 2),
        format: 1,
        fresh: true,
        covers: 0,
        unit: None,
    }
}

/// The commit that shows it.
pub(crate) fn unit() -> ToDisplay {
    ToDisplay::Unit(Unit {
        surface: SURFACE,
        number: 1,
        state: Vec::new(),
        content: UnitContent::Update(UpdateSeq(1)),
        offset: (0, 0),
        feedback: false,
        answered: None,
        children: Vec::new(),
    })
}

/// What programs were told.
pub(crate) fn told(heard: &[Event]) -> Vec<ToApp> {
    let messages = heard.iter().filter_map(|event| match event {
        Event::Message { header: Header::Events { .. }, bytes, .. } => Some(ToApp::decode(bytes)),
        _ => None,
    });
    messages.map(|message| message.expect("a page says what it should")).collect()
}

/// The keys that programs were told, and whether each was pressed.
pub(crate) fn keys(heard: &[Event]) -> Vec<(u32, bool)> {
    let keys = told(heard).into_iter().filter_map(|message| match message {
        ToApp::Event(Request { object: KEYBOARD, opcode: 3, args }) => match args[..] {
            [_, _, WireArg::Uint(code), WireArg::Uint(state)] => Some((code, state == 1)),
            _ => None,
        },
        _ => None,
    });
    keys.collect()
}
