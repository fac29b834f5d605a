//! Input that comes too late: clicks that are not meant any more, and what is told of a place that is gone.
//!
//! A user who clicked at a window that did not answer has tried again since, and what was there may be elsewhere now. A
//! press that is older than [`TOO_LATE`] does not reach the program, nor does its release; releases of earlier presses
//! and focus always do. Keys are not looked at: text without its middle is another text, so all of it arrives, in order
//! and however late, as with ssh.
//!
//! While a device is in a surface that the program has destroyed, it is nowhere, and the program hears nothing of it:
//! its library would name no surface, which ends some programs (foot 1.13). Without a network that is a matter of
//! microseconds; here it lasts a round trip.
//!
//! Invariant: the program sees the end of each press and focus that it saw begin, and no other end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Age at which a press is not meant any more.
const TOO_LATE: Duration = Duration::from_secs(2);

/// Presses whose ends are still to come, at once; of more, the ends reach the program, which knows to ignore them.
const MAX_HELD: usize = 64;

/// Devices that may be nowhere at once; of more, what follows their coming reaches the program.
const MAX_NOWHERE: usize = 64;

/// Events that are told of a device wherever it is, or that begin something by themselves.
const ANYWHERE: [&str; 8] =
    ["data_offer", "enter", "keymap", "modifiers", "proximity_in", "removed", "repeat_info", "selection"];

/// What was kept from the program and has not ended.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// Buttons and fingers, by their devices.
    presses: BTreeSet<(u32, u32)>,
    /// Devices, and the event that says that they are not there any more.
    nowhere: BTreeMap<u32, &'static str>,
}

/// A part of a press, of a button or a finger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Begin,
    Middle,
    End,
}

impl Late {
    /// Whether the program gets an event of its object `id`, which was read so long ago and may be a part of a press.
    pub(crate) fn passes(&mut self, id: u32, press: Option<(u32, Part)>, name: &str, age: Duration) -> bool {
        if self.is_nowhere(id, name) {
            return false;
        }
        let Some((code, part)) = press else {
            if matches!(name, "enter" | "leave" | "cancel") {
                self.presses.retain(|(object, _)| *object != id);
            }
            return true;
        };
        match part {
            Part::Begin if age >= TOO_LATE && self.presses.len() < MAX_HELD => {
                self.presses.insert((id, code));
                false
            }
            Part::Begin => {
                self.presses.remove(&(id, code));
                true
            }
            Part::Middle => !self.presses.contains(&(id, code)),
            Part::End => !self.presses.remove(&(id, code)),
        }
    }

    /// The device comes to a surface that the program has destroyed, until the event `end`; or it is a finger, which
    /// begins a press there. The program does not hear of it.
    pub(crate) fn come_to_nothing(&mut self, id: u32, press: Option<(u32, Part)>, end: &'static str) {
        match press {
            Some((code, Part::Begin)) if self.presses.len() < MAX_HELD => _ = self.presses.insert((id, code)),
            None if self.nowhere.len() < MAX_NOWHERE => _ = self.nowhere.insert(id, end),
            _ => {}
        }
    }

    fn is_nowhere(&mut self, id: u32, name: &str) -> bool {
        let Some(end) = self.nowhere.get(&id) else { return false };
        let (ends, tells) = (name == *end, !ANYWHERE.contains(&name));
        if ends || matches!(name, "enter" | "proximity_in") {
            self.nowhere.remove(&id);
        }
        tells
    }

    /// The object is gone, and its id may be another's.
    pub(crate) fn forget(&mut self, id: u32) {
        self.presses.retain(|(object, _)| *object != id);
        self.nowhere.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::handlers;
    use super::*;
    use crate::message::WireArg;
    use crate::policy;

    const BUTTON: (&str, &str) = ("wl_pointer", "button");
    const KEY: (&str, &str) = ("wl_keyboard", "key");

    fn press(code: u32, state: u32) -> [WireArg; 4] {
        [9, 0, code, state].map(WireArg::Uint)
    }

    fn passes(late: &mut Late, name: (&str, &str), args: &[WireArg], age_ms: u64) -> bool {
        let press = handlers::of(policy::handler(name.0)).press(name.1, args);
        late.passes(7, press, name.1, Duration::from_millis(age_ms))
    }

    #[test]
    fn an_old_press_is_dropped_with_its_release_and_a_new_one_is_not() {
        let mut late = Late::default();
        assert!(!passes(&mut late, BUTTON, &press(30, 1), 2_000));
        assert!(passes(&mut late, BUTTON, &press(31, 1), 1_999));
        assert!(!passes(&mut late, BUTTON, &press(30, 0), 0));
        assert!(passes(&mut late, BUTTON, &press(31, 0), 0));
        // Its second press is meant again.
        assert!(passes(&mut late, BUTTON, &press(30, 1), 0));
        assert!(passes(&mut late, BUTTON, &press(30, 0), 0));
    }

    #[test]
    fn a_release_of_what_the_program_saw_is_never_dropped() {
        let mut late = Late::default();
        assert!(passes(&mut late, BUTTON, &press(30, 1), 0));
        assert!(passes(&mut late, BUTTON, &press(30, 0), 60_000), "however old");
    }

    #[test]
    fn text_never_loses_its_middle() {
        let mut late = Late::default();
        for age in [60_000, 2_001, 1_999, 0] {
            assert!(passes(&mut late, KEY, &press(30, 1), age), "a press {age} ms ago");
            assert!(passes(&mut late, KEY, &press(30, 0), age), "its release");
        }
        assert!(passes(&mut late, ("wl_keyboard", "modifiers"), &[0, 1, 0, 0, 0].map(WireArg::Uint), 60_000));
    }

    #[test]
    fn a_late_finger_does_not_move_either() {
        let mut late = Late::default();
        let object = WireArg::Object(crate::message::WireId::NULL);
        let (uint, fixed) = (|| WireArg::Uint(9), || WireArg::Fixed(0));
        let down = [uint(), uint(), object, WireArg::Int(2), fixed(), fixed()];
        assert!(!passes(&mut late, ("wl_touch", "down"), &down, 3_000));
        let motion = |finger| [uint(), WireArg::Int(finger), fixed(), fixed()];
        assert!(!passes(&mut late, ("wl_touch", "motion"), &motion(2), 0));
        assert!(passes(&mut late, ("wl_touch", "motion"), &motion(3), 0));
        let up = [uint(), uint(), WireArg::Int(2)];
        assert!(!passes(&mut late, ("wl_touch", "up"), &up, 0));
        assert!(passes(&mut late, ("wl_touch", "motion"), &motion(2), 0));
    }

    #[test]
    fn the_focus_ends_what_was_held_and_the_list_is_bounded() {
        let mut late = Late::default();
        for code in 0..2 * MAX_HELD as u32 {
            assert_eq!(passes(&mut late, BUTTON, &press(code, 1), 3_000), code >= MAX_HELD as u32);
        }
        assert!(passes(&mut late, ("wl_pointer", "leave"), &[], 0));
        assert!(late.presses.is_empty());
    }

    #[test]
    fn what_is_nowhere_is_silent_until_it_comes_somewhere() {
        let mut late = Late::default();
        late.come_to_nothing(7, None, "leave");
        assert!(!passes(&mut late, KEY, &press(30, 1), 0));
        assert!(passes(&mut late, ("wl_keyboard", "modifiers"), &[0; 5].map(WireArg::Uint), 0));
        assert!(!passes(&mut late, ("wl_keyboard", "leave"), &[], 0));
        assert!(passes(&mut late, ("wl_keyboard", "leave"), &[], 0), "of another focus");
        late.come_to_nothing(7, None, "leave");
        assert!(passes(&mut late, ("wl_keyboard", "enter"), &[], 0));
        assert!(passes(&mut late, KEY, &press(30, 1), 0));
    }

    #[test]
    fn an_object_that_is_gone_leaves_nothing_to_the_next_of_its_id() {
        let mut late = Late::default();
        assert!(!passes(&mut late, BUTTON, &press(30, 1), 3_000));
        late.come_to_nothing(7, None, "leave");
        late.forget(7);
        assert!(passes(&mut late, BUTTON, &press(30, 0), 0));
        assert!(passes(&mut late, ("wl_pointer", "motion"), &[], 0));
    }

    #[test]
    fn devices_that_are_nowhere_are_bounded() {
        let mut late = Late::default();
        (0..2 * MAX_NOWHERE as u32).for_each(|id| late.come_to_nothing(id, None, "leave"));
        assert_eq!(late.nowhere.len(), MAX_NOWHERE);
    }
}
