//! The keyboard of a page: which keys are down, who is told of them, and in which keymap.
//!
//! Invariants: a key goes down and up by turns; programs are told of all that the script says while they have the
//! keyboard, in its order; a keymap is told before the first key that needs it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wayferry_message::snapshot;
use wayferry_message::{ToApp, WireArg, WireId};
use wayferry_proto::{ConnectionId, Time};
use xxhash_rust::xxh3::xxh3_128;

use crate::keymap::{Keymap, Level, MAX_CODE, SPARES};
use crate::program::Program;

/// Characters that are typed at once; what is more is left out.
const MAX_TYPED: usize = 4096;
/// Bytes of keymaps after which one is sent anew: what the app side keeps is far above.
const MAX_RELIED_ON: usize = 4 << 20;

/// How often keys that are down are said to be.
const HELD_EVERY: Duration = Duration::from_millis(100);

/// Modifiers as xkb and `wl_keyboard.modifiers` have them.
pub(crate) mod modifier {
    pub(crate) const LOCK: u32 = 2;
    pub(crate) const CONTROL: u32 = 4;
    pub(crate) const ALT: u32 = 8;
    pub(crate) const NUM_LOCK: u32 = 16;
    pub(crate) const SUPER: u32 = 64;
    /// Those that are there.
    pub(crate) const ALL: u32 = 1 | LOCK | CONTROL | ALT | NUM_LOCK | SUPER | 128;
    /// Those that stay without a key that is down.
    pub(crate) const LOCKED: u32 = LOCK | NUM_LOCK;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Keyboard {
    keymap: Keymap,
    told: snapshot::Keymap,
    text: Bytes,
    /// Keymaps that were sent, with their lengths, the oldest first.
    sent: VecDeque<(u128, usize)>,
    /// Keymaps that are to be sent.
    blobs: VecDeque<(u128, Bytes)>,
    /// Keys that are down, in the order in which they went.
    held: Vec<u32>,
    modifiers: u32,
    /// Who has it: a surface of a program.
    inside: Option<(ConnectionId, WireId)>,
    /// When programs are told next that keys are down.
    next_held: Option<Time>,
}

/// What a press turned out to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pressed {
    pub(crate) code: u32,
    /// The one that made the character: caps lock counts.
    pub(crate) level: Level,
    /// If that is known.
    pub(crate) character: Option<char>,
}

impl Keyboard {
    pub(crate) fn new() -> Self {
        let keymap = Keymap::new();
        let text = Bytes::from(keymap.text());
        let mut keyboard = Self {
            keymap,
            told: name(&text),
            text,
            sent: VecDeque::new(),
            blobs: VecDeque::new(),
            held: Vec::new(),
            modifiers: 0,
            inside: None,
            next_held: None,
        };
        keyboard.send_keymap();
        keyboard
    }

    /// The keymap as the snapshot tells it.
    pub(crate) fn told(&self) -> snapshot::Keymap {
        self.told
    }

    /// The next keymap that is to be sent, by its name.
    pub(crate) fn poll_blob(&mut self) -> Option<(u128, Bytes)> {
        self.blobs.pop_front()
    }

    /// Sends the keymap, unless the app side surely has it.
    fn send_keymap(&mut self) {
        let hash = self.told.hash;
        if self.sent.iter().any(|(sent, _)| *sent == hash) {
            return;
        }
        self.sent.push_back((hash, self.text.len()));
        while self.sent.iter().map(|(_, length)| length).sum::<usize>() > MAX_RELIED_ON {
            self.sent.pop_front();
        }
        self.blobs.push_back((hash, self.text.clone()));
    }

    /// The keymap has changed: every keyboard is told, and what the modifiers are in it.
    fn renew(&mut self, programs: &mut BTreeMap<ConnectionId, Program>) {
        self.text = self.keymap.text().into();
        self.told = name(&self.text);
        self.send_keymap();
        for program in programs.values_mut() {
            keyboards(program).into_iter().for_each(|keyboard| self.tell_keymap(program, keyboard));
        }
        self.tell_modifiers(programs, self.modifiers);
    }

    fn tell_keymap(&self, program: &mut Program, keyboard: WireId) {
        let snapshot::Keymap { format, hash, length } = self.told;
        let args = vec![WireArg::Uint(format), WireArg::Blob { hash, length }, WireArg::Uint(length)];
        program.event(keyboard, KEYMAP, args);
    }

    /// A program has made keyboards.
    pub(crate) fn meet(&mut self, connection: ConnectionId, program: &mut Program) {
        let control = program.control_mut();
        let new = control.map(|control| control.client.take_new_keyboards()).unwrap_or_default();
        for keyboard in new {
            self.tell_keymap(program, keyboard);
            if let Some((_, surface)) = self.inside.filter(|(inside, _)| *inside == connection) {
                self.tell_enter(program, keyboard, surface);
            }
        }
    }

    fn tell_enter(&self, program: &mut Program, keyboard: WireId, surface: WireId) {
        let held = self.held.iter().flat_map(|code| code.to_le_bytes()).collect();
        let serial = WireArg::Uint(program.next_serial());
        program.event(keyboard, ENTER, vec![serial, WireArg::Object(surface), WireArg::Array(held)]);
        tell_modifiers(program, keyboard, self.modifiers);
    }

    /// The keyboard goes to a surface, or to none.
    pub(crate) fn focus(
        &mut self,
        programs: &mut BTreeMap<ConnectionId, Program>,
        target: Option<(ConnectionId, WireId)>,
    ) {
        if self.inside == target {
            return;
        }
        if let Some((connection, surface)) = self.inside.take()
            && let Some(program) = programs.get_mut(&connection)
            && program.control().is_some_and(|control| control.client.has(surface))
        {
            for keyboard in keyboards(program) {
                let serial = WireArg::Uint(program.next_serial());
                program.event(keyboard, LEAVE, vec![serial, WireArg::Object(surface)]);
            }
        }
        self.inside = target;
        if let Some((connection, surface)) = target
            && let Some(program) = programs.get_mut(&connection)
        {
            keyboards(program).into_iter().for_each(|keyboard| self.tell_enter(program, keyboard, surface));
        }
    }

    /// A program is gone, with all that it was told.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.inside = self.inside.filter(|(inside, _)| *inside != connection);
    }

    /// A key goes down, or up. One that is where it goes already is passed over.
    pub(crate) fn key(
        &mut self,
        now: Time,
        programs: &mut BTreeMap<ConnectionId, Program>,
        key: Pressed,
        pressed: bool,
    ) {
        let code = key.code;
        if !(1..=MAX_CODE).contains(&code) || self.held.contains(&code) == pressed {
            return;
        }
        if pressed {
            if self.learns(key) {
                self.renew(programs);
            }
            self.held.push(code);
            self.next_held.get_or_insert(now + HELD_EVERY);
        } else {
            self.held.retain(|held| *held != code);
        }
        self.tell_key(now, programs, code, pressed);
        if self.held.is_empty() {
            self.next_held = None;
        }
    }

    /// Whether a key has turned out to be another character than the keymap has.
    fn learns(&mut self, key: Pressed) -> bool {
        // With these a browser may say what a shortcut is called.
        let is_shortcut = self.modifiers & (modifier::CONTROL | modifier::ALT | modifier::SUPER) != 0;
        let character = key.character.filter(|_| !is_shortcut);
        character.is_some_and(|character| self.keymap.learn(key.code, key.level, character))
    }

    fn tell_key(&self, now: Time, programs: &mut BTreeMap<ConnectionId, Program>, code: u32, pressed: bool) {
        let Some(program) = self.inside.and_then(|(connection, _)| programs.get_mut(&connection)) else {
            return;
        };
        for keyboard in keyboards(program) {
            let args = [program.next_serial(), milliseconds(now), code, pressed.into()];
            program.event(keyboard, KEY, args.map(WireArg::Uint).into());
        }
    }

    /// The modifiers are these, as the script knows for sure.
    pub(crate) fn set_modifiers(&mut self, programs: &mut BTreeMap<ConnectionId, Program>, modifiers: u32) {
        let modifiers = modifiers & modifier::ALL;
        if std::mem::replace(&mut self.modifiers, modifiers) != modifiers {
            self.tell_modifiers(programs, modifiers);
        }
    }

    fn tell_modifiers(&self, programs: &mut BTreeMap<ConnectionId, Program>, modifiers: u32) {
        let Some(program) = self.inside.and_then(|(connection, _)| programs.get_mut(&connection)) else {
            return;
        };
        keyboards(program).into_iter().for_each(|keyboard| tell_modifiers(program, keyboard, modifiers));
    }

    /// Types text that comes from no key, with keys of its own. Line feeds and tabs are keys that everybody has.
    pub(crate) fn type_text(
        &mut self,
        now: Time,
        programs: &mut BTreeMap<ConnectionId, Program>,
        text: &str,
    ) {
        let text: Vec<char> = text.chars().take(MAX_TYPED).collect();
        // Caps lock makes other letters of these, too.
        let plain = self.modifiers & modifier::NUM_LOCK;
        if text.is_empty() || self.inside.is_none() {
            return;
        }
        if plain != self.modifiers {
            self.tell_modifiers(programs, plain);
        }
        for part in text.chunks(SPARES) {
            let is_typed = |character: &&char| fixed(**character).is_none() && !character.is_control();
            let typed: Vec<char> = part.iter().filter(is_typed).copied().collect();
            let (codes, is_new) = self.keymap.bind(&typed);
            if is_new {
                let modifiers = std::mem::replace(&mut self.modifiers, plain);
                self.renew(programs);
                self.modifiers = modifiers;
            }
            let mut codes = codes.into_iter();
            for character in part {
                let code = match fixed(*character) {
                    Some(code) => Some(code),
                    None if character.is_control() => None,
                    None => codes.next(),
                };
                let Some(code) = code else { continue };
                // A key that the user holds stays down.
                let is_held = self.held.contains(&code);
                self.tell_key(now, programs, code, !is_held);
                self.tell_key(now, programs, code, is_held);
            }
        }
        if plain != self.modifiers {
            self.tell_modifiers(programs, self.modifiers);
        }
    }

    /// All keys go up.
    pub(crate) fn release(&mut self, now: Time, programs: &mut BTreeMap<ConnectionId, Program>) {
        for code in std::mem::take(&mut self.held).into_iter().rev() {
            self.tell_key(now, programs, code, false);
        }
        self.next_held = None;
        self.set_modifiers(programs, self.modifiers & modifier::LOCKED);
    }

    /// When [`Self::on_timeout`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.next_held.filter(|_| self.inside.is_some())
    }

    /// Says that keys are down, so that they are not released.
    pub(crate) fn on_timeout(&mut self, now: Time, programs: &mut BTreeMap<ConnectionId, Program>) {
        let Some((connection, _)) = self.inside else { return };
        let Some(program) = programs.get_mut(&connection) else { return };
        if self.next_held.is_none_or(|due| due > now) {
            return;
        }
        self.next_held = Some(now + HELD_EVERY);
        for keyboard in keyboards(program) {
            program.tell(&ToApp::KeysHeld { keyboard });
        }
    }
}

/// A time as events have it.
pub(crate) fn milliseconds(now: Time) -> u32 {
    // It wraps around.
    now.since_start().as_millis() as u32
}

fn name(text: &[u8]) -> snapshot::Keymap {
    // Some kilobytes.
    snapshot::Keymap { format: XKB_V1, hash: xxh3_128(text), length: text.len() as u32 }
}

fn keyboards(program: &Program) -> Vec<WireId> {
    program.control().map(|control| control.client.keyboards()).unwrap_or_default()
}

fn tell_modifiers(program: &mut Program, keyboard: WireId, modifiers: u32) {
    let locked = modifiers & modifier::LOCKED;
    let args = [program.next_serial(), modifiers & !locked, 0, locked, 0];
    program.event(keyboard, MODIFIERS, args.map(WireArg::Uint).into());
}

/// The key of a character that has one on every keyboard, and no letter on it.
fn fixed(character: char) -> Option<u32> {
    match character {
        '\n' | '\r' => Some(28),
        '\t' => Some(15),
        '\u{8}' => Some(14),
        '\u{1b}' => Some(1),
        _ => None,
    }
}

/// `wl_keyboard.keymap_format`.
const XKB_V1: u32 = 1;

const KEYMAP: u16 = 0;
const ENTER: u16 = 1;
const LEAVE: u16 = 2;
const KEY: u16 = 3;
const MODIFIERS: u16 = 4;
