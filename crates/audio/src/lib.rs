//! Sound of a session: what a sender decides, what crosses the link, and what a receiver plays of it.
//!
//! A [`Sender`] takes frames of encoded sound and decides how each is sent: on which short reliable stream, in which
//! datagram. A [`Player`] takes the packets that arrive and fills the buffers of a sound device: it keeps packets
//! (`buffer`) as long as the link's jitter demands (`jitter`), makes up what is missing (`conceal`), and follows the
//! clocks of both sound cards by cutting out or repeating a few milliseconds here and there (`splice`).
//!
//! It opens no socket and no sound device, starts no thread and reads no clock; it neither captures nor mixes. The
//! caller passes the time, that of the run loop. Sound is 48 kHz stereo.
//!
//! Where to begin: [`Player`], then `player/steer.rs` for how it follows the target; docs/sound.md has the figures.
//!
//! Invariants: all that a peer can make grow has a named limit; while playout is near the target, decoded samples are
//! played unchanged.

mod buffer;
mod codec;
mod conceal;
mod elsewhere;
mod error;
mod flow;
mod gate;
mod jitter;
#[cfg(feature = "opus")]
mod opus;
mod packet;
mod pcm;
mod player;
mod sample;
mod sender;
mod splice;

pub use buffer::{Drop, MAX_AHEAD};
pub use codec::Codec;
pub use conceal::Decoder;
pub use elsewhere::Elsewhere;
pub use error::Error;
pub use flow::{Ear, Flow};
pub use gate::{Gate, Turn};
pub use jitter::{Jitter, TARGET_MAX};
#[cfg(feature = "opus")]
pub use opus::{Opus, OpusEncoder};
pub use packet::{Flags, MAX_IN_DATAGRAM, MAX_PAYLOAD, MAX_TRACK, Packet, Packets, datagram};
pub use pcm::{Pcm, encode as encode_pcm};
pub use player::{Dropped, Figures, Player};
pub use sample::{CHANNELS, FrameSize, Position, RATE, from_i16, to_i16};
pub use sender::{Link, MAX_GROUPS, Mode, Outgoing, Sender};
pub use splice::{Splice, find, lengthen, shorten};
