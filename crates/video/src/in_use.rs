//! Which encoder makes videos here, for its user to choose and to be told.
//!
//! Invariant: what is in use has been looked for.

use crate::codec;

/// What makes H.264 on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Its name, as libavcodec's or `openh264`.
    pub name: &'static str,
    /// Whether it has ever been seen to work: those of GPUs have not.
    pub tried: bool,
}

/// Looks for the encoder that will be used, with the feature `ffmpeg` for a second perhaps. The first frame waits for
/// that if it was not done before.
pub fn look_for_encoder() {
    codec::look();
}

/// The encoder in use, once it has been looked for.
#[must_use]
pub fn encoder_in_use() -> Option<InUse> {
    codec::in_use()
}

/// Uses this encoder, or OpenH264 if it does not work on this machine, in place of the first that does. Of use before
/// the first frame only. Says whether there is one of that name.
#[must_use]
pub fn choose_encoder(name: &str) -> bool {
    codec::choose(name)
}
