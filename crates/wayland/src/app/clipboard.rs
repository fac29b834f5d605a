//! Selections that the program owns, and its drag: what another display is told of them.
//!
//! A selection needs a serial of the display, so it is made again with the first that the user's input brings. A drag
//! is over. Invariant: a source is not offered once it was cancelled or destroyed.

use std::collections::BTreeMap;

use crate::message::WireId;

/// The books, in names between the halves.
#[derive(Debug, Default)]
pub(crate) struct Clipboard {
    /// The source of each device's selection.
    owned: BTreeMap<WireId, WireId>,
    /// Those that this display has not been told of.
    unannounced: BTreeMap<WireId, WireId>,
    /// The source of the drag that goes on.
    drag: Option<WireId>,
}

impl Clipboard {
    /// The program has set a device's selection; `None` clears it.
    pub(crate) fn select(&mut self, device: WireId, source: Option<WireId>) {
        self.forget(device);
        self.owned.extend(source.map(|source| (device, source)));
    }

    /// The program drags.
    pub(crate) fn drag(&mut self, source: Option<WireId>) {
        self.drag = source;
    }

    /// A source was cancelled, a drag ended, or a device or source destroyed.
    pub(crate) fn forget(&mut self, name: WireId) {
        for map in [&mut self.owned, &mut self.unannounced] {
            map.retain(|device, source| *device != name && *source != name);
        }
        self.drag = self.drag.filter(|source| *source != name);
    }

    /// The display is gone. Gives the source of the drag that is over by that.
    pub(crate) fn part(&mut self) -> Option<WireId> {
        self.unannounced.clear();
        self.drag.take()
    }

    /// Another display is there.
    pub(crate) fn meet(&mut self) {
        self.unannounced = self.owned.clone();
    }

    /// The selections that it must be told of, now that there is a serial.
    pub(crate) fn take_unannounced(&mut self) -> BTreeMap<WireId, WireId> {
        std::mem::take(&mut self.unannounced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: WireId = WireId(4);
    const SOURCE: WireId = WireId(6);

    #[test]
    fn a_selection_is_told_once_to_each_display() {
        let mut clipboard = Clipboard::default();
        clipboard.select(DEVICE, Some(SOURCE));
        assert!(clipboard.take_unannounced().is_empty(), "this display knows");
        for _ in 0..2 {
            clipboard.part();
            clipboard.meet();
            assert_eq!(clipboard.take_unannounced(), BTreeMap::from([(DEVICE, SOURCE)]));
            assert!(clipboard.take_unannounced().is_empty());
        }
    }

    #[test]
    fn what_is_over_is_not_told() {
        let mut clipboard = Clipboard::default();
        clipboard.select(DEVICE, Some(SOURCE));
        clipboard.drag(Some(WireId(8)));
        assert_eq!(clipboard.part(), Some(WireId(8)));
        clipboard.meet();
        clipboard.forget(SOURCE);
        assert!(clipboard.take_unannounced().is_empty());
        clipboard.select(DEVICE, Some(SOURCE));
        clipboard.meet();
        clipboard.select(DEVICE, None);
        assert!(clipboard.take_unannounced().is_empty());
    }
}
