//! What is asked of the clipboard: sources that programs offer, and offers that they were told of.
//!
//! Nothing is dragged in a page. Invariants: what is named by a clipping lived when it was asked for; a program has no
//! more than [`MAX_OFFERS`] offers, and a source no more than [`MAX_KINDS`] kinds.

use wayferry_message::{WireArg, WireId};

use crate::ask::{Ask, Clipping};
use crate::end::End;
use crate::objects::OBJECT_COST;
use crate::share::Lease;

use super::{Client, Object};

/// Kinds of one source; programs have a dozen.
pub(crate) const MAX_KINDS: usize = 128;
/// Bytes of the name of a kind.
const MAX_KIND: usize = 256;
/// Offers that a program was told of and has not ended: it ends one when it hears of the next.
const MAX_OFFERS: usize = 64;
/// What the name of a kind takes beside its bytes, about.
const KIND_COST: usize = 96;

/// The kinds of one source.
pub(super) type Kinds = Vec<(Vec<u8>, Lease)>;

impl Client {
    pub(super) fn ask_clipboard(&mut self, opcode: u16, args: &[WireArg]) -> Result<Option<Ask>, End> {
        Ok(match (opcode, args) {
            (manager::CREATE_SOURCE, [WireArg::NewId(id)]) => {
                self.add(*id, Object::Source)?;
                self.sources.insert(*id, Kinds::new());
                Some(Ask::Nothing)
            }
            (manager::GET_DEVICE, [WireArg::NewId(id), WireArg::Object(_)]) => {
                self.add(*id, Object::DataDevice)?;
                self.devices.push(*id);
                Some(Ask::Clip(Clipping::Device(*id)))
            }
            _ => None,
        })
    }

    pub(super) fn ask_data_device(&self, opcode: u16, args: &[WireArg]) -> Option<Ask> {
        let source = |id: WireId| self.sources.contains_key(&id).then_some(id);
        Some(Ask::Clip(match (opcode, args) {
            (device::SET_SELECTION, &[WireArg::Object(WireId::NULL), WireArg::Uint(serial)]) => {
                Clipping::Select { source: None, serial }
            }
            (device::SET_SELECTION, &[WireArg::Object(id), WireArg::Uint(serial)]) => {
                Clipping::Select { source: Some(source(id)?), serial }
            }
            // Without a source it is a matter of the program alone.
            (device::START_DRAG, [WireArg::Object(WireId::NULL), _, _, _]) => return Some(Ask::Nothing),
            (device::START_DRAG, &[WireArg::Object(id), _, _, _]) => Clipping::Refuse(source(id)?),
            _ => return None,
        }))
    }

    pub(super) fn ask_source(
        &mut self,
        id: WireId,
        opcode: u16,
        args: &[WireArg],
    ) -> Result<Option<Ask>, End> {
        match (opcode, args) {
            (source::OFFER, [WireArg::Str(Some(kind))]) => {
                let lease = self.share.lease(kind.len() + KIND_COST)?;
                let kinds = self.sources.get_mut(&id);
                let is_new = |kinds: &Kinds| !kinds.iter().any(|(known, _)| known == kind);
                if let Some(kinds) = kinds.filter(|kinds| kinds.len() < MAX_KINDS && is_new(kinds))
                    && kind.len() <= MAX_KIND
                {
                    kinds.push((kind.clone(), lease));
                }
                Ok(Some(Ask::Nothing))
            }
            (source::SET_ACTIONS, [WireArg::Uint(_)]) => Ok(Some(Ask::Nothing)),
            _ => Ok(None),
        }
    }

    pub(super) fn ask_offer(selection: u64, opcode: u16, args: &[WireArg]) -> Option<Ask> {
        match (opcode, args) {
            (offer::RECEIVE, [WireArg::Str(Some(kind)), WireArg::Pipe(pipe)]) if pipe & 1 == 0 => {
                Some(Ask::Clip(Clipping::Receive { selection, kind: kind.clone(), pipe: *pipe }))
            }
            // These are about what is dragged.
            (offer::ACCEPT, [WireArg::Uint(_), WireArg::Str(_)])
            | (offer::FINISH, [])
            | (offer::SET_ACTIONS, [WireArg::Uint(_), WireArg::Uint(_)]) => Some(Ask::Nothing),
            _ => None,
        }
    }

    /// The names of what it listens to the clipboard with.
    pub(crate) fn devices(&self) -> Vec<WireId> {
        self.devices.clone()
    }

    /// The kinds of a source that has not ended.
    pub(crate) fn kinds(&self, source: WireId) -> Option<impl Iterator<Item = &[u8]>> {
        Some(self.sources.get(&source)?.iter().map(|(kind, _)| kind.as_slice()))
    }

    /// A new object of the page's: an offer of that selection. None if there are as many as may be.
    pub(crate) fn make_offer(&mut self, selection: u64) -> Result<Option<WireId>, End> {
        if self.offers >= MAX_OFFERS {
            return Ok(None);
        }
        let id = self.next_made;
        let lease = self.share.lease(OBJECT_COST)?;
        self.next_made = id.next();
        self.offers += 1;
        self.objects.insert(id, (Object::Offer(selection), lease));
        Ok(Some(id))
    }
}

mod manager {
    pub(super) const CREATE_SOURCE: u16 = 0;
    pub(super) const GET_DEVICE: u16 = 1;
}

mod device {
    pub(super) const START_DRAG: u16 = 0;
    pub(super) const SET_SELECTION: u16 = 1;
}

mod source {
    pub(super) const OFFER: u16 = 0;
    pub(super) const SET_ACTIONS: u16 = 2;
}

mod offer {
    pub(super) const ACCEPT: u16 = 0;
    pub(super) const RECEIVE: u16 = 1;
    pub(super) const FINISH: u16 = 3;
    pub(super) const SET_ACTIONS: u16 = 4;
}
