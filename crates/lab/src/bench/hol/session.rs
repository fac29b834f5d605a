//! A live session: sound that plays, a window that is typed into, and content.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_host::sound::Listening;
use wayferry_stage::{
    Busy, Cells, Client, ClientError, Program, StageEvent, Stamped, SurfaceId, Typing, freshness,
    key_latencies, now,
};

use super::measure::{Arrivals, Half, Measured, Packet};
use super::mode::Mode;
use crate::bench::rig::{Rig, Tone};
use crate::emulated::{Sound, Way};
use crate::error::Error;
use crate::flags::OwnFlags;
use crate::tunnel::Tunnel;

/// See the module.
pub(super) struct Live<'a> {
    mode: Mode,
    pub(super) rig: Rig<'a>,
    /// What is typed into.
    typing: (Program, SurfaceId),
    content: Vec<(Program, SurfaceId)>,
    packets: Arc<Mutex<Vec<Packet>>>,
    tone: Tone,
    /// When measuring began, and what had come by then.
    began: Duration,
    bytes: u64,
    /// When content grew, and packets until then.
    grew: (Duration, usize),
}

impl<'a> Live<'a> {
    /// Begins with little content.
    pub(super) fn start(own: &OwnFlags, mode: Mode, signals: &'a Signals) -> Result<Self, Error> {
        let packets = Arc::<Mutex<Vec<Packet>>>::default();
        let own = OwnFlags { delivery: Some(mode.delivery()), ..own.clone() };
        let way = Way::Tunnel(mode.transport(), mode.port());
        let sound = Sound { mode: mode.sound(), listening: Some(listening(&packets)) };
        let rig = Rig::over(&own, way, Some(sound), signals)?;
        let typing = program(&rig, "typing", |client| Typing::default().run(client))?;
        // 4 KiB that no codec makes smaller, 60 times a second: 2 Mbit/s.
        let cells = program(&rig, "cells", |client| Cells::default().run(client))?;
        let tone = Tone::start(&rig.session)?;
        rig.stage.set_focus(Some(typing.1));
        let (began, grew) = (now(), (now(), 0));
        Ok(Self { mode, rig, typing, content: vec![cells], packets, tone, began, bytes: 0, grew })
    }

    /// From now on is measured.
    pub(super) fn begin(&mut self, tunnel: &Tunnel) {
        (self.began, self.bytes) = (now(), tunnel.bytes(self.mode.port()));
        lock(&self.packets).clear();
    }

    /// Content that could fill a link of 100 Mbit/s, and is still little work to encode: what it does to the others is
    /// the link's doing, not the processor's.
    pub(super) fn step(&mut self) -> Result<(), Error> {
        self.grew = (now(), lock(&self.packets).len());
        let busy = Busy { width: STEP.0, height: STEP.1, ..Busy::default() };
        self.content.push(program(&self.rig, "busy", |client| busy.run(client))?);
        // The new window has taken the focus.
        self.rig.stage.set_focus(Some(self.typing.1));
        Ok(())
    }

    /// Ends it, and gives the figures.
    pub(super) fn end(self, tunnel: &Tunnel) -> Result<Measured, Error> {
        let Self { mode, rig, typing, content, packets, tone, began, bytes, grew } = self;
        drop(tone);
        let bytes = tunnel.bytes(mode.port()) - bytes;
        let events = rig.events();
        let since: Vec<Stamped> = events.iter().filter(|event| event.time >= began).cloned().collect();
        let shown = |surface| commits(&since, surface);
        let ages = content.iter().flat_map(|(_, surface)| freshness(&since, *surface)).collect();
        let keys = key_latencies(&events, typing.1);
        let steps = content.iter().map(|(_, surface)| shown(*surface).len()).collect();
        let pictures = content.iter().flat_map(|(_, surface)| Arrivals::gaps(&shown(*surface))).collect();
        let typed = Arrivals::gaps(&shown(typing.1));
        let packets = lock(&packets);
        let sound = Arrivals::of(&packets);
        let (until, since) = packets.split_at(grew.1.min(packets.len()));
        let before = events.partition_point(|event| event.time < grew.0);
        let seen = key_latencies(&events[..before], typing.1).len();
        let half = |packets, keys: &[Duration]| Half { sound: Arrivals::of(packets), keys: keys.to_vec() };
        let halves = [half(until, &keys[..seen]), half(since, &keys[seen..])];
        Ok(Measured { mode, sound, keys, typed, ages, pictures, steps, bytes, halves })
    }
}

/// Lets time pass while a key is typed into each window every now and then.
pub(super) fn pass(live: &[Live<'_>], time: Duration) -> Result<(), Error> {
    let end = now() + time;
    let Some(first) = live.first() else { return Ok(()) };
    let mut keys = "the quick brown fox ".chars().cycle();
    while now() < end {
        let key = keys.next().map(String::from).unwrap_or_default();
        for one in live {
            one.rig.stage.type_text(&key);
        }
        first.rig.pass(KEY_PERIOD)?;
    }
    Ok(())
}

fn listening(packets: &Arc<Mutex<Vec<Packet>>>) -> Listening {
    let packets = Arc::clone(packets);
    Box::new(move |arrived, sequence, captured| {
        lock(&packets).push(Packet { arrived: arrived.since_start(), sequence, captured });
    })
}

fn program(
    rig: &Rig<'_>,
    title: &str,
    script: impl FnOnce(&mut Client) -> Result<(), ClientError> + Send + 'static,
) -> Result<(Program, SurfaceId), Error> {
    let program = rig.program(script)?;
    let (surface, _) = rig.window(title)?;
    Ok((program, surface))
}

/// When this surface showed something.
fn commits(events: &[Stamped], surface: SurfaceId) -> Vec<Duration> {
    let shown = events.iter().filter(|stamped| {
        matches!(&stamped.event, StageEvent::Commit(commit) if commit.surface == surface && commit.attached)
    });
    shown.map(|stamped| stamped.time).collect()
}

fn lock(packets: &Mutex<Vec<Packet>>) -> std::sync::MutexGuard<'_, Vec<Packet>> {
    packets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pixels of noise, three bytes each since their alpha is constant, 60 times a second: 100 Mbit/s.
const STEP: (u32, u32) = (256, 272);

/// Between two keys; no multiple of a frame.
const KEY_PERIOD: Duration = Duration::from_millis(97);
