//! Buffers that workers fill: what is shown is what would be shown without workers, whenever they do it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use wayferry_pixels::{Content, Format};

use crate::message::{ToDisplay, UnitContent, WireId};
use crate::workers::Workers;
use crate::workers::slow::Slow;

use super::super::Room;
use super::rig::{BufferCommit, Rig, size};

/// Half a MiB is filled in a turn.
const LARGE: u32 = 420;
const SMALL: u32 = 40;

/// A compositor, and a crew that works when it is told to; without one, all is done at once.
struct Shown {
    rig: Rig,
    crew: Option<Arc<Slow>>,
    surfaces: [WireId; 2],
}

impl Shown {
    fn new(with_crew: bool) -> Self {
        let mut rig = Rig::new();
        let crew = with_crew.then(|| Arc::new(Slow::default()));
        if let Some(crew) = &crew {
            rig.connection.config.workers = Workers::new(Arc::<Slow>::clone(crew));
        }
        let surfaces = [rig.surface(), rig.surface()];
        Self { rig, crew, surfaces }
    }

    fn waiting(&self) -> usize {
        self.crew.as_ref().map_or(0, |crew| crew.waiting())
    }

    fn work(&mut self, which: usize) -> bool {
        let any = self.crew.as_ref().is_some_and(|crew| crew.work(which));
        self.rig.work(Room::default());
        any
    }

    /// A square of another colour in one corner, or a whole new content.
    fn commit(&mut self, surface: usize, side: u32, colour: u8, whole: bool) {
        let wire = self.surfaces[surface];
        let before = self.rig.contents.get(&wire).map(|(draft, _)| draft.content().clone());
        let before = before.filter(|content| content.size() == size(side, side));
        let is_new = before.is_none();
        let mut content = before.unwrap_or_else(|| Content::new(size(side, side), Format::Argb8888));
        let rows = if whole || is_new { side } else { 8 };
        let width = if whole || is_new { side } else { 8 };
        let row: Vec<u8> = (0..width).flat_map(|x| [colour, x as u8, 3, 255]).collect();
        (0..rows).for_each(|y| content.write_row(y, 0, &row));
        let update = self.rig.update(wire, content, is_new);
        let seq = update.0.seq;
        self.rig.deliver(update);
        let unit = self.rig.unit(wire, UnitContent::Update(seq));
        self.rig.say(&ToDisplay::Unit(unit));
        self.rig.work(Room::default());
    }

    /// The compositor lets go of all buffers but those that it shows.
    fn release(&mut self) {
        let shown: BTreeMap<u32, u32> =
            self.rig.shown.iter().map(|shown| (shown.surface, shown.buffer)).collect();
        let busy: Vec<u32> = self.rig.busy.iter().copied().collect();
        for buffer in busy.into_iter().filter(|buffer| !shown.values().any(|shown| shown == buffer)) {
            self.rig.release(buffer);
        }
        self.rig.work(Room::default());
    }

    /// All that is to be shown is.
    fn settle(&mut self) {
        for _ in 0..100 {
            while self.work(0) {}
            self.release();
        }
        assert_eq!((self.waiting(), self.rig.end()), (0, None));
        assert!(self.rig.connection.painting.is_none() && self.rig.connection.holds.is_empty());
        assert_eq!(self.rig.connection.updates.memory(), (0, 0));
    }

    /// Of each surface, in no buffer.
    fn pictures(&self) -> [Vec<BufferCommit>; 2] {
        self.surfaces.map(|wire| {
            let of = self.rig.shown.iter().filter(|shown| shown.surface == self.rig.id(wire));
            of.map(|shown| BufferCommit { buffer: 0, ..shown.clone() }).collect()
        })
    }
}

/// A surface, whether its content is large, a colour, whether all changes; whether buffers are released then; and what
/// the crew does.
fn step() -> impl Strategy<Value = (usize, bool, u8, bool, bool, Option<usize>)> {
    (0..2usize, any::<bool>(), any::<u8>(), any::<bool>(), any::<bool>(), prop::option::of(any::<usize>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_shown_is_what_would_be_shown_without_workers(steps in prop::collection::vec(step(), 1..12)) {
        let (mut shown, mut alone) = (Shown::new(true), Shown::new(false));
        for (surface, is_large, colour, whole, releases, works) in steps {
            let side = if is_large { LARGE } else { SMALL };
            for shown in [&mut shown, &mut alone] {
                shown.commit(surface, side, colour, whole);
            }
            if let Some(which) = works {
                shown.work(which);
            }
            if releases {
                shown.release();
                alone.release();
            }
        }
        shown.settle();
        alone.settle();
        prop_assert!(shown.pictures() == alone.pictures());
    }
}

/// One letter in a window of which the compositor has one buffer only: the other lacks all of it.
#[test]
fn a_buffer_that_lacks_much_is_filled_by_a_worker_and_one_that_lacks_little_is_not() {
    let mut shown = Shown::new(true);
    shown.commit(0, LARGE, 1, true);
    shown.settle();
    shown.commit(0, LARGE, 2, false);
    assert_eq!((shown.waiting(), shown.rig.shown.len()), (1, 1), "another buffer is filled");
    shown.commit(1, SMALL, 3, true);
    assert_eq!(shown.rig.shown.len(), 2, "the small one passes");
    shown.settle();
    shown.commit(0, LARGE, 4, false);
    assert_eq!((shown.waiting(), shown.rig.shown.len()), (0, 4), "the first buffer is free again");
    let colours: Vec<u8> = shown.pictures()[0].iter().map(|shown| shown.pixels[0]).collect();
    assert_eq!(colours, [1, 2, 4]);
}

/// The compositor copies what it shows, and lets go of the buffer: nothing has to be filled but what changes.
#[test]
fn few_bytes_of_many_pixels_are_painted_by_a_worker() {
    let mut shown = Shown::new(true);
    shown.commit(0, LARGE, 1, true);
    shown.settle();
    let buffer = shown.rig.shown[0].buffer;
    shown.rig.release(buffer);
    shown.rig.exchange();
    let wire = shown.surfaces[0];
    let mut content = shown.rig.contents[&wire].0.content().clone();
    content.fill(&[7, 7, 7, 255]);
    let update = shown.rig.update(wire, content, false);
    assert!(update.1.iter().map(Vec::len).sum::<usize>() < 100);
    let seq = update.0.seq;
    shown.rig.deliver(update);
    let unit = shown.rig.unit(wire, UnitContent::Update(seq));
    shown.rig.say(&ToDisplay::Unit(unit));
    assert_eq!((shown.waiting(), shown.rig.shown.len()), (1, 1));
    shown.settle();
    assert!(shown.rig.shown[1].pixels.starts_with(&[7, 7, 7, 255]));
}

#[test]
fn a_surface_that_goes_while_its_buffer_is_filled_leaves_no_memory_behind() {
    let mut shown = Shown::new(true);
    shown.commit(0, LARGE, 1, true);
    shown.settle();
    shown.commit(0, LARGE, 2, false);
    assert_eq!(shown.waiting(), 1);
    let buffers = shown.rig.buffers.len();
    let surface = shown.surfaces[0];
    shown.rig.request(surface, "destroy", vec![]);
    assert_eq!(shown.rig.buffers.len(), buffers - 1, "the worker still writes into the other");
    shown.settle();
    assert_eq!((shown.rig.buffers.len(), shown.rig.connection.taken().buffers), (0, 0));
    shown.rig.assert_alive();
}
