//! The messages of the main channel.
//!
//! Each is one frame of the control stream (`frame`); the first is a [`Hello`]. What they mean to a session is the
//! session's matter. Invariant: which messages reach the peer exactly once is decided here, and nowhere else.

mod frame;
mod hello;

use bytes::Bytes;

pub use self::hello::{Capabilities, Compression, Digest, Hello, MAX_SOFTWARE, Secret, SessionId, Versions};
use crate::file::{FileFate, FileOffer};
use crate::wire::{Reader, Writer};
use crate::{ConnectionId, Error, HostTime, Loss, Note, NoteEnd, Receipt, TrayAct, TrayItem, TrayMenu};

/// Longest frame of the main channel in bytes: a snapshot of [`MAX_SNAPSHOT`] with its fields around it.
pub const MAX_CONTROL: usize = MAX_SNAPSHOT + 64;

/// Longest [`Control::Snapshot`] in bytes.
pub const MAX_SNAPSHOT: usize = 64 << 10;

/// Longest message of a Wayland or event channel in bytes: a commit with some thousand subsurfaces.
pub const MAX_MESSAGE: usize = 1 << 20;

/// Longest text of an error in [`Control::AppClosed`], in bytes.
pub const MAX_ERROR_TEXT: usize = 512;

/// Longest address in [`Control::OpenUrl`], in bytes.
pub const MAX_URL: usize = 2048;

/// Most channels in [`Resume::stopped`].
pub const MAX_STOPPED: usize = 256;

/// What one side tells the other so that both can go on with their channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// What it has received of the other's channels.
    pub receipt: Receipt,
    /// Number and code of those of the other's channels that it stopped last: what [`Receipt::done`] does not say of
    /// them. At most [`MAX_STOPPED`].
    pub stopped: Vec<(u64, u32)>,
}

impl Resume {
    fn encode(&self, writer: &mut Writer) {
        self.receipt.encode(writer);
        writer.varint(self.stopped.len() as u64);
        for (number, code) in &self.stopped {
            writer.varint(*number).varint((*code).into());
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let receipt = Receipt::decode(reader)?;
        let count = reader.count(MAX_STOPPED, "the number of stopped channels")?;
        let stopped = (0..count).map(|_| Ok((reader.varint("a channel's number")?, code_of(reader)?)));
        Ok(Self { receipt, stopped: stopped.collect::<Result<_, Error>>()? })
    }
}

/// A message of the main channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// The first one, once each way. The session's own.
    Hello(Hello),
    /// Asks for a [`Control::Pong`]. The session's own.
    Ping {
        /// Returned as it is.
        token: u64,
        /// The sender's clock.
        sent: HostTime,
    },
    /// Answers a [`Control::Ping`]. The session's own.
    Pong {
        /// As in the ping.
        token: u64,
        /// The answerer's clock.
        received: HostTime,
    },
    /// Goes with a [`Control::Pong`]: what the link has lost of late of what the sender sent. Needs
    /// [`Capabilities::LOSS`]. The session's own.
    Loss(Loss),
    /// What the display side tells of its compositor; opaque here, ≤ [`MAX_SNAPSHOT`] bytes.
    Snapshot(Bytes),
    /// A program's connection ended at the sender.
    AppClosed {
        /// Which.
        connection: ConnectionId,
        /// Why, when it was not the program's own wish; ≤ [`MAX_ERROR_TEXT`] bytes.
        error: Option<String>,
    },
    /// The programs have ended with this status. The display answers by closing, so that it cannot get lost.
    Exit {
        /// Exit status as a shell shows it.
        code: i32,
    },
    /// The reader of a pipe has taken this many bytes since its beginning. The session's own.
    PipeCredit {
        /// Whose.
        connection: ConnectionId,
        /// Which pipe.
        pipe: u64,
        /// Bytes taken so far.
        consumed: u64,
    },
    /// A stream was refused because of its header. The session's own.
    Refused {
        /// The kind that it began with; 0 when none could be read.
        kind: u64,
    },
    /// Part of a channel that has no stream of its own. The session's own.
    Embedded {
        /// The virtual stream, counted by the sender beside its real ones.
        stream: u64,
        /// Where in the stream the bytes belong.
        offset: u64,
        /// The stream ends after them.
        finish: bool,
        /// The bytes.
        bytes: Bytes,
    },
    /// Gives up a virtual stream of the sender. The session's own.
    EmbeddedReset {
        /// The virtual stream.
        stream: u64,
        /// Why.
        code: u32,
    },
    /// Stops a virtual stream of the receiver. The session's own.
    EmbeddedStop {
        /// The virtual stream.
        stream: u64,
        /// Why.
        code: u32,
    },
    /// What has come of the receiver's channels since the last one; it need not be kept any more. The session's own.
    Received(Receipt),
    /// Goes on with the channels of an earlier carrier: from the display the first message after its hello, from the
    /// app side the answer to that. The session's own.
    Resume(Resume),
    /// Answers [`Control::Resume`]: there is nothing to go on with. The session's own.
    Declined,
    /// The sender gives one of its channels up, no matter what has become of its stream. The session's own.
    GivenUp {
        /// The channel's number.
        number: u64,
        /// Why.
        code: u32,
    },
    /// Which sound of the receiver's the sender of this wants to hear, and how that fares. Told again while it is
    /// heard, and on each carrier; best effort, see [`Session::listen`](crate::Session::listen).
    Listen(Listen),
    /// A program wants an address opened beside the display; from the app side.
    OpenUrl {
        /// Named in the answer.
        id: u64,
        /// The address as the program gave it, of at most [`MAX_URL`] bytes. It is not judged yet.
        url: String,
    },
    /// What became of a [`Control::OpenUrl`]; from the display side.
    UrlDone {
        /// As in the question.
        id: u64,
        /// Whether it is open.
        fate: UrlFate,
    },
    /// A program notifies the user; from the app side.
    Notify(Note),
    /// A program takes a notification back; from the app side.
    CloseNotification {
        /// Of [`Note::id`].
        id: u32,
    },
    /// A notification is not shown any more, or never was; from the display side.
    NotificationClosed {
        /// Of [`Note::id`].
        id: u32,
        /// Why.
        end: NoteEnd,
    },
    /// The user chose an action of a notification; from the display side.
    NotificationAction {
        /// Of [`Note::id`].
        id: u32,
        /// Of the action.
        key: String,
        /// With which the program may come to the front, if the desk gave one; at most
        /// [`MAX_TOKEN`](crate::note::MAX_TOKEN) bytes.
        token: Option<String>,
    },
    /// A file comes in a pipe of [`FILES`](crate::FILES); either side's.
    File(FileOffer),
    /// The display's user wants a file, which comes as a [`Control::File`]; from the display side.
    FetchFile {
        /// Named in the answer; counted with the sender's files.
        id: u64,
        /// Where it is, from the home directory there on; at most [`MAX_FILE_PATH`](crate::MAX_FILE_PATH) bytes.
        path: String,
    },
    /// What became of a file that the receiver of this offered, or wanted.
    FileDone {
        /// The receiver's number.
        id: u64,
        /// Whether it is there.
        fate: FileFate,
        /// Its path, if the app side has kept it and [`Capabilities::FILE_PLACES`] are agreed; at most
        /// [`MAX_FILE_PATH`](crate::MAX_FILE_PATH) bytes.
        place: Option<Vec<u8>>,
    },
    /// A program shows an icon in the tray, or changes it; from the app side.
    TrayItem(TrayItem),
    /// A program takes its icon away; from the app side.
    TrayGone {
        /// Of [`TrayItem::id`].
        id: u32,
    },
    /// The menu of an icon is so now; from the app side.
    TrayMenu(TrayMenu),
    /// The user does something with an icon; from the display side.
    TrayAct {
        /// Of [`TrayItem::id`].
        id: u32,
        /// What; `None` is something that only later builds know.
        act: Option<TrayAct>,
    },
    /// The desk has a tray, or has none any more; from the display side. It has forgotten all icons.
    Tray {
        /// It has one.
        is_there: bool,
    },
}

/// What became of an address that a program wanted to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum UrlFate {
    /// It was given to the desk's browser.
    Open = 0,
    /// The user refused, or could not be asked.
    Refused = 1,
    /// It is no address that may be opened.
    Unfit = 2,
    /// Too many came at once.
    TooMany = 3,
    /// There is no browser, or it cannot be started. Answers of later builds are taken for this one.
    Failed = 4,
}

impl UrlFate {
    fn from_code(code: u8) -> Self {
        let known = [Self::Open, Self::Refused, Self::Unfit, Self::TooMany];
        known.into_iter().find(|fate| *fate as u8 == code).unwrap_or(Self::Failed)
    }
}

/// See [`Control::Listen`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listen {
    /// The track of sound; 0 for none.
    pub track: u8,
    /// Bits in a second that it is to have; 0 if that does not matter.
    pub rate: u32,
    /// How long packets are held back against jitter, in milliseconds.
    pub target: u32,
    /// From the arrival of sound that came without jitter until it is heard, in milliseconds.
    pub delay: u32,
}

impl Listen {
    fn encode(&self, writer: &mut Writer) {
        writer.u8(self.track).varint(self.rate.into()).varint(self.target.into()).varint(self.delay.into());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let listen = Self {
            track: reader.u8("a track of sound")?,
            rate: reader.varint_u32("a rate of sound")?,
            target: reader.varint_u32("a target of sound")?,
            delay: reader.varint_u32("a delay of sound")?,
        };
        reader.rest(); // fields of later builds
        Ok(listen)
    }
}

impl Control {
    /// Whether the session sends and handles it itself; such a message is neither given to
    /// [`Session::control`](crate::Session::control) nor reported as an event.
    pub fn is_internal(&self) -> bool {
        !self.is_told() && !matches!(self, Self::Listen(_))
    }

    /// Whether somebody waits for it: not for what only keeps count or time.
    pub(crate) fn is_waited_for(&self) -> bool {
        !matches!(self, Self::Ping { .. } | Self::Pong { .. } | Self::Loss(_) | Self::Received(_))
    }

    /// Whether it reaches the peer exactly once in a session that is resumed, however often that is: those that are
    /// not told again by something else.
    pub(crate) fn is_lasting(&self) -> bool {
        self.is_told() || matches!(self, Self::GivenUp { .. })
    }

    /// Whether a user of the session tells it to the peer's, and it must arrive.
    fn is_told(&self) -> bool {
        let told = matches!(
            self,
            Self::Snapshot(_)
                | Self::AppClosed { .. }
                | Self::Exit { .. }
                | Self::OpenUrl { .. }
                | Self::UrlDone { .. }
                | Self::File(_)
                | Self::FetchFile { .. }
                | Self::FileDone { .. }
        );
        told || self.needs().is_some()
    }

    /// What both sides must be able to do if it is to be heard.
    pub(crate) fn needs(&self) -> Option<Capabilities> {
        let of_the_tray = matches!(
            self,
            Self::TrayItem(_)
                | Self::TrayGone { .. }
                | Self::TrayMenu(_)
                | Self::TrayAct { .. }
                | Self::Tray { .. }
        );
        match self.is_notification() {
            true => Some(Capabilities::NOTIFY),
            false => of_the_tray.then_some(Capabilities::TRAY),
        }
    }

    fn is_notification(&self) -> bool {
        matches!(
            self,
            Self::Notify(_)
                | Self::CloseNotification { .. }
                | Self::NotificationClosed { .. }
                | Self::NotificationAction { .. }
        )
    }
}

fn code_of(reader: &mut Reader<'_>) -> Result<u32, Error> {
    reader.varint_u32("a stream error code")
}

#[cfg(test)]
mod tests;
