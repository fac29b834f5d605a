//! What makes videos of the windows of this machine's programs, for its user to choose and to be told.
//!
//! One for all connections of the process. Invariant: nothing here waits.

/// The name of the encoder, as libavcodec's or `openh264`, and whether it has ever been seen to work, once it has been
/// looked for; `None` also in builds without videos.
#[must_use]
pub fn in_use() -> Option<(&'static str, bool)> {
    #[cfg(feature = "video")]
    return wayferry_video::encoder_in_use().map(|used| (used.name, used.tried));
    #[cfg(not(feature = "video"))]
    None
}

/// Has this encoder used, or OpenH264 where it does not work, and otherwise the first that works; looks for it in a
/// thread of its own. Says whether there is one of that name. Of use once, before the first video.
#[must_use]
pub fn choose(name: Option<&str>) -> bool {
    #[cfg(feature = "video")]
    {
        let is_known = name.is_none_or(wayferry_video::choose_encoder);
        if cfg!(feature = "ffmpeg") {
            // Without a thread the first video waits.
            let thread = std::thread::Builder::new().name("encoder".to_owned());
            let _ = thread.spawn(wayferry_video::look_for_encoder);
        }
        is_known
    }
    #[cfg(not(feature = "video"))]
    name.is_none()
}
