//! The pointer of a page: where it is, which buttons are down, who is told.
//!
//! Invariants: a program's pointer is in at most one surface, which it was told to have entered, and is told nothing
//! else before; it stays in a surface that was told of a button that is down; each surface is told of the same buttons
//! going down and up, by turns.

use std::collections::BTreeMap;

use wayferry_message::{WireArg, WireId};
use wayferry_proto::{ConnectionId, Time};

use crate::hit::{self, Point};
use crate::keyboard::milliseconds;
use crate::program::Program;
use crate::scene::Window;

/// Buttons that are down at once; more are passed over.
const MAX_BUTTONS: usize = 16;

/// How far a wheel has turned, or fingers on a touchpad have moved.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wheel {
    /// Units across and down.
    pub distance: [f64; 2],
    /// Steps of a wheel in 120ths, across and down; none of fingers. All 0: the fingers have left.
    pub steps: [i32; 2],
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pointer {
    /// In the window of this surface, if in any.
    at: Option<(ConnectionId, WireId, Point)>,
    /// The surface that it is in, and where, as it was told.
    inside: Option<(ConnectionId, WireId, Point)>,
    /// Buttons that are down.
    buttons: Vec<u32>,
    /// Those of them that the surface was told of.
    told: Vec<u32>,
    /// Which of the two directions fingers have scrolled in.
    scrolls: [bool; 2],
    /// 120ths that are no whole step yet, for programs that know only those.
    rest: [i32; 2],
}

impl Pointer {
    /// The program that it is in.
    pub(crate) fn program(&self) -> Option<ConnectionId> {
        self.inside.map(|(connection, ..)| connection)
    }

    /// Moves to a point of a window, or away from all.
    pub(crate) fn go(
        &mut self,
        now: Time,
        programs: &mut BTreeMap<ConnectionId, Program>,
        at: Option<(ConnectionId, WireId, Point)>,
    ) {
        self.at = at;
        if self.look(programs) {
            return;
        }
        // In the surface where it was.
        let Some((connection, surface, before)) = self.inside else { return };
        let Some(point) = self.point_in(programs, connection, surface).filter(|point| *point != before)
        else {
            return;
        };
        self.inside = Some((connection, surface, point));
        let [x, y] = fixed(point);
        self.tell(programs, |_| vec![(MOTION, vec![WireArg::Uint(milliseconds(now)), x.clone(), y.clone()])]);
    }

    /// Where the pointer is in a surface of the window that it is over.
    fn point_in(
        &self,
        programs: &BTreeMap<ConnectionId, Program>,
        connection: ConnectionId,
        surface: WireId,
    ) -> Option<Point> {
        let (over, window, point) = self.at.filter(|(over, ..)| *over == connection)?;
        let window = Window::at(&programs.get(&over)?.windows, window)?;
        hit::inside(&window, surface, point)
    }

    /// Looks for the surface that it is in. Says whether that is another one now, which is told.
    pub(crate) fn look(&mut self, programs: &mut BTreeMap<ConnectionId, Program>) -> bool {
        let is_there = |(connection, surface, _): &(ConnectionId, WireId, Point)| {
            let program = programs.get(connection);
            let shown = program.and_then(|program| program.windows.surface(*surface));
            shown.is_some_and(|surface| surface.content().is_some())
        };
        let was = self.inside.map(|(connection, surface, _)| (connection, surface));
        let stays = !self.told.is_empty() && self.inside.as_ref().is_some_and(is_there);
        if stays {
            return false;
        }
        let under = self.at.and_then(|(connection, window, point)| {
            let windows = &programs.get(&connection)?.windows;
            let (surface, point) = hit::hit(windows, &Window::at(windows, window)?, point)?;
            Some((connection, surface, point))
        });
        if under.map(|(connection, surface, _)| (connection, surface)) == was {
            return false;
        }
        self.leave(programs);
        let Some((connection, ..)) = under else { return true };
        // Inside of a program it looks as it did until the program says.
        if was.map(|(before, _)| before) != Some(connection)
            && let Some(control) = programs.get_mut(&connection).and_then(Program::control_mut)
        {
            control.pointing = Default::default();
        }
        self.enter(programs, under);
        true
    }

    fn leave(&mut self, programs: &mut BTreeMap<ConnectionId, Program>) {
        let Some((connection, surface, _)) = self.inside else { return };
        let program = programs.get(&connection).and_then(Program::control);
        // Of a surface that has ended its program hears nothing more.
        if program.is_some_and(|control| control.client.has(surface)) {
            self.tell(programs, |serial| {
                vec![(LEAVE, vec![WireArg::Uint(serial), WireArg::Object(surface)])]
            });
        }
        self.forget_inside();
    }

    fn forget_inside(&mut self) {
        self.inside = None;
        self.told.clear();
        (self.scrolls, self.rest) = Default::default();
    }

    /// A program is gone, with all that it was told.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.at = self.at.filter(|(at, ..)| *at != connection);
        if self.program() == Some(connection) {
            self.forget_inside();
        }
    }

    fn enter(
        &mut self,
        programs: &mut BTreeMap<ConnectionId, Program>,
        to: Option<(ConnectionId, WireId, Point)>,
    ) {
        self.inside = to;
        let Some((_, surface, point)) = to else { return };
        let [x, y] = fixed(point);
        self.tell(programs, |serial| {
            vec![(ENTER, vec![WireArg::Uint(serial), WireArg::Object(surface), x.clone(), y.clone()])]
        });
    }

    /// A button goes down, or up. One that is where it goes already is passed over.
    pub(crate) fn button(
        &mut self,
        now: Time,
        programs: &mut BTreeMap<ConnectionId, Program>,
        code: u32,
        pressed: bool,
    ) {
        if self.buttons.contains(&code) == pressed || pressed && self.buttons.len() == MAX_BUTTONS {
            return;
        }
        self.buttons.retain(|button| *button != code);
        self.buttons.extend(pressed.then_some(code));
        let is_told = if pressed { self.inside.is_some() } else { self.told.contains(&code) };
        if !is_told {
            return;
        }
        self.told.retain(|button| *button != code);
        self.told.extend(pressed.then_some(code));
        let args = |serial| [serial, milliseconds(now), code, pressed.into()].map(WireArg::Uint).into();
        self.tell(programs, |serial| vec![(BUTTON, args(serial))]);
        if self.told.is_empty() {
            // It may be over another surface since.
            self.look(programs);
        }
    }

    /// A wheel turns.
    pub(crate) fn wheel(&mut self, now: Time, programs: &mut BTreeMap<ConnectionId, Program>, wheel: Wheel) {
        let Wheel { distance, steps } = wheel;
        let is_wheel = steps != [0, 0];
        let is_stop = !is_wheel && distance == [0.0, 0.0];
        let time = WireArg::Uint(milliseconds(now));
        let source = if is_wheel { SOURCE_WHEEL } else { SOURCE_FINGER };
        let mut whole = [0; 2];
        for axis in 0..2 {
            self.rest[axis] += steps[axis].clamp(-MAX_STEPS, MAX_STEPS);
            whole[axis] = self.rest[axis] / STEP;
            self.rest[axis] %= STEP;
        }
        let scrolls = self.scrolls;
        if is_stop && scrolls == [false; 2] {
            return;
        }
        self.tell_each(programs, |version, _| {
            let mut events = vec![(AXIS_SOURCE, vec![WireArg::Uint(source)])];
            // Down first, as `wl_pointer.axis` counts.
            for (number, axis) in [(0, 1), (1, 0)] {
                let axis_number = WireArg::Uint(number);
                if is_stop {
                    events.extend(scrolls[axis].then(|| (AXIS_STOP, vec![time.clone(), axis_number])));
                    continue;
                }
                if version >= WITH_VALUE120 && steps[axis] != 0 {
                    events.push((AXIS_VALUE120, vec![axis_number.clone(), WireArg::Int(steps[axis])]));
                } else if version < WITH_VALUE120 && whole[axis] != 0 {
                    events.push((AXIS_DISCRETE, vec![axis_number.clone(), WireArg::Int(whole[axis])]));
                }
                if distance[axis] != 0.0 {
                    events.push((AXIS, vec![time.clone(), axis_number, to_fixed(distance[axis])]));
                }
            }
            events
        });
        self.scrolls = match is_wheel || is_stop {
            true => [false; 2],
            false => [0, 1].map(|axis| scrolls[axis] || distance[axis] != 0.0),
        };
    }

    /// All buttons go up.
    pub(crate) fn release(&mut self, now: Time, programs: &mut BTreeMap<ConnectionId, Program>) {
        for code in self.buttons.clone().into_iter().rev() {
            self.button(now, programs, code, false);
        }
    }

    /// Tells all pointers of the program that it is in, each with a serial, and ends each with a frame.
    fn tell(
        &self,
        programs: &mut BTreeMap<ConnectionId, Program>,
        events: impl Fn(u32) -> Vec<(u16, Vec<WireArg>)>,
    ) {
        self.tell_each(programs, |_, serial| events(serial));
    }

    fn tell_each(
        &self,
        programs: &mut BTreeMap<ConnectionId, Program>,
        events: impl Fn(u32, u32) -> Vec<(u16, Vec<WireArg>)>,
    ) {
        let Some(program) = self.program().and_then(|connection| programs.get_mut(&connection)) else {
            return;
        };
        let Some(control) = program.control() else { return };
        for (pointer, version) in control.client.pointers() {
            let serial = program.next_serial();
            let events = events(version, serial);
            // Version 5 of the seat has these, and older programs are told none.
            let is_known = |opcode: u16| version >= WITH_FRAMES || opcode < FRAME;
            let all = events.into_iter().chain([(FRAME, Vec::new())]).filter(|(opcode, _)| is_known(*opcode));
            all.for_each(|(opcode, args)| program.event(pointer, opcode, args));
        }
    }
}

fn fixed(point: Point) -> [WireArg; 2] {
    [point.x, point.y].map(to_fixed)
}

/// As 24.8 fixed point; what is out of range becomes the nearest that is not.
fn to_fixed(value: f64) -> WireArg {
    WireArg::Fixed((value * 256.0).floor() as i32)
}

const ENTER: u16 = 0;
const LEAVE: u16 = 1;
const MOTION: u16 = 2;
const BUTTON: u16 = 3;
const AXIS: u16 = 4;
const FRAME: u16 = 5;
const AXIS_SOURCE: u16 = 6;
const AXIS_STOP: u16 = 7;
const AXIS_DISCRETE: u16 = 8;
const AXIS_VALUE120: u16 = 9;

const WITH_FRAMES: u32 = 5;
const WITH_VALUE120: u32 = 8;

/// `wl_pointer.axis_source`.
const SOURCE_WHEEL: u32 = 0;
const SOURCE_FINGER: u32 = 1;

/// A step of a wheel, and what one turn is believed to be at most.
const STEP: i32 = 120;
const MAX_STEPS: i32 = 120 * 100;
