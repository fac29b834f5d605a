//! What surfaces are used for, by the objects of the program that live.
//!
//! Made anew when it is asked for.

use std::collections::{HashMap, HashSet};

use crate::policy::Handler;

use super::object::Objects;

/// What surfaces are used for, by objects of the program that live.
#[derive(Debug, Default)]
pub(super) struct Roles {
    /// Surfaces with their `xdg_toplevel` or layer.
    pub(super) windows: HashMap<u32, u32>,
    pub(super) popups: HashSet<u32>,
    /// Surfaces with their `wl_subsurface`.
    pub(super) children: HashMap<u32, u32>,
}

impl Roles {
    /// As they are now.
    pub(super) fn of(objects: &Objects) -> Self {
        let mut roles = Self::default();
        for (id, object) in objects.iter().filter(|(_, object)| object.alive) {
            let Some(surface) = object.surface else { continue };
            match object.handler {
                Handler::Toplevel | Handler::LayerSurface => drop(roles.windows.insert(surface, id)),
                Handler::Popup => drop(roles.popups.insert(surface)),
                Handler::Subsurface => drop(roles.children.insert(surface, id)),
                _ => {}
            }
        }
        roles
    }
}
