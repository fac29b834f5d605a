//! What is asked of the seat and its devices.
//!
//! Invariant: a shape has the name that style sheets have for it.

use wayferry_message::{WireArg, WireId};

use crate::ask::{Ask, Pointing};
use crate::end::End;

use super::{Client, Object};

impl Client {
    pub(super) fn ask_seat(
        &mut self,
        version: u32,
        opcode: u16,
        args: &[WireArg],
    ) -> Result<Option<Ask>, End> {
        let &[WireArg::NewId(id)] = args else { return Ok(None) };
        match opcode {
            seat::GET_POINTER => {
                self.add(id, Object::Pointer)?;
                self.pointers.insert(id, version);
            }
            seat::GET_KEYBOARD => {
                self.add(id, Object::Keyboard)?;
                self.keyboards.push(id);
                self.new_keyboards.push(id);
            }
            seat::GET_TOUCH => self.add(id, Object::Touch)?,
            _ => return Ok(None),
        }
        Ok(Some(Ask::Nothing))
    }

    pub(super) fn ask_pointer(&self, opcode: u16, args: &[WireArg]) -> Result<Option<Ask>, End> {
        let (SET_CURSOR, &[WireArg::Uint(_), WireArg::Object(surface), WireArg::Int(x), WireArg::Int(y)]) =
            (opcode, args)
        else {
            return Ok(None);
        };
        Ok(match surface {
            WireId::NULL => Some(Ask::Point(Pointing::Hidden)),
            _ if self.has(surface) => Some(Ask::Point(Pointing::Surface(surface, (x, y)))),
            _ => None,
        })
    }

    pub(super) fn ask_shape(&self, opcode: u16, args: &[WireArg]) -> Option<Ask> {
        let (SET_SHAPE, &[WireArg::Uint(_), WireArg::Uint(shape)]) = (opcode, args) else { return None };
        let name = usize::try_from(shape).ok().and_then(|shape| SHAPES.get(shape.checked_sub(1)?));
        Some(Ask::Point(name.map_or(Pointing::Default, |name| Pointing::Named(name))))
    }
}

mod seat {
    pub(super) const GET_POINTER: u16 = 0;
    pub(super) const GET_KEYBOARD: u16 = 1;
    pub(super) const GET_TOUCH: u16 = 2;
}

const SET_CURSOR: u16 = 0;
const SET_SHAPE: u16 = 1;

/// `wp_cursor_shape_device_v1.shape` from 1 on.
const SHAPES: [&str; 34] = [
    "default",
    "context-menu",
    "help",
    "pointer",
    "progress",
    "wait",
    "cell",
    "crosshair",
    "text",
    "vertical-text",
    "alias",
    "copy",
    "move",
    "no-drop",
    "not-allowed",
    "grab",
    "grabbing",
    "e-resize",
    "n-resize",
    "ne-resize",
    "nw-resize",
    "s-resize",
    "se-resize",
    "sw-resize",
    "w-resize",
    "ew-resize",
    "ns-resize",
    "nesw-resize",
    "nwse-resize",
    "col-resize",
    "row-resize",
    "all-scroll",
    "zoom-in",
    "zoom-out",
];
