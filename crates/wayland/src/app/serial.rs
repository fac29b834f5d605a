//! Serials of the compositor against serials that the program sees.
//!
//! Each display that is attached begins an epoch with an offset of its own, so that serials of two displays never
//! meet. Invariant: a serial of an earlier epoch maps to nothing.

/// Between the newest serial of an epoch and the first of the next: the next display may send older ones after its
/// first.
const GAP: u32 = 1 << 20;

/// Maps serials of the attached display.
#[derive(Debug, Clone, Default)]
pub(crate) struct Serials {
    /// Added to the compositor's serials; `None` until the first of an epoch after another comes.
    offset: Option<u32>,
    /// The newest serial that the program saw in earlier epochs; `None` in the first.
    floor: Option<u32>,
    /// The oldest that it saw in this epoch, and the newest at all.
    oldest: u32,
    newest: u32,
}

/// Whether `a` comes before `b`, in the arithmetic of serials that wrap.
pub(crate) fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Serials {
    /// What the program gets to see for the compositor's `serial`.
    pub(crate) fn for_app(&mut self, serial: u32) -> u32 {
        let first = || self.floor.map_or(0, |floor| floor.wrapping_add(GAP).wrapping_sub(serial));
        let fresh = self.offset.is_none();
        let offset = *self.offset.get_or_insert_with(first);
        let app = serial.wrapping_add(offset);
        if fresh || before(app, self.oldest) {
            self.oldest = app;
        }
        if fresh || before(self.newest, app) {
            self.newest = app;
        }
        app
    }

    /// The compositor's serial behind the program's, unless that is from an earlier epoch.
    pub(crate) fn for_display(&self, serial: u32) -> Option<u32> {
        match (self.floor, self.offset) {
            (None, _) => Some(serial),
            (Some(_), Some(offset)) if !before(serial, self.oldest) => Some(serial.wrapping_sub(offset)),
            _ => None,
        }
    }

    /// The newest that the program saw.
    pub(crate) fn newest(&self) -> u32 {
        self.newest
    }

    /// The display is gone: all serials so far are stale.
    pub(crate) fn begin_epoch(&mut self) {
        (self.offset, self.floor) = (None, Some(self.newest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_map_there_and_back() {
        let mut serials = Serials::default();
        for serial in [7, 9, 8, u32::MAX, 0] {
            let app = serials.for_app(serial);
            assert_eq!(serials.for_display(app), Some(serial));
        }
    }

    #[test]
    fn serials_of_another_epoch_are_stale() {
        let mut serials = Serials::default();
        let old = serials.for_app(u32::MAX - 3);
        serials.begin_epoch();
        assert_eq!(serials.for_display(old), None);
        let new = serials.for_app(5);
        let before = serials.for_app(3);
        assert_eq!((serials.for_display(new), serials.for_display(before)), (Some(5), Some(3)));
        assert_eq!((serials.for_display(old), serials.for_display(0)), (None, None));
        serials.begin_epoch();
        assert_eq!((serials.for_display(new), serials.for_display(before)), (None, None));
        let newer = serials.for_app(5);
        assert_eq!(serials.for_display(newer), Some(5));
        assert!(newer != new);
    }
}
