//! Which surfaces the user attends to: those that a keyboard, pointer or touch of the program is in, and where; and
//! when input came there.
//!
//! Only what the compositor has said, no guesses. Invariant: a pointer, a keyboard and a finger each
//! are in at most one surface.

use std::collections::HashMap;

use wayferry_proto::Time;

use crate::message::WireId;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Focus {
    /// Where each device is, by its id, and each finger on it.
    places: HashMap<(u32, i32), Place>,
    /// When input came last of a device that is not known to be anywhere.
    elsewhere: Option<Time>,
    /// Where a device brought input last that is not there any more, and when.
    left: Option<(WireId, Time)>,
}

/// Fingers that are followed at once, and other devices: more of them are none's.
const MAX_PLACES: usize = 256;

/// Where a device is.
#[derive(Debug, Clone, Copy)]
struct Place {
    surface: WireId,
    is_keyboards: bool,
    /// In surface coordinates, if it says so.
    at: Option<(i32, i32)>,
    /// When it last brought input there.
    input: Option<Time>,
}

impl Focus {
    /// A pointer, or a finger, is in a surface.
    pub(crate) fn enter(&mut self, which: (u32, i32), surface: WireId, at: Option<(i32, i32)>) {
        self.put(which, Place { surface, is_keyboards: false, at, input: None });
    }

    /// A keyboard is in a surface.
    pub(crate) fn enter_with_keys(&mut self, device: u32, surface: WireId) {
        self.put((device, 0), Place { surface, is_keyboards: true, at: None, input: None });
    }

    fn put(&mut self, which: (u32, i32), place: Place) {
        if self.places.len() < MAX_PLACES || self.places.contains_key(&which) {
            self.places.insert(which, place);
        }
    }

    /// It is elsewhere in the same surface.
    pub(crate) fn go(&mut self, which: (u32, i32), at: Option<(i32, i32)>) {
        if let Some(place) = self.places.get_mut(&which) {
            place.at = at;
        }
    }

    /// A finger goes up.
    pub(crate) fn lift(&mut self, which: (u32, i32)) {
        if let Some(place) = self.places.remove(&which) {
            self.leave(place);
        }
    }

    /// The device is in no surface, or gone.
    pub(crate) fn forget(&mut self, device: u32) {
        let gone: Vec<Place> = self.places.extract_if(|(of, _), _| *of == device).map(|(_, of)| of).collect();
        gone.into_iter().for_each(|place| self.leave(place));
    }

    fn leave(&mut self, place: Place) {
        if let Some(input) = place.input {
            self.left = Some((place.surface, input));
        }
    }

    /// The display is gone.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// A device brings input.
    pub(crate) fn note_input(&mut self, device: u32, now: Time) {
        let places = self.places.iter_mut().filter(|((of, _), _)| *of == device);
        let known = places.map(|(_, place)| place.input = Some(now)).count() > 0;
        self.elsewhere = if known { self.elsewhere } else { Some(now) };
    }

    /// When input came last to the surface, or went to one that is not known.
    pub(crate) fn last_input(&self, surface: WireId) -> Option<Time> {
        let here = self.places.values().filter(|place| place.surface == surface);
        let left = self.left.filter(|(of, _)| *of == surface).map(|(_, input)| input);
        here.filter_map(|place| place.input).chain(self.elsewhere).chain(left).max()
    }

    /// When input came last.
    pub(crate) fn last_input_anywhere(&self) -> Option<Time> {
        let left = self.left.map(|(_, input)| input);
        self.places.values().filter_map(|place| place.input).chain(self.elsewhere).chain(left).max()
    }

    /// Whether some device is in a surface of the program.
    pub(crate) fn is_anywhere(&self) -> bool {
        !self.places.is_empty()
    }

    /// Whether some device is in the surface.
    pub(crate) fn is_in(&self, surface: WireId) -> bool {
        self.places.values().any(|place| place.surface == surface)
    }

    /// Whether some keyboard is in the surface.
    pub(crate) fn has_keys(&self, surface: WireId) -> bool {
        self.places.values().any(|place| place.is_keyboards && place.surface == surface)
    }

    /// Where a pointer or a finger is in the surface, in surface coordinates.
    pub(crate) fn point_in(&self, surface: WireId) -> Option<(i32, i32)> {
        self.places.values().filter(|place| place.surface == surface).find_map(|place| place.at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::handlers;
    use super::*;
    use crate::message::WireArg;
    use crate::policy;

    fn on_event(focus: &mut Focus, device: u32, name: (&str, &str), args: &[WireArg]) {
        handlers::of(policy::handler(name.0)).attend(focus, device, name.1, args);
    }

    /// A menu that opens under a tap answers it, though the finger is gone.
    #[test]
    fn input_of_a_finger_that_is_gone_still_counts() {
        let (mut focus, surface) = (Focus::default(), WireId(7));
        let now = Time::ZERO + std::time::Duration::from_secs(1);
        focus.enter((5, 0), surface, None);
        focus.note_input(5, now);
        focus.lift((5, 0));
        assert_eq!((focus.last_input(surface), focus.last_input_anywhere()), (Some(now), Some(now)));
        assert_eq!(focus.last_input(WireId(8)), None);
    }

    #[test]
    fn a_pointer_says_where_it_is_and_a_keyboard_does_not() {
        let (mut focus, surface) = (Focus::default(), WireId(7));
        let fixed = |value: i32| WireArg::Fixed(value << 8 | 0x80);
        on_event(
            &mut focus,
            3,
            ("wl_keyboard", "enter"),
            &[WireArg::Uint(1), WireArg::Object(surface), WireArg::Array(Vec::new())],
        );
        assert!(focus.is_in(surface) && focus.point_in(surface).is_none());
        on_event(
            &mut focus,
            4,
            ("wl_pointer", "enter"),
            &[WireArg::Uint(2), WireArg::Object(surface), fixed(5), fixed(-6)],
        );
        assert_eq!(focus.point_in(surface), Some((5, -6)));
        on_event(&mut focus, 4, ("wl_pointer", "motion"), &[WireArg::Uint(2), fixed(50), fixed(60)]);
        assert_eq!(focus.point_in(surface), Some((50, 60)));
        on_event(&mut focus, 4, ("wl_pointer", "leave"), &[WireArg::Uint(2), WireArg::Object(surface)]);
        assert!(focus.is_in(surface) && focus.point_in(surface).is_none());
        on_event(
            &mut focus,
            5,
            ("wl_touch", "down"),
            &[
                WireArg::Uint(2),
                WireArg::Uint(2),
                WireArg::Object(surface),
                WireArg::Int(0),
                fixed(1),
                fixed(2),
            ],
        );
        on_event(
            &mut focus,
            5,
            ("wl_touch", "motion"),
            &[WireArg::Uint(2), WireArg::Int(0), fixed(3), fixed(4)],
        );
        assert_eq!(focus.point_in(surface), Some((3, 4)));
        assert!(focus.point_in(WireId(8)).is_none());
    }

    #[test]
    fn one_finger_that_goes_up_leaves_the_others_where_they_are() {
        let (mut focus, near, far) = (Focus::default(), WireId(7), WireId(9));
        for (surface, finger) in [(near, 0), (far, 1), (far, 2)] {
            let place = [WireArg::Int(finger), WireArg::Fixed(0), WireArg::Fixed(256 * finger)];
            let args = [&[WireArg::Uint(1), WireArg::Uint(1), WireArg::Object(surface)], &place[..]].concat();
            on_event(&mut focus, 5, ("wl_touch", "down"), &args);
        }
        let up = |finger| [WireArg::Uint(2), WireArg::Uint(2), WireArg::Int(finger)];
        on_event(&mut focus, 5, ("wl_touch", "up"), &up(1));
        assert!(focus.is_in(near) && focus.point_in(far) == Some((0, 2)));
        on_event(&mut focus, 5, ("wl_touch", "up"), &up(2));
        assert!(focus.is_in(near) && !focus.is_in(far));
        on_event(&mut focus, 5, ("wl_touch", "cancel"), &[]);
        assert!(!focus.is_anywhere());
    }
}
