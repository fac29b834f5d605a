//! Units that were told in the headers of their updates.
//!
//! A commit that does nothing but bring new pixels needs no message of its own: lost, that would hold up all that come
//! behind it. The update says which unit it is, and after how many messages. Before anything else is said on the
//! channel, the newest such unit of each surface is said there, too, so that what comes next finds it in its place.
//! Decides also what the next update of a busy surface covers, see `chain`. Invariant: a unit that was told changes
//! nothing but the content of one surface that no other commit applies.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_pixels::Region;
use wayferry_proto::{Time, UnitHead, Worth};

use crate::action::Update;
use crate::message::{Unit, WireId};
use crate::policy::Handler;

use super::chain::Link;
use super::connection::Connection;
use super::making::Making;
use super::unsent::Ahead;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Messages to this display.
    messages: u64,
    /// What no message has said, one for each surface.
    units: BTreeMap<WireId, Unit>,
}

impl Told {
    /// A message leaves.
    pub(super) fn count_message(&mut self) {
        self.messages += 1;
    }

    /// An update has told this unit, and so all of the surface before it.
    pub(super) fn add(&mut self, unit: Unit) {
        self.units.insert(unit.surface, unit);
    }

    /// The display side has applied a unit: it needs no message any more.
    pub(super) fn on_applied(&mut self, surface: WireId, unit: u64) {
        if self.units.get(&surface).is_some_and(|told| told.number <= unit) {
            self.units.remove(&surface);
        }
    }

    /// What a message has to say before anything else does.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Unit> + use<> {
        std::mem::take(&mut self.units).into_values()
    }
}

impl Connection {
    /// What the content that comes next is to paint for the updates before it.
    pub(super) fn covered(&mut self, making: &Making, id: u32) -> Region {
        let (now, rtt, after) = (self.now, self.pacing.credit().rtt, self.told.messages);
        // Where nothing is lost, painting more than is new would be waste.
        let may = self.pacing.credit().loses && self.may_tell(making, id);
        let Some(surface) = self.surfaces.get_mut(&id) else { return Region::default() };
        surface.chain.beat(now);
        let busy = may && surface.chain.is_busy(now, rtt);
        match surface.painter.changed().filter(|_| busy) {
            Some(changed) => surface.chain.plan(surface.painter.next_update(), after, changed),
            None => Region::default(),
        }
    }

    /// The last update of a surface's content leaves: says there which unit it is for, if that is all that the unit
    /// says.
    pub(super) fn tell_unit(&mut self, making: &mut Making, id: u32, update: &mut Update) {
        let may = self.may_tell(making, id) && !update.fresh;
        let after = self.told.messages;
        let Some(surface) = self.surfaces.get_mut(&id).filter(|_| may) else { return };
        let (unit, seq) = (surface.sent.coming_unit(), update.seq);
        let feedback = !making.unsent.feedback.is_empty() || surface.sent.owes_feedback();
        let head = UnitHead { number: unit, after, feedback, answered: making.unsent.answered };
        (making.told, update.unit) = (Some(head), Some(head));
        if surface.painter.covers() {
            update.covers = surface.chain.take_planned(seq, after);
        }
        if let Some(painted) = surface.painter.covered_by().cloned() {
            surface.chain.add(Link { update: seq, unit, after, painted });
        }
    }

    /// Whether what a unit does to a surface is to show its content, and nothing else depends on it.
    fn may_tell(&self, making: &Making, id: u32) -> bool {
        let unsent = &making.unsent;
        let plain = unsent.is_bare() && unsent.offset == (0, 0) && unsent.ahead == Ahead::Nothing;
        plain && making.id == id && self.offering.desk().cover && !self.surfaces.is_synchronised(id)
    }

    /// What an update of a surface is to the user that leaves now: what the user waits for is repaired also where
    /// others cover it.
    pub(super) fn worth(&mut self, id: u32, update: &Update) -> Worth {
        let input = self.last_input(id, update.fresh).filter(|input| self.now.since(*input) <= ANSWER);
        let (now, rtt) = (self.now, self.pacing.credit().rtt);
        let Some(surface) = self.surfaces.get_mut(&id) else { return Worth::Plain };
        let answer = surface.chain.answers(input);
        let is_answer = match surface.chain.is_busy(now, rtt) {
            true => (1..=FIRST_ANSWERS).contains(&answer),
            false => answer > 0,
        };
        match update.covers {
            _ if is_answer => Worth::Answer,
            1.. => Worth::Passing,
            0 => Worth::Plain,
        }
    }

    /// When input came last that new content of a surface may answer: what went to the surface or to one above it; and
    /// a surface that shows up may answer any, as may one of a popup, which often has no keyboard of its own.
    fn last_input(&self, id: u32, shows_up: bool) -> Option<Time> {
        let focus = self.devices.focus();
        let here = self.wires_above(id).filter_map(|wire| focus.last_input(wire)).max();
        let anywhere = focus.last_input_anywhere();
        let is_newer = anywhere.filter(|input| self.now.since(*input) <= ANSWER) > here;
        here.max(anywhere.filter(|_| shows_up || is_newer && self.is_in_popup(id)))
    }

    fn is_in_popup(&self, id: u32) -> bool {
        let top = self.surfaces.ancestors(id).last();
        self.objects.iter().any(|(_, object)| {
            object.alive
                && object.handler == Handler::Popup
                && object.surface.is_some()
                && object.surface == top
        })
    }
}

/// What is drawn so soon after input answers it.
const ANSWER: Duration = Duration::from_millis(300);

/// The first updates of a busy surface that answer one input: the others are what it draws anyway.
const FIRST_ANSWERS: u32 = 3;
