//! The codecs of sound, and how packets name them.

/// A codec of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// RFC 6716.
    Opus,
    /// 16-bit samples.
    Pcm,
}

impl Codec {
    /// The number on the wire of the flow in this codec (docs/wire.md, section 13).
    pub fn track(self) -> u8 {
        match self {
            Self::Opus => 1,
            Self::Pcm => 2,
        }
    }

    /// The codec of that flow, if it is known.
    pub fn of_track(track: u8) -> Option<Self> {
        [Self::Opus, Self::Pcm].into_iter().find(|codec| codec.track() == track)
    }
}
