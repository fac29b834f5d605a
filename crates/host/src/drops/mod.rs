//! What the user drags from the desk onto a program's window: files in it are sent, and the program gets a list that
//! names them where they are then.
//!
//! For each drag the list is read once, from the program at the desk that gives it (`list`). One without files of the
//! desk is the program's as it is. One with files waits for the user's drop: then they are sent ([`Files`]), and the
//! program hears of the drop when all are there or cannot be, or have taken long. Invariants: no file is read before
//! the user has dropped it; no program is given a list with a path of the desk; each program that asks for a list gets
//! one, or an empty one.

mod list;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::io::Errno;
use wayferry_proto::{ConnectionId, Session, Time};
use wayferry_wayland::DragStep;

use self::list::UriList;
use crate::edge::part::{Hub, Part};
use crate::edge::pipes::{PipeKey, Pipes};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};
use crate::files::Sent;

/// Which drag: its program's connection, and its number there.
pub(crate) type DragKey = (ConnectionId, u64);

/// See the module.
#[derive(Debug)]
pub(crate) struct Drops {
    /// What this machine is called.
    machine: String,
    drags: BTreeMap<DragKey, Drag>,
    /// Files that are on their way: whose, and which of the list.
    under_way: BTreeMap<u64, (DragKey, usize)>,
    /// Files so far.
    count: u64,
    results: Vec<Outcome>,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The list for a program that has asked for it, on this pipe.
    List { connection: ConnectionId, pipe: u64, text: Vec<u8> },
    /// The program may hear of the drop.
    Told(DragKey),
}

#[derive(Debug)]
struct Drag {
    stage: Stage,
    /// Pipes of the program that asks for the list.
    wanted: Vec<u64>,
    /// How often it has asked.
    asked: usize,
    /// When the user has dropped it.
    dropped: Option<Time>,
    /// The program has heard of that.
    is_told: bool,
    /// The program has let go of it.
    is_over: bool,
}

#[derive(Debug)]
enum Stage {
    /// The list is read.
    Reading { from: OwnedFd, text: Vec<u8> },
    /// It cannot be read. The user is told if it is dropped.
    Unreadable(&'static str),
    /// It names files of the desk, and the user has not dropped it.
    Waiting(UriList),
    /// They are sent; where those are that have arrived.
    Sending { list: UriList, places: Vec<Option<Vec<u8>>>, left: Vec<(usize, PathBuf)>, under_way: usize },
    /// What the program gets.
    Ready(Vec<u8>),
}

impl Part for Drops {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        let has_more = !self.results.is_empty() || self.drags.values().any(Drag::is_due);
        interests.until(has_more.then_some(now));
        for drag in self.drags.values() {
            if let Stage::Reading { from, .. } = &drag.stage {
                interests.read(from);
                interests.until(drag.dropped.map(|dropped| dropped + PATIENCE));
            }
            interests.until(drag.held_until());
        }
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        let keys: Vec<DragKey> = self.drags.keys().copied().collect();
        for key in keys {
            self.read(now, key, ready, hub.reporter);
            self.tell_if_due(now, key);
        }
        Ok(())
    }
}

impl Drops {
    pub(crate) fn new() -> Self {
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { machine, drags: BTreeMap::new(), under_way: BTreeMap::new(), count: 0, results: Vec::new() }
    }

    /// Something has happened to a drag over a program's window.
    pub(crate) fn on_step(&mut self, now: Time, key: DragKey, step: DragStep, reporter: &Reporter) {
        match step {
            DragStep::List(from) => self.begin(key, from),
            DragStep::Wanted { pipe } => self.want(key, pipe),
            DragStep::Dropped => self.on_drop(now, key, reporter),
            DragStep::Over => self.end(key),
        }
    }

    fn on_drop(&mut self, now: Time, key: DragKey, reporter: &Reporter) {
        let Some(drag) = self.drags.get_mut(&key) else {
            refuse(reporter, DRAGGED, "too much that was dropped is on its way");
            return self.results.push(Outcome::Told(key));
        };
        drag.dropped = Some(now);
        match drag.stage {
            Stage::Ready(_) => self.tell(key),
            Stage::Unreadable(why) => {
                refuse(reporter, DRAGGED, why);
                self.finish(key, Vec::new());
            }
            _ => {}
        }
    }

    /// The program hears that it was dropped.
    fn tell(&mut self, key: DragKey) {
        if let Some(drag) = self.drags.get_mut(&key)
            && drag.dropped.is_some()
            && !std::mem::replace(&mut drag.is_told, true)
        {
            self.results.push(Outcome::Told(key));
        }
    }

    fn tell_if_due(&mut self, now: Time, key: DragKey) {
        let until = self.drags.get(&key).and_then(Drag::held_until);
        if until.is_some_and(|until| now >= until) {
            self.tell(key);
        }
    }

    fn want(&mut self, key: DragKey, pipe: u64) {
        let drag = self.drags.get_mut(&key).filter(|drag| drag.asked < MAX_WANTED);
        let text = match drag {
            None => Vec::new(),
            Some(drag) => {
                drag.asked += 1;
                match &drag.stage {
                    Stage::Ready(text) => text.clone(),
                    _ => return drag.wanted.push(pipe),
                }
            }
        };
        self.results.push(Outcome::List { connection: key.0, pipe, text });
    }

    fn begin(&mut self, key: DragKey, from: OwnedFd) {
        let is_old = |drag: &Drag| drag.dropped.is_some() && matches!(drag.stage, Stage::Ready(_));
        if self.drags.len() >= MAX_DRAGS
            && let Some(old) = self.drags.iter().find(|(_, drag)| is_old(drag)).map(|(key, _)| *key)
        {
            self.end(old);
        }
        // Closed descriptors make others look ready: this one is read without waiting, and alone by this side.
        let is_set = fcntl_setfl(&from, OFlags::NONBLOCK).is_ok();
        if is_set && self.drags.len() < MAX_DRAGS {
            let stage = Stage::Reading { from, text: Vec::new() };
            let (wanted, asked) = (Vec::new(), 0);
            let drag = Drag { stage, wanted, asked, dropped: None, is_told: false, is_over: false };
            self.drags.insert(key, drag);
        }
    }

    /// Reads a piece of a list.
    fn read(&mut self, now: Time, key: DragKey, ready: &Ready, reporter: &Reporter) {
        let Some(drag) = self.drags.get_mut(&key) else { return };
        let Stage::Reading { from, text } = &mut drag.stage else { return };
        let mut piece = [0; 16 << 10];
        let got = match ready.has(from) {
            true => rustix::io::read(&*from, &mut piece),
            false if drag.dropped.is_none_or(|dropped| now < dropped + PATIENCE) => return,
            false => Err(Errno::TIMEDOUT),
        };
        let list = match got {
            Ok(0) => Ok(UriList::parse(text, &self.machine)),
            Ok(count) if text.len() + count <= MAX_LIST => return text.extend_from_slice(&piece[..count]),
            Ok(_) => Err("its list of files is too long"),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => Err("the program that it is from does not say what it is"),
        };
        match list {
            Ok(list) if list.files().next().is_some() => drag.stage = Stage::Waiting(list),
            Ok(_) => {
                let text = std::mem::take(text);
                self.finish(key, text);
            }
            Err(why) if drag.dropped.is_none() => drag.stage = Stage::Unreadable(why),
            Err(why) => {
                refuse(reporter, DRAGGED, why);
                self.finish(key, Vec::new());
            }
        }
    }

    /// Begins to send what was dropped since; `obstacle` is why no files may be sent. Gives files to send, of which
    /// `room` may be under way more.
    pub(crate) fn next_files(
        &mut self,
        obstacle: Option<&str>,
        room: usize,
        reporter: &Reporter,
    ) -> Vec<(u64, PathBuf)> {
        let due = self.drags.iter().filter(|(_, drag)| drag.is_due()).map(|(key, _)| *key);
        let due: Vec<DragKey> = due.collect();
        due.into_iter().for_each(|key| self.begin_sending(key, obstacle, reporter));
        let mut files = Vec::new();
        for (key, drag) in &mut self.drags {
            let Stage::Sending { left, under_way, .. } = &mut drag.stage else { continue };
            while files.len() < room
                && *under_way < AT_ONCE
                && let Some((index, path)) = left.pop()
            {
                *under_way += 1;
                self.count += 1;
                self.under_way.insert(self.count, (*key, index));
                files.push((self.count, path));
            }
        }
        files
    }

    fn begin_sending(&mut self, key: DragKey, obstacle: Option<&str>, reporter: &Reporter) {
        let Some(drag) = self.drags.get_mut(&key) else { return };
        let Stage::Waiting(list) = &drag.stage else { return };
        let (list, mut left) = (list.clone(), Vec::from_iter(list.files().cloned().enumerate()));
        let count = left.len();
        let too_many = format!("it is one of {count} files, and {MAX_FILES} may be dropped at a time");
        let obstacle = obstacle.or((count > MAX_FILES).then_some(&too_many[..]));
        if let (Some(why), Some((_, path))) = (obstacle, left.first()) {
            refuse(reporter, &name_of(path), why);
            let text = list.with(std::iter::repeat_n(None, count));
            return self.finish(key, text);
        }
        // The next is the last.
        left.reverse();
        drag.stage = Stage::Sending { list, places: vec![None; count], left, under_way: 0 };
    }

    /// A file is there, or will not be.
    pub(crate) fn on_sent(&mut self, sent: Sent, reporter: &Reporter) {
        let place = match sent.result {
            Ok(place) => {
                let path = String::from_utf8_lossy(&place).into_owned();
                reporter.report(SessionEvent::FileDropped { name: sent.name, path, bytes: sent.size });
                Some(place)
            }
            Err(why) => {
                refuse(reporter, &sent.name, &why);
                None
            }
        };
        let Some((key, index)) = self.under_way.remove(&sent.ticket) else { return };
        let Some(drag) = self.drags.get_mut(&key) else { return };
        let Stage::Sending { list, places, left, under_way } = &mut drag.stage else { return };
        places[index] = place;
        *under_way -= 1;
        if left.is_empty() && *under_way == 0 {
            let text = list.with(places.iter().map(Option::as_deref));
            self.finish(key, text);
        }
    }

    /// The list for the program is this.
    fn finish(&mut self, key: DragKey, text: Vec<u8>) {
        let Some(drag) = self.drags.get_mut(&key) else { return };
        for pipe in drag.wanted.drain(..) {
            let text = text.clone();
            self.results.push(Outcome::List { connection: key.0, pipe, text });
        }
        drag.stage = Stage::Ready(text);
        let is_over = drag.is_over;
        self.tell(key);
        if is_over {
            self.drags.remove(&key);
        }
    }

    /// The program has no more of it. What is on its way goes on.
    fn end(&mut self, key: DragKey) {
        let Some(drag) = self.drags.get_mut(&key) else { return };
        drag.is_over = true;
        match drag.stage {
            Stage::Ready(_) => drop(self.drags.remove(&key)),
            Stage::Waiting(_) | Stage::Sending { .. } if drag.dropped.is_some() => {}
            _ => self.finish(key, Vec::new()),
        }
    }

    /// A program is gone.
    pub(crate) fn on_connection_end(&mut self, connection: ConnectionId) {
        let keys: Vec<DragKey> = self.drags.keys().filter(|key| key.0 == connection).copied().collect();
        keys.into_iter().for_each(|key| self.end(key));
        self.results.retain(|result| match result {
            Outcome::List { .. } => true,
            Outcome::Told(key) => key.0 != connection,
        });
    }

    /// What has come of drags since.
    pub(crate) fn take_results(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.results)
    }

    /// The programs are shown anew: nothing is dragged.
    pub(crate) fn clear(&mut self) {
        self.drags.clear();
        self.under_way.clear();
        self.results.clear();
    }
}

/// Gives a program a list on its pipe; without memory for that, an empty one.
pub(crate) fn give(session: &mut Session, pipes: &mut Pipes, key: PipeKey, text: &[u8]) {
    if text.is_empty() {
        return Pipes::send_nothing(session, key);
    }
    let filled = memfd_create("list", MemfdFlags::CLOEXEC).and_then(|file| {
        let mut written = 0;
        while written < text.len() {
            written += rustix::io::pwrite(&file, &text[written..], written as u64)?;
        }
        Ok(file)
    });
    match filled {
        Ok(file) => pipes.send_from(session, key, file),
        Err(_) => Pipes::send_nothing(session, key),
    }
}

impl Drag {
    /// Whether its files are to be sent.
    fn is_due(&self) -> bool {
        self.dropped.is_some() && matches!(self.stage, Stage::Waiting(_))
    }

    /// Until when the program does not hear that it was dropped, if it has not.
    fn held_until(&self) -> Option<Time> {
        self.dropped.filter(|_| !self.is_told).map(|dropped| dropped + HOLD)
    }
}

fn refuse(reporter: &Reporter, name: &str, why: &str) {
    reporter.report(SessionEvent::FileNotDropped { name: name.to_owned(), reason: why.to_owned() });
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What the user is told of whose list is not known.
const DRAGGED: &str = "what was dragged";
/// Drags whose list is known or read.
const MAX_DRAGS: usize = 16;
/// How often a program is given one list.
const MAX_WANTED: usize = 16;
/// Bytes of a list.
const MAX_LIST: usize = 256 << 10;
/// Files of one drop.
const MAX_FILES: usize = 64;
/// Files of one drop that are on their way at a time.
const AT_ONCE: usize = 4;
/// How long a program at the desk may take to say what is dragged, once it is dropped.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a program does not hear of a drop whose files are on their way; then it waits for the list.
const HOLD: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
