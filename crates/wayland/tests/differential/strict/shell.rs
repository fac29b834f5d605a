//! `xdg_wm_base`: windows and popups, from the first configure to the last destroy.

use wayferry_wayland::wire::Arg;

use super::surface::Role;
use super::{Object, Strict, Verdict, demand};
use crate::heard::Heard;

/// What was set: size, anchor rectangle, anchor, gravity, adjustment, offset.
pub(super) type Positioner = [i32; 11];

/// One `xdg_surface`.
pub(super) struct Shell {
    pub(super) surface: u32,
    /// The `xdg_toplevel` or `xdg_popup`.
    pub(super) role: Option<u32>,
    pub(super) popup: Option<Popup>,
    /// The `xdg_surface` of the window that this one was made a dialog of.
    parent: Option<u32>,
    /// There was a commit without content, which was answered.
    begun: bool,
    configured: bool,
    pub(super) mapped: bool,
    /// Configures that may still be acknowledged, and all that were sent, with their sizes.
    open: Vec<u32>,
    sizes: Vec<(u32, (i32, i32))>,
    pub(super) acknowledged: Option<(i32, i32)>,
    states: u8,
}

pub(super) struct Popup {
    /// The `xdg_surface` that it belongs to.
    pub(super) parent: u32,
    pub(super) positioner: Positioner,
    pub(super) grab: bool,
    pub(super) dismissed: bool,
}

impl Strict {
    pub(super) fn on_shell(&mut self, id: u32, object: Object, request: &str, args: &[Arg]) -> Verdict {
        match object.interface.name {
            "xdg_wm_base" => match (request, args) {
                ("create_positioner", [Arg::NewId(new)]) => drop(self.positioners.insert(*new, [0; 11])),
                ("get_xdg_surface", &[Arg::NewId(new), Arg::Object(surface)]) => {
                    return self.get_xdg_surface(new, surface);
                }
                ("destroy", _) => demand(self.shells.is_empty(), "defunct_surfaces")?,
                _ => {}
            },
            "xdg_positioner" => return self.on_positioner(id, request, args),
            "xdg_surface" => return self.on_xdg_surface(id, request, args),
            "xdg_popup" => return self.on_popup(id, object.of, request, args),
            _ => return self.on_toplevel(id, object.of, request, args),
        }
        Ok(())
    }

    fn on_positioner(&mut self, id: u32, request: &str, args: &[Arg]) -> Verdict {
        let positioner = self.positioners.get_mut(&id).ok_or("no positioner")?;
        let first = match request {
            "set_size" => 0,
            "set_anchor_rect" => 2,
            "set_anchor" => 6,
            "set_gravity" => 7,
            "set_constraint_adjustment" => 8,
            "set_offset" => 9,
            _ => return Ok(()),
        };
        for (place, arg) in positioner[first..].iter_mut().zip(args) {
            match arg {
                Arg::Int(value) => *place = *value,
                Arg::Uint(value) => *place = value.cast_signed(),
                _ => {}
            }
        }
        demand(request != "set_size" || positioner[0] > 0 && positioner[1] > 0, "invalid_input")
    }

    fn get_xdg_surface(&mut self, new: u32, id: u32) -> Verdict {
        let surface = self.surfaces.get_mut(&id).ok_or("no surface")?;
        demand(matches!(surface.role, Role::None | Role::Xdg), "role: it has another")?;
        demand(surface.shell.is_none(), "role: it has an xdg_surface")?;
        demand(surface.current.content.is_none(), "invalid_surface_state: it has content")?;
        (surface.role, surface.shell) = (Role::Xdg, Some(new));
        let shell = Shell {
            surface: id,
            role: None,
            popup: None,
            parent: None,
            begun: false,
            configured: false,
            mapped: false,
            open: Vec::new(),
            sizes: Vec::new(),
            acknowledged: None,
            states: 0,
        };
        self.shells.insert(new, shell);
        Ok(())
    }

    fn on_xdg_surface(&mut self, id: u32, request: &str, args: &[Arg]) -> Verdict {
        let shell = self.shells.get_mut(&id).ok_or("no xdg_surface")?;
        match (request, args) {
            ("get_toplevel", [Arg::NewId(new)]) => {
                demand(shell.role.is_none(), "already_constructed")?;
                shell.role = Some(*new);
                if let Some(object) = self.objects.get_mut(new) {
                    object.of = id;
                }
                self.look();
            }
            ("get_popup", &[Arg::NewId(new), Arg::Object(parent), Arg::Object(positioner)]) => {
                demand(shell.role.is_none(), "already_constructed")?;
                demand(parent != 0, "invalid_popup_parent")?;
                let positioner = *self.positioners.get(&positioner).ok_or("no positioner")?;
                demand(positioner[0] > 0 && positioner[2..6] != [0; 4], "invalid_positioner")?;
                shell.role = Some(new);
                shell.popup = Some(Popup { parent, positioner, grab: false, dismissed: false });
                if let Some(object) = self.objects.get_mut(&new) {
                    object.of = id;
                }
                self.look();
            }
            ("set_window_geometry", &[Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
                demand(shell.role.is_some(), "not_constructed")?;
                demand(width > 0 && height > 0, "invalid_size")?;
                let surface = self.surfaces.get_mut(&shell.surface).ok_or("no surface")?;
                surface.pending.geometry = Some([x, y, width, height]);
            }
            ("ack_configure", &[Arg::Uint(serial)]) => {
                demand(shell.role.is_some(), "not_constructed")?;
                let found = shell.open.iter().position(|open| *open == serial).ok_or("invalid_serial")?;
                shell.open.drain(..=found);
                let surface = self.surfaces.get_mut(&shell.surface).ok_or("no surface")?;
                surface.pending.acknowledged = Some(serial);
            }
            ("destroy", _) => {
                demand(shell.role.is_none(), "defunct_role_object: its role is still there")?;
                if let Some(surface) = self.surfaces.get_mut(&shell.surface) {
                    surface.shell = None;
                }
                self.shells.remove(&id);
                self.look();
            }
            _ => {}
        }
        Ok(())
    }

    fn on_popup(&mut self, id: u32, of: u32, request: &str, args: &[Arg]) -> Verdict {
        let above = |shell: &Shell| shell.popup.as_ref().is_some_and(|popup| popup.parent == of);
        let has_popups = self.shells.values().any(above);
        let grabs =
            |shell: Option<&Shell>| shell.is_none_or(|s| s.popup.as_ref().is_none_or(|popup| popup.grab));
        let parent = self.shells.get(&of).and_then(|shell| shell.popup.as_ref()).map(|popup| popup.parent);
        let parent_grabs = grabs(parent.and_then(|parent| self.shells.get(&parent)));
        let shell = self.shells.get_mut(&of).ok_or("no xdg_surface")?;
        match (request, args) {
            ("destroy", _) => {
                demand(!has_popups, "not_the_topmost_popup")?;
                shell.end_role();
                self.look();
            }
            ("grab", &[_, Arg::Uint(serial)]) => {
                demand(!shell.mapped && parent_grabs, "invalid_grab")?;
                shell.popup.as_mut().ok_or("no popup")?.grab = true;
                if !self.seat.pressed(serial) {
                    self.dismiss(of);
                }
            }
            ("reposition", &[Arg::Object(positioner), Arg::Uint(token)]) => {
                let positioner = *self.positioners.get(&positioner).ok_or("no positioner")?;
                shell.popup.as_mut().ok_or("no popup")?.positioner = positioner;
                self.event(id, "repositioned", vec![Arg::Uint(token)]);
                self.configure(of, (0, 0));
                self.look();
            }
            _ => {}
        }
        Ok(())
    }

    fn on_toplevel(&mut self, id: u32, of: u32, request: &str, args: &[Arg]) -> Verdict {
        let shell = self.shells.get_mut(&of).ok_or("no xdg_surface")?;
        let surface = shell.surface;
        let states = shell.states;
        match (request, args) {
            ("destroy", _) => {
                shell.end_role();
                self.reset_words(surface);
                self.leave_dialogs(of);
                self.look();
            }
            ("set_title" | "set_app_id", [Arg::Str(text)]) => {
                let text = String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned();
                self.word(surface, if request == "set_title" { "title" } else { "app_id" }, text);
            }
            ("set_parent", [Arg::Object(parent)]) => {
                let parent = self.objects.get(parent).map(|object| object.of);
                let is_mapped = |id: &u32| self.shells.get(id).is_some_and(|parent| parent.mapped);
                self.set_parent(of, parent.filter(is_mapped));
            }
            ("set_min_size" | "set_max_size", &[Arg::Int(width), Arg::Int(height)]) => {
                demand(width >= 0 && height >= 0, "invalid_size")?;
                let pending = &mut self.surfaces.get_mut(&surface).ok_or("no surface")?.pending;
                let place = if request == "set_min_size" { &mut pending.least } else { &mut pending.most };
                *place = Some((width, height));
            }
            ("set_maximized", _) => self.set_states(id, of, states | 1),
            ("unset_maximized", _) => self.set_states(id, of, states & !1),
            ("set_fullscreen", _) => self.set_states(id, of, states | 2),
            ("unset_fullscreen", _) => self.set_states(id, of, states & !2),
            _ => {}
        }
        Ok(())
    }

    fn set_parent(&mut self, of: u32, parent: Option<u32>) {
        let Some(shell) = self.shells.get_mut(&of) else { return };
        shell.parent = parent;
        let surface = shell.surface;
        let above = parent.and_then(|parent| self.shells.get(&parent));
        let index = above.and_then(|above| self.surfaces.get(&above.surface)?.index);
        self.word(surface, "parent", index.map_or(String::new(), |index| index.to_string()));
    }

    /// A window is unmapped: the one that it was a dialog of, if any, gets its dialogs.
    fn leave_dialogs(&mut self, of: u32) {
        let parent = self.shells.get_mut(&of).and_then(|shell| shell.parent.take());
        let dialogs = self.shells.iter().filter(|(_, shell)| shell.parent == Some(of)).map(|(id, _)| *id);
        dialogs.collect::<Vec<_>>().into_iter().for_each(|dialog| self.set_parent(dialog, parent));
    }

    fn set_states(&mut self, _toplevel: u32, of: u32, states: u8) {
        let Some(shell) = self.shells.get_mut(&of) else { return };
        shell.states = states;
        let surface = shell.surface;
        self.word(surface, "state", states.to_string());
    }

    fn word(&mut self, surface: u32, what: &'static str, text: String) {
        if let Some(index) = self.surfaces.get(&surface).and_then(|surface| surface.index) {
            self.record.word(index, what, text);
        }
    }

    /// What a window's title and the like are once it is unmapped.
    fn reset_words(&mut self, surface: u32) {
        for what in ["title", "app_id", "parent"] {
            self.word(surface, what, String::new());
        }
        self.word(surface, "state", "0".to_owned());
    }

    /// What a commit means for a window or a popup.
    pub(super) fn apply_shell(&mut self, id: u32, acknowledged: Option<u32>) -> Verdict {
        let shell = self.shells.get_mut(&id).ok_or("no xdg_surface")?;
        let surface = self.surfaces.get_mut(&shell.surface).ok_or("no surface")?;
        if let Some(serial) = acknowledged {
            let size = shell.sizes.iter().find(|(sent, _)| *sent == serial).ok_or("invalid_serial")?.1;
            (shell.configured, shell.acknowledged) = (true, Some(size));
        }
        let has_content = surface.current.content.is_some();
        demand(!has_content || shell.role.is_some(), "not_constructed")?;
        demand(!has_content || shell.configured, "unconfigured_buffer")?;
        if has_content {
            shell.mapped = true;
        } else if shell.mapped {
            shell.unmap();
            surface.current.geometry = None;
            (surface.current.least, surface.current.most) = ((0, 0), (0, 0));
            let surface = shell.surface;
            self.reset_words(surface);
            self.leave_dialogs(id);
        } else if !shell.begun && shell.role.is_some() {
            shell.begun = true;
            if let Some(parent) = shell.popup.as_ref().map(|popup| popup.parent) {
                let parent = self.shells.get(&parent);
                demand(parent.is_some_and(|parent| parent.mapped), "invalid_popup_parent: it is not mapped")?;
            }
            self.configure(id, (0, 0));
        }
        Ok(())
    }

    /// Wants a window to be of a size, or tells a popup where it is.
    fn configure(&mut self, id: u32, size: (i32, i32)) {
        let serial = self.next_serial();
        let Some(shell) = self.shells.get_mut(&id) else { return };
        let Some(role) = shell.role else { return };
        let (numbers, size) = match &shell.popup {
            None => (vec![i64::from(size.0), i64::from(size.1)], size),
            Some(Popup { positioner, .. }) => {
                let place = [positioner[2] + positioner[9], positioner[3] + positioner[10]];
                let numbers = [place[0], place[1], positioner[0], positioner[1]];
                (numbers.map(i64::from).to_vec(), (positioner[0], positioner[1]))
            }
        };
        shell.open.push(serial);
        shell.sizes.push((serial, size));
        let index = self.surfaces[&shell.surface].index;
        let mut args: Vec<Arg> = numbers.iter().map(|number| Arg::Int(*number as i32)).collect();
        if shell.popup.is_none() {
            args.push(Arg::Array(Vec::new()));
        }
        self.event(role, "configure", args);
        self.event(id, "configure", vec![Arg::Uint(serial)]);
        if let Some(surface) = index {
            self.say(Heard::Configure { surface, numbers }, Some(surface));
        }
    }

    /// The compositor wants another size of a mapped window, by the order of its surface's creation.
    pub(crate) fn resize(&mut self, index: usize, size: (i32, i32)) -> bool {
        let is_it = |shell: &Shell| shell.mapped && self.surfaces[&shell.surface].index == Some(index);
        let found =
            self.shells.iter().find(|(_, shell)| is_it(shell) && shell.popup.is_none()).map(|(id, _)| *id);
        if let Some(id) = found {
            self.configure(id, size);
        }
        found.is_some()
    }

    /// A popup is over, by the order of its surface's creation.
    pub(crate) fn dismiss_index(&mut self, index: usize) -> bool {
        let is_it = |shell: &Shell| shell.mapped && self.surfaces[&shell.surface].index == Some(index);
        let found =
            self.shells.iter().find(|(_, shell)| is_it(shell) && shell.popup.is_some()).map(|(id, _)| *id);
        if let Some(id) = found {
            self.dismiss(id);
        }
        found.is_some()
    }

    fn dismiss(&mut self, id: u32) {
        let Some(shell) = self.shells.get_mut(&id) else { return };
        let (Some(popup), Some(role)) = (&mut shell.popup, shell.role) else { return };
        if std::mem::replace(&mut popup.dismissed, true) {
            return;
        }
        let index = self.surfaces[&shell.surface].index;
        self.event(role, "popup_done", Vec::new());
        if let Some(surface) = index {
            self.say(Heard::Dismissed { surface }, Some(surface));
        }
        self.look();
    }
}

impl Shell {
    fn unmap(&mut self) {
        (self.begun, self.configured, self.mapped, self.acknowledged) = (false, false, false, None);
        self.open.clear();
        self.states = 0;
    }

    fn end_role(&mut self) {
        self.unmap();
        (self.role, self.popup) = (None, None);
    }

    /// Whether it is to be seen.
    pub(super) fn is_shown(&self) -> bool {
        self.mapped && self.popup.as_ref().is_none_or(|popup| !popup.dismissed)
    }
}
