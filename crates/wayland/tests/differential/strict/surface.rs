//! Surfaces: double-buffered state, subsurfaces, viewports.
//!
//! A commit makes an [`Update`]. That of a synchronised child waits until its parent commits, which claims it: both are
//! applied as one.

use std::collections::BTreeMap;
use std::rc::Rc;

use wayferry_wayland::wire::Arg;

use super::content::{Buffer, Grid, Picture, size_on_surface};
use super::shell::Shell;
use super::{Object, Strict, Verdict, demand};
use crate::shown::{Numbers, Own};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    None,
    Subsurface,
    Xdg,
    Cursor,
}

pub(super) struct Surface {
    /// Place among the program's surfaces; none for those of the display half itself.
    pub(super) index: Option<usize>,
    pub(super) role: Role,
    attach: Option<Option<(u32, Rc<Buffer>)>>,
    pub(super) pending: Update,
    cached: Option<Update>,
    pub(super) current: Current,
    pub(super) parent: Option<u32>,
    subsurface: Option<u32>,
    sync: bool,
    viewport: Option<u32>,
    /// The `xdg_surface`.
    pub(super) shell: Option<u32>,
}

/// What a commit changes.
#[derive(Default)]
pub(super) struct Update {
    content: Option<Option<Picture>>,
    damage: Vec<[i32; 4]>,
    offset: (i32, i32),
    scale: Option<i32>,
    transform: Option<i32>,
    source: Option<Option<[i32; 4]>>,
    destination: Option<Option<(i32, i32)>>,
    opaque: Option<Option<Grid>>,
    input: Option<Option<Grid>>,
    pub(super) geometry: Option<[i32; 4]>,
    pub(super) least: Option<(i32, i32)>,
    pub(super) most: Option<(i32, i32)>,
    pub(super) acknowledged: Option<u32>,
    stack: Option<Vec<u32>>,
    positions: Vec<(u32, (i32, i32))>,
    frames: Vec<u32>,
    claimed: Vec<(u32, Update)>,
}

/// What a surface looks like.
#[derive(Default)]
pub(super) struct Current {
    pub(super) content: Option<Picture>,
    /// Of `content`.
    pub(super) name: u64,
    pub(super) offset: (i32, i32),
    pub(super) scale: i32,
    pub(super) transform: i32,
    pub(super) source: Option<[i32; 4]>,
    pub(super) destination: Option<(i32, i32)>,
    pub(super) opaque: Option<Grid>,
    pub(super) input: Option<Grid>,
    pub(super) geometry: Option<[i32; 4]>,
    pub(super) least: (i32, i32),
    pub(super) most: (i32, i32),
    /// Itself and its children, the lowest first.
    pub(super) stack: Vec<u32>,
    pub(super) position: (i32, i32),
    frames: Vec<u32>,
}

impl Surface {
    pub(super) fn new(id: u32, index: Option<usize>) -> Self {
        Self {
            index,
            role: Role::None,
            attach: None,
            pending: Update::default(),
            cached: None,
            current: Current { scale: 1, stack: vec![id], ..Current::default() },
            parent: None,
            subsurface: None,
            sync: false,
            viewport: None,
            shell: None,
        }
    }

    /// The order of itself and its children, as it will be once everything is applied that was committed.
    fn latest_stack(&self) -> &Vec<u32> {
        let cached = self.cached.as_ref().and_then(|cached| cached.stack.as_ref());
        self.pending.stack.as_ref().or(cached).unwrap_or(&self.current.stack)
    }
}

impl Update {
    /// A newer one on top.
    fn merge(&mut self, newer: Self) {
        fn last<T>(old: &mut Option<T>, new: Option<T>) {
            *old = new.or(old.take());
        }
        last(&mut self.content, newer.content);
        self.damage.extend(newer.damage);
        self.offset = (self.offset.0 + newer.offset.0, self.offset.1 + newer.offset.1);
        last(&mut self.scale, newer.scale);
        last(&mut self.transform, newer.transform);
        last(&mut self.source, newer.source);
        last(&mut self.destination, newer.destination);
        last(&mut self.opaque, newer.opaque);
        last(&mut self.input, newer.input);
        last(&mut self.geometry, newer.geometry);
        last(&mut self.least, newer.least);
        last(&mut self.most, newer.most);
        last(&mut self.acknowledged, newer.acknowledged);
        last(&mut self.stack, newer.stack);
        self.positions.extend(newer.positions);
        self.frames.extend(newer.frames);
        self.claimed.extend(newer.claimed);
    }

    /// A child is no child any more.
    fn forget(&mut self, child: u32) {
        self.stack.iter_mut().for_each(|stack| stack.retain(|id| *id != child));
        self.positions.retain(|(id, _)| *id != child);
        self.claimed.retain(|(id, _)| *id != child);
        self.claimed.iter_mut().for_each(|(_, update)| update.forget(child));
    }

    fn take_frames(&mut self, frames: &mut Vec<u32>) {
        frames.append(&mut self.frames);
        self.claimed.iter_mut().for_each(|(_, update)| update.take_frames(frames));
    }
}

impl Strict {
    pub(super) fn on_surface(&mut self, id: u32, object: Object, request: &str, args: &[Arg]) -> Verdict {
        let surface = self.surfaces.get_mut(&id).ok_or("no surface")?;
        let pending = &mut surface.pending;
        match (request, args) {
            ("attach", &[Arg::Object(buffer), Arg::Int(x), Arg::Int(y)]) => {
                demand(object.version < 5 || (x, y) == (0, 0), "invalid_offset")?;
                surface.attach = Some(self.buffers.get(&buffer).map(|found| (buffer, Rc::clone(found))));
                if object.version < 5 {
                    pending.offset = (x, y);
                }
            }
            ("offset", &[Arg::Int(x), Arg::Int(y)]) => pending.offset = (x, y),
            ("damage_buffer", &[Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
                pending.damage.push([x, y, width, height]);
            }
            ("frame", [Arg::NewId(callback)]) => pending.frames.push(*callback),
            ("set_opaque_region", [Arg::Object(region)]) => {
                pending.opaque = Some(self.regions.get(region).copied());
            }
            ("set_input_region", [Arg::Object(region)]) => {
                pending.input = Some(self.regions.get(region).copied());
            }
            ("set_buffer_scale", [Arg::Int(scale)]) => {
                demand(*scale >= 1, "invalid_scale")?;
                pending.scale = Some(*scale);
            }
            ("set_buffer_transform", [Arg::Int(transform)]) => {
                demand((0..8).contains(transform), "invalid_transform")?;
                pending.transform = Some(*transform);
            }
            ("commit", _) => return self.commit(id),
            ("destroy", _) => return self.destroy_surface(id),
            _ => {}
        }
        Ok(())
    }

    fn commit(&mut self, id: u32) -> Verdict {
        let surface = self.surfaces.get_mut(&id).ok_or("no surface")?;
        let stack = surface.latest_stack().clone();
        let mut update = std::mem::take(&mut surface.pending);
        if let Some(attach) = surface.attach.take() {
            update.content = Some(None);
            if let Some((buffer, memory)) = attach {
                update.content = Some(Some(memory.read()?));
                self.busy.push(buffer);
                if !self.proxied {
                    self.release();
                }
            }
        }
        for child in stack.into_iter().filter(|child| *child != id) {
            if let Some(cached) = self.surfaces.get_mut(&child).and_then(|child| child.cached.take()) {
                update.claimed.push((child, cached));
            }
        }
        let synchronised = self.is_synchronised(id);
        let surface = self.surfaces.get_mut(&id).ok_or("no surface")?;
        if let Some(mut cached) = surface.cached.take() {
            // Of a child whose parent is gone.
            cached.merge(update);
            update = cached;
        }
        if synchronised {
            surface.cached = Some(update);
            return Ok(());
        }
        self.apply(id, update)?;
        self.look();
        Ok(())
    }

    /// Gives buffers back.
    pub(super) fn release(&mut self) {
        for buffer in std::mem::take(&mut self.busy) {
            if self.buffers.contains_key(&buffer) {
                self.event(buffer, "release", Vec::new());
            }
        }
    }

    /// Whether its commits wait for those of its parent.
    fn is_synchronised(&self, id: u32) -> bool {
        let mut next = Some(id);
        while let Some(surface) = next.and_then(|id| self.surfaces.get(&id)) {
            if surface.parent.is_some() && surface.sync {
                return true;
            }
            next = surface.parent;
        }
        false
    }

    fn apply(&mut self, id: u32, mut update: Update) -> Verdict {
        for (child, claimed) in std::mem::take(&mut update.claimed) {
            if self.surfaces.contains_key(&child) {
                self.apply(child, claimed)?;
            }
        }
        for (child, position) in std::mem::take(&mut update.positions) {
            if let Some(child) = self.surfaces.get_mut(&child) {
                child.current.position = position;
            }
        }
        let by_damage = self.by_damage;
        let surfaces: Vec<u32> = self.surfaces.keys().copied().collect();
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let current = &mut surface.current;
        if let Some(content) = update.content {
            let old = current.content.take();
            current.content = content.map(|new| match old {
                Some(old) if by_damage => new.over(&old, &update.damage),
                _ => new,
            });
            current.name = current.content.as_ref().map_or(0, Picture::name);
        }
        current.scale = update.scale.unwrap_or(current.scale);
        current.transform = update.transform.unwrap_or(current.transform);
        current.source = update.source.unwrap_or(current.source);
        current.destination = update.destination.unwrap_or(current.destination);
        current.opaque = update.opaque.unwrap_or(current.opaque);
        current.input = update.input.unwrap_or(current.input);
        current.geometry = update.geometry.or(current.geometry);
        current.least = update.least.unwrap_or(current.least);
        current.most = update.most.unwrap_or(current.most);
        current.offset = match &current.content {
            Some(_) => (current.offset.0 + update.offset.0, current.offset.1 + update.offset.1),
            None => (0, 0),
        };
        if let Some(mut stack) = update.stack {
            stack.retain(|child| *child == id || surfaces.contains(child));
            current.stack = stack;
        }
        current.frames.append(&mut update.frames);
        current.check()?;
        if let Some(shell) = surface.shell {
            self.apply_shell(shell, update.acknowledged)?;
        }
        Ok(())
    }

    fn destroy_surface(&mut self, id: u32) -> Verdict {
        let surface = self.surfaces.get_mut(&id).ok_or("no surface")?;
        demand(surface.shell.is_none(), "defunct_role_object: it still has an xdg_surface")?;
        let mut frames = Vec::new();
        surface.pending.take_frames(&mut frames);
        frames.append(&mut surface.current.frames);
        if let Some(cached) = &mut surface.cached {
            cached.take_frames(&mut frames);
        }
        self.leave_parent(id);
        self.surfaces.remove(&id);
        for other in self.surfaces.values_mut().filter(|other| other.parent == Some(id)) {
            other.parent = None;
        }
        frames.into_iter().for_each(|callback| self.delete(callback));
        self.forget_focus(id);
        self.look();
        Ok(())
    }

    /// A child is shown no more.
    fn leave_parent(&mut self, id: u32) {
        for (other, surface) in &mut self.surfaces {
            if *other != id {
                surface.current.stack.retain(|child| *child != id);
                surface.pending.forget(id);
                surface.cached.iter_mut().for_each(|cached| cached.forget(id));
            }
        }
        if let Some(surface) = self.surfaces.get_mut(&id) {
            surface.parent = None;
            surface.subsurface = None;
            surface.current.position = (0, 0);
        }
    }

    pub(super) fn on_subsurface(&mut self, child: u32, request: &str, args: &[Arg]) -> Verdict {
        match (request, args) {
            ("get_subsurface", &[Arg::NewId(new), Arg::Object(child), Arg::Object(parent)]) => {
                return self.adopt(new, child, parent);
            }
            ("destroy", _) => {
                if self.surfaces.contains_key(&child) {
                    self.leave_parent(child);
                    if let Some(surface) = self.surfaces.get_mut(&child) {
                        surface.cached = None;
                    }
                    self.look();
                }
                return Ok(());
            }
            _ => {}
        }
        let Some(parent) = self.surfaces.get(&child).and_then(|child| child.parent) else { return Ok(()) };
        let above = self.surfaces.get_mut(&parent).ok_or("no parent")?;
        match (request, args) {
            ("set_position", &[Arg::Int(x), Arg::Int(y)]) => above.pending.positions.push((child, (x, y))),
            ("place_above" | "place_below", &[Arg::Object(sibling)]) => {
                let mut stack = above.latest_stack().clone();
                demand(sibling != child && stack.contains(&sibling), "bad_surface: no sibling")?;
                stack.retain(|id| *id != child);
                let at = stack.iter().position(|id| *id == sibling).ok_or("no sibling")?;
                stack.insert(at + usize::from(request == "place_above"), child);
                above.pending.stack = Some(stack);
            }
            ("set_sync" | "set_desync", _) => {
                if let Some(surface) = self.surfaces.get_mut(&child) {
                    surface.sync = request == "set_sync";
                    self.record.desynchronised.extend(surface.index.filter(|_| request == "set_desync"));
                }
                self.free_cached(child)?;
                self.look();
            }
            _ => {}
        }
        Ok(())
    }

    /// What waited for a parent need not any more.
    fn free_cached(&mut self, id: u32) -> Verdict {
        if self.is_synchronised(id) {
            return Ok(());
        }
        if let Some(cached) = self.surfaces.get_mut(&id).and_then(|surface| surface.cached.take()) {
            self.apply(id, cached)?;
        }
        let children: Vec<u32> = self.surfaces[&id].current.stack.clone();
        children.into_iter().filter(|child| *child != id).try_for_each(|child| {
            if self.surfaces.contains_key(&child) { self.free_cached(child) } else { Ok(()) }
        })
    }

    fn adopt(&mut self, new: u32, child: u32, parent: u32) -> Verdict {
        let mut above = Some(parent);
        while let Some(id) = above {
            demand(id != child, "bad_parent: its own ancestor")?;
            above = self.surfaces.get(&id).and_then(|surface| surface.parent);
        }
        let surface = self.surfaces.get_mut(&child).ok_or("no surface")?;
        demand(matches!(surface.role, Role::None | Role::Subsurface), "bad_surface: it has another role")?;
        demand(surface.subsurface.is_none(), "bad_surface: it is a subsurface")?;
        (surface.role, surface.subsurface, surface.sync) = (Role::Subsurface, Some(new), true);
        surface.parent = Some(parent);
        let above = self.surfaces.get_mut(&parent).ok_or("no parent")?;
        let mut stack = above.latest_stack().clone();
        stack.push(child);
        above.pending.stack = Some(stack);
        self.look();
        Ok(())
    }

    pub(super) fn on_viewport(&mut self, id: u32, of: u32, request: &str, args: &[Arg]) -> Verdict {
        if let ("get_viewport", &[Arg::NewId(new), Arg::Object(surface)]) = (request, args) {
            let surface = self.surfaces.get_mut(&surface).ok_or("no surface")?;
            demand(surface.viewport.is_none(), "viewport_exists")?;
            surface.viewport = Some(new);
            return Ok(());
        }
        let surface = self.surfaces.get_mut(&of).filter(|surface| surface.viewport == Some(id));
        let Some(surface) = surface else {
            return demand(request == "destroy", "no_surface");
        };
        match (request, args) {
            ("set_source", &[Arg::Fixed(x), Arg::Fixed(y), Arg::Fixed(width), Arg::Fixed(height)]) => {
                let unset = [x, y, width, height] == [-256; 4];
                demand(unset || x >= 0 && y >= 0 && width > 0 && height > 0, "bad_value")?;
                surface.pending.source = Some((!unset).then_some([x, y, width, height]));
            }
            ("set_destination", &[Arg::Int(width), Arg::Int(height)]) => {
                let unset = (width, height) == (-1, -1);
                demand(unset || width > 0 && height > 0, "bad_value")?;
                surface.pending.destination = Some((!unset).then_some((width, height)));
            }
            ("destroy", _) => {
                surface.viewport = None;
                surface.pending.source = Some(None);
                surface.pending.destination = Some(None);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Strict {
    /// Whether a parent's next commit is to bring children, or what they have committed.
    pub(crate) fn is_half_said(&self) -> bool {
        self.surfaces.values().any(|surface| surface.cached.is_some() || surface.pending.stack.is_some())
    }

    /// Records what is to be seen now.
    pub(super) fn look(&mut self) {
        let indices = self.surfaces.iter().filter_map(|(id, surface)| Some((*id, surface.index?)));
        let indices: BTreeMap<u32, usize> = indices.collect();
        let mut look = BTreeMap::new();
        for (id, surface) in &self.surfaces {
            let Some(index) = surface.index.filter(|_| self.has_a_window(*id)) else { continue };
            let current = &surface.current;
            let shell = self.shell_of(surface);
            let popup = shell.and_then(|shell| shell.popup.as_ref()).and_then(|popup| {
                let parent = self.shells.get(&popup.parent)?;
                Some((*indices.get(&parent.surface)?, popup.positioner, popup.grab))
            });
            let place = |id: &u32| Some((*indices.get(id)?, self.surfaces.get(id)?.current.position));
            let root = shell.is_some_and(Shell::is_shown) || surface.role == Role::Cursor;
            let acknowledged = shell.and_then(|shell| shell.acknowledged);
            let own = Own {
                root,
                seen: self.is_in_a_window(*id),
                content: current.content.as_ref().map(|content| (current.name, content.size)),
                numbers: current.numbers(acknowledged),
                stack: current.stack.iter().filter_map(place).collect(),
                popup,
            };
            look.insert(index, own);
        }
        self.record.look(look);
    }

    /// Whether it belongs to a window, shown or not, or is one: of others there is nothing to see.
    fn has_a_window(&self, id: u32) -> bool {
        let Some(surface) = self.surfaces.get(&id) else { return false };
        match surface.role {
            Role::None => false,
            Role::Subsurface => surface.parent.is_some_and(|parent| self.has_a_window(parent)),
            Role::Xdg => self.shell_of(surface).is_some_and(|shell| shell.role.is_some()),
            Role::Cursor => true,
        }
    }

    /// Whether it is a window that is shown, or was added to one by commits of all that is above it.
    fn is_in_a_window(&self, id: u32) -> bool {
        let Some(surface) = self.surfaces.get(&id) else { return false };
        match surface.role {
            Role::None => false,
            Role::Subsurface => surface.parent.is_some_and(|parent| {
                let above = self.surfaces.get(&parent);
                above.is_some_and(|above| above.current.stack.contains(&id)) && self.is_in_a_window(parent)
            }),
            Role::Xdg => self.shell_of(surface).is_some_and(Shell::is_shown),
            Role::Cursor => true,
        }
    }

    fn shell_of(&self, surface: &Surface) -> Option<&Shell> {
        surface.shell.and_then(|shell| self.shells.get(&shell))
    }
}

impl Current {
    fn numbers(&self, acknowledged: Option<(i32, i32)>) -> Numbers {
        Numbers {
            offset: self.offset,
            scale: self.scale,
            transform: self.transform,
            source: self.source,
            destination: self.destination,
            opaque: self.opaque.map(|region| region.name()),
            input: self.input.map(|region| region.name()),
            geometry: self.geometry,
            least: self.least,
            most: self.most,
            acknowledged,
        }
    }

    /// Whether buffer, scale and viewport go together.
    fn check(&self) -> Verdict {
        let Some(content) = &self.content else { return Ok(()) };
        let (width, height) = content.size;
        let whole = width % self.scale == 0 && height % self.scale == 0;
        demand(whole, &format!("invalid_size: {width}×{height} at scale {}", self.scale))?;
        let (width, height) = size_on_surface(content.size, self.scale, self.transform);
        if let Some([x, y, w, h]) = self.source {
            let inside = x + w <= width * 256 && y + h <= height * 256;
            demand(inside, &format!("out_of_buffer: {:?} of {width}×{height}", self.source))?;
            demand(self.destination.is_some() || (w % 256, h % 256) == (0, 0), "bad_size")?;
        }
        Ok(())
    }

    pub(super) fn awaits_frame(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Frames that are to be answered.
    pub(super) fn take_frames(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.frames)
    }
}
