//! Commits of a program whose display is a page.
//!
//! Invariant: a unit names each surface once, and all that it changes is there.

use std::collections::BTreeSet;

use wayferry_message::{Request, Unit, WireArg, WireId};

use crate::ask::{Ask, Change, Commit, InputRegion};
use crate::end::{End, wrong};
use crate::objects::{geometry_change, surface_change, viewport_change};

use super::{Client, Object, unknown};

impl Client {
    /// Reads a unit.
    pub(crate) fn read_unit(&mut self, unit: &Unit) -> Result<Commit, End> {
        self.read_unit_of(unit, &mut BTreeSet::new())
    }

    fn read_unit_of(&mut self, unit: &Unit, named: &mut BTreeSet<WireId>) -> Result<Commit, End> {
        let surface = unit.surface;
        if !named.insert(surface) {
            return Err(wrong(format!("a unit names surface {} twice", surface.0)));
        }
        let place = self.place(surface)?;
        if unit.number <= place.last_unit {
            let last = place.last_unit;
            return Err(wrong(format!("unit {} of surface {} after {last}", unit.number, surface.0)));
        }
        place.last_unit = unit.number;
        let children = unit.children.iter().map(|child| self.read_unit_of(child, named));
        let children = children.collect::<Result<_, _>>()?;
        let asks = unit.state.iter().map(|request| self.read_state(request)).collect::<Result<_, _>>()?;
        Ok(Commit {
            surface,
            number: unit.number,
            asks,
            content: unit.content,
            feedback: unit.feedback,
            children,
        })
    }

    /// Reads a part of a unit.
    fn read_state(&mut self, request: &Request) -> Result<Ask, End> {
        let (surface, change) = match self.object(request.object)? {
            Object::Surface => match (request.opcode, &request.args[..]) {
                (SET_OPAQUE_REGION, [WireArg::Region(_) | WireArg::Object(WireId::NULL)]) => {
                    return Ok(Ask::Nothing);
                }
                (SET_INPUT_REGION, [region]) => (request.object, self.input(region)?),
                _ => (request.object, surface_change(request)),
            },
            Object::Viewport(surface) => (surface, viewport_change(request)),
            Object::Subsurface(child) => (child, self.subsurface_change(request)),
            Object::XdgSurface(surface) => match (request.opcode, &request.args[..]) {
                (ACK_CONFIGURE, [WireArg::Uint(_)]) => return Ok(Ask::Nothing),
                _ => (surface, geometry_change(request)),
            },
            Object::Toplevel(_) => match (request.opcode, &request.args[..]) {
                // Windows have the size of the page.
                (SET_MAX_SIZE | SET_MIN_SIZE, [WireArg::Int(_), WireArg::Int(_)]) => return Ok(Ask::Nothing),
                _ => return Err(unknown(request)),
            },
            _ => return Err(unknown(request)),
        };
        let change = change.ok_or_else(|| unknown(request))?;
        Ok(Ask::Change { surface, change })
    }

    fn input(&self, region: &WireArg) -> Result<Option<Change>, End> {
        Ok(match region {
            WireArg::Object(WireId::NULL) => Some(Change::Input(None)),
            WireArg::Region(ops) => {
                let lease = self.share.lease(size_of_val(&ops[..]))?;
                Some(Change::Input(Some(InputRegion::new(ops, lease))))
            }
            _ => None,
        })
    }

    fn subsurface_change(&self, request: &Request) -> Option<Change> {
        match (request.opcode, &request.args[..]) {
            (SET_POSITION, &[WireArg::Int(x), WireArg::Int(y)]) => Some(Change::Position((x, y))),
            // A sibling that has ended by then changes nothing.
            (opcode @ (PLACE_ABOVE | PLACE_BELOW), &[WireArg::Object(sibling)]) => {
                Some(Change::Stack { sibling, above: opcode == PLACE_ABOVE })
            }
            _ => None,
        }
    }
}

const SET_OPAQUE_REGION: u16 = 4;
const SET_INPUT_REGION: u16 = 5;
const ACK_CONFIGURE: u16 = 4;
const SET_MAX_SIZE: u16 = 7;
const SET_MIN_SIZE: u16 = 8;
const SET_POSITION: u16 = 1;
const PLACE_ABOVE: u16 = 2;
const PLACE_BELOW: u16 = 3;
