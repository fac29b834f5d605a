//! Comparing what a commit brings with the surface's content by a worker, before anything else is done with the commit.
//!
//! It is as if the program had made it when the worker is back: requests behind it are not read, nothing of the program
//! leaves, and nothing that the commit says is done before. Meanwhile the content is the worker's, so what looks at it
//! waits; what works on it has the comparison finished first. What is small, brings no memory of the program's, waited
//! in a queue before, or comes while no display is attached is compared in the turn (`commit`). Invariant: while a
//! buffer is compared, no unit is made.

use wayferry_pixels::Draft;

use super::commit::Damage;
use super::comparing::{Compared, Order, Read};
use super::connection::Connection;
use super::fault::Fault;
use super::pending::{Attach, Pixels};

impl Connection {
    /// Gives what a surface commits to a worker, if there are any, and enough is to be compared. Says whether it has.
    pub(super) fn begin_comparing(&mut self, id: u32) -> Result<bool, Fault> {
        let Some(order) = self.comparison(id) else { return Ok(false) };
        // Older pixels are made of the content as it is.
        self.flush_older(id)?;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(false) };
        let Attach::Buffer { buffer, .. } = &surface.pending.attach else { return Ok(false) };
        let (size, format) = (buffer.size, buffer.format);
        let fits = surface.painter.fits(size, format);
        // One that does not fit is freed there.
        let lent = surface.painter.lend_draft();
        let draft = move || lent.filter(|_| fits).unwrap_or_else(|| Box::new(Draft::new(size, format)));
        let read = Read { surface: id, at: self.now };
        self.comparing.begin(read, order, draft, &self.config.workers);
        Ok(true)
    }

    /// What a worker is to compare; `None` if that is done here.
    fn comparison(&self, id: u32) -> Option<Order> {
        if !self.config.workers.are_there() || !self.line.is_attached() {
            return None;
        }
        let surface = self.surfaces.get(&id)?;
        let pending = &surface.pending;
        let Attach::Buffer { buffer, pixels: Pixels::There, .. } = &pending.attach else { return None };
        if surface.fade.is_on() || pending.factor.is_some() {
            return None;
        }
        let after = surface.shape.after(pending);
        let damage = Damage {
            surface: &pending.surface_damage,
            buffer: &pending.buffer_damage,
            reshaped: after != surface.shape,
        };
        let region = damage.region(surface, after, id, buffer);
        if region.area() < WORTH_A_WORKER {
            return None;
        }
        let memory = buffer.memory(&region)?;
        let (layout, threads) = (buffer.layout(), self.config.threads);
        let (update, probe) =
            ((surface.wire, surface.painter.next_update().0), self.config.probe.elsewhere());
        Some(Order { memory, layout, region, threads, update, probe })
    }

    /// Goes on with the commit whose buffer has been compared.
    pub(super) fn go_on_comparing(&mut self) {
        if let Some((read, compared)) = self.comparing.poll(self.now) {
            let step = self.commit_compared(read, compared);
            self.settle(step);
        }
    }

    /// The same at once, for what works on the content.
    pub(super) fn finish_comparing(&mut self) -> Result<(), Fault> {
        let back = self.comparing.finish(self.now);
        back.map_or(Ok(()), |(read, compared)| self.commit_compared(read, compared))
    }

    fn commit_compared(&mut self, read: Read, compared: Compared) -> Result<(), Fault> {
        let Read { surface: id, at } = read;
        // Requests have waited for it, and views.
        self.program.wake();
        self.watching.next_version();
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        if let Attach::Buffer { pixels, .. } = &mut surface.pending.attach {
            *pixels = Pixels::Compared(compared);
        }
        match self.surfaces.is_synchronised(id) {
            true => self.commit(id),
            false => self.commit_own(id, at),
        }
    }
}

/// Pixels that are worth a worker: comparing fewer takes a third of a millisecond at most.
const WORTH_A_WORKER: u64 = 128 << 10;
