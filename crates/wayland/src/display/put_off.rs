//! Units that cannot be shown as the program drew them, because a content that they build on was dropped.
//!
//! Nothing of such a unit is committed: a window without the new pixels of one part would be torn. The app side is
//! asked for what is missing, and the next unit of the same surface brings the rest, too. State goes to the compositor
//! at once, where it waits for that commit. Invariant: what is put off of a surface is here once, and gone with it.

use crate::message::{Unit, UnitContent, WireId};

/// What is put off.
#[derive(Debug, Default)]
pub(super) struct PutOff(Vec<Content>);

/// What is put off of one commit: its content.
#[derive(Debug)]
struct Content {
    /// The surface whose next unit brings it.
    top: WireId,
    /// Without state, feedback and children.
    unit: Unit,
}

impl PutOff {
    /// Whether nothing is.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the content of a unit off until the next unit of `top`.
    pub(super) fn add(&mut self, top: WireId, unit: &Unit) {
        let unit = Unit { state: Vec::new(), feedback: false, children: Vec::new(), ..unit.clone() };
        self.0.retain(|other| other.unit.surface != unit.surface);
        self.0.push(Content { top, unit });
    }

    /// A surface is gone, and with it what cannot be shown without it.
    pub(super) fn forget(&mut self, surface: WireId) {
        self.0.retain(|content| ![content.top, content.unit.surface].contains(&surface));
    }

    /// The unit with what was put off of earlier ones of its surface.
    pub(super) fn bring(&mut self, mut unit: Unit) -> Unit {
        let (older, others) =
            std::mem::take(&mut self.0).into_iter().partition(|other| other.top == unit.surface);
        self.0 = others;
        let mut older: Vec<Unit> = older.into_iter().map(|content| content.unit).collect();
        take_over(&mut unit, &mut older);
        unit.children.splice(0..0, older);
        unit
    }
}

/// Has a unit bring what older ones of its surfaces do, if it brings nothing newer.
fn take_over(unit: &mut Unit, older: &mut Vec<Unit>) {
    unit.children.iter_mut().for_each(|child| take_over(child, older));
    if let Some(at) = older.iter().position(|older| older.surface == unit.surface) {
        let Unit { content, offset: (x, y), .. } = older.remove(at);
        if unit.content == UnitContent::Keep {
            unit.content = content;
        }
        unit.offset = (unit.offset.0.saturating_add(x), unit.offset.1.saturating_add(y));
    }
}
