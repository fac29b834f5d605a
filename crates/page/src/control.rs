//! What a program is told whose display is a page: its windows' size and state, popups' places, the output, the scale.
//!
//! Windows fill the area, but those that belong to others. Commits to surfaces that wait for the one around them are
//! kept until that is committed. Invariant: what a window was told last is what it should be, if it was told anything.

use std::rc::Rc;

use wayferry_message::{MAX_UNIT_DEPTH, ToApp, UnitContent, WireArg, WireId};
use wayferry_proto::Time;

use crate::area::Area;
use crate::ask::{Ask, Clipping, Commit, Pointing};
use crate::client::Client;
use crate::end::End;
use crate::place::Place;
use crate::program::{Program, Reader, XDG_SURFACE_CONFIGURE};
use crate::share::{Lease, Share};
use crate::windows::Told;

/// Commits that a surface keeps for the one around it; the oldest is shown early then. Programs keep one or two.
const MAX_CACHED: usize = 64;

/// What the page is to a program that it is the display of.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) client: Client,
    area: Area,
    /// The window that the user works in.
    active: Option<WireId>,
    /// What the pointer looks like inside.
    pub(crate) pointing: Pointing,
    /// What it has done with the clipboard that the seat has not been told.
    pub(crate) clippings: Vec<Clipping>,
    /// The number of the next pipe that the page makes.
    next_pipe: u64,
}

impl Control {
    pub(crate) fn new(objects: Rc<Share>, area: Area) -> Self {
        Self {
            client: Client::new(objects),
            area,
            active: None,
            pointing: Pointing::Default,
            clippings: Vec::new(),
            next_pipe: 1,
        }
    }
}

impl Program {
    pub(crate) fn control(&self) -> Option<&Control> {
        match &self.reader {
            Reader::View(_) => None,
            Reader::Control(control) => Some(control),
        }
    }

    pub(crate) fn control_mut(&mut self) -> Option<&mut Control> {
        match &mut self.reader {
            Reader::View(_) => None,
            Reader::Control(control) => Some(control),
        }
    }

    /// The number of a new pipe of the page's, which are odd.
    pub(crate) fn next_pipe(&mut self) -> u64 {
        let Some(control) = self.control_mut() else { return 1 };
        control.next_pipe += 2;
        control.next_pipe - 2
    }

    /// A new offer of that selection, if there may be one more.
    pub(crate) fn make_offer(&mut self, selection: u64) -> Option<WireId> {
        let made = self.control_mut()?.client.make_offer(selection);
        made.unwrap_or_else(|end| {
            self.settle(Err(end));
            None
        })
    }

    fn area(&self) -> Area {
        self.control().map_or_else(Area::default, |control| control.area)
    }

    /// Carries out what the program asks for, and answers it.
    pub(crate) fn carry_out_and_answer(&mut self, ask: Ask) {
        match ask {
            Ask::End { object, after } => {
                self.carry_out_and_answer(*after);
                self.tell(&ToApp::Deleted(object));
            }
            Ask::Answer(callback) => {
                self.event(callback, CALLBACK_DONE, vec![WireArg::Uint(0)]);
                self.tell(&ToApp::Deleted(callback));
            }
            Ask::Point(pointing) => {
                if let Some(control) = self.control_mut() {
                    control.pointing = pointing;
                }
            }
            Ask::Clip(clipping) => {
                if let Some(control) = self.control_mut() {
                    control.clippings.push(clipping);
                }
            }
            Ask::Scale(object) => {
                self.windows.carry_out(Ask::Scale(object));
                self.tell_scale(object);
            }
            Ask::Decorate { surface, decoration } => {
                self.event(decoration, DECORATION_CONFIGURE, vec![WireArg::Uint(SERVER_SIDE)]);
                self.configure_again(surface);
            }
            Ask::Wish { surface, .. } => {
                self.windows.carry_out(ask);
                self.configure_again(surface);
            }
            Ask::Reposition { surface, token, .. } => {
                self.windows.carry_out(ask);
                self.reposition(surface, token);
            }
            Ask::Belong { .. } => {
                self.windows.carry_out(ask);
                self.configure_all();
            }
            ask => self.windows.carry_out(ask),
        }
    }

    /// Commits what has had its turn: at once, with the commit of the surface around it, or with a later one.
    pub(crate) fn commit_in_turn(&mut self, now: Time, commit: Commit, lease: Lease) -> Result<(), End> {
        let surface = commit.surface;
        let lease = Rc::new(lease);
        if self.is_superseded(&commit) {
            // What it showed is never seen, and the rest with the commit that replaced that.
            if commit.feedback {
                self.tell(&ToApp::Discarded { surface, unit: commit.number });
            }
            return self.keep(now, Commit { content: UnitContent::Keep, ..commit }, &lease);
        }
        if self.windows.waits(surface) {
            let mut done = Vec::new();
            commit.each(&mut |commit| done.push((commit.surface, commit.number, commit.feedback)));
            let done = done.into_iter().rev();
            done.for_each(|(surface, unit, feedback)| self.tell_applied(surface, unit, feedback));
            return self.keep(now, commit, &lease);
        }
        self.commit(now, commit, true)?;
        self.commit_below(now, surface, false, 0)
    }

    /// Keeps a commit, and those inside it for their own surfaces, so that none that is kept has others inside.
    fn keep(&mut self, now: Time, mut commit: Commit, lease: &Rc<Lease>) -> Result<(), End> {
        for child in std::mem::take(&mut commit.children) {
            self.keep(now, child, lease)?;
        }
        let Some(surface) = self.windows.surface_mut(commit.surface) else { return Ok(()) };
        surface.cached.push_back((commit, Rc::clone(lease)));
        let oldest = (surface.cached.len() > MAX_CACHED).then(|| surface.cached.pop_front()).flatten();
        oldest.map_or(Ok(()), |(commit, _)| self.commit_one(now, commit, false))
    }

    /// Commits what a surface has kept, which is older than all else that is to be committed of it.
    pub(crate) fn commit_kept(&mut self, now: Time, surface: WireId) -> Result<(), End> {
        let kept = self.windows.surface_mut(surface).map(|surface| std::mem::take(&mut surface.cached));
        kept.into_iter().flatten().try_for_each(|(commit, _)| self.commit_one(now, commit, false))
    }

    /// A surface was committed, and with it what waited for that; all below it if it `waited` itself. What is deeper
    /// than is shown goes on waiting.
    fn commit_below(&mut self, now: Time, surface: WireId, waited: bool, depth: usize) -> Result<(), End> {
        if depth > MAX_UNIT_DEPTH {
            return Ok(());
        }
        let order = self.windows.surface(surface).map(|surface| surface.order.clone()).unwrap_or_default();
        for child in order.into_iter().filter(|child| *child != surface) {
            self.commit_kept(now, child)?;
            if waited || self.windows.surface(child).is_some_and(|child| child.waits) {
                self.commit_below(now, child, true, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The viewport of a surface has ended since its last commit.
    pub(crate) fn uncrop(&mut self, surface: WireId) {
        if let Some(surface) = self.windows.surface_mut(surface)
            && std::mem::take(&mut surface.uncrops)
        {
            (surface.shape.crop, surface.shape.destination) = (None, None);
        }
    }

    /// What a window or a popup is told when its program has committed it without content.
    pub(crate) fn configure_blank(&mut self, surface: WireId) {
        if let Some(object) = self.windows.take_configure(surface) {
            self.configure(surface, object);
        } else if let Some((popup, place)) = self.windows.take_place(surface, self.area(), false) {
            self.tell_place(popup.popup, popup.xdg_surface, place);
        }
    }

    /// What a window should be.
    fn wanted(&self, surface: WireId) -> Option<Told> {
        let (control, window) = (self.control()?, self.windows.toplevel(surface)?);
        let mut states = Vec::new();
        let is_main = window.parent.is_none() || window.is_fullscreen;
        states.extend(is_main.then_some(MAXIMIZED));
        states.extend(window.is_fullscreen.then_some(FULLSCREEN));
        states.extend((control.active == Some(surface)).then_some(ACTIVATED));
        Some(Told { size: if is_main { control.area.size() } else { (0, 0) }, states })
    }

    fn configure(&mut self, surface: WireId, xdg_surface: WireId) {
        let Some(wanted) = self.wanted(surface) else { return };
        let Some(window) = self.windows.toplevel_mut(surface) else { return };
        window.told = Some(wanted.clone());
        let toplevel = window.toplevel;
        let states = wanted.states.iter().flat_map(|state| state.to_le_bytes()).collect();
        let (width, height) = wanted.size;
        let args = vec![WireArg::Int(width), WireArg::Int(height), WireArg::Array(states)];
        self.event(toplevel, TOPLEVEL_CONFIGURE, args);
        self.end_configure(xdg_surface);
    }

    fn end_configure(&mut self, xdg_surface: WireId) {
        let serial = self.next_serial();
        self.event(xdg_surface, XDG_SURFACE_CONFIGURE, vec![WireArg::Uint(serial)]);
    }

    /// A window that was told what it should be is told so again, as its program waits for that.
    fn configure_again(&mut self, surface: WireId) {
        let window = self.windows.toplevel(surface).filter(|window| window.is_configured);
        if let Some(object) = window.map(|window| window.xdg_surface) {
            self.configure(surface, object);
        }
    }

    /// Windows that should be something else than they were told are told so.
    fn configure_all(&mut self) {
        let told = self.windows.toplevels().filter(|(surface, window)| {
            window.is_configured && window.told.is_some() && window.told != self.wanted(*surface)
        });
        let told: Vec<(WireId, WireId)> =
            told.map(|(surface, window)| (surface, window.xdg_surface)).collect();
        told.into_iter().for_each(|(surface, object)| self.configure(surface, object));
    }

    fn tell_place(&mut self, popup: WireId, xdg_surface: WireId, place: Place) {
        let args = [place.at.0, place.at.1, place.size.0, place.size.1].map(WireArg::Int);
        self.event(popup, POPUP_CONFIGURE, args.into());
        self.end_configure(xdg_surface);
    }

    fn reposition(&mut self, surface: WireId, token: u32) {
        let Some((popup, place)) = self.windows.take_place(surface, self.area(), true) else { return };
        self.event(popup.popup, POPUP_REPOSITIONED, vec![WireArg::Uint(token)]);
        self.tell_place(popup.popup, popup.xdg_surface, place);
    }

    /// The area has changed.
    pub(crate) fn set_area(&mut self, area: Area) {
        let Some(control) = self.control_mut() else { return };
        control.area = area;
        let scales: Vec<WireId> = self.windows.scales.iter().copied().collect();
        scales.into_iter().for_each(|object| self.tell_scale(object));
        self.configure_all();
    }

    fn tell_scale(&mut self, object: WireId) {
        let scale = self.area().scale();
        self.event(object, PREFERRED_SCALE, vec![WireArg::Uint(scale)]);
    }

    /// The user works in that window, or in none of the program.
    pub(crate) fn set_active(&mut self, window: Option<WireId>) {
        let Some(control) = self.control_mut() else { return };
        control.active = window;
        self.configure_all();
    }

    /// A window is to be closed.
    pub(crate) fn close_window(&mut self, surface: WireId) {
        if let Some(toplevel) = self.windows.toplevel(surface).map(|window| window.toplevel) {
            self.event(toplevel, TOPLEVEL_CLOSE, Vec::new());
        }
    }

    /// Popups that have the keyboard are over, as the user has clicked somewhere else.
    pub(crate) fn end_grabs(&mut self) {
        let popups = self.windows.end_grabs();
        self.is_stale |= !popups.is_empty();
        popups.into_iter().for_each(|popup| self.event(popup, POPUP_DONE, Vec::new()));
    }

    /// A surface may have come to the output, or left it.
    pub(crate) fn show_on_output(&mut self, surface: WireId) {
        let Some(shown) = self.windows.surface_mut(surface) else { return };
        let is_on = shown.content().is_some();
        if std::mem::replace(&mut shown.is_on_output, is_on) == is_on {
            return;
        }
        let outputs = self.control().map(|control| control.client.outputs()).unwrap_or_default();
        let opcode = if is_on { SURFACE_ENTER } else { SURFACE_LEAVE };
        outputs.into_iter().for_each(|output| self.event(surface, opcode, vec![WireArg::Object(output)]));
    }

    /// The program has bound the output.
    pub(crate) fn meet_output(&mut self, output: WireId) {
        let on = self.windows.surfaces_mut().filter_map(|(id, surface)| surface.is_on_output.then_some(id));
        let on: Vec<WireId> = on.collect();
        on.into_iter().for_each(|surface| self.event(surface, SURFACE_ENTER, vec![WireArg::Object(output)]));
    }
}

// Opcodes are the places of events in the protocols' files.

const CALLBACK_DONE: u16 = 0;
const SURFACE_ENTER: u16 = 0;
const SURFACE_LEAVE: u16 = 1;
const TOPLEVEL_CONFIGURE: u16 = 0;
const TOPLEVEL_CLOSE: u16 = 1;
const POPUP_CONFIGURE: u16 = 0;
const POPUP_DONE: u16 = 1;
const POPUP_REPOSITIONED: u16 = 2;
const DECORATION_CONFIGURE: u16 = 0;
const PREFERRED_SCALE: u16 = 0;

/// `xdg_toplevel.state`.
const MAXIMIZED: u32 = 1;
const FULLSCREEN: u32 = 2;
const ACTIVATED: u32 = 4;
/// `zxdg_toplevel_decoration_v1.mode`.
const SERVER_SIDE: u32 = 2;
