//! What the user does, from when the script says it until programs are told.
//!
//! It waits here while there is no link, or the link has much to send. What programs are told of it may be many times
//! as long, so that is made only then. Invariants: what waits goes on once and in its order; of what is passed over
//! because too much waits, the last area, window, modifiers, layout and paste go on behind it all.

use std::collections::VecDeque;

use bytes::Bytes;
use wayferry_message::WireId;
use wayferry_page::{Area, Clip, Level, MAX_COPIED_PICTURE, Page, Wheel};
use wayferry_proto::{ConnectionId, Time};

/// Bytes that may wait before what the user does is passed over, each act with 64 beside its text: what somebody types
/// in an hour.
pub const MAX_KEPT: usize = 1 << 20;

/// Bytes of what was pasted that may wait beside; then the oldest pastes bring nothing. What was pasted last waits in
/// any case.
pub const MAX_PASTED: usize = MAX_COPIED_PICTURE;

/// What an act counts for beside its text.
const COST: usize = 64;

/// What the user does, as [`Page`] has it.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Windows are to fill this area.
    Area(Area),
    /// The user works in the window of that surface.
    Focus(ConnectionId, WireId),
    /// The window of that surface is to be closed.
    Close(ConnectionId, WireId),
    /// The modifiers are these.
    Modifiers(u32),
    /// The keys have these characters, each by its code.
    Layout(Vec<(u32, char)>),
    /// A key.
    Key {
        /// Which one.
        code: u32,
        /// Which of its characters.
        level: Level,
        /// That character, if it is known.
        character: Option<char>,
        /// It goes down, else up.
        pressed: bool,
    },
    /// Text is typed that comes from no key.
    Text(String),
    /// The browser's clipboard is pasted, and whether it is new.
    Offer(Clip, bool),
    /// All that is down goes up.
    Release,
    /// The pointer is there in the window of that surface.
    Point(ConnectionId, WireId, [f64; 2]),
    /// The pointer is in no window.
    PointNowhere,
    /// A button of the pointer goes down, else up.
    Button(u32, bool),
    /// A wheel turns.
    Wheel(Wheel),
}

impl Act {
    /// Tells the page, as done at that time.
    fn run(self, at: Time, page: &mut Page) {
        match self {
            Self::Area(area) => page.set_area(area),
            Self::Focus(connection, surface) => page.focus(Some((connection, surface))),
            Self::Close(connection, surface) => page.close_window(connection, surface),
            Self::Modifiers(modifiers) => page.set_modifiers(modifiers),
            Self::Layout(keys) => page.set_layout(keys.into_iter()),
            Self::Key { code, level, character, pressed } => page.key(at, code, level, character, pressed),
            Self::Text(text) => page.type_text(at, &text),
            Self::Offer(clip, is_new) => page.offer(clip, is_new),
            Self::Release => page.release(at),
            Self::Point(connection, surface, [x, y]) => page.point(at, connection, surface, x, y),
            Self::PointNowhere => page.point_nowhere(at),
            Self::Button(code, pressed) => page.button(at, code, pressed),
            Self::Wheel(wheel) => page.wheel(at, wheel),
        }
    }

    /// Whether it is the pointer's, which means nothing without a link: what it points at is old.
    pub(crate) fn is_pointing(&self) -> bool {
        matches!(self, Self::Point(..) | Self::PointNowhere | Self::Button(..) | Self::Wheel(_))
    }

    /// Whether it is never passed over: nothing tells it again.
    fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::Area(_)
                | Self::Focus(..)
                | Self::Close(..)
                | Self::Modifiers(_)
                | Self::Layout(_)
                | Self::Offer(..)
        )
    }

    /// Whether an earlier one makes no difference any more, if nothing came between.
    fn replaces(&self, earlier: &Self) -> bool {
        match (earlier, self) {
            (Self::Close(..), Self::Close(..)) => self == earlier,
            (Self::Area(_), Self::Area(_))
            | (Self::Focus(..), Self::Focus(..))
            | (Self::Modifiers(_), Self::Modifiers(_))
            | (Self::Layout(_), Self::Layout(_))
            | (Self::Offer(..), Self::Offer(..))
            | (Self::Point(..), Self::Point(..)) => true,
            _ => false,
        }
    }

    /// Whether its user sees that it was passed over.
    fn is_typed(&self) -> bool {
        matches!(self, Self::Key { .. } | Self::Text(_))
    }

    /// The same in place of an earlier one: what comes behind something new is new, as that has not gone on.
    fn in_place_of(self, earlier: &Self) -> Self {
        match (self, earlier) {
            (Self::Offer(clip, is_new), Self::Offer(_, was_new)) => Self::Offer(clip, is_new || *was_new),
            (act, _) => act,
        }
    }

    /// Bytes that it counts for; what is pasted counts apart.
    fn cost(&self) -> usize {
        COST + match self {
            Self::Text(text) => text.len(),
            Self::Layout(keys) => size_of_val(&keys[..]),
            _ => 0,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Acts {
    waiting: VecDeque<(Time, Act)>,
    /// What these count for.
    bytes: usize,
    /// There were too many: until all have gone on, more are passed over.
    is_full: bool,
    has_missed: bool,
    /// Something typed was among it.
    has_told: bool,
    /// The modifiers that the page was told last, if nothing has let them go since.
    modifiers: Option<u32>,
    /// What came then and is not passed over; it goes on behind all others. One of a kind, or for a window.
    late: Vec<(Time, Act)>,
}

impl Acts {
    /// One more. Gives whether it is the first thing typed that was passed over.
    pub(crate) fn push(&mut self, now: Time, mut act: Act) -> bool {
        if self.is_full && !act.is_lasting() {
            self.has_missed = true;
            return act.is_typed() && !std::mem::replace(&mut self.has_told, true);
        }
        if self.is_full {
            let earlier = self.late.iter().position(|(_, earlier)| act.replaces(earlier));
            if let Some((_, earlier)) = earlier.map(|index| self.late.remove(index)) {
                act = act.in_place_of(&earlier);
            }
            self.late.push((now, act));
            return false;
        }
        if let Some((_, earlier)) = self.waiting.pop_back_if(|(_, earlier)| act.replaces(earlier)) {
            self.bytes -= earlier.cost();
            act = act.in_place_of(&earlier);
        }
        self.bytes += act.cost();
        self.is_full = self.bytes >= MAX_KEPT;
        let pastes = matches!(act, Act::Offer(..));
        self.waiting.push_back((now, act));
        if pastes {
            self.bound_pasted();
        }
        false
    }

    /// What was pasted longest ago brings nothing if there is too much; what was pasted last stays in any case.
    fn bound_pasted(&mut self) {
        let mut kept = 0;
        for (_, act) in self.waiting.iter_mut().rev() {
            let Act::Offer(clip, _) = act else { continue };
            let (Clip::Text(bytes) | Clip::Picture(bytes)) = &clip;
            let is_last = kept == 0;
            kept += bytes.len();
            if kept > MAX_PASTED && !is_last {
                *clip = Clip::Text(Bytes::new());
            }
        }
    }

    /// Tells the page what comes next; gives whether something did.
    pub(crate) fn run_next(&mut self, now: Time, page: &mut Page) -> bool {
        let next = if let Some((at, act)) = self.waiting.pop_front() {
            self.bytes -= act.cost();
            Some((at, act))
        } else if std::mem::take(&mut self.has_missed) {
            // Keys may have gone up meanwhile.
            Some((now, Act::Release))
        } else {
            (!self.late.is_empty()).then(|| self.late.remove(0))
        };
        self.is_full &= self.wait();
        self.has_told &= self.has_missed;
        let Some((at, act)) = next else { return false };
        match act {
            Act::Modifiers(modifiers) => self.modifiers = Some(modifiers),
            Act::Release => self.modifiers = None,
            _ => {}
        }
        act.run(at, page);
        true
    }

    /// Whether there are any.
    pub(crate) fn wait(&self) -> bool {
        self.has_missed || !self.waiting.is_empty() || !self.late.is_empty()
    }

    /// The link is lost, and with it all sense of where the pointer is. The page lets go all keys now; those that wait
    /// have the modifiers that they were typed with.
    pub(crate) fn on_lost(&mut self, now: Time) {
        self.waiting.retain(|(_, act)| !act.is_pointing());
        if let Some(modifiers) = self.modifiers.take().filter(|_| !self.waiting.is_empty()) {
            self.waiting.push_front((now, Act::Modifiers(modifiers)));
        }
        self.bytes = self.waiting.iter().map(|(_, act)| act.cost()).sum();
        self.is_full = self.bytes >= MAX_KEPT || self.has_missed || !self.late.is_empty();
    }

    /// Bytes that wait, without what was pasted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
