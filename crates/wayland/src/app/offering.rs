//! What a program sees of the display that is attached, or was last: globals, outputs, seats.
//!
//! A program keeps what it was offered when another display takes over; see `offer` and `slots` for how. Tells the
//! program nothing itself. Invariant: names towards the program are never those of a compositor.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use crate::snapshot::{Mode, Output, Seat, Snapshot};

use super::config::{Config, Desk};
use super::offer::{self, Offer};
use super::slots::Slots;

/// See the module.
#[derive(Debug)]
pub(super) struct Offering {
    desk: Rc<Desk>,
    slots: Slots,
    offers: Vec<Offer>,
    /// Alpha modifiers are ours.
    fades: bool,
}

/// What a program has been told of outputs and seats, by their registry names towards it.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) outputs: HashMap<u32, Output>,
    pub(super) seats: HashMap<u32, Seat>,
    /// The version of the display's `xdg_wm_base`.
    pub(super) shell: u32,
}

/// How a registry changes.
#[derive(Debug)]
pub(super) struct News {
    pub(super) new: Vec<Offer>,
    /// Names of what is gone.
    pub(super) gone: Vec<u32>,
}

impl Offering {
    pub(super) fn new(config: &Config, desk: &Rc<Desk>) -> Self {
        let slots = Slots::new(&desk.snapshot);
        let fades = offer::fades_at(&desk.snapshot);
        let offers = offer::offers(config, &desk.snapshot, &slots, fades);
        Self { desk: Rc::clone(desk), slots, offers, fades }
    }

    /// The same display has changed. Returns whether anything of it that a program sees.
    pub(super) fn follow(&mut self, desk: &Rc<Desk>) -> bool {
        let old = std::mem::replace(&mut self.desk, Rc::clone(desk));
        let differs = old.snapshot != desk.snapshot;
        if differs {
            self.slots.follow(&desk.snapshot);
        }
        differs
    }

    /// Another display takes over.
    pub(super) fn change(&mut self, desk: &Rc<Desk>) {
        self.desk = Rc::clone(desk);
        self.slots.change(&desk.snapshot);
    }

    /// Brings the globals up to date with the display.
    pub(super) fn renew(&mut self, config: &Config) -> News {
        let mut new = offer::offers(config, &self.desk.snapshot, &self.slots, self.fades);
        for offer in &mut new {
            // What was announced stays as it was.
            offer.version = self.offer(offer.name).map_or(offer.version, |before| before.version);
        }
        let old = std::mem::replace(&mut self.offers, new);
        let lacks = |offers: &[Offer], name: u32| offers.iter().all(|offer| offer.name != name);
        let new = self.offers.iter().filter(|offer| lacks(&old, offer.name)).cloned().collect();
        let gone = old.iter().map(|offer| offer.name).filter(|name| lacks(&self.offers, *name)).collect();
        News { new, gone }
    }

    /// The globals.
    pub(super) fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// The global of that name towards the program.
    pub(super) fn offer(&self, name: u32) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.name == name)
    }

    /// Whether alpha modifiers are ours.
    pub(super) fn fades(&self) -> bool {
        self.fades
    }

    /// The display.
    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// The version at which it has a global; 0 if it has none.
    pub(super) fn version(&self, global: &str) -> u32 {
        self.snapshot().version(global).unwrap_or(0)
    }

    fn snapshot(&self) -> &Snapshot {
        &self.desk.snapshot
    }

    /// What the program knows by that.
    pub(super) fn known(&self) -> Known {
        let outputs = self.slots.outputs().iter().map(|slot| (slot.name, self.output(slot.name)));
        let seats = self.slots.seats().iter().map(|slot| (slot.name, self.seat(slot.name).cloned()));
        Known {
            outputs: outputs.collect(),
            seats: seats.filter_map(|(name, seat)| Some((name, seat?))).collect(),
            shell: self.version("xdg_wm_base"),
        }
    }

    /// The output of that name towards the program, or something to believe in while there is none.
    pub(super) fn output(&self, name: u32) -> Output {
        let global = self.slots.output(name);
        let found = self.snapshot().outputs.iter().find(|output| Some(output.global) == global);
        found.cloned().unwrap_or_else(stand_in)
    }

    /// The seat of that name towards the program.
    pub(super) fn seat(&self, name: u32) -> Option<&Seat> {
        let global = self.slots.seat(name)?;
        self.snapshot().seats.iter().find(|seat| seat.global == global)
    }

    /// The highest scale of an output.
    pub(super) fn highest_scale(&self) -> Option<i32> {
        self.snapshot().outputs.iter().map(|output| output.scale).max()
    }

    /// Time between frames, of the fastest output.
    pub(super) fn period(&self) -> Duration {
        let modes = self.snapshot().outputs.iter().flat_map(|output| &output.modes);
        let current = modes.filter(|mode| mode.flags & 1 != 0 && REFRESH.contains(&mode.refresh));
        let fastest = current.map(|mode| mode.refresh.unsigned_abs()).max();
        fastest.map_or(DEFAULT_PERIOD, |mhz| Duration::from_nanos(1_000_000_000_000 / u64::from(mhz)))
    }
}

/// An output for programs that come before any display, or while it has none: many end without.
fn stand_in() -> Output {
    let mode = Mode { flags: 1, width: 1920, height: 1080, refresh: 60_000 };
    Output {
        scale: 1,
        modes: vec![mode],
        logical: (0, 0, mode.width, mode.height),
        make: "wayferry".to_owned(),
        model: "none".to_owned(),
        name: "NONE-1".to_owned(),
        ..Output::default()
    }
}

/// Time between frames when no output says: 60 Hz.
const DEFAULT_PERIOD: Duration = Duration::from_nanos(16_666_667);
/// Refresh rates outside are not believed, mHz.
const REFRESH: std::ops::RangeInclusive<i32> = 10_000..=500_000;
