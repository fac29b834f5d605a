//! Files that cross in a session, in either direction.
//!
//! A caller here, on a socket, sends one to the other side, or fetches one from there; what the user drops on a window
//! is sent as well (`crate::drops`). The other side's are kept in one directory. The bytes go through the session's
//! pipes (`crate::edge::pipes`), whose window bounds them, and to the disk on a thread for each file (`disk`). Few
//! cross at a time; further callers wait, and are told so. Invariants: what became of its file a caller is told once,
//! at most `MAX_AT_WORK` files are written here at a time, and what the other side sends is never put anywhere but into
//! that directory.

mod disk;
mod dropped;
mod name;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use wayferry_proto::wire::VARINT_MAX;
use wayferry_proto::{
    Capabilities, Control, FILES, FileFate, FileOffer, MAX_FILE_PATH, Secret, Session, Time,
};

use self::disk::Trouble;
use self::dropped::Dropped;
pub(crate) use self::dropped::Sent;
use crate::control::Answer;
use crate::control_server::answer;
use crate::edge::part::{Hub, Part};
use crate::edge::pipes::Pipes;
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// See the module.
#[derive(Debug)]
pub struct Files {
    /// Where those of the other side are kept.
    place: PathBuf,
    /// Where paths that the other side wants begin; none are given without.
    home: Option<PathBuf>,
    /// Files and wishes so far.
    count: u64,
    callers: BTreeMap<u64, Caller>,
    /// Callers whose turn comes when others are done.
    waiting: VecDeque<(Wish, OwnedFd)>,
    /// What has become of files that were dropped.
    sent: Vec<Sent>,
    /// When it is told next how far those are that are on their way.
    progress: Option<Time>,
    at_work: usize,
    workers: Workers,
    /// Whose callers these are.
    display: Option<Secret>,
    /// How often the other side has been another: each numbers its files anew.
    age: u64,
}

/// What a caller wants.
#[derive(Debug)]
enum Wish {
    /// A file of this size and name is to be sent; its bytes follow on the caller's socket.
    Send(u64, String),
    /// The file at this path of the other side's is to be fetched.
    Fetch(String),
}

/// Who waits for the other side's word.
#[derive(Debug)]
enum Caller {
    Sends(OwnedFd),
    Fetches(OwnedFd),
    /// It was dropped.
    Drops(Dropped),
}

impl Caller {
    fn socket(&self) -> Option<&OwnedFd> {
        match self {
            Self::Sends(socket) | Self::Fetches(socket) => Some(socket),
            Self::Drops(_) => None,
        }
    }
}

/// The threads, and what they tell.
#[derive(Debug)]
struct Workers {
    tell: Sender<(u64, Told)>,
    told: Receiver<(u64, Told)>,
    wake: Arc<OwnedFd>,
}

#[derive(Debug)]
enum Told {
    /// A file of the other side's is there, or is not.
    Kept { offer: FileOffer, result: Result<PathBuf, Trouble> },
    /// What the other side wants is here.
    Found { id: u64, name: String, size: u64, bytes: OwnedFd },
    /// It is not.
    Missing { id: u64, fate: FileFate },
    /// What was dropped is here, or is not.
    Opened { file: Dropped, bytes: Result<OwnedFd, String> },
    /// All of it has been read, or the other side does not want more.
    Given,
}

/// What passes files on.
pub(crate) struct Way<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) pipes: &'a mut Pipes,
    pub(crate) reporter: &'a Reporter,
}

/// What a folder for files of this origin is called.
pub fn folder(origin: &str) -> String {
    name::usable(&origin.replace('/', "_"))
}

impl Part for Files {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.progress_due(now));
        interests.read(&*self.workers.wake);
        // What they send is read by the pipes; that they have gone is always told.
        let callers = self.callers.values().filter_map(Caller::socket);
        let waiting = self.waiting.iter().map(|(_, caller)| caller);
        callers.chain(waiting).for_each(|caller| interests.add(caller, PollFlags::empty()));
    }

    /// Pipes are the side's: see `Files::hear`.
    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        self.tell_progress(now, hub.reporter);
        if ready.has(&*self.workers.wake) {
            let _ = rustix::io::read(&*self.workers.wake, &mut [0u8; 8]);
        }
        let gone = PollFlags::HUP | PollFlags::ERR;
        let is_gone = |socket: &OwnedFd| ready.flags(socket.as_fd()).intersects(gone);
        self.callers.retain(|_, caller| !caller.socket().is_some_and(is_gone));
        self.waiting.retain(|(_, caller)| !is_gone(caller));
        Ok(())
    }
}

impl Files {
    /// Keeps the other side's files in `place`, and gives it those below `home`, if there is one.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new(place: PathBuf, home: Option<PathBuf>) -> io::Result<Self> {
        let (tell, told) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let workers = Workers { tell, told, wake };
        Ok(Self {
            place,
            home,
            count: 0,
            callers: BTreeMap::new(),
            waiting: VecDeque::new(),
            sent: Vec::new(),
            progress: None,
            at_work: 0,
            workers,
            display: None,
            age: 0,
        })
    }

    /// A caller has a file for the other side; its bytes follow on the socket.
    pub(crate) fn send(&mut self, way: &mut Way<'_>, size: u64, name: &str, caller: OwnedFd) {
        if size > VARINT_MAX {
            return refuse(&caller, "it is too large");
        }
        self.ask(way, Wish::Send(size, name::usable(name)), caller);
    }

    /// A caller wants a file of the other side's.
    pub(crate) fn fetch(&mut self, way: &mut Way<'_>, path: String, caller: OwnedFd) {
        if path.len() > MAX_FILE_PATH {
            return refuse(&caller, "its path has more than 4096 bytes");
        }
        self.ask(way, Wish::Fetch(path), caller);
    }

    fn ask(&mut self, way: &mut Way<'_>, wish: Wish, caller: OwnedFd) {
        if !way.session.capabilities().has(Capabilities::FILES) {
            return refuse(&caller, "no display is there that takes files");
        }
        if self.waiting.len() >= MAX_WAITING {
            return refuse(&caller, "too many files wait already");
        }
        if self.callers.len() >= MAX_CALLERS {
            answer(&caller, &Answer::Waits);
        }
        self.waiting.push_back((wish, caller));
        self.begin(way);
    }

    /// Tells the other side of those that have waited, as far as there is room.
    fn begin(&mut self, way: &mut Way<'_>) {
        while self.callers.len() < MAX_CALLERS
            && let Some((wish, caller)) = self.waiting.pop_front()
        {
            match wish {
                Wish::Send(size, name) => self.offer(way, size, name, caller),
                Wish::Fetch(path) => self.call_for(way, path, caller),
            }
        }
    }

    fn offer(&mut self, way: &mut Way<'_>, size: u64, name: String, caller: OwnedFd) {
        let Ok(bytes) = caller.try_clone() else { return refuse(&caller, "no descriptors are left") };
        self.count += 1;
        let offer = FileOffer { id: self.count, answers: None, size, name };
        match way.session.control(&Control::File(offer)) {
            Ok(()) => {
                way.pipes.send_from(way.session, (FILES, self.count), bytes);
                self.callers.insert(self.count, Caller::Sends(caller));
            }
            Err(error) => refuse(&caller, &error.to_string()),
        }
    }

    fn call_for(&mut self, way: &mut Way<'_>, path: String, caller: OwnedFd) {
        self.count += 1;
        match way.session.control(&Control::FetchFile { id: self.count, path }) {
            Ok(()) => drop(self.callers.insert(self.count, Caller::Fetches(caller))),
            Err(error) => refuse(&caller, &error.to_string()),
        }
    }

    /// The other side sends one.
    pub(crate) fn on_offer(&mut self, way: &mut Way<'_>, offer: &FileOffer) {
        let is_wanted = |id| matches!(self.callers.get(&id), Some(Caller::Fetches(_)));
        let trouble = match offer.answers {
            Some(id) if !is_wanted(id) => Some((FileFate::Refused, "it was not asked for")),
            _ if self.at_work >= MAX_AT_WORK || way.pipes.was_turned_away((FILES, offer.id)) => {
                Some((FileFate::TooMany, "too many others are on their way"))
            }
            _ => None,
        };
        if let Some((fate, why)) = trouble {
            way.pipes.refuse(way.session, (FILES, offer.id));
            return self.tell_kept(way, offer, Err((fate, why.to_owned())));
        }
        let begun = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).and_then(|(read, write)| {
            let (place, offer) = (self.place.clone(), offer.clone());
            self.workers.start(self.age, move |tell| {
                let result = disk::keep(&place, &offer.name, offer.size, read);
                tell(Told::Kept { offer, result });
            })?;
            Ok(write)
        });
        match begun {
            Ok(write) => {
                self.at_work += 1;
                way.pipes.receive_into(way.session, (FILES, offer.id), write);
            }
            Err(error) => {
                way.pipes.refuse(way.session, (FILES, offer.id));
                self.tell_kept(way, offer, Err((FileFate::Failed, error.to_string())));
            }
        }
    }

    /// The other side wants one.
    pub(crate) fn on_fetch(&mut self, session: &mut Session, id: u64, path: &str) {
        let trouble = match &self.home {
            None => Some(FileFate::Refused),
            Some(_) if self.at_work >= MAX_AT_WORK => Some(FileFate::TooMany),
            Some(home) => {
                let path = home.join(path);
                let name = name::usable(&path.file_name().unwrap_or_default().to_string_lossy());
                let begun = self.workers.start(self.age, move |tell| match open(&path) {
                    Ok((size, file, read, write)) => {
                        tell(Told::Found { id, name, size, bytes: read });
                        disk::give(file, size, write, &AtomicU64::new(0));
                        tell(Told::Given);
                    }
                    Err((fate, _)) => tell(Told::Missing { id, fate }),
                });
                begun.err().map(|_| FileFate::Failed)
            }
        };
        match trouble {
            None => self.at_work += 1,
            Some(fate) => drop(session.control(&Control::FileDone { id, fate, place: None })),
        }
    }

    /// The other side tells what became of one, and where it is.
    pub(crate) fn on_done(&mut self, id: u64, fate: FileFate, place: Option<Vec<u8>>) {
        match (self.callers.get(&id), fate) {
            (Some(Caller::Drops(_)), _) => self.on_dropped_done(id, fate, place),
            (Some(Caller::Sends(_)), FileFate::Kept) => self.answer(id, &Answer::Done),
            // It comes, and is answered for when it is here.
            (_, FileFate::Kept) => {}
            (_, fate) => self.answer(id, &Answer::Not(words(fate).to_owned())),
        }
    }

    /// Goes on with what the threads have told, and with callers whose turn it is.
    pub(crate) fn hear(&mut self, way: &mut Way<'_>) {
        while let Ok((age, told)) = self.workers.told.try_recv() {
            if !matches!(told, Told::Found { .. } | Told::Opened { .. }) {
                self.at_work -= 1;
            }
            match told {
                Told::Kept { offer, result } if age == self.age => self.tell_kept(way, &offer, result),
                Told::Kept { offer, result } => report(way.reporter, &offer, result),
                Told::Opened { file, bytes } if age == self.age => self.pass_dropped(way, file, bytes),
                Told::Opened { file, .. } => self.give_up(file),
                // Who wanted it has gone, and another would take it for what he wants.
                _ if age != self.age => {}
                Told::Missing { id, fate } => {
                    let _ = way.session.control(&Control::FileDone { id, fate, place: None });
                }
                Told::Found { id, name, size, bytes } => {
                    self.count += 1;
                    let offer = FileOffer { id: self.count, answers: Some(id), size, name };
                    if way.session.control(&Control::File(offer)).is_ok() {
                        way.pipes.send_from(way.session, (FILES, self.count), bytes);
                    }
                }
                Told::Given => {}
            }
        }
        self.begin(way);
    }

    /// Tells everyone what became of the other side's file.
    fn tell_kept(&mut self, way: &mut Way<'_>, offer: &FileOffer, result: Result<PathBuf, Trouble>) {
        let fate = result.as_ref().map_or_else(|(fate, _)| *fate, |_| FileFate::Kept);
        let place = self.place_to_tell(way.session, &result);
        let _ = way.session.control(&Control::FileDone { id: offer.id, fate, place });
        match offer.answers.filter(|id| self.callers.contains_key(id)) {
            Some(id) => {
                let word = match result {
                    Ok(path) => Answer::Kept(path.to_string_lossy().into_owned()),
                    Err((_, why)) => Answer::Not(why),
                };
                self.answer(id, &word);
            }
            None => report(way.reporter, offer, result),
        }
    }

    /// Where a file is that the other side has sent, if it may know: a desk tells no host what its folders are called.
    fn place_to_tell(&self, session: &Session, result: &Result<PathBuf, Trouble>) -> Option<Vec<u8>> {
        let is_told = self.home.is_some() && session.capabilities().has(Capabilities::FILE_PLACES);
        let path = result.as_ref().ok().filter(|_| is_told)?.as_os_str().as_bytes();
        (path.len() <= MAX_FILE_PATH).then(|| path.to_vec())
    }

    fn answer(&mut self, id: u64, word: &Answer) {
        if let Some(Caller::Sends(caller) | Caller::Fetches(caller)) = self.callers.remove(&id) {
            answer(&caller, word);
        }
    }

    /// This display is at the other end now: another one will not answer.
    pub(crate) fn keep_to(&mut self, display: Option<Secret>) {
        if display.is_none() || self.display != display {
            self.display = display;
            self.forget();
        }
    }

    /// The other side has forgotten what is on its way.
    pub(crate) fn forget(&mut self) {
        self.age += 1;
        for caller in std::mem::take(&mut self.callers).into_values() {
            match caller {
                Caller::Sends(caller) | Caller::Fetches(caller) => refuse(&caller, "the display has left"),
                Caller::Drops(file) => self.give_up(file),
            }
        }
        for (_, caller) in self.waiting.drain(..) {
            refuse(&caller, "the display has left");
        }
    }
}

impl Drop for Files {
    /// Their pipes are closed: what was not whole is removed.
    fn drop(&mut self) {
        for _ in 0..self.at_work {
            let _ = self.workers.told.recv_timeout(LAST_PATIENCE);
        }
    }
}

impl Workers {
    /// On behalf of the other side that is of this age.
    fn start(&self, age: u64, work: impl FnOnce(&dyn Fn(Told)) + Send + 'static) -> io::Result<()> {
        let (tell, wake) = (self.tell.clone(), Arc::clone(&self.wake));
        let work = move || {
            work(&|told| {
                let _ = tell.send((age, told));
                let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
            });
        };
        std::thread::Builder::new().name("file".into()).spawn(work).map(drop)
    }
}

/// A file, its size, and a pipe for it.
fn open(path: &Path) -> Result<(u64, File, OwnedFd, OwnedFd), Trouble> {
    let (size, file) = disk::open(path)?;
    let fail = |error: Errno| (FileFate::Failed, error.to_string());
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(fail)?;
    Ok((size, file, read, write))
}

/// Tells the user here.
fn report(reporter: &Reporter, offer: &FileOffer, result: Result<PathBuf, Trouble>) {
    reporter.report(match result {
        Ok(path) => SessionEvent::FileKept { path, bytes: offer.size },
        Err((_, reason)) => SessionEvent::FileRefused { name: name::usable(&offer.name), reason },
    });
}

fn refuse(caller: &OwnedFd, why: &str) {
    answer(caller, &Answer::Not(why.to_owned()));
}

/// What a caller is told of the other side's refusal.
fn words(fate: FileFate) -> &'static str {
    match fate {
        FileFate::Kept => "it is there",
        FileFate::Refused => "the user there takes and gives no files",
        FileFate::TooMany => "too many files are on their way",
        FileFate::NoSpace => "there is no room for it there",
        FileFate::Broken => "not all of it came",
        FileFate::Missing => "there is no plain file of that name there that can be read",
        FileFate::Failed => "it cannot be written or read there",
    }
}

/// Callers whose files are on their way; others wait for them.
const MAX_CALLERS: usize = 8;
/// Callers that wait so; more are refused.
const MAX_WAITING: usize = 256;
/// Files that are written, or looked for, at a time; more are refused. The other side has so many on their way at most:
/// those that it sends, and those that were fetched.
const MAX_AT_WORK: usize = 2 * MAX_CALLERS;
/// How long a disk may take for its last word at the end.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::Read;
    use std::net::Shutdown;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use rustix::event::PollFd;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use wayferry_proto::{Arrival, Config, Side, StreamId, Transmit};

    use super::*;
    use crate::edge::part::{Base, alone};
    use crate::edge::wait::poll;

    #[test]
    fn a_desk_gives_nothing_and_takes_no_answer_to_what_it_did_not_ask() {
        let (mut base, events) = alone::base();
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        files.on_fetch(&mut base.link.session, 1, "etc/passwd");
        assert_eq!(files.at_work, 0, "no thread looks for it");
        let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
        files.on_offer(way, &FileOffer { id: 1, answers: Some(7), size: 1, name: "../x".into() });
        let refused: Vec<SessionEvent> = events.try_iter().collect();
        assert!(
            matches!(&refused[..], [SessionEvent::FileRefused { name, .. }] if name == "x"),
            "{refused:?}"
        );
        assert_eq!((files.at_work, pipes.len()), (0, 0));
    }

    /// A session that has met a display, both of which let files cross.
    fn met() -> (Base, Session) {
        let side = |side| Session::new(Config { capabilities: Capabilities::FILES, ..Config::new(side) });
        let (mut base, _) = alone::base();
        let mut display = side(Side::Display);
        base.link.session = side(Side::App);
        let mut offsets: HashMap<(bool, StreamId), u64> = HashMap::new();
        for turn in 0..8 {
            let is_back = turn % 2 == 1;
            let (from, to) = match is_back {
                false => (&mut base.link.session, &mut display),
                true => (&mut display, &mut base.link.session),
            };
            while let Some(transmit) = from.poll_transmit(Time::ZERO) {
                if let Transmit::Data { stream, bytes, .. } = transmit {
                    let offset = offsets.entry((is_back, stream)).or_default();
                    let arrival = Arrival::Data { stream, offset: *offset, bytes: bytes.clone() };
                    *offset += bytes.len() as u64;
                    to.receive(Time::ZERO, arrival);
                }
            }
        }
        assert!(base.link.session.capabilities().has(Capabilities::FILES));
        (base, display)
    }

    /// A caller, and what the side has of it.
    fn caller() -> (UnixStream, OwnedFd) {
        let (caller, ours) = UnixStream::pair().expect("sockets");
        (caller, ours.into())
    }

    #[test]
    fn regression_a_size_that_no_message_holds_ends_the_session() {
        let (mut base, _display) = met();
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        let mut files = Files::new("/nonexistent".into(), Some("/".into())).expect("descriptors");
        let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
        let (mut them, ours) = caller();
        files.send(way, u64::MAX, "x", ours);
        let mut told = String::new();
        them.read_to_string(&mut told).expect("an answer");
        assert!(told.starts_with("not "), "{told}");
        let huge = memfd_create("huge", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&huge, VARINT_MAX + 1).expect("room");
        files.on_fetch(way.session, 1, &format!("proc/self/fd/{}", huge.as_raw_fd()));
        while files.at_work > 0 {
            files.hear(way);
            std::thread::yield_now();
        }
        assert_eq!(pipes.len(), 0);
    }

    #[test]
    fn regression_what_one_display_wanted_answers_the_next() {
        let (mut base, _display) = met();
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        let mut files = Files::new("/nonexistent".into(), Some("/".into())).expect("descriptors");
        let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
        files.keep_to(Some(Secret::from([1; 32])));
        files.on_fetch(way.session, 1, "proc/self/exe");
        let mut woken = [PollFd::new(&*files.workers.wake, PollFlags::IN)];
        poll(&mut woken, None).expect("it is found");
        files.keep_to(Some(Secret::from([2; 32])));
        while files.at_work > 0 {
            files.hear(way);
            assert_eq!(way.pipes.len(), 0, "the next display has asked for nothing");
            std::thread::yield_now();
        }
    }

    /// A caller goes away. Closing alone is seen later, where another test's child holds a copy until it executes.
    fn leave(them: &UnixStream) {
        them.shutdown(Shutdown::Both).expect("a socket");
    }

    #[test]
    fn regression_callers_that_have_gone_leave_no_room_for_others() {
        let (mut base, _display) = met();
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        for _ in 0..MAX_CALLERS {
            let (them, ours) = caller();
            let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
            files.fetch(way, "x".into(), ours);
            leave(&them);
        }
        assert_eq!(files.callers.len(), MAX_CALLERS);
        alone::turn(&mut files, Time::ZERO, &mut base);
        assert_eq!(files.callers.len(), 0);
    }

    /// Of what a caller has been told, the first line.
    fn told(them: &mut UnixStream) -> String {
        let mut byte = [0];
        let mut line = String::new();
        them.set_nonblocking(true).expect("a socket");
        while let Ok(1) = them.read(&mut byte)
            && byte != *b"\n"
        {
            line.push(byte[0].into());
        }
        line
    }

    #[test]
    fn regression_a_ninth_file_is_refused_instead_of_waiting_for_the_others() {
        let (mut base, _display) = met();
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        let mut sends: Vec<UnixStream> = (0..MAX_CALLERS + MAX_WAITING + 1)
            .map(|_| {
                let (them, ours) = caller();
                let way =
                    &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
                files.send(way, 3, "x", ours);
                them
            })
            .collect();
        let words: Vec<String> = sends.iter_mut().map(told).collect();
        let waits = words.iter().filter(|word| *word == "waits").count();
        assert_eq!(
            (files.callers.len(), files.waiting.len(), waits),
            (MAX_CALLERS, MAX_WAITING, MAX_WAITING)
        );
        assert!(words[..MAX_CALLERS].iter().all(String::is_empty), "{words:?}");
        assert!(words.last().is_some_and(|word| word.starts_with("not ")), "{words:?}");
        // One that waits goes away, and one of the first is done: the next is on its way, and is told no more.
        leave(&sends.remove(MAX_CALLERS));
        alone::turn(&mut files, Time::ZERO, &mut base);
        assert_eq!(files.waiting.len(), MAX_WAITING - 1);
        files.on_done(1, FileFate::Kept, None);
        let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
        files.hear(way);
        assert_eq!((files.callers.len(), files.waiting.len()), (MAX_CALLERS, MAX_WAITING - 2));
        assert!(files.callers.contains_key(&(MAX_CALLERS as u64 + 1)));
        assert_eq!((told(&mut sends[0]), told(&mut sends[MAX_CALLERS])), ("done".into(), String::new()));
        // None waits for a display that has left.
        files.forget();
        let last = sends.len() - 1;
        assert!(sends[1..last].iter_mut().all(|them| told(them).starts_with("not ")));
        assert!(files.waiting.is_empty());
    }

    #[test]
    fn regression_each_turn_asks_the_system_whether_a_thread_has_told() {
        let (mut base, _) = alone::base();
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        let is_woken = |files: &Files| {
            let mut woken = [PollFd::new(&*files.workers.wake, PollFlags::IN)];
            poll(&mut woken, Some(Duration::ZERO)).expect("poll");
            !woken[0].revents().is_empty()
        };
        rustix::io::write(&*files.workers.wake, &1u64.to_ne_bytes()).expect("written");
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        files.hear(&mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter });
        assert!(is_woken(&files), "only where it is ready is it read");
        alone::turn(&mut files, Time::ZERO, &mut base);
        assert!(!is_woken(&files));
    }

    #[test]
    fn regression_a_path_that_no_message_may_hold_ends_the_session() {
        let (mut base, display) = met();
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
        let (mut them, ours) = caller();
        files.fetch(way, "x".repeat(MAX_FILE_PATH + 1), ours);
        let mut told = String::new();
        them.set_nonblocking(true).expect("a socket");
        them.read_to_string(&mut told).expect("an answer, and the end");
        assert!(told.starts_with("not "), "{told}");
        let (_them, ours) = caller();
        files.fetch(way, "x".repeat(MAX_FILE_PATH), ours);
        assert_eq!((files.callers.len(), display.is_closed()), (1, false));
    }

    #[test]
    fn a_flood_of_files_has_few_threads_and_the_rest_is_told() {
        let (mut base, events) = alone::base();
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        let mut files = Files::new("/proc/nonexistent".into(), None).expect("descriptors");
        let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
        for id in 0..100 {
            files.on_offer(way, &FileOffer { id, answers: None, size: 1, name: "x".into() });
        }
        assert_eq!((files.at_work, events.try_iter().count()), (MAX_AT_WORK, 100 - MAX_AT_WORK));
        while files.at_work > 0 {
            files.hear(way);
            std::thread::yield_now();
        }
        assert_eq!(events.try_iter().count(), MAX_AT_WORK, "there is no such place");
    }
}
