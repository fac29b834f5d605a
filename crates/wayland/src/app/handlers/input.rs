//! Input: where the user is, what is pressed, and what comes too late to be meant.

use std::collections::BTreeMap;

use crate::message::{Request, WireArg, WireId};
use crate::policy;
use crate::tables;
use crate::wire::Arg;

use super::super::announced::Announced;
use super::super::birth::{self, Message};
use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::focus::Focus;
use super::super::handler::Handles;
use super::super::late::Part;
use super::super::object::Data;
use super::super::roles::Roles;
use super::super::standing::Role;

/// `wl_seat`.
pub(super) struct Seat;

impl Handles for Seat {
    fn bound(&self, name: u32) -> Data {
        Data::Seat(name)
    }

    fn greet(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        connection.tell_seat(id)
    }

    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        _: bool,
    ) -> Result<(), Fault> {
        match (call.desc.name, args) {
            ("get_keyboard", [Plain::NewId(id)]) => connection.get_keyboard(*id, call.id),
            _ => Ok(()),
        }
    }

    fn may_be_born(&self, connection: &Connection, _: &Roles, name: &str, birth: &Request) -> bool {
        let bit = match name {
            "get_pointer" => 1,
            "get_keyboard" => 2,
            "get_touch" => 4,
            _ => return true,
        };
        connection.capabilities(birth.object) & bit != 0
    }
}

/// `wl_keyboard`.
pub(super) struct Keyboard;

impl Handles for Keyboard {
    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        release(connection, call);
        Ok(())
    }

    fn attend(&self, focus: &mut Focus, device: u32, name: &str, args: &[WireArg]) {
        match (name, args) {
            ("enter", [_, WireArg::Object(surface), ..]) => focus.enter_with_keys(device, *surface),
            ("leave", _) => focus.forget(device),
            _ => {}
        }
    }

    fn hear(&self, connection: &mut Connection, id: u32, name: &str, args: &[WireArg]) -> bool {
        let now = connection.now;
        let Some(keyboard) = connection.devices.keyboard_mut(id) else { return true };
        match (name, args) {
            ("key", [WireArg::Uint(serial), _, WireArg::Uint(key), WireArg::Uint(state)]) => {
                let serial = connection.line.serials_mut().for_app(*serial);
                keyboard.key(now, serial, *key, *state != 0)
            }
            ("enter" | "leave", _) => {
                keyboard.focus_changed(now);
                true
            }
            // The snapshot may have told them before, or will.
            ("keymap", [_, WireArg::Blob { hash, .. }, _]) => keyboard.keymap.replace(*hash) != Some(*hash),
            ("repeat_info", [WireArg::Int(rate), WireArg::Int(delay)]) => {
                let repeat = (*rate, *delay);
                keyboard.repeat.replace(repeat) != Some(repeat)
            }
            _ => true,
        }
    }

    fn note(&self, connection: &mut Connection, id: u32, name: &str, _: &mut [Arg]) -> Result<(), Fault> {
        tell_stamps(connection, id, name)
    }

    fn emitted(
        &self,
        connection: &mut Connection,
        _: u32,
        name: &str,
        serial: Option<u32>,
    ) -> Result<(), Fault> {
        serial.filter(|_| name == "key").into_iter().for_each(|serial| connection.select_again(serial));
        Ok(())
    }
}

/// A device is gone.
fn release(connection: &mut Connection, call: Call) {
    if call.desc.name == "release" {
        connection.devices.release(call.id);
    }
}

/// `wl_pointer`.
pub(super) struct Pointer;

/// The first version of `wl_seat` whose pointers tell 120ths, and a whole step of them.
const WITH_VALUE120: u32 = 8;
const WHEEL_STEP: i32 = 120;

impl Handles for Pointer {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        _: bool,
    ) -> Result<(), Fault> {
        if let ("set_cursor", [_, Plain::Object(surface), ..]) = (call.desc.name, args) {
            connection.set_role(Some(*surface), Role::Cursor);
        }
        release(connection, call);
        Ok(())
    }

    fn press(&self, name: &str, args: &[WireArg]) -> Option<(u32, Part)> {
        match (name, args) {
            ("button", [_, _, WireArg::Uint(code), WireArg::Uint(state)]) => {
                Some((*code, if *state == 0 { Part::End } else { Part::Begin }))
            }
            _ => None,
        }
    }

    fn attend(&self, focus: &mut Focus, device: u32, name: &str, args: &[WireArg]) {
        match (name, args) {
            ("enter", [_, WireArg::Object(surface), rest @ ..]) => {
                focus.enter((device, 0), *surface, point(rest));
            }
            ("motion", [_, rest @ ..]) => focus.go((device, 0), point(rest)),
            ("leave", _) => focus.forget(device),
            _ => {}
        }
    }

    fn note(&self, connection: &mut Connection, id: u32, name: &str, _: &mut [Arg]) -> Result<(), Fault> {
        tell_stamps(connection, id, name)
    }

    fn tell(&self, announced: &mut Announced, id: u32, name: &str, args: &[Arg]) {
        if let ("button", [_, _, Arg::Uint(button), Arg::Uint(state)]) = (name, args) {
            announced.button(id, *button, *state != 0);
        }
    }

    fn renewed(
        &self,
        connection: &Connection,
        id: u32,
        name: &str,
        event: (u16, Vec<Arg>),
    ) -> Option<(u16, Vec<Arg>)> {
        let Some(object) = connection.objects.of(id) else { return Some(event) };
        match (name, &event.1[..]) {
            ("axis_discrete", [axis, Arg::Int(steps)]) if object.version >= WITH_VALUE120 => {
                let (Arg::Uint(axis), steps) = (axis, steps.saturating_mul(WHEEL_STEP)) else { return None };
                let opcode = tables::event_opcode(object.interface, "axis_value120")?;
                // Nothing is not a distance.
                (steps != 0).then(|| (opcode, vec![Arg::Uint(*axis), Arg::Int(steps)]))
            }
            _ => Some(event),
        }
    }

    fn emitted(
        &self,
        connection: &mut Connection,
        _: u32,
        name: &str,
        serial: Option<u32>,
    ) -> Result<(), Fault> {
        serial.filter(|_| name == "button").into_iter().for_each(|serial| connection.select_again(serial));
        Ok(())
    }

    fn end_group(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        connection.emit(id, "frame", Vec::new())
    }
}

/// Whole surface pixels of two coordinates.
fn point(args: &[WireArg]) -> Option<(i32, i32)> {
    match args {
        [WireArg::Fixed(x), WireArg::Fixed(y)] => Some((x >> 8, y >> 8)),
        _ => None,
    }
}

/// `wl_touch`.
pub(super) struct Touch;

impl Handles for Touch {
    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        release(connection, call);
        Ok(())
    }

    fn press(&self, name: &str, args: &[WireArg]) -> Option<(u32, Part)> {
        let (finger, part) = match (name, args) {
            ("down", [_, _, _, WireArg::Int(finger), ..]) => (finger, Part::Begin),
            ("up", [_, _, WireArg::Int(finger)]) => (finger, Part::End),
            ("motion", [_, WireArg::Int(finger), ..])
            | ("shape" | "orientation", [WireArg::Int(finger), ..]) => (finger, Part::Middle),
            _ => return None,
        };
        Some((finger.cast_unsigned(), part))
    }

    fn attend(&self, focus: &mut Focus, device: u32, name: &str, args: &[WireArg]) {
        match (name, args) {
            ("down", [_, _, WireArg::Object(surface), WireArg::Int(finger), rest @ ..]) => {
                focus.enter((device, *finger), *surface, point(rest));
            }
            ("motion", [_, WireArg::Int(finger), rest @ ..]) => focus.go((device, *finger), point(rest)),
            ("up", [_, _, WireArg::Int(finger)]) => focus.lift((device, *finger)),
            ("cancel", _) => focus.forget(device),
            _ => {}
        }
    }

    fn note(&self, connection: &mut Connection, id: u32, name: &str, _: &mut [Arg]) -> Result<(), Fault> {
        tell_stamps(connection, id, name)
    }

    fn tell(&self, announced: &mut Announced, id: u32, name: &str, args: &[Arg]) {
        if let ("up", [_, _, Arg::Int(point)]) = (name, args) {
            announced.end_about(id, point.cast_unsigned());
        }
    }

    /// A point, where an event tells one.
    fn about(&self, args: &[Arg]) -> Option<u32> {
        match args {
            [_, _, _, Arg::Int(point), ..] => Some(point.cast_unsigned()),
            _ => None,
        }
    }

    fn emitted(
        &self,
        connection: &mut Connection,
        _: u32,
        name: &str,
        serial: Option<u32>,
    ) -> Result<(), Fault> {
        serial.filter(|_| name == "down").into_iter().for_each(|serial| connection.select_again(serial));
        Ok(())
    }
}

/// `zwp_input_timestamps_v1`: what comes waits at its device, and reaches the program with the event that it is of. No
/// event that the program does not get has one, and none that is made up here.
pub(super) struct Timestamps;

impl Handles for Timestamps {
    fn hear(&self, connection: &mut Connection, id: u32, _: &str, args: &[WireArg]) -> bool {
        if let [WireArg::Uint(high), WireArg::Uint(low), WireArg::Uint(nanos)] = *args {
            let stamp = [high, low, nanos];
            with_stamps(connection, id, |stamps, name| _ = stamps.insert(name, stamp));
        }
        false
    }

    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        if call.desc.name == "destroy" {
            with_stamps(connection, call.id, |stamps, name| _ = stamps.remove(&name));
        }
        Ok(())
    }
}

/// What waits at a device, by the names of the objects that it came for.
type Stamps = BTreeMap<WireId, [u32; 3]>;

/// Changes what waits at the device of a `zwp_input_timestamps_v1`, while the program has that; its name comes, too.
fn with_stamps(connection: &mut Connection, id: u32, change: impl FnOnce(&mut Stamps, WireId)) {
    let objects = &mut connection.objects;
    let Some((name, past)) = objects.of(id).and_then(|object| Some((object.name?, &object.past))) else {
        return;
    };
    let birth = past.birth.as_ref().and_then(Message::request);
    // The manager comes first.
    let device = birth.and_then(|birth| birth::names(&birth).nth(1));
    let device = device.and_then(|device| objects.by_name(device)).and_then(|id| objects.of_mut(id));
    let Some(device) = device.filter(|device| device.alive) else { return };
    if let Some(stamps) = device.begin_own() {
        change(stamps, name);
    }
}

/// The program is about to get an event of a device: if that has a time, what waits for it comes first.
fn tell_stamps(connection: &mut Connection, device: u32, event: &str) -> Result<(), Fault> {
    let Some(object) = connection.objects.of_mut(device) else { return Ok(()) };
    let interface = object.interface;
    let Some(stamps) = object.own::<Stamps>() else { return Ok(()) };
    let opcode = tables::event_opcode(interface, event);
    if opcode.is_none_or(|opcode| policy::event(interface.name, opcode).time.is_none()) {
        return Ok(());
    }
    let offset = connection.offering.desk().clock.offset_nanos();
    for (name, stamp) in std::mem::take(stamps) {
        // One that this display does not have is of the display before.
        if let Some(id) = connection.objects.by_wire(name) {
            connection.emit(id, "timestamp", by_our_clock(stamp, offset).map(Arg::Uint).into())?;
        }
    }
    Ok(())
}

/// Seconds in two halves and nanoseconds, by this host's clock: moved by as many whole milliseconds as the event's time
/// is, because they are the same time.
fn by_our_clock([high, low, nanos]: [u32; 3], offset_nanos: i64) -> [u32; 3] {
    let seconds = u64::from(high) << 32 | u64::from(low);
    let theirs = seconds.saturating_mul(SECOND).saturating_add(u64::from(nanos));
    let ours =
        theirs.wrapping_sub(offset_nanos.div_euclid(MILLISECOND).wrapping_mul(MILLISECOND).cast_unsigned());
    let seconds = ours / SECOND;
    [(seconds >> 32) as u32, seconds as u32, (ours % SECOND) as u32]
}

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// `zwp_pointer_constraints_v1.lifetime.oneshot`.
const ONESHOT: WireArg = WireArg::Uint(1);

/// `zwp_locked_pointer_v1`, `zwp_confined_pointer_v1`.
pub(super) struct Constraint;

impl Handles for Constraint {
    fn note(&self, connection: &mut Connection, id: u32, name: &str, _: &mut [Arg]) -> Result<(), Fault> {
        // One that ends once it has ended is not asked for again.
        let object = connection.objects.of_mut(id).filter(|_| matches!(name, "locked" | "confined"));
        if let Some(object) = object {
            let birth = object.past.birth.as_ref().and_then(Message::request);
            if birth.is_some_and(|birth| birth.args.last() == Some(&ONESHOT)) {
                object.past.birth = None;
            }
        }
        Ok(())
    }
}

/// `zwp_text_input_v3`: counts its commits, and each display begins anew.
pub(super) struct TextInput;

impl Handles for TextInput {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        _: &[Plain],
        crossed: bool,
    ) -> Result<(), Fault> {
        let object = connection.objects.of_mut(call.id).filter(|_| call.desc.name == "commit");
        let Some(object) = object else { return Ok(()) };
        let (commits, before) = match object.data {
            Data::TextInput { commits, before } => (commits, before),
            _ => (0, 0),
        };
        // No display counts one that does not cross.
        let before = before.wrapping_add(u32::from(!crossed));
        object.data = Data::TextInput { commits: commits.wrapping_add(1), before };
        Ok(())
    }

    fn note(&self, connection: &mut Connection, id: u32, name: &str, args: &mut [Arg]) -> Result<(), Fault> {
        if let ("done", [Arg::Uint(count)], Some(Data::TextInput { before, .. })) =
            (name, args, connection.objects.of(id).map(|object| &object.data))
        {
            *count = count.wrapping_add(*before);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_moved_by_as_much_as_the_time_of_its_event() {
        let of = |stamp: [u32; 3]| {
            let seconds = u64::from(stamp[0]) << 32 | u64::from(stamp[1]);
            seconds * SECOND + u64::from(stamp[2])
        };
        let theirs = [1, 7, 123_999_999];
        for offset in [0, 1, -1, 999_999, -1_500_000, 7_300_000_001, -7_300_000_001] {
            let ours = by_our_clock(theirs, offset);
            // As `ClockMap::ours_from_millis` has it.
            let time = ((of(theirs) / 1_000_000) as u32).wrapping_sub(offset.div_euclid(MILLISECOND) as u32);
            assert_eq!((of(ours) / 1_000_000) as u32, time, "{offset}");
            assert!(
                of(ours).abs_diff(of(theirs).wrapping_sub(offset.cast_unsigned())) < 1_000_000,
                "{offset}"
            );
        }
        assert_eq!(by_our_clock([0, 5, 200_000_000], 4_300_000_000), [0, 0, 900_000_000]);
    }

    #[test]
    fn nonsense_stays_a_time() {
        for stamp in [[u32::MAX; 3], [0; 3], [0, 1, u32::MAX]] {
            for offset in [i64::MIN, -1, i64::MAX] {
                assert!(u64::from(by_our_clock(stamp, offset)[2]) < SECOND, "{stamp:?} {offset}");
            }
        }
    }
}
