//! Sound in a session: what is captured on one side is heard on the other.
//!
//! `Sending` takes a capture's frames to one receiver, [`Flow`] takes what arrives to what plays
//! it; [`Hearing`] does that at the desk, [`Speaking`] sends its microphone. All are cheap, and belong to the run loop.
//! The work is done by the threads of `wayferry-sound`. It decides nothing about how frames cross the link, or when
//! they are heard: `wayferry-audio` does. Invariant: nothing is sent that was not asked for.

mod hearing;
mod sending;
mod server;
mod speaking;

use std::str::FromStr;

use wayferry_sound::Codec;

pub use hearing::{Hearing, Listening};
pub(crate) use sending::Sending;
pub use server::SoundServer;
pub use speaking::Speaking;
pub(crate) use wayferry_audio::Flow;
pub use wayferry_audio::Mode;
pub use wayferry_sound::{Output, Surroundings, Watcher, find_server};

/// How a side wants to hear the session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audio {
    /// In Opus, at 96 kbit/s.
    #[default]
    Auto,
    /// Not at all.
    Off,
    /// Without loss.
    Pcm,
    /// In Opus, at so many bits in a second.
    Rate(u32),
}

impl Audio {
    /// The codec, and bits in a second where they matter; `None` if nothing is to be heard.
    pub(crate) fn wanted(self) -> Option<(Codec, u32)> {
        match self {
            Self::Auto => Some((Codec::Opus, DEFAULT_RATE)),
            Self::Off => None,
            Self::Pcm => Some((Codec::Pcm, 0)),
            Self::Rate(rate) => Some((Codec::Opus, rate)),
        }
    }
}

impl FromStr for Audio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::Auto),
            "off" => return Ok(Self::Off),
            "pcm" => return Ok(Self::Pcm),
            _ => {}
        }
        let (number, unit) = text.strip_suffix('k').map_or((text, 1), |number| (number, 1000));
        let rate = number.parse::<u32>().ok().and_then(|number| number.checked_mul(unit));
        match rate {
            Some(rate) if (MIN_RATE..=MAX_RATE).contains(&rate) => Ok(Self::Rate(rate)),
            _ => Err("expected auto, off, pcm, or bits in a second from 16k to 510k".into()),
        }
    }
}

/// As users are told.
fn codec_name(codec: Codec) -> &'static str {
    match codec {
        Codec::Opus => "opus",
        Codec::Pcm => "pcm",
    }
}

/// Bits in a second: most music cannot be told from the original.
const DEFAULT_RATE: u32 = 96_000;

/// Opus in stereo is no music below this, and has no more than that. RFC 6716 §2.1.1.
const MIN_RATE: u32 = 16_000;
const MAX_RATE: u32 = 510_000;

#[cfg(test)]
mod tests;
