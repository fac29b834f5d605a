//! Files that the user has dropped on a program's window, on their way to the other side.
//!
//! Which those are, and what the program is told, is for `crate::drops`. Invariant: what is given to
//! [`Files::send_dropped`] comes out of [`Files::take_sent`] once.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wayferry_proto::{Capabilities, Control, FILES, FileFate, FileOffer, Session, Time};

use super::{Caller, Files, MAX_CALLERS, Told, Way, disk, name, open, words};
use crate::event::{Reporter, SessionEvent};

/// A file that was dropped.
#[derive(Debug, Clone)]
pub(super) struct Dropped {
    ticket: u64,
    name: String,
    size: u64,
    /// How many bytes have been passed on, and how many the user was told of last.
    passed: Arc<AtomicU64>,
    told: u64,
}

impl Dropped {
    fn new(ticket: u64, name: String) -> Self {
        Self { ticket, name, size: 0, passed: Arc::default(), told: 0 }
    }

    fn sent(self, result: Result<Vec<u8>, String>) -> Sent {
        Sent { ticket: self.ticket, name: self.name, size: self.size, result }
    }
}

/// What became of a file that was dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// As it was given to [`Files::send_dropped`].
    pub(crate) ticket: u64,
    pub(crate) name: String,
    pub(crate) size: u64,
    /// Where it is there, or why it is not.
    pub(crate) result: Result<Vec<u8>, String>,
}

impl Files {
    /// Why a file that is dropped cannot be sent at all, if so.
    pub(crate) fn obstacle_to_drops(session: &Session) -> Option<&'static str> {
        let capabilities = session.capabilities();
        if !capabilities.has(Capabilities::FILES) {
            return Some("the machine of the programs takes no files (`--files on` there lets them cross)");
        }
        let says_where = capabilities.has(Capabilities::FILE_PLACES);
        (!says_where).then_some("the wayferry there is too old: use `wayferry send`")
    }

    /// How many more files may be dropped now.
    pub(crate) fn room_for_drops(&self) -> usize {
        MAX_CALLERS.saturating_sub(self.callers.len().max(self.at_work))
    }

    /// The user has dropped a file. What becomes of it is in [`Self::take_sent`], under this `ticket`.
    pub(crate) fn send_dropped(&mut self, ticket: u64, path: PathBuf) {
        let name = name::usable(&path.file_name().unwrap_or_default().to_string_lossy());
        let dropped = Dropped::new(ticket, name);
        let file = dropped.clone();
        let begun = self.workers.start(self.age, move |tell| match open(&path) {
            Ok((size, bytes, read, write)) => {
                let passed = Arc::clone(&file.passed);
                tell(Told::Opened { file: Dropped { size, ..file }, bytes: Ok(read) });
                disk::give(bytes, size, write, &passed);
                tell(Told::Given);
            }
            Err((_, why)) => {
                tell(Told::Opened { file, bytes: Err(why) });
                tell(Told::Given);
            }
        });
        match begun {
            Ok(()) => self.at_work += 1,
            Err(error) => self.sent.push(dropped.sent(Err(error.to_string()))),
        }
    }

    /// What was dropped goes to the other side.
    pub(super) fn pass_dropped(&mut self, way: &mut Way<'_>, file: Dropped, bytes: Result<OwnedFd, String>) {
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(why) => return self.sent.push(file.sent(Err(why))),
        };
        self.count += 1;
        let offer = FileOffer { id: self.count, answers: None, size: file.size, name: file.name.clone() };
        match way.session.control(&Control::File(offer)) {
            Ok(()) => {
                let (name, size) = (file.name.clone(), file.size);
                way.reporter.report(SessionEvent::FileDropping { name, bytes: size });
                way.pipes.send_from(way.session, (FILES, self.count), bytes);
                self.callers.insert(self.count, Caller::Drops(file));
            }
            Err(error) => self.sent.push(file.sent(Err(error.to_string()))),
        }
    }

    /// When the user is to be told how far the files are that are on their way.
    pub(super) fn progress_due(&mut self, now: Time) -> Option<Time> {
        let is_under_way = self.callers.values().any(|caller| matches!(caller, Caller::Drops(_)));
        self.progress = is_under_way.then(|| self.progress.unwrap_or(now + PROGRESS));
        self.progress
    }

    /// Tells how far the first of them is, unless it has come no further.
    pub(super) fn tell_progress(&mut self, now: Time, reporter: &Reporter) {
        if self.progress.is_none_or(|due| now < due) {
            return;
        }
        self.progress = None;
        let mut files = self.callers.values_mut().filter_map(|caller| match caller {
            Caller::Drops(file) => Some(file),
            Caller::Sends(_) | Caller::Fetches(_) => None,
        });
        let Some(file) = files.next() else { return };
        let (done, others) = (file.passed.load(Ordering::Relaxed), files.count() as u64);
        if done > std::mem::replace(&mut file.told, done) {
            let (name, bytes) = (file.name.clone(), file.size);
            reporter.report(SessionEvent::FileProgress { name, done, bytes, others });
        }
    }

    /// The other side has told what became of it.
    pub(super) fn on_dropped_done(&mut self, id: u64, fate: FileFate, place: Option<Vec<u8>>) {
        let Some(Caller::Drops(file)) = self.callers.remove(&id) else { return };
        let result = match (fate, place) {
            (FileFate::Kept, Some(place)) if place.starts_with(b"/") => Ok(place),
            (FileFate::Kept, _) => Err("the other side does not say where it is".to_owned()),
            (fate, _) => Err(words(fate).to_owned()),
        };
        self.sent.push(file.sent(result));
    }

    /// The session has begun anew, and knows nothing of it.
    pub(super) fn give_up(&mut self, file: Dropped) {
        self.sent.push(file.sent(Err("the session has begun anew".to_owned())));
    }

    /// What has become of files that were dropped.
    pub(crate) fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }
}

/// How often it is told how far a file is.
const PROGRESS: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::part::alone;
    use crate::edge::pipes::Pipes;

    /// A file that was dropped and whose bytes are on their way.
    fn under_way(files: &mut Files, ticket: u64) -> u64 {
        files.count += 1;
        let file = Dropped { size: 1000, ..Dropped::new(ticket, "a".into()) };
        files.callers.insert(files.count, Caller::Drops(file));
        files.count
    }

    #[test]
    fn a_host_that_lies_about_a_dropped_file_changes_nothing_else() {
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        let id = under_way(&mut files, 7);
        files.on_done(id + 1, FileFate::Kept, Some(b"/other".to_vec()));
        assert!(files.take_sent().is_empty(), "it was not sent");
        files.on_done(id, FileFate::Kept, Some(b"../relative".to_vec()));
        files.on_done(id, FileFate::Kept, Some(b"/twice".to_vec()));
        let sent = files.take_sent();
        assert!(matches!(&sent[..], [Sent { ticket: 7, result: Err(_), .. }]), "{sent:?}");
        for (fate, place, good) in [
            (FileFate::Kept, None, false),
            (FileFate::NoSpace, Some(b"/a".to_vec()), false),
            (FileFate::Kept, Some(b"/a".to_vec()), true),
        ] {
            let id = under_way(&mut files, 8);
            files.on_done(id, fate, place);
            assert_eq!(files.take_sent().pop().map(|sent| sent.result.is_ok()), Some(good));
        }
    }

    #[test]
    fn what_was_dropped_and_cannot_be_read_is_told_of_once() {
        let (mut base, events) = alone::base();
        let (mut pipes, reporter) = (Pipes::default(), base.reporter.clone());
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        for (ticket, path) in [(1, "/nonexistent/a"), (2, "/"), (3, "/proc/self/status")] {
            files.send_dropped(ticket, path.into());
        }
        assert_eq!(files.room_for_drops(), MAX_CALLERS - 3);
        let way = &mut Way { session: &mut base.link.session, pipes: &mut pipes, reporter: &reporter };
        while files.at_work > 0 {
            files.hear(way);
            std::thread::yield_now();
        }
        let mut tickets: Vec<u64> = files.take_sent().iter().map(|sent| sent.ticket).collect();
        tickets.sort_unstable();
        assert_eq!((tickets, events.try_iter().count()), (vec![1, 2, 3], 0));
    }

    #[test]
    fn what_is_on_its_way_when_the_session_begins_anew_is_told_of() {
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        under_way(&mut files, 7);
        files.forget();
        assert!(matches!(&files.take_sent()[..], [Sent { ticket: 7, result: Err(_), .. }]));
        assert_eq!(files.room_for_drops(), MAX_CALLERS);
    }

    #[test]
    fn how_far_a_file_is_is_told_four_times_a_second_and_not_while_nothing_of_it_goes() {
        let (mut base, events) = alone::base();
        let mut files = Files::new("/nonexistent".into(), None).expect("descriptors");
        let mut turn = |files: &mut Files, milliseconds| {
            alone::turn(files, Time::ZERO + Duration::from_millis(milliseconds), &mut base);
            let told = events.try_iter().map(|event| match event {
                SessionEvent::FileProgress { name, done, bytes: 1000, others } => (name, done, others),
                event => panic!("{event:?}"),
            });
            told.collect::<Vec<_>>()
        };
        assert_eq!((files.progress_due(Time::ZERO), turn(&mut files, 0)), (None, vec![]));
        let id = under_way(&mut files, 7);
        under_way(&mut files, 8);
        let Some(Caller::Drops(file)) = files.callers.get(&id) else { unreachable!("it is there") };
        let passed = Arc::clone(&file.passed);
        passed.store(100, Ordering::Relaxed);
        assert_eq!(files.progress_due(Time::ZERO), Some(Time::ZERO + PROGRESS));
        assert_eq!(turn(&mut files, 249), vec![]);
        assert_eq!(turn(&mut files, 250), [("a".to_owned(), 100, 1)]);
        assert_eq!(turn(&mut files, 600), vec![], "it is as far as before");
        passed.store(200, Ordering::Relaxed);
        files.on_done(id + 1, FileFate::Kept, Some(b"/a".to_vec()));
        assert_eq!(turn(&mut files, 1000), [("a".to_owned(), 200, 0)]);
        files.on_done(id, FileFate::Kept, Some(b"/a".to_vec()));
        assert_eq!((turn(&mut files, 2000), files.progress_due(Time::ZERO)), (vec![], None));
    }
}
