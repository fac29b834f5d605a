//! What a stage can be told before it starts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::shm::Format;

/// Settings of a stage; [`Config::default`] is a 1280 × 720 output at 60 Hz with everything offered.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; `None` listens nowhere (clients then come by [`crate::Stage::connect`]).
    pub socket: Option<PathBuf>,
    /// Width of the output in its own pixels.
    pub width: u32,
    /// Height of the output in its own pixels.
    pub height: u32,
    /// Scale of the output, 1 to 4.
    pub scale: u32,
    /// Refresh rate in thousandths of a hertz, at least 1.
    pub refresh_mhz: u32,
    /// What drives frame callbacks.
    pub frames: Frames,
    /// Which of the optional globals are offered.
    pub globals: BTreeSet<Global>,
    /// Formats of shared memory beside ARGB8888 and XRGB8888.
    pub formats: Vec<Format>,
    /// Version of `wl_compositor`, 4 to 6; 4 unless told.
    pub compositor_version: u32,
    /// Version of `xdg_wm_base`, 1 to 3.
    pub wm_base_version: u32,
    /// Version of `wl_seat`, 5 to 7.
    pub seat_version: u32,
    /// Whether a window that appears takes the keyboard focus.
    pub focus_new_windows: bool,
    /// Size that a window's first configure asks for; 0 × 0 lets the client choose.
    pub initial_size: (i32, i32),
    /// Whether only damaged parts of a buffer are read, as a compositor on a GPU would.
    pub trust_damage: bool,
    /// Colour of the output where nothing covers it, `0xAARRGGBB`.
    pub background: u32,
}

impl Config {
    /// The default without one of the optional globals.
    #[must_use]
    pub fn without(mut self, global: Global) -> Config {
        self.globals.remove(&global);
        self
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            socket: None,
            width: 1280,
            height: 720,
            scale: 1,
            refresh_mhz: 60_000,
            frames: Frames::RealTime,
            globals: Global::ALL.into_iter().collect(),
            formats: Vec::new(),
            // Old programs bind what they are offered, whether they know it or not.
            compositor_version: 4,
            wm_base_version: 3,
            seat_version: 7,
            focus_new_windows: true,
            initial_size: (0, 0),
            trust_damage: true,
            background: 0xff20_2830,
        }
    }
}

/// What drives frame callbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// A clock at the output's refresh rate.
    RealTime,
    /// Only [`crate::Stage::tick`].
    Manual,
}

/// A global that a real compositor may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Global {
    /// `wl_seat`.
    Seat,
    /// `wl_data_device_manager`.
    DataDevice,
    /// `wp_viewporter`.
    Viewporter,
    /// `zxdg_decoration_manager_v1`.
    Decoration,
    /// `wp_presentation`.
    Presentation,
    /// `zwp_primary_selection_device_manager_v1`.
    PrimarySelection,
    /// `zxdg_output_manager_v1`.
    XdgOutput,
    /// `wp_cursor_shape_manager_v1`.
    CursorShape,
    /// `wp_fractional_scale_manager_v1`.
    FractionalScale,
    /// `xdg_activation_v1`.
    Activation,
    /// `zwp_idle_inhibit_manager_v1`.
    IdleInhibit,
    /// `wp_single_pixel_buffer_manager_v1`.
    SinglePixelBuffer,
    /// `zwp_text_input_manager_v3`.
    TextInput,
}

impl Global {
    /// All of them.
    pub const ALL: [Global; 13] = [
        Global::Seat,
        Global::DataDevice,
        Global::Viewporter,
        Global::Decoration,
        Global::Presentation,
        Global::PrimarySelection,
        Global::XdgOutput,
        Global::CursorShape,
        Global::FractionalScale,
        Global::Activation,
        Global::IdleInhibit,
        Global::SinglePixelBuffer,
        Global::TextInput,
    ];
}
