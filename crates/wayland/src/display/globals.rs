//! What the compositor has: its globals, and the formats of its buffers.
//!
//! Binds nothing. Invariant: `wl_shm`'s two formats that every compositor has are always there.

use std::collections::HashSet;

use wayferry_pixels::Format;

/// Globals that a compositor may list; of more, nothing that programs are offered comes so late.
const MAX_GLOBALS: usize = 1024;

/// A global of the compositor, as this connection's own registry lists it.
#[derive(Debug, Clone)]
pub(super) struct Global {
    pub(super) name: u32,
    pub(super) interface: String,
    pub(super) version: u32,
}

/// How far the connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The registry is being listed.
    Registry,
    /// The formats are being listed.
    Formats,
    /// Messages of the app side are handled.
    Running,
}

/// The globals that the display side uses itself.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    pub(super) registry: u32,
    pub(super) compositor: u32,
    pub(super) compositor_version: u32,
    pub(super) shm: u32,
    pub(super) presentation: Option<u32>,
    pub(super) subcompositor: Option<u32>,
    pub(super) viewporter: Option<u32>,
    /// Presentation times are of a clock that is not `CLOCK_MONOTONIC`.
    pub(super) foreign_clock: bool,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Globals {
    pub(super) stage: Stage,
    pub(super) helpers: Helpers,
    listed: Vec<Global>,
    formats: HashSet<u32>,
}

impl Default for Globals {
    fn default() -> Self {
        let (stage, helpers) = (Stage::Registry, Helpers::default());
        Self { stage, helpers, listed: Vec::new(), formats: HashSet::from([0, 1]) }
    }
}

impl Globals {
    /// The compositor lists a global.
    pub(super) fn add(&mut self, global: Global) {
        if self.listed.len() < MAX_GLOBALS {
            self.listed.push(global);
        }
    }

    /// A global is gone.
    pub(super) fn remove(&mut self, name: u32) {
        self.listed.retain(|global| global.name != name);
    }

    /// The first global of an interface.
    pub(super) fn of(&self, interface: &str) -> Option<&Global> {
        self.listed.iter().find(|global| global.interface == interface)
    }

    /// The global of that registry name, if it is of this interface.
    pub(super) fn named(&self, name: u32, interface: &str) -> Option<&Global> {
        self.listed.iter().find(|global| global.name == name && global.interface == interface)
    }

    /// The compositor lists a format, by its code in `wl_shm`.
    pub(super) fn add_format(&mut self, format: u32) {
        self.formats.insert(format);
    }

    /// The format in which the compositor is given such content.
    pub(super) fn shown(&self, format: Format) -> Format {
        if self.formats.contains(&format.to_wl_shm()) { format } else { format.fallback() }
    }
}
