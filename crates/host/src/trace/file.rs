//! The writing side of a trace.
//!
//! Lines go through a buffer to the file, from whichever thread has one; nothing is dropped until the limit, and then
//! all is, with one notice. Invariant: trouble with the file never reaches the session.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};
use wayferry_proto::{ClockMap, ConnectionId, HostTime, Time, UpdateHeader};
use wayferry_wayland::trace::{Probe, Recorder, Span};

use super::queue::Queue;
use super::sound::Heard;
use super::{ClockRow, Half, MAGIC, MAX_FILE, Row, SOUND, Stage, Subject};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// A trace that is being written; the halves of a session in one process share it.
pub struct TraceFile {
    inner: Mutex<Inner>,
}

struct Inner {
    /// `None` once it is full or failed.
    out: Option<Box<dyn Write + Send>>,
    /// Where it is.
    path: Option<PathBuf>,
    written: u64,
    limit: u64,
    /// What became of it, for the one notice.
    reported: bool,
    reporter: Reporter,
}

impl TraceFile {
    /// Begins a trace of `half`, or of both.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, half: Option<Half>, reporter: Reporter) -> Result<Arc<Self>, Error> {
        // When keys were typed is for no other user to know.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        let this = Self::over(Box::new(BufWriter::with_capacity(BUFFER, file)), half, MAX_FILE, reporter);
        this.lock().path = Some(path.to_owned());
        Ok(Arc::new(this))
    }

    pub(super) fn over(
        out: Box<dyn Write + Send>,
        half: Option<Half>,
        limit: u64,
        reporter: Reporter,
    ) -> Self {
        let inner = Inner { out: Some(out), path: None, written: 0, limit, reported: false, reporter };
        let this = Self { inner: Mutex::new(inner) };
        this.line(&format!("{MAGIC}{}\n", half.map_or("both", Half::name)));
        this.line("# stage,side,thread,connection,surface,update,begin,end,bytes (ns of this host's monotonic clock)\n");
        this.line("# clock,side,when,the peer's clock minus ours,doubt\n");
        this
    }

    pub(super) fn row(&self, row: &Row) {
        let Row { stage, half, thread, subject, seq, start, end, bytes } = row;
        let subject = match subject {
            Subject::Surface { connection, surface } => format!("{connection},{surface}"),
            Subject::Sound => format!("{SOUND},0"),
        };
        self.line(&format!(
            "{},{},{thread},{subject},{seq},{start},{end},{bytes}\n",
            stage.name(),
            half.name()
        ));
    }

    fn clock(&self, row: ClockRow) {
        let ClockRow { half, at, offset, doubt } = row;
        self.line(&format!("clock,{},{at},{offset},{doubt}\n", half.name()));
        // A session that is killed leaves all but its last second.
        let mut inner = self.lock();
        let flushed = inner.out.as_mut().map_or(Ok(()), |out| out.flush());
        inner.check(flushed);
    }

    fn line(&self, line: &str) {
        let mut inner = self.lock();
        if inner.written + line.len() as u64 > inner.limit {
            let flushed = inner.out.take().map_or(Ok(()), |mut out| out.flush());
            let limit = inner.limit >> 20;
            inner.check(flushed);
            return inner.tell(&format!("it has reached {limit} MiB"));
        }
        inner.written += line.len() as u64;
        let written = inner.out.as_mut().map_or(Ok(()), |out| out.write_all(line.as_bytes()));
        inner.check(written);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn check(&mut self, result: std::io::Result<()>) {
        if let Err(error) = result {
            self.out = None;
            self.tell(&error.to_string());
        }
    }

    fn tell(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.reported, true) {
            let place = self.path.as_ref().map(|path| format!("`{}`: ", path.display()));
            let reason = place.unwrap_or_default() + reason;
            self.reporter.report(SessionEvent::TraceEnded { reason });
        }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        let mut inner = self.lock();
        let flushed = inner.out.as_mut().map_or(Ok(()), |out| out.flush());
        inner.check(flushed);
    }
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceFile").field("written", &self.lock().written).finish_non_exhaustive()
    }
}

/// What one side's run loop has of a trace; without a file it does nothing.
#[derive(Debug)]
pub struct SideTrace {
    pub(super) file: Option<Arc<TraceFile>>,
    pub(super) half: Half,
    queue: Queue,
    next_clock: Time,
    pub(super) heard: Heard,
}

impl SideTrace {
    /// For one side; `None` traces nothing.
    pub fn new(half: Half, file: Option<Arc<TraceFile>>) -> Self {
        Self { file, half, queue: Queue::default(), next_clock: Time::ZERO, heard: Heard::default() }
    }

    /// Whose it is.
    pub fn half(&self) -> Half {
        self.half
    }

    /// Where the Wayland half of this connection puts its spans.
    pub fn probe(&self, connection: ConnectionId) -> Probe {
        let Some(file) = &self.file else { return Probe::default() };
        Probe::new(Arc::new(Spans { file: Arc::clone(file), half: self.half, connection }))
    }

    /// An update of so many bytes was handed to the session.
    pub fn handed(&mut self, header: &UpdateHeader, bytes: u64) {
        if self.file.is_some() {
            let pushed_out = self.queue.push(self.row(Stage::Queue, header, bytes));
            self.left(pushed_out);
        }
    }

    /// All of an update has arrived.
    pub fn arrived(&self, header: &UpdateHeader, bytes: u64) {
        if let Some(file) = &self.file {
            file.row(&self.row(Stage::Arrive, header, bytes));
        }
    }

    /// Looks at what has left, `unsent` of the carrier tells, and at the clocks once a second.
    pub fn turn(&mut self, now: Time, unsent: impl FnOnce() -> u64, clock: &ClockMap) {
        if self.file.is_none() {
            return;
        }
        if !self.queue.is_empty() {
            let sent = self.queue.sent(unsent());
            self.left(sent);
        }
        if let (Some(file), Some(doubt), true) = (&self.file, clock.uncertainty(), now >= self.next_clock) {
            self.next_clock = now + CLOCK_PERIOD;
            let doubt = u64::try_from(doubt.as_nanos()).unwrap_or(u64::MAX);
            let offset = clock.offset_nanos();
            file.clock(ClockRow { half: self.half, at: host_now(), offset, doubt });
        }
    }

    /// When it wants its next turn: nothing wakes the loop when a byte leaves.
    pub fn next_timeout(&self, now: Time) -> Option<Time> {
        (!self.queue.is_empty()).then(|| now + QUEUE_PERIOD)
    }

    /// These updates have begun to leave.
    fn left(&self, rows: impl IntoIterator<Item = Row>) {
        if let Some(file) = &self.file {
            let end = host_now();
            rows.into_iter().for_each(|row| file.row(&Row { end, ..row }));
        }
    }

    /// An update, at this moment.
    fn row(&self, stage: Stage, header: &UpdateHeader, bytes: u64) -> Row {
        let subject = Subject::Surface { connection: header.connection.0, surface: header.surface.0 };
        let now = host_now();
        Row { stage, half: self.half, thread: 0, subject, seq: header.seq.0, start: now, end: now, bytes }
    }
}

/// Spans of one connection.
#[derive(Debug)]
struct Spans {
    file: Arc<TraceFile>,
    half: Half,
    connection: ConnectionId,
}

impl Recorder for Spans {
    fn now(&self) -> HostTime {
        HostTime(host_now())
    }

    fn record(&self, span: Span) {
        use wayferry_wayland::trace::Stage as Theirs;
        let stage = match span.stage {
            Theirs::Capture => Stage::Capture,
            Theirs::Encode => Stage::Encode,
            Theirs::Decode => Stage::Decode,
            Theirs::Commit => Stage::Commit,
        };
        self.file.row(&Row {
            stage,
            half: self.half,
            thread: u32::try_from(span.thread).unwrap_or(u32::MAX),
            subject: Subject::Surface { connection: self.connection.0, surface: span.surface.0 },
            seq: span.seq,
            start: span.start.0,
            end: host_now(),
            bytes: span.bytes,
        });
    }
}

/// The host's monotonic clock, nanoseconds.
pub(super) fn host_now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Bytes that wait for the file.
const BUFFER: usize = 64 << 10;
/// How often the offset of the clocks is written.
const CLOCK_PERIOD: std::time::Duration = std::time::Duration::from_secs(1);
/// How often the carrier is asked what has left, while something waits: the resolution of the queue's bars.
const QUEUE_PERIOD: std::time::Duration = std::time::Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use wayferry_proto::{SurfaceId, UpdateSeq};

    use super::super::read::read;
    use super::*;

    /// A writer that others can look into.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("lock").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn row(seq: u64) -> Row {
        Row {
            stage: Stage::Encode,
            half: Half::App,
            thread: 3,
            subject: Subject::Surface { connection: 1, surface: 24 },
            seq,
            start: 1_000 * seq,
            end: 1_000 * seq + 7,
            bytes: u64::MAX,
        }
    }

    fn silent() -> Reporter {
        Reporter::new(|_| {})
    }

    #[test]
    fn what_is_written_is_read() {
        let out = Shared::default();
        let file = TraceFile::over(Box::new(out.clone()), Some(Half::App), MAX_FILE, silent());
        let sound = Row { subject: Subject::Sound, stage: Stage::Hear, ..row(100) };
        let rows: Vec<Row> = (1..100).map(row).chain([sound]).collect();
        rows.iter().for_each(|row| file.row(row));
        let clock = ClockRow { half: Half::App, at: 5, offset: i64::MIN, doubt: 7 };
        file.clock(clock);
        drop(file);
        let trace = read(&out.0.lock().expect("lock")[..]).expect("our own");
        assert_eq!((trace.rows, trace.clocks), (rows, vec![clock]));
    }

    #[test]
    fn a_trace_stops_at_its_limit_with_whole_lines() {
        let out = Shared::default();
        let limit = 1000;
        let file = TraceFile::over(Box::new(out.clone()), None, limit, silent());
        (1..1000).for_each(|seq| file.row(&row(seq)));
        let bytes = out.0.lock().expect("lock").clone();
        assert!(bytes.len() as u64 <= limit && bytes.len() as u64 > limit - 100, "{}", bytes.len());
        let trace = read(&bytes[..]).expect("our own");
        assert_eq!(trace.rows, (1..=trace.rows.len() as u64).map(row).collect::<Vec<_>>());
        assert!(file.lock().reported);
    }

    #[test]
    fn a_file_that_fails_ends_the_trace_and_nothing_else() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let file = TraceFile::over(Box::new(Broken), None, MAX_FILE, silent());
        file.row(&row(1));
        assert!(file.lock().out.is_none() && file.lock().reported);
    }

    #[test]
    fn without_a_file_nothing_is_asked() {
        let mut trace = SideTrace::new(Half::App, None);
        let (connection, surface, seq) = (ConnectionId(1), SurfaceId(2), UpdateSeq(3));
        let header = UpdateHeader {
            connection,
            surface,
            seq,
            size: (1, 1),
            format: 0,
            fresh: true,
            covers: 0,
            unit: None,
        };
        trace.handed(&header, 4);
        trace.arrived(&header, 4);
        trace.turn(Time::ZERO, || panic!("asked"), &ClockMap::default());
        assert_eq!(trace.next_timeout(Time::ZERO), None);
    }
}
