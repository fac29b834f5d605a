//! The size of the screen, which follows that of its window where the screen is not a real one.
//!
//! A monitor keeps its mode: somebody may sit in front of it. Invariant: a configuration names every head, as the
//! protocol demands, and changes none but the shown one.

use std::time::Instant;

use wayland_client::Proxy;
use wayland_protocols_wlr::output_management::v1::client::zwlr_output_configuration_v1::{
    self, ZwlrOutputConfigurationV1,
};
use wayland_protocols_wlr::output_management::v1::client::zwlr_output_head_v1::{self, ZwlrOutputHeadV1};
use wayland_protocols_wlr::output_management::v1::client::zwlr_output_manager_v1;
use wayland_protocols_wlr::output_management::v1::client::zwlr_output_mode_v1::{self, ZwlrOutputModeV1};

use crate::size::{Mode, Size};
use crate::there::There;

/// What is known of the compositor's screens.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) size: Size,
    heads: Vec<Head>,
    /// Of the last complete description; none yet, or never.
    serial: Option<u32>,
}

#[derive(Debug)]
struct Head {
    object: ZwlrOutputHeadV1,
    name: Option<String>,
    is_enabled: bool,
}

impl Outputs {
    /// Whether a screen is on. sway 1.7 says of those without a monitor that they are not, but only those that are can
    /// be bound.
    fn is_on(head: &Head, there: &There) -> bool {
        let is_bound = |name: &String| there.names.values().any(|bound| bound == name);
        head.is_enabled || head.name.as_ref().is_some_and(is_bound)
    }

    /// The head of the shown screen, if its mode may be changed.
    fn own_head(&self, there: &There) -> Option<&Head> {
        let mut heads = self.heads.iter().filter(|head| Self::is_on(head, there));
        // Older compositors do not name their outputs; with a single one there is no doubt.
        let head = match there.output_name() {
            Some(name) => heads.find(|head| head.name.as_deref() == Some(name)),
            None => heads.next().filter(|_| heads.next().is_none()),
        }?;
        let name = head.name.as_deref()?;
        VIRTUAL.iter().any(|prefix| name.starts_with(prefix)).then_some(head)
    }

    /// Has the screen take on this size; whether it was told to.
    pub(crate) fn step(&mut self, now: Instant, wanted: Option<Mode>, there: &There) -> bool {
        let (Some(serial), Some(manager)) = (self.serial, &there.outputs) else { return false };
        let Some(own) = self.own_head(there).map(|head| head.object.id()) else { return false };
        if let Some(mode) = wanted {
            self.size.want(now, mode);
        }
        let Some(mode) = self.size.step(now) else { return false };
        let configuration = manager.create_configuration(serial, &there.queue, ());
        for head in &self.heads {
            if !Self::is_on(head, there) {
                configuration.disable_head(&head.object);
                continue;
            }
            let of_head = configuration.enable_head(&head.object, &there.queue, ());
            if own == head.object.id() {
                of_head.set_custom_mode(mode.width, mode.height, REFRESH);
                of_head.set_scale(f64::from(mode.scale) / 120.0);
            }
        }
        configuration.apply();
        true
    }

    /// What is said of all screens together.
    pub(crate) fn hear(&mut self, event: zwlr_output_manager_v1::Event) {
        use zwlr_output_manager_v1::Event;
        match event {
            // One beyond the limit stands for all that are.
            Event::Head { head } if self.heads.len() <= MAX_HEADS => {
                self.heads.push(Head { object: head, name: None, is_enabled: false });
            }
            Event::Done { serial } => self.serial = Some(serial).filter(|_| self.heads.len() <= MAX_HEADS),
            Event::Finished => {
                self.serial = None;
                self.size.answered(false);
            }
            _ => {}
        }
    }

    /// What is said of one of them.
    pub(crate) fn hear_head(&mut self, object: &ZwlrOutputHeadV1, event: zwlr_output_head_v1::Event) {
        use zwlr_output_head_v1::Event;
        let Some(index) = self.heads.iter().position(|head| head.object == *object) else { return };
        let head = &mut self.heads[index];
        match event {
            Event::Name { name } => head.name = Some(name),
            Event::Enabled { enabled } => head.is_enabled = enabled != 0,
            Event::Finished => {
                self.heads.swap_remove(index);
                if object.version() >= 3 {
                    object.release();
                }
            }
            _ => {}
        }
    }

    /// The compositor has answered.
    pub(crate) fn hear_answer(
        &mut self,
        configuration: &ZwlrOutputConfigurationV1,
        event: &zwlr_output_configuration_v1::Event,
    ) {
        // A refused size is not asked for again: the window shows what there is, scaled.
        self.size.answered(matches!(event, zwlr_output_configuration_v1::Event::Cancelled));
        configuration.destroy();
    }
}

/// A mode is gone.
pub(crate) fn hear_mode(mode: &ZwlrOutputModeV1, event: &zwlr_output_mode_v1::Event) {
    if matches!(event, zwlr_output_mode_v1::Event::Finished) && mode.version() >= 3 {
        mode.release();
    }
}

/// How wlroots calls screens without a monitor: those without a device, and windows of another compositor.
const VIRTUAL: [&str; 3] = ["HEADLESS-", "WL-", "X11-"];

/// In thousandths of a hertz. A screen without a device draws as often as it is told to.
const REFRESH: i32 = 60_000;

/// Screens that are told apart.
const MAX_HEADS: usize = 64;
