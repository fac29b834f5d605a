//! Who waits for the datagrams of a loop's endpoints: the engine's thread, or the loop's own.
//!
//! As a rule it is the engine's, which works beside the loop and wakes it when there is something for it. Where little
//! comes at a time that is one thread too many on the way. So a loop that comes back soon, time and again, and finds
//! little, reads the sockets itself when it begins a turn, and drives the connections. When much comes, or the loop
//! does not come back, the engine takes the sockets. Invariant: each socket is watched by one of the two, and by the
//! engine's thread at the latest [`TERM`] after the loop's last turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::time::{Instant as At, sleep_until};

use super::runtime::{Cork, PromptRuntime};
use crate::watch::Watch;

/// The endpoints of one loop, and whether it reads their sockets.
#[derive(Debug)]
pub(super) struct Lease {
    /// What the loop waits for.
    watch: Arc<Watch>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    endpoints: Vec<Weak<PromptRuntime>>,
    held: bool,
    /// A task of the engine's looks whether the loop comes back.
    guarded: bool,
    /// Turns in a row that came soon and brought little.
    light: u32,
    /// Bytes that the endpoints had moved at the last turn.
    moved: u64,
    /// When that began.
    seen: Instant,
    cork: Cork,
    /// The loop turns no more.
    ended: bool,
}

impl Lease {
    /// None yet, of a loop that waits for `watch`.
    pub(super) fn new(watch: Arc<Watch>) -> Self {
        let state = State {
            endpoints: Vec::new(),
            held: false,
            guarded: false,
            light: 0,
            moved: 0,
            seen: Instant::now(),
            cork: Cork::default(),
            ended: false,
        };
        Self { watch, state: Mutex::new(state) }
    }

    /// One more endpoint whose connections belong to this loop.
    pub(super) fn add(&self, endpoint: &Arc<PromptRuntime>) {
        let mut state = self.lock();
        state.endpoints.retain(|other| other.strong_count() > 0);
        state.endpoints.push(Arc::downgrade(endpoint));
        state.moved = state.total();
    }

    /// This endpoint's connections belong to other loops, too.
    pub(super) fn remove(&self, endpoint: &Arc<PromptRuntime>) {
        let mut state = self.lock();
        state.give_up();
        state.endpoints.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(endpoint)));
    }

    /// The loop begins a turn. Where it holds the lease, what came is read now, on this thread.
    pub(super) fn turn(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.endpoints.is_empty() {
            return;
        }
        if state.held {
            state.drive(&self.watch);
        }
        let (now, moved) = (Instant::now(), state.total());
        let soon = now.saturating_duration_since(state.seen) < TERM;
        let little = moved.wrapping_sub(state.moved) <= LITTLE && state.endpoints.len() <= FEW;
        (state.seen, state.moved) = (now, moved);
        if !(soon && little) {
            state.light = 0;
        }
        if !little {
            state.give_back();
        }
        if soon && little && !state.held {
            state.light += 1;
            if state.light >= LIGHT
                && let Some(engine) = state.take(&self.watch)
            {
                let guard = guard(Guarded(Arc::downgrade(self)), now);
                // An engine that has ended drops it at once, and that locks this.
                drop(state);
                drop(engine.spawn(guard));
            }
        }
    }

    /// The loop turns no more.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.give_up();
        state.endpoints.clear();
        state.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn each(&self) -> impl Iterator<Item = Arc<PromptRuntime>> {
        self.endpoints.iter().filter_map(Weak::upgrade)
    }

    fn total(&self) -> u64 {
        self.each().fold(0, |total, endpoint| total.wrapping_add(endpoint.sockets.moved()))
    }

    /// The endpoints first, then the connections that have got something.
    fn drive(&mut self, watch: &Arc<Watch>) {
        self.cork.hold();
        self.endpoints.retain(|endpoint| {
            let Some(endpoint) = endpoint.upgrade() else { return false };
            // It is new, or has moved.
            if endpoint.sockets.has_fresh() {
                endpoint.give_to(watch);
            }
            let goes_on = endpoint.drive_here();
            if !goes_on {
                // What comes there is read by no thread any more, and would wake this loop for ever.
                endpoint.sockets.stop_receiving();
            }
            goes_on
        });
        self.cork.release_all_here();
    }

    /// Gives where to run [`guard`], if none runs yet.
    fn take(&mut self, watch: &Arc<Watch>) -> Option<Handle> {
        self.light = 0;
        let given: Vec<_> = self.each().filter(|endpoint| endpoint.give_to(watch)).collect();
        self.held = !given.is_empty();
        if !self.held || self.guarded {
            return None;
        }
        let engine = given.iter().find_map(|endpoint| endpoint.handle());
        self.guarded = engine.is_some();
        if !self.guarded {
            self.give_up();
        }
        engine
    }

    fn give_back(&mut self) {
        if self.held {
            // Where the system has no room for that, the loop goes on.
            let left = self.each().filter(|endpoint| !endpoint.take_back()).count();
            self.held = left > 0;
        }
    }

    /// The same, for good: what cannot be given back is deaf from now on.
    fn give_up(&mut self) {
        if std::mem::take(&mut self.held) {
            let left = self.each().filter(|endpoint| !endpoint.take_back());
            left.for_each(|endpoint| endpoint.sockets.stop_receiving());
        }
    }
}

/// A lease that the engine looks after.
struct Guarded(Weak<Lease>);

/// The lease ends with this, also when the engine does.
impl Drop for Guarded {
    fn drop(&mut self) {
        let Some(lease) = self.0.upgrade() else { return };
        let mut state = lease.lock();
        state.give_up();
        state.guarded = false;
    }
}

/// Has the engine read the sockets once the loop has not come back for [`TERM`].
async fn guard(mut guarded: Guarded, mut seen: Instant) {
    loop {
        sleep_until(At::from_std(seen + TERM)).await;
        let Some(lease) = guarded.0.upgrade() else { return };
        let mut state = lease.lock();
        if state.seen.elapsed() >= TERM {
            state.give_back();
        }
        if !state.held {
            // Not when it is dropped: before that the loop may take another.
            state.guarded = false;
            guarded.0 = Weak::new();
            return;
        }
        seen = if state.seen.elapsed() < TERM { state.seen } else { Instant::now() };
    }
}

/// A loop that comes back later than this is busy with other things, or nothing comes. A peer that is near asks after
/// some 26 ms what has become of a packet (RFC 9002 §6.2.1): a loop that stalls may have it do so once, in vain.
const TERM: Duration = Duration::from_millis(20);
/// Bytes that move between two turns where the engine's thread is not needed: a few packets.
const LITTLE: u64 = 8 << 10;
/// Endpoints that a loop reads itself: each is asked in each turn.
const FEW: usize = 4;
/// Light turns before the loop reads the sockets itself: what changes back and forth costs more than it saves.
const LIGHT: u32 = 4;
