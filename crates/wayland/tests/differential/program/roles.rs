//! Windows, popups and children: how they begin and how they end.

use wayferry_wayland::wire::Arg;

use super::{Program, Step};
use crate::heard::Heard;
use crate::link::World;
use crate::operation::{Op, PLACES};
use crate::place::{Attached, Place, Role};

impl<W: World> Program<'_, W> {
    pub(super) fn create(&mut self, at: usize) {
        self.destroy(at, true);
        let id = self.make(self.globals["wl_compositor"], "create_surface", vec![]);
        self.places[at] = Some(Place::new(id, self.surfaces));
        self.surfaces += 1;
    }

    pub(super) fn toplevel(&mut self, at: usize) {
        let Some(Place { id, role: Role::None, index, .. }) =
            self.places[at].as_ref().filter(|p| p.is_bare())
        else {
            return;
        };
        let (id, index) = (*id, *index);
        let shell = self.make(self.globals["xdg_wm_base"], "get_xdg_surface", vec![Arg::Object(id)]);
        let role = self.make(shell, "get_toplevel", vec![]);
        self.owners.extend([(shell, index), (role, index)]);
        self.set_role(at, Role::Toplevel { shell, role });
    }

    pub(super) fn set_role(&mut self, at: usize, role: Role) {
        if let Some(place) = &mut self.places[at] {
            place.role = role;
        }
    }

    pub(super) fn popup(&mut self, at: usize, parent: usize, grab: bool) {
        let above = self.places[parent].as_ref().filter(|above| above.mapped && parent != at);
        let (above, may_grab) = match above.map(|above| above.role) {
            Some(Role::Toplevel { shell, .. }) => (shell, true),
            Some(Role::Popup { shell, grab, .. }) => (shell, grab),
            _ => return,
        };
        let has_popups = (0..PLACES).any(|other| self.popup_parent(other) == Some(parent));
        let bare = self.places[at].as_ref().filter(|place| place.role == Role::None && place.is_bare());
        let Some((id, index)) = bare.map(|place| (place.id, place.index)) else { return };
        let shell = self.make(self.globals["xdg_wm_base"], "get_xdg_surface", vec![Arg::Object(id)]);
        let positioner = self.positioner(at as u8);
        let role = self.make(shell, "get_popup", vec![Arg::Object(above), Arg::Object(positioner)]);
        self.request(positioner, "destroy", vec![]);
        let serial = self.pressed.filter(|_| grab && may_grab && !has_popups);
        if let Some(serial) = serial {
            let seat = Arg::Object(self.globals["wl_seat"]);
            self.request(role, "grab", vec![seat, Arg::Uint(serial)]);
        }
        self.owners.extend([(shell, index), (role, index)]);
        self.set_role(at, Role::Popup { shell, role, parent, grab: serial.is_some() });
    }

    pub(super) fn positioner(&mut self, kind: u8) -> u32 {
        let positioner = self.make(self.globals["xdg_wm_base"], "create_positioner", vec![]);
        let kind = i32::from(kind);
        self.request(positioner, "set_size", [10 + kind, 10].map(Arg::Int).into());
        self.request(positioner, "set_anchor_rect", [kind, 0, 1, 1].map(Arg::Int).into());
        self.request(positioner, "set_offset", [0, kind].map(Arg::Int).into());
        positioner
    }

    pub(super) fn reposition(&mut self, at: usize, to: u8) -> Step {
        let Some(Place { role: Role::Popup { role, .. }, mapped: true, index, .. }) = self.places[at] else {
            return Ok(());
        };
        if self.old {
            return Ok(());
        }
        let configures = move |program: &Self| {
            let is_it =
                |heard: &&Heard| matches!(heard, Heard::Configure { surface, .. } if *surface == index);
            program.outcome.heard.iter().filter(is_it).count()
        };
        let before = configures(self);
        let positioner = self.positioner(to % 16);
        self.token += 1;
        self.request(role, "reposition", vec![Arg::Object(positioner), Arg::Uint(self.token)]);
        self.request(positioner, "destroy", vec![]);
        self.wait("a configure for its new place", |program| configures(program) > before)
    }

    pub(super) fn popup_parent(&self, at: usize) -> Option<usize> {
        match self.places[at].as_ref()?.role {
            Role::Popup { parent, .. } => Some(parent),
            _ => None,
        }
    }

    pub(super) fn child(&mut self, at: usize, parent: usize) {
        let mut above = Some(parent);
        while let Some(next) = above {
            if next == at {
                return;
            }
            above = self.places[next].as_ref().and_then(Place::parent);
        }
        let Some(above) = self.places[parent].as_ref().map(|above| above.id) else { return };
        if matches!(self.places[at].as_ref().map(|place| place.role), Some(Role::Child { .. })) {
            self.end(at);
        }
        let Some(Place { id, role: Role::None | Role::Orphan, .. }) = self.places[at] else { return };
        let args = vec![Arg::Object(id), Arg::Object(above)];
        let role = self.make(self.globals["wl_subcompositor"], "get_subsurface", args);
        self.set_role(at, Role::Child { role, parent: Some(parent) });
        if let Some(place) = &mut self.places[at] {
            place.sync = true;
        }
    }

    /// A window or a popup has been configured before it has content; whether it may have any.
    pub(super) fn ready(&mut self, at: usize) -> Result<bool, String> {
        let Some(place) = &mut self.places[at] else { return Ok(false) };
        if !place.is_window() {
            return Ok(place.role != Role::Spent);
        }
        if !place.begun {
            place.begun = true;
            self.say_commit(at);
        }
        let Some(Place { configured, index, .. }) = self.places[at] else { return Ok(false) };
        if !configured {
            let gone = |program: &Self| program.outcome.heard.contains(&Heard::Dismissed { surface: index });
            self.wait("the first configure", |program| {
                program.places[at].as_ref().is_some_and(|place| place.serial.is_some()) || gone(program)
            })?;
            if gone(self) {
                return Ok(false);
            }
            self.acknowledge(at);
        }
        Ok(true)
    }

    pub(super) fn acknowledge(&mut self, at: usize) {
        let Some(place) = &mut self.places[at] else { return };
        let (Role::Toplevel { shell, .. } | Role::Popup { shell, .. }) = place.role else { return };
        if let Some(serial) = place.serial.take() {
            place.configured = true;
            self.request(shell, "ack_configure", vec![Arg::Uint(serial)]);
        }
    }

    pub(super) fn word(&mut self, op: &Op) {
        let (Op::Title(at, _) | Op::AppId(at, _) | Op::Parent(at, _) | Op::State(at, _)) = *op else {
            return;
        };
        let Some(Place { role: Role::Toplevel { role, .. }, .. }) = self.places[at] else { return };
        match *op {
            Op::Title(_, title) => {
                self.request(role, "set_title", vec![Arg::Str(Some(vec![b'a' + title % 26]))]);
            }
            Op::AppId(_, id) => self.request(role, "set_app_id", vec![Arg::Str(Some(vec![b'a' + id % 26]))]),
            Op::State(_, state) => {
                let names = ["set_maximized", "unset_maximized", "set_fullscreen", "unset_fullscreen"];
                let name = names[usize::from(state % 4)];
                let args = if name == "set_fullscreen" { vec![Arg::Object(0)] } else { vec![] };
                self.request(role, name, args);
            }
            Op::Parent(_, parent) => {
                // Only of those before it, so that there are no circles.
                let parent =
                    parent.filter(|parent| *parent < at).and_then(|parent| self.places[parent].as_ref());
                let parent = match parent.map(|parent| parent.role) {
                    Some(Role::Toplevel { role, .. }) => role,
                    _ => 0,
                };
                self.request(role, "set_parent", vec![Arg::Object(parent)]);
            }
            _ => {}
        }
    }

    /// Popups that stand on it, the topmost first.
    pub(super) fn popups_above(&self, at: usize) -> Vec<usize> {
        let direct = (0..PLACES).filter(|other| self.popup_parent(*other) == Some(at));
        direct.flat_map(|popup| self.popups_above(popup).into_iter().chain([popup])).collect()
    }

    /// The role goes, those of popups above it first.
    pub(super) fn end(&mut self, at: usize) {
        for popup in self.popups_above(at) {
            self.end_one(popup);
        }
        self.end_one(at);
    }

    pub(super) fn end_one(&mut self, at: usize) {
        let Some(place) = &mut self.places[at] else { return };
        let index = place.index;
        match place.role {
            Role::Toplevel { shell, role } | Role::Popup { shell, role, .. } => {
                (place.role, place.mapped, place.serial) = (Role::Spent, false, None);
                self.outcome.gone.insert(index);
                self.request(role, "destroy", vec![]);
                self.request(shell, "destroy", vec![]);
                self.owners.retain(|id, _| *id != shell && *id != role);
            }
            Role::Child { role, .. } => {
                // What waits for a parent that it has not any more may be forgotten, or not.
                place.role = if place.is_waiting() { Role::Spent } else { Role::Orphan };
                (place.unclaimed, place.claimed_by) = (false, None);
                self.request(role, "destroy", vec![]);
                self.orphaned(at);
            }
            Role::None | Role::Cursor | Role::Orphan | Role::Spent => {}
        }
    }

    /// Children of a surface may be free to commit.
    pub(super) fn orphaned(&mut self, at: usize) {
        for child in 0..PLACES {
            if self.places[child].as_ref().is_some_and(|child| child.parent() == Some(at)) {
                self.freed(child);
            }
        }
    }

    pub(super) fn destroy(&mut self, at: usize, role_first: bool) {
        for popup in self.popups_above(at) {
            self.end_one(popup);
            self.destroy_one(popup, true);
        }
        self.destroy_one(at, role_first);
    }

    pub(super) fn destroy_one(&mut self, at: usize, role_first: bool) {
        let late_role = match self.places[at].as_ref().map(|place| place.role) {
            Some(Role::Child { role, .. }) if !role_first => Some(role),
            _ => {
                self.end_one(at);
                None
            }
        };
        let Some(place) = self.places[at].take() else { return };
        self.outcome.gone.insert(place.index);
        if let Some(viewport) = place.viewport.filter(|_| role_first) {
            self.request(viewport, "destroy", vec![]);
        }
        self.request(place.id, "destroy", vec![]);
        if let Some(viewport) = place.viewport.filter(|_| !role_first) {
            self.request(viewport, "destroy", vec![]);
        }
        if let Some(role) = late_role {
            self.request(role, "destroy", vec![]);
        }
        if let Attached::Pixel(buffer) = place.attached {
            self.request(buffer, "destroy", vec![]);
        }
        // Its memory is another's then: the compositor may not have read it yet.
        for drawing in place.drawings.into_iter().flatten() {
            self.request(drawing.id, "destroy", vec![]);
        }
        for child in self.places.iter_mut().flatten() {
            if let Role::Child { parent, .. } = &mut child.role
                && *parent == Some(at)
            {
                *parent = None;
                // As when its own role goes.
                if child.is_waiting() {
                    child.claimed_by = Some(PLACES);
                }
            }
        }
    }

    pub(super) fn destroy_all(&mut self, at: usize) {
        let above = self.popups_above(at);
        self.end(at);
        self.destroy_one(at, true);
        above.into_iter().rev().for_each(|popup| self.destroy_one(popup, true));
    }
}
