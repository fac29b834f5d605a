//! Serials of the compositor against serials that the program sees.
//!
//! Each display that is attached begins an epoch with an offset of its own, so that serials of two displays never
//! meet. Invariant: a serial of an earlier epoch maps to nothing.

/// Maps serials of the attached display.
#[derive(Debug, Clone, Default)]
pub(crate) struct Serials {
    /// Added to the compositor's serials.
    offset: u32,
    /// The first and the newest serial of this epoch that the program saw.
    seen: Option<(u32, u32)>,
}

/// Whether `a` comes before `b`, in the arithmetic of serials that wrap.
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Serials {
    /// What the program gets to see for the compositor's `serial`.
    pub(crate) fn for_app(&mut self, serial: u32) -> u32 {
        let app = serial.wrapping_add(self.offset);
        self.seen = Some(match self.seen {
            None => (app, app),
            Some((first, newest)) => {
                (if before(app, first) { app } else { first }, if before(newest, app) { app } else { newest })
            }
        });
        app
    }

    /// The compositor's serial behind the program's, unless that is from an earlier epoch.
    pub(crate) fn for_display(&self, serial: u32) -> Option<u32> {
        match self.seen {
            Some((first, _)) if before(serial, first) && self.offset != 0 => None,
            _ => Some(serial.wrapping_sub(self.offset)),
        }
    }
}

#[cfg(test)]
impl Serials {
    /// As if another display had been attached, `offset` after the first.
    pub(crate) fn begin_epoch(&mut self, offset: u32) {
        *self = Self { offset, seen: None };
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
}
