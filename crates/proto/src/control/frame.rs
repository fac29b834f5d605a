//! The bytes of the main channel's messages: a varint type, then the fields.
//!
//! A type that this build does not know is passed over. Invariant: what is decoded keeps to every bound of its fields.

use bytes::Bytes;

use super::hello::Hello;
use super::{Control, Listen, MAX_ERROR_TEXT, MAX_SNAPSHOT, MAX_URL, Resume, UrlFate, code_of};
use crate::file::{self, FileFate, FileOffer, MAX_FILE_PATH};
use crate::note::{MAX_ACTION, MAX_TOKEN};
use crate::tray::item_id;
use crate::wire::{Reader, Writer};
use crate::{
    ConnectionId, Error, HostTime, Loss, Note, NoteEnd, Receipt, TrayAct, TrayItem, TrayMenu, sanitise,
};

impl Control {
    /// Appends the message, without a length.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Hello(hello) => {
                writer.varint(1);
                hello.encode(writer);
            }
            Self::Ping { token, sent } => {
                writer.varint(2).varint(*token).varint(sent.0);
            }
            Self::Pong { token, received } => {
                writer.varint(3).varint(*token).varint(received.0);
            }
            Self::Snapshot(bytes) => {
                writer.varint(4).raw(bytes);
            }
            Self::AppClosed { connection, error } => {
                writer.varint(5).varint(connection.0.into()).bool(error.is_some());
                if let Some(error) = error {
                    writer.str(&sanitise(error, MAX_ERROR_TEXT));
                }
            }
            Self::Exit { code } => {
                writer.varint(6).i32(*code);
            }
            Self::PipeCredit { connection, pipe, consumed } => {
                writer.varint(7).varint(connection.0.into()).varint(*pipe).varint(*consumed);
            }
            Self::Refused { kind } => {
                writer.varint(8).varint(*kind);
            }
            Self::Embedded { stream, offset, finish, bytes } => {
                writer.varint(9).varint(*stream).varint(*offset).bool(*finish).raw(bytes);
            }
            Self::EmbeddedReset { stream, code } => {
                writer.varint(10).varint(*stream).varint((*code).into());
            }
            Self::EmbeddedStop { stream, code } => {
                writer.varint(11).varint(*stream).varint((*code).into());
            }
            Self::Received(receipt) => {
                writer.varint(12);
                receipt.encode(writer);
            }
            Self::Resume(resume) => {
                writer.varint(13);
                resume.encode(writer);
            }
            Self::Declined => {
                writer.varint(14);
            }
            Self::GivenUp { number, code } => {
                writer.varint(15).varint(*number).varint((*code).into());
            }
            Self::Listen(listen) => {
                writer.varint(16);
                listen.encode(writer);
            }
            Self::Loss(loss) => {
                writer.varint(31).varint(loss.packets).varint(loss.lost);
            }
            told => told.encode_for_desk(writer),
        }
    }

    /// The same for what concerns the user's desk: addresses, notifications, files.
    fn encode_for_desk(&self, writer: &mut Writer) {
        match self {
            Self::OpenUrl { id, url } => {
                writer.varint(17).varint(*id).str(url);
            }
            Self::UrlDone { id, fate } => {
                writer.varint(18).varint(*id).u8(*fate as u8);
            }
            Self::Notify(note) => {
                writer.varint(19);
                note.encode(writer);
            }
            Self::CloseNotification { id } => {
                writer.varint(20).varint((*id).into());
            }
            Self::NotificationClosed { id, end } => {
                writer.varint(21).varint((*id).into()).u8(*end as u8);
            }
            Self::NotificationAction { id, key, token } => {
                writer.varint(22).varint((*id).into()).str(&sanitise(key, MAX_ACTION));
                // One that was cut would be no token.
                let token = token.as_deref().filter(|token| token.len() <= MAX_TOKEN);
                writer.str(token.unwrap_or_default());
            }
            Self::File(offer) => {
                writer.varint(23);
                offer.encode(writer);
            }
            Self::FetchFile { id, path } => {
                writer.varint(24).varint(*id).str(path);
            }
            Self::FileDone { id, fate, place } => {
                writer.varint(25).varint(*id).u8(*fate as u8);
                if let Some(place) = place {
                    writer.bytes(place);
                }
            }
            Self::TrayItem(_)
            | Self::TrayGone { .. }
            | Self::TrayMenu(_)
            | Self::TrayAct { .. }
            | Self::Tray { .. } => self.encode_tray(writer),
            // `encode` knows all others.
            _ => {}
        }
    }

    /// Reads one message. `Ok(None)` is a type that this build does not know, to be ignored.
    pub fn decode(frame: &Bytes) -> Result<Option<Self>, Error> {
        let mut reader = Reader::new(frame);
        let code = reader.varint("a control message")?;
        let message = match code {
            1 => Self::Hello(Hello::decode(&mut reader)?),
            2 => Self::Ping { token: reader.varint("a token")?, sent: HostTime(reader.varint("a clock")?) },
            3 => {
                Self::Pong { token: reader.varint("a token")?, received: HostTime(reader.varint("a clock")?) }
            }
            4 if reader.remaining() > MAX_SNAPSHOT => {
                let got = reader.remaining() as u64;
                return Err(Error::OutOfRange { expected: "a snapshot", max: MAX_SNAPSHOT as u64, got });
            }
            4 => Self::Snapshot(frame.slice_ref(reader.rest())),
            5 => Self::AppClosed {
                connection: ConnectionId(reader.varint_u32("a connection id")?),
                error: match reader.bool("the error flag")? {
                    true => Some(sanitise(reader.str(MAX_ERROR_TEXT, "an error text")?, MAX_ERROR_TEXT)),
                    false => None,
                },
            },
            6 => Self::Exit { code: reader.i32("an exit status")? },
            7 => Self::PipeCredit {
                connection: ConnectionId(reader.varint_u32("a connection id")?),
                pipe: reader.varint("a pipe id")?,
                consumed: reader.varint("a number of bytes")?,
            },
            8 => Self::Refused { kind: reader.varint("a stream kind")? },
            9 => Self::Embedded {
                stream: reader.varint("a stream id")?,
                offset: reader.varint("an offset")?,
                finish: reader.bool("the finish flag")?,
                bytes: frame.slice_ref(reader.rest()),
            },
            10 => Self::EmbeddedReset { stream: reader.varint("a stream id")?, code: code_of(&mut reader)? },
            11 => Self::EmbeddedStop { stream: reader.varint("a stream id")?, code: code_of(&mut reader)? },
            12 => Self::Received(Receipt::decode(&mut reader)?),
            13 => Self::Resume(Resume::decode(&mut reader)?),
            14 => Self::Declined,
            15 => match reader.varint("a channel's number")? {
                0 => return Err(Error::Unknown { expected: "a channel's number from 1", got: 0 }),
                number => Self::GivenUp { number, code: code_of(&mut reader)? },
            },
            16 => Self::Listen(Listen::decode(&mut reader)?),
            31 => Self::Loss(loss(&mut reader)?),
            17 => Self::OpenUrl {
                id: reader.varint("the number of a question")?,
                url: reader.str(MAX_URL, "an address")?.to_owned(),
            },
            18 => Self::UrlDone {
                id: reader.varint("the number of a question")?,
                fate: UrlFate::from_code(reader.u8("what became of an address")?),
            },
            19 => Self::Notify(Note::decode(&mut reader)?),
            20 => Self::CloseNotification { id: note_id(&mut reader)? },
            21 => Self::NotificationClosed {
                id: note_id(&mut reader)?,
                end: NoteEnd::from_code(reader.u8("why a notification has gone")?.into()),
            },
            22 => Self::NotificationAction {
                id: note_id(&mut reader)?,
                key: sanitise(reader.str(MAX_ACTION, "an action's key")?, MAX_ACTION),
                token: Some(sanitise(reader.str(MAX_TOKEN, "an activation token")?, MAX_TOKEN))
                    .filter(|token| !token.is_empty()),
            },
            23 => Self::File(FileOffer::decode(&mut reader)?),
            24 => Self::FetchFile {
                id: reader.varint("the number of a request for a file")?,
                path: reader.str(MAX_FILE_PATH, "the path of a file")?.to_owned(),
            },
            25 => Self::FileDone {
                id: reader.varint("the number of a file")?,
                fate: FileFate::from_code(reader.u8("what became of a file")?),
                place: file::place(&mut reader)?,
            },
            26..=30 => Self::decode_tray(code, &mut reader)?,
            _ => return Ok(None),
        };
        reader.finish("a control message")?;
        Ok(Some(message))
    }

    /// Those of the tray.
    fn encode_tray(&self, writer: &mut Writer) {
        match self {
            Self::TrayItem(item) => {
                writer.varint(26);
                item.encode(writer);
            }
            Self::TrayGone { id } => {
                writer.varint(27).varint((*id).into());
            }
            Self::TrayMenu(menu) => {
                writer.varint(28);
                menu.encode(writer);
            }
            Self::TrayAct { id, act } => {
                writer.varint(29).varint((*id).into());
                match act {
                    Some(act) => act.encode(writer),
                    None => drop(writer.u8(u8::MAX)),
                }
            }
            Self::Tray { is_there } => {
                writer.varint(30).bool(*is_there);
            }
            _ => {}
        }
    }

    /// Those of the tray.
    fn decode_tray(code: u64, reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match code {
            26 => Self::TrayItem(TrayItem::decode(reader)?),
            27 => Self::TrayGone { id: item_id(reader)? },
            28 => Self::TrayMenu(TrayMenu::decode(reader)?),
            29 => Self::TrayAct { id: item_id(reader)?, act: TrayAct::decode(reader)? },
            _ => Self::Tray { is_there: reader.bool("whether there is a tray")? },
        })
    }
}

fn loss(reader: &mut Reader<'_>) -> Result<Loss, Error> {
    let packets = reader.varint("a number of packets")?;
    match reader.varint("a number of lost packets")? {
        lost if lost > packets => {
            Err(Error::OutOfRange { expected: "a number of lost packets", max: packets, got: lost })
        }
        lost => Ok(Loss { packets, lost }),
    }
}

fn note_id(reader: &mut Reader<'_>) -> Result<u32, Error> {
    reader.varint_u32("the number of a notification")
}
