//! `wl_compositor`, `wl_surface`, `wl_region` and `wl_callback`: double-buffered state and its commit.
//!
//! Pixels are copied at the commit and the buffer is released at once. A synchronised subsurface's commit goes
//! to its cache and takes effect with its parent's (see [`super::subsurface`]).
//!
//! Invariant: `shown` changes only in [`State::apply`], so that a picture never mixes two commits.

use std::sync::Arc;

use wayland_protocols::wp::presentation_time::server::wp_presentation_feedback::WpPresentationFeedback;
use wayland_server::backend::ClientId;
use wayland_server::protocol::{wl_buffer, wl_callback, wl_compositor, wl_output, wl_region, wl_surface};
use wayland_server::{Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource, WEnum};

use super::event::{ClientNumber, Commit, Role, StageEvent, SurfaceId};
use super::geometry::Rect;
use super::region::Region;
use super::shm::{Buffer, Content, buffer_of};
use super::state::{State, number};
use super::xdg::XdgSurface;
use crate::strip::Strip;

/// A `wl_surface`.
pub(crate) struct Surface {
    pub(crate) resource: wl_surface::WlSurface,
    pub(crate) client: ClientNumber,
    pub(crate) role: Option<Role>,
    /// Content as of the client's last commit, also when that waits in the cache.
    latest: Option<Arc<Content>>,
    pending: Pending,
    pub(crate) cache: Option<Update>,
    /// What is on the screen.
    pub(crate) shown: Option<Arc<Content>>,
    pub(crate) view: View,
    pub(crate) callbacks: Vec<wl_callback::WlCallback>,
    pub(crate) feedback: Vec<WpPresentationFeedback>,
    /// The children from the bottom to the top, with the surface itself among them.
    pub(crate) stack: Vec<SurfaceId>,
    pub(crate) pending_stack: Vec<SurfaceId>,
    pub(crate) subsurface: Option<super::subsurface::Subsurface>,
    pub(crate) xdg: Option<XdgSurface>,
    /// A hidden surface gets no frame callbacks.
    pub(crate) hidden: bool,
    /// Whether it shows content, as of the last time that an update was applied.
    pub(crate) mapped: bool,
    appeared: bool,
    commits: u64,
}

/// How content becomes a place on the screen.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) scale: i32,
    pub(crate) transform: wl_output::Transform,
    /// Part of the content that is shown, in surface coordinates before scaling by the viewport.
    pub(crate) source: Option<(f64, f64, f64, f64)>,
    pub(crate) destination: Option<(i32, i32)>,
    /// Sum of the attach offsets.
    pub(crate) offset: (i32, i32),
    pub(crate) input: Option<Region>,
}

/// The double-buffered state as requests have changed it since the last commit.
#[derive(Default)]
struct Pending {
    attach: Option<Option<wl_buffer::WlBuffer>>,
    damage: Vec<Rect>,
    buffer_damage: Vec<Rect>,
    update: Update,
}

/// What a commit changes; `None` leaves a value as it is.
#[derive(Default)]
pub(crate) struct Update {
    content: Option<Option<Arc<Content>>>,
    offset: (i32, i32),
    callbacks: Vec<wl_callback::WlCallback>,
    pub(crate) feedback: Vec<WpPresentationFeedback>,
    scale: Option<i32>,
    transform: Option<wl_output::Transform>,
    pub(crate) source: Option<Option<(f64, f64, f64, f64)>>,
    pub(crate) destination: Option<Option<(i32, i32)>>,
    input: Option<Option<Region>>,
}

impl Surface {
    fn new(id: SurfaceId, resource: wl_surface::WlSurface, client: ClientNumber) -> Surface {
        Surface {
            resource,
            client,
            role: None,
            latest: None,
            pending: Pending::default(),
            cache: None,
            shown: None,
            view: View {
                scale: 1,
                transform: wl_output::Transform::Normal,
                source: None,
                destination: None,
                offset: (0, 0),
                input: None,
            },
            callbacks: Vec::new(),
            feedback: Vec::new(),
            stack: vec![id],
            pending_stack: vec![id],
            subsurface: None,
            xdg: None,
            hidden: false,
            mapped: false,
            appeared: false,
            commits: 0,
        }
    }

    pub(crate) fn pending(&mut self) -> &mut Update {
        &mut self.pending.update
    }

    /// Whether the commit that is being made attaches pixels.
    fn attaches(&self) -> bool {
        matches!(self.pending.attach, Some(Some(_)))
    }

    pub(crate) fn has_content(&self) -> bool {
        self.latest.is_some()
    }

    /// Size in surface coordinates.
    pub(crate) fn size(&self) -> (i32, i32) {
        let Some(content) = &self.shown else { return (0, 0) };
        if let Some(size) = self.view.destination {
            return size;
        }
        if let Some((_, _, width, height)) = self.view.source {
            return (width as i32, height as i32);
        }
        let size = (content.image.width() as i32, content.image.height() as i32);
        let (width, height) = if swaps_axes(self.view.transform) { (size.1, size.0) } else { size };
        (width / self.view.scale, height / self.view.scale)
    }
}

impl Update {
    /// Puts a newer update on top of this one.
    pub(crate) fn add(&mut self, newer: Update) {
        self.offset = (self.offset.0 + newer.offset.0, self.offset.1 + newer.offset.1);
        self.callbacks.extend(newer.callbacks);
        for feedback in self.feedback.drain(..) {
            feedback.discarded();
        }
        self.feedback = newer.feedback;
        self.content = newer.content.or(self.content.take());
        self.scale = newer.scale.or(self.scale);
        self.transform = newer.transform.or(self.transform);
        self.source = newer.source.or(self.source);
        self.destination = newer.destination.or(self.destination);
        self.input = newer.input.or(self.input.take());
    }
}

impl State {
    /// `wl_surface.commit`.
    fn commit(&mut self, id: SurfaceId) {
        let trust = self.config.trust_damage;
        let cached = self.is_synchronised(id);
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        let attached = surface.attaches();
        if !check_role(surface, attached) {
            return;
        }
        let pending = std::mem::take(&mut surface.pending);
        if !cached {
            // Dropping the second reference lets the copy below happen in place.
            surface.shown = None;
        }
        let Some((mut update, damage)) = take_content(surface, pending, trust) else { return };
        surface.commits += 1;
        let first = attached && !std::mem::replace(&mut surface.appeared, true);
        let content = surface.latest.clone();
        if !cached {
            update.content = Some(content.clone());
        }
        let commit = Commit {
            client: surface.client,
            surface: id,
            role: surface.role,
            title: surface.xdg.as_ref().and_then(XdgSurface::title),
            number: surface.commits,
            attached,
            cached,
            size: content.as_ref().map(|content| (content.image.width(), content.image.height())),
            damage,
            checksum: content.as_ref().map_or(0, |content| content.checksum()),
            strip: content.as_ref().and_then(|content| {
                Strip::read(&content.image).or_else(|| Strip::read_large(&content.image))
            }),
            callbacks: update.callbacks.len(),
        };
        if first {
            let (client, role, title) = (commit.client, commit.role, commit.title.clone());
            self.log.push(StageEvent::FirstAttach { client, surface: id, role, title });
        }
        self.log.push(StageEvent::Commit(commit));
        if cached {
            let surface = self.surfaces.get_mut(&id).expect("looked up above");
            surface.cache.get_or_insert_default().add(update);
        } else {
            self.apply(id, update);
            self.apply_children(id);
            self.committed(id);
        }
    }

    /// Makes an update what is shown.
    pub(crate) fn apply(&mut self, id: SurfaceId, update: Update) {
        self.looks.changed();
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        for feedback in surface.feedback.drain(..) {
            feedback.discarded();
        }
        if let Some(content) = update.content {
            surface.shown = content;
        }
        let view = &mut surface.view;
        view.offset = (view.offset.0 + update.offset.0, view.offset.1 + update.offset.1);
        view.scale = update.scale.unwrap_or(view.scale);
        view.transform = update.transform.unwrap_or(view.transform);
        view.source = update.source.unwrap_or(view.source);
        view.destination = update.destination.unwrap_or(view.destination);
        if let Some(input) = update.input {
            view.input = input;
        }
        surface.callbacks.extend(update.callbacks);
        surface.feedback = update.feedback;
        surface.stack = surface.pending_stack.clone();
        let is = surface.shown.is_some();
        if is != surface.mapped {
            surface.mapped = is;
            let surface = &self.surfaces[&id];
            for output in self.outputs_of(surface) {
                if is {
                    surface.resource.enter(&output);
                } else {
                    surface.resource.leave(&output);
                }
            }
            if !is {
                self.log.push(StageEvent::Unmapped { surface: id });
            }
        }
    }

    /// What a commit means to the surface's role.
    fn committed(&mut self, id: SurfaceId) {
        if matches!(
            self.surfaces.get(&id).and_then(|surface| surface.role),
            Some(Role::Toplevel | Role::Popup)
        ) {
            self.xdg_committed(id);
        }
        self.update_pointer_focus();
    }

    fn surface_destroyed(&mut self, id: SurfaceId) {
        self.unmap(id);
        self.forget_child(id);
        if let Some(mut surface) = self.surfaces.remove(&id) {
            for feedback in surface.feedback.drain(..) {
                feedback.discarded();
            }
            self.log.push(StageEvent::Destroyed { surface: id });
        }
        self.seat_forget(id);
    }
}

impl GlobalDispatch<wl_compositor::WlCompositor, ()> for State {
    fn bind(
        _: &mut State,
        _: &DisplayHandle,
        _: &Client,
        resource: New<wl_compositor::WlCompositor>,
        _: &(),
        init: &mut DataInit<'_, State>,
    ) {
        init.init(resource, ());
    }
}

impl Dispatch<wl_compositor::WlCompositor, ()> for State {
    fn request(
        state: &mut State,
        client: &Client,
        _: &wl_compositor::WlCompositor,
        request: wl_compositor::Request,
        _: &(),
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        match request {
            wl_compositor::Request::CreateSurface { id } => {
                let key = state.next_surface();
                let resource = init.init(id, key);
                if resource.version() >= wl_surface::EVT_PREFERRED_BUFFER_SCALE_SINCE {
                    resource.preferred_buffer_scale(state.config.scale as i32);
                }
                state.surfaces.insert(key, Surface::new(key, resource, number(client)));
            }
            wl_compositor::Request::CreateRegion { id } => {
                init.init(id, Default::default());
            }
            _ => {}
        }
    }
}

impl Dispatch<wl_surface::WlSurface, SurfaceId> for State {
    fn request(
        state: &mut State,
        _: &Client,
        resource: &wl_surface::WlSurface,
        request: wl_surface::Request,
        id: &SurfaceId,
        _: &DisplayHandle,
        init: &mut DataInit<'_, State>,
    ) {
        if matches!(request, wl_surface::Request::Commit) {
            state.commit(*id);
            return;
        }
        let Some(surface) = state.surfaces.get_mut(id) else { return };
        let pending = &mut surface.pending;
        match request {
            wl_surface::Request::Attach { buffer, x, y } => {
                if resource.version() >= 5 && (x, y) != (0, 0) {
                    let message = format!("attach at ({x}, {y}); version 5 wants wl_surface.offset");
                    resource.post_error(wl_surface::Error::InvalidOffset, message);
                }
                pending.update.offset = (x, y);
                pending.attach = Some(buffer);
            }
            wl_surface::Request::Offset { x, y } => pending.update.offset = (x, y),
            wl_surface::Request::Damage { x, y, width, height } => {
                pending.damage.push(Rect::new(x, y, width, height));
            }
            wl_surface::Request::DamageBuffer { x, y, width, height } => {
                pending.buffer_damage.push(Rect::new(x, y, width, height));
            }
            wl_surface::Request::Frame { callback } => {
                pending.update.callbacks.push(init.init(callback, ()));
            }
            wl_surface::Request::SetInputRegion { region } => {
                pending.update.input = Some(region.as_ref().and_then(super::region::region_of));
            }
            wl_surface::Request::SetBufferTransform { transform } => match transform {
                WEnum::Value(transform) => pending.update.transform = Some(transform),
                WEnum::Unknown(value) => {
                    let message = format!("{value} is not a transform");
                    resource.post_error(wl_surface::Error::InvalidTransform, message);
                }
            },
            wl_surface::Request::SetBufferScale { scale } => {
                if scale < 1 {
                    resource.post_error(wl_surface::Error::InvalidScale, format!("scale {scale} is below 1"));
                } else {
                    pending.update.scale = Some(scale);
                }
            }
            wl_surface::Request::Destroy if surface.xdg.is_some() => {
                let message = "surface destroyed before its role object".to_owned();
                resource.post_error(wl_surface::Error::DefunctRoleObject, message);
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut State, _: ClientId, _: &wl_surface::WlSurface, id: &SurfaceId) {
        state.surface_destroyed(*id);
    }
}

impl Dispatch<wl_callback::WlCallback, ()> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wl_callback::WlCallback,
        _: wl_callback::Request,
        _: &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
    }

    fn destroyed(state: &mut State, _: ClientId, callback: &wl_callback::WlCallback, _: &()) {
        for surface in state.surfaces.values_mut() {
            surface.callbacks.retain(|kept| kept != callback);
        }
    }
}

impl Dispatch<wl_region::WlRegion, super::region::Shared> for State {
    fn request(
        _: &mut State,
        _: &Client,
        _: &wl_region::WlRegion,
        request: wl_region::Request,
        region: &super::region::Shared,
        _: &DisplayHandle,
        _: &mut DataInit<'_, State>,
    ) {
        match request {
            wl_region::Request::Add { x, y, width, height } => {
                region.add(Rect::new(x, y, width, height), true);
            }
            wl_region::Request::Subtract { x, y, width, height } => {
                region.add(Rect::new(x, y, width, height), false);
            }
            _ => {}
        }
    }
}

/// Whether the transform turns the picture on its side.
pub(crate) fn swaps_axes(transform: wl_output::Transform) -> bool {
    use wl_output::Transform;
    matches!(transform, Transform::_90 | Transform::_270 | Transform::Flipped90 | Transform::Flipped270)
}

/// Refuses pixels on a window that was not configured.
fn check_role(surface: &Surface, attached: bool) -> bool {
    match &surface.xdg {
        Some(xdg) if attached => xdg.check_configured(),
        _ => true,
    }
}

/// Copies what a commit attaches into `latest`, releases the buffer, and says what of the content changed.
/// `None` when the buffer was bad and the client got its error.
fn take_content(surface: &mut Surface, pending: Pending, trust: bool) -> Option<(Update, Rect)> {
    let mut update = pending.update;
    let Some(attach) = pending.attach else { return Some((update, Rect::default())) };
    let Some((resource, buffer)) = attach.as_ref().and_then(|it| Some((it, buffer_of(it)?))) else {
        surface.latest = None;
        update.content = Some(None);
        return Some((update, Rect::default()));
    };
    let earlier = surface.cache.as_ref();
    let scale = update.scale.or(earlier.and_then(|cache| cache.scale)).unwrap_or(surface.view.scale);
    let transform =
        update.transform.or(earlier.and_then(|cache| cache.transform)).unwrap_or(surface.view.transform);
    let cropped = [&update].into_iter().chain(earlier).any(Update::changes_viewport)
        || surface.view.source.is_some()
        || surface.view.destination.is_some();
    if buffer.width % scale as u32 != 0 || buffer.height % scale as u32 != 0 {
        let message = format!("buffer of {} × {} at scale {scale}", buffer.width, buffer.height);
        surface.resource.post_error(wl_surface::Error::InvalidSize, message);
        return None;
    }
    let same = surface
        .latest
        .as_ref()
        .is_some_and(|c| (c.image.width(), c.image.height()) == (buffer.width, buffer.height));
    let exact = trust && same && !cropped && transform == wl_output::Transform::Normal;
    let damage = if exact {
        let mut rects = pending.buffer_damage;
        rects.extend(pending.damage.iter().map(|rect| rect.scaled(scale)));
        rects
    } else {
        vec![whole(buffer)]
    };
    if !same {
        surface.latest = Some(Arc::new(Content::new(buffer.width, buffer.height)));
    }
    let content = Arc::make_mut(surface.latest.as_mut().expect("set above"));
    if content.read(buffer, &damage).is_none() {
        let message = "the file of the pool is shorter than the buffer".to_owned();
        resource.post_error(wayland_server::protocol::wl_shm::Error::InvalidFd, message);
        return None;
    }
    resource.release();
    update.content = Some(surface.latest.clone());
    let bounds = damage.iter().fold(Rect::default(), |sum, rect| sum.union(&rect.intersect(&whole(buffer))));
    Some((update, bounds))
}

impl Update {
    fn changes_viewport(&self) -> bool {
        self.source.is_some() || self.destination.is_some()
    }
}

fn whole(buffer: &Buffer) -> Rect {
    Rect::new(0, 0, buffer.width as i32, buffer.height as i32)
}
