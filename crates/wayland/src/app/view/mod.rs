//! One program's windows at a viewer.
//!
//! The active display is told what the program says; a view is told what there is to be seen. From what is kept for
//! another display comes a scene ([`scene`]); the view compares it with what it has told already ([`tell`]) and says
//! the difference, in requests of its own: no seat, no clipboard, no grab, popups as parts of their parents. A view
//! that gets nothing over its link is told nothing, and later what is then: nothing is queued for it. Pixels are handed
//! on as they were encoded for the active display as long as the view keeps up, see [`content`].
//!
//! Invariant: nothing that a view's display sends reaches the program or the connection, which a view only ever reads.

mod content;
mod scene;
mod tell;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use wayferry_pixels::{Compression, Encoder};
use wayferry_proto::Time;

use crate::action::{Action, End};
use crate::message::{ToApp, WireArg, WireId};

use super::config::Desk;
use super::connection::Connection;
use super::credit::Credit;
use super::flow::Flow;
use super::painter::Means;
use super::shape::Shape;
use super::watch::Published;

pub use self::content::Counts;
pub use self::scene::Scene;

use self::content::{Look, Pixels};

/// Bytes of messages that the display side has not handled; beyond it nothing more is said.
const MAX_AHEAD: u64 = 256 << 10;
/// Units of a window that the display side has not applied; beyond it the window waits.
const MAX_UNAPPLIED: usize = 4;
/// Small content that may be handed on while there is no budget.
const MAX_SMALL_DEBT: u64 = 64 << 10;
/// How often is looked again at what had to wait.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// See the module.
#[derive(Debug)]
pub struct View {
    desk: Rc<Desk>,
    compression: Compression,
    lossy: Option<u8>,
    globals: Globals,
    next: WireId,
    /// By the program's name of their surfaces.
    windows: BTreeMap<WireId, Window>,
    surfaces: HashMap<WireId, RemoteSurface>,
    actions: VecDeque<Action>,
    counts: Counts,
    /// Messages to the display side.
    flow: Flow,
    small_debt: u64,
    /// What of the program was looked at last, and when that was not all: the time to look again, or whenever the link
    /// has room.
    version: u64,
    again: Option<Time>,
    starved: bool,
    end: Option<End>,
}

/// Objects that the view has made of the globals of its compositor.
#[derive(Debug, Default)]
struct Globals {
    compositor: Option<WireId>,
    subcompositor: Option<WireId>,
    shell: Option<WireId>,
    viewporter: Option<WireId>,
    decorations: Option<WireId>,
}

/// A window at the view.
#[derive(Debug)]
struct Window {
    xdg_surface: WireId,
    toplevel: WireId,
    decoration: Option<WireId>,
    title: Option<Vec<u8>>,
    app_id: Option<Vec<u8>>,
    geometry: [i32; 4],
    /// It was configured; what came last is still to be acknowledged.
    configured: bool,
    configure: Option<u32>,
    visible: bool,
    /// Since when a part of the next commit is there.
    torn: Option<Time>,
    /// Since when only older content of it is there.
    behind: Option<Time>,
    unapplied: VecDeque<u64>,
}

/// A surface at the view.
#[derive(Debug)]
struct RemoteSurface {
    surface: WireId,
    subsurface: Option<WireId>,
    /// The program's name of the surface that it is inside.
    parent: Option<WireId>,
    viewport: Option<WireId>,
    pixels: Pixels,
    mapped: bool,
    units: u64,
    shape: Shape,
    at: (i32, i32),
    /// It and those inside it as they are stacked, by the program's names.
    order: Vec<WireId>,
}

impl View {
    /// A view for the display that `desk` describes, which understands content compressed like this. What is too large
    /// for its link is lossy for now, with that quality, or never.
    pub fn new(desk: &Rc<Desk>, compression: Compression, lossy: Option<u8>) -> Self {
        Self {
            desk: Rc::clone(desk),
            compression,
            lossy,
            globals: Globals::default(),
            next: WireId::FIRST_APP,
            windows: BTreeMap::new(),
            surfaces: HashMap::new(),
            actions: VecDeque::new(),
            counts: Counts::default(),
            flow: Flow::default(),
            small_debt: 0,
            version: 0,
            again: Some(Time::ZERO),
            starved: false,
            end: None,
        }
    }

    /// Something has left for the active display: the view gets it too if it keeps up.
    pub fn hand_on(
        &mut self,
        now: Time,
        core: &Connection,
        published: &Published,
        encoder: &mut Encoder,
        credit: &mut Credit,
    ) {
        if self.end.is_some() {
            return;
        }
        let understands = self.understands(core);
        let (update, videos) = match published {
            Published::Update { update, videos } => (update, *videos),
            Published::Unit(whole) => {
                for whole in whole {
                    if let Some(shown) = self.surfaces.get_mut(&WireId(whole.surface.0)) {
                        shown.pixels.complete(now, whole);
                    }
                }
                self.again = Some(now);
                return;
            }
            Published::TakenBack(surface) => {
                if let Some(shown) =
                    self.surfaces.get_mut(&WireId(surface.0)).filter(|shown| shown.pixels.follows())
                {
                    shown.pixels.leave(now);
                }
                return;
            }
        };
        let hidden =
            self.windows.get(&self.root(WireId(update.surface.0))).is_none_or(|window| !window.visible);
        let bytes: u64 = update.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        if credit.content > 0 {
            self.small_debt = 0;
        } else {
            self.small_debt += bytes;
        }
        let room = !hidden && self.small_debt <= MAX_SMALL_DEBT && (!videos || self.desk.video);
        let Some(shown) = self.surfaces.get_mut(&WireId(update.surface.0)) else { return };
        let means = Means { now, encoder, credit, lossy: self.lossy };
        let (actions, counts) = (&mut self.actions, &mut self.counts);
        let mut look = Look { core, means, understands, actions, counts };
        shown.pixels.hand_on(update, room, &mut look);
        self.again = Some(now);
    }

    /// Things have left for the active display, and nothing may be said to the view now.
    pub fn miss(&mut self, now: Time) {
        for shown in self.surfaces.values_mut().filter(|shown| shown.pixels.follows()) {
            shown.pixels.leave(now);
        }
        self.again = Some(now);
    }

    /// Whether [`Self::look`] may have something to tell.
    pub fn is_due(&self, now: Time, core: &Connection, credit: &Credit) -> bool {
        let fed = self.starved && credit.content > 0;
        let due = fed || self.again.is_some_and(|at| at <= now) || self.version != core.watching.version();
        due && self.end.is_none() && !self.is_ahead()
    }

    /// Tells the display what differs of the scene from what it was told.
    pub fn look(
        &mut self,
        now: Time,
        core: &Connection,
        scene: &Scene,
        encoder: &mut Encoder,
        credit: &mut Credit,
    ) {
        if !self.is_due(now, core, credit) {
            return;
        }
        (self.version, self.again, self.starved) = (core.watching.version(), None, false);
        if !self.bind() {
            return self.finish(End::CompositorError("the compositor can show no windows".to_owned()));
        }
        self.remove(&scene.windows);
        for window in &scene.windows {
            self.add(window);
            self.show(now, core, window, encoder, credit);
        }
        let wants = self.surfaces.values().filter_map(|shown| shown.pixels.wants_at()).min();
        if let Some(at) = wants {
            self.wait(now, at, credit);
        }
    }

    /// Is to look again at that time; where it has come already, once the link has room.
    fn wait(&mut self, now: Time, at: Time, credit: &Credit) {
        if credit.content == 0 {
            self.starved = true;
        } else {
            let at = at.max(now + LOOK);
            self.again = Some(self.again.map_or(at, |again| again.min(at)));
        }
    }

    /// Whether more was said than the display side has handled for now.
    fn is_ahead(&self) -> bool {
        self.flow.is_ahead(MAX_AHEAD)
    }

    /// When [`Self::look`] has something to do although nothing has happened.
    pub fn next_timeout(&self) -> Option<Time> {
        self.again.filter(|_| self.end.is_none() && !self.is_ahead())
    }

    /// Handles a message of the view's display. What it says of input is not even looked at.
    pub fn on_message(&mut self, now: Time, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        match ToApp::decode(bytes) {
            Ok(message) => self.handle(now, message),
            Err(error) => self.finish(End::PeerViolation(error.to_string())),
        }
    }

    fn handle(&mut self, now: Time, message: ToApp) {
        match message {
            ToApp::Event(event) => {
                let Some(window) = self.windows.values_mut().find(|it| it.xdg_surface == event.object) else {
                    return;
                };
                // `xdg_surface.configure` is its only event.
                if let [WireArg::Uint(serial)] = event.args[..] {
                    (window.configured, window.configure) = (true, Some(serial));
                    self.again = Some(now);
                }
            }
            ToApp::Applied { surface, unit } => {
                if let Some(window) = self.window_of(surface) {
                    window.unapplied.retain(|number| *number > unit);
                    self.again = Some(now);
                }
            }
            ToApp::Visible { surface, visible } => {
                if let Some(window) = self.window_of(surface) {
                    window.visible = visible;
                    self.again = Some(now);
                }
            }
            ToApp::Refresh { surface } => {
                if let Some(shown) = self.surfaces.values_mut().find(|shown| shown.surface == surface) {
                    shown.pixels.leave(now);
                    self.again = Some(now);
                }
            }
            ToApp::Consumed { bytes } => match self.flow.on_consumed(bytes) {
                Ok(()) => self.again = Some(now),
                Err(what) => self.finish(End::PeerViolation(what)),
            },
            ToApp::Fatal { message, .. } => self.finish(End::CompositorError(message)),
            ToApp::Deleted(_)
            | ToApp::Presented { .. }
            | ToApp::Discarded { .. }
            | ToApp::KeysHeld { .. }
            | ToApp::Read { .. }
            | ToApp::Beat { .. } => {}
        }
    }

    /// The window whose own surface is called that at the view.
    fn window_of(&mut self, surface: WireId) -> Option<&mut Window> {
        let (name, _) = self.surfaces.iter().find(|(_, shown)| shown.surface == surface)?;
        self.windows.get_mut(name)
    }

    /// The program's name of the outermost surface that one is inside.
    fn root(&self, mut name: WireId) -> WireId {
        while let Some(parent) = self.surfaces.get(&name).and_then(|shown| shown.parent) {
            name = parent;
        }
        name
    }

    /// The next thing for the run loop to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Why the view is over, once it is.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// How content came here so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes of pixels that are kept for this view alone.
    pub fn kept(&self) -> u64 {
        self.surfaces.values().map(|shown| shown.pixels.kept()).sum()
    }

    /// Bytes of messages sent so far.
    #[cfg(test)]
    pub(super) fn sent(&self) -> u64 {
        self.flow.sent()
    }

    /// How many surfaces its display has.
    #[cfg(test)]
    pub(super) fn surfaces(&self) -> usize {
        self.surfaces.len()
    }

    fn finish(&mut self, end: End) {
        self.actions.clear();
        self.surfaces.clear();
        self.windows.clear();
        self.end.get_or_insert(end);
    }

    /// Whether the display can read what is compressed for the active one.
    fn understands(&self, core: &Connection) -> bool {
        let rank = |compression| match compression {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd(_) => 2,
        };
        rank(core.config.compression) <= rank(self.compression)
    }
}
