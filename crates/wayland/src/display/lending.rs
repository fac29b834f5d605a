//! Units with a worker: which are lent, with what, and what is done when they are back.
//!
//! The worker paints the contents of a unit and fills the buffers that show them. Meanwhile the unit is held, in its
//! place among the others; then it is applied in one turn, for which nothing is left that takes long. Invariant: a
//! buffer that is lent is not attached, and one of a surface that went meanwhile is destroyed when it is back.

use crate::action::End;
use crate::message::{Unit, UnitContent, WireId};

use super::buffers::{Buffer, Kind};
use super::connection::{Config, Connection, no_memory};
use super::ground::Ground;
use super::hold::Need;
use super::objects::Own;
use super::painting::{Done, Order, Painting};
use super::surface::Surface;
use super::units::LARGE;

impl Connection {
    /// Whether there are workers who can paint the unit: it is known to be the next that its surfaces show.
    pub(super) fn may_lend(&self, unit: &Unit) -> bool {
        self.config.workers.are_there() && self.put_off.is_empty() && self.is_plain(unit)
    }

    fn is_plain(&self, unit: &Unit) -> bool {
        let plain = |surface: &Surface| surface.lost.is_none() && surface.refused == 0;
        let own = self.surfaces.get(&unit.surface).is_none_or(plain);
        own && !self.updates.gave_up(unit.surface) && unit.children.iter().all(|child| self.is_plain(child))
    }

    /// About how many bytes of memory are touched to paint a unit, and to fill the buffers that show it with what they
    /// lack besides: of what a worker had, nothing.
    pub(super) fn work_of(&mut self, unit: &Unit) -> usize {
        let below = unit.children.iter().map(|child| self.work_of(child)).fold(0, usize::saturating_add);
        let UnitContent::Update(seq) = unit.content else { return below };
        let kind = self.kind(unit);
        let surface = self.surfaces.get(&unit.surface).filter(|surface| surface.ahead.is_none());
        let lacks = surface.zip(kind).map_or(0, |(surface, kind)| surface.pool.lacks(kind));
        below.saturating_add(lacks).saturating_add(self.updates.work(unit.surface, seq.0))
    }

    /// About how many bytes of memory it takes to paint a unit.
    pub(super) fn cost(&self, unit: &Unit) -> usize {
        let own = match unit.content {
            UnitContent::Update(seq) => self.updates.cost(unit.surface, seq.0),
            UnitContent::Keep | UnitContent::None => 0,
        };
        unit.children.iter().map(|child| self.cost(child)).fold(own, usize::saturating_add)
    }

    /// What shows the content that the unit brings to its surface.
    fn kind(&self, unit: &Unit) -> Option<Kind> {
        let UnitContent::Update(seq) = unit.content else { return None };
        let content = self.surfaces.get(&unit.surface)?.content.as_ref();
        let now = content.map(|content| (content.size(), content.format()));
        let (size, format) = self.updates.shape(unit.surface, seq.0).or(now)?;
        Some(Kind { size, format, shown: self.globals.shown(format) })
    }

    /// Gives the contents of a unit to a worker, with what is to be painted on them.
    pub(super) fn lend_contents(&mut self, unit: &Unit, cost: usize) -> Result<(), End> {
        let mut orders = Vec::new();
        self.list_orders(unit, &mut orders)?;
        // The content that was is kept until another is painted.
        let updates = orders.iter().flat_map(|order| &order.updates);
        let cost = updates.map(|(_, update)| update.made()).fold(cost, usize::saturating_add);
        self.turn.room.lend = self.turn.room.lend.saturating_sub(cost);
        self.updates.lend(orders.iter().flat_map(|order| &order.updates), cost);
        let Config { workers, probe, .. } = &self.config;
        self.painting = Some(Painting::begin((unit.surface, cost), orders, workers, probe));
        Ok(())
    }

    fn list_orders(&mut self, unit: &Unit, orders: &mut Vec<Order>) -> Result<(), End> {
        unit.children.iter().try_for_each(|child| self.list_orders(child, orders))?;
        let UnitContent::Update(seq) = unit.content else { return Ok(()) };
        let kind = self.kind(unit);
        let Some(mut surface) = self.surfaces.remove(&unit.surface) else { return Ok(()) };
        let buffer = kind.map(|kind| self.lend_buffer(unit.surface, &mut surface, kind)).transpose();
        let order = buffer.map(|buffer| {
            let updates = self.updates.take(unit.surface, seq.0);
            Order { surface: unit.surface, ground: surface.lend(), updates, buffer }
        });
        self.surfaces.insert(unit.surface, surface);
        orders.push(order?);
        Ok(())
    }

    fn lend_buffer(
        &mut self,
        wire: WireId,
        surface: &mut Surface,
        kind: Kind,
    ) -> Result<(Kind, Buffer), End> {
        let make = |spec| self.make_buffer(Own::Buffer(wire), &spec);
        let (buffer, useless) = surface.pool.lend(kind, make)?;
        useless.into_iter().try_for_each(|useless| self.destroy_buffer(useless))?;
        Ok((kind, buffer))
    }

    /// Frees a content: by a worker if it is large.
    pub(super) fn discard(&self, ground: Ground) {
        if ground.bytes() > LARGE {
            self.config.workers.free(ground);
        }
    }

    /// Takes back contents that a worker has painted: their unit waits for no more.
    pub(super) fn take_painted(&mut self) {
        let Some(done) = self.painting.as_mut().and_then(Painting::poll) else { return };
        let Some(Painting { top, .. }) = self.painting.take() else { return };
        self.updates.are_painted();
        let outcome = done.into_iter().try_for_each(|done| self.take_back(done));
        self.settle(outcome);
        self.holds.meet(Need::Painted(top));
    }

    fn take_back(&mut self, done: Done) -> Result<(), End> {
        let Done { surface: wire, ground, painted, buffer } = done;
        let buffer = buffer.transpose().map_err(no_memory)?;
        let Some(surface) = self.surfaces.get_mut(&wire) else {
            self.discard(ground);
            return buffer.map_or(Ok(()), |buffer| self.destroy_buffer(buffer.id()));
        };
        surface.come_back(ground, &painted);
        buffer.into_iter().for_each(|buffer| surface.pool.put_back(buffer));
        surface.ahead = match surface.ahead.take() {
            // Its unit was put off and went, and what it painted is not told yet.
            Some(before) => Some(before.and(painted)),
            None => Some(painted),
        };
        Ok(())
    }
}
