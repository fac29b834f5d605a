//! The server on a real socket, with a program made by hand.

use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayferry_audio::FrameSize;

use super::*;

struct Listening(UnixListener);

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Door for Listening {
    fn accept(&self) -> io::Result<Option<OwnedFd>> {
        match self.0.accept() {
            Ok((stream, _)) => Ok(Some(stream.into())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn server(name: &str) -> (Capture, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("wayferry-capture-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let start = std::time::Instant::now();
    let capture = Capture::start(Listening(listener), move || Time::new(start.elapsed())).unwrap();
    (capture, path)
}

#[test]
fn what_talks_garbage_is_closed_and_the_thread_ends_with_its_handle() {
    let (capture, path) = server("garbage");
    for _ in 0..50 {
        let mut stream = UnixStream::connect(&path).unwrap();
        io::Write::write_all(&mut stream, &[0xff; 64]).unwrap();
        // Its end comes, which is all that is waited for.
        let _ = io::Read::read_to_end(&mut stream, &mut Vec::new());
    }
    capture.want(Some(Wanted { codec: Codec::Pcm, rate: 0, frame: FrameSize::Ms10 }));
    assert_eq!(capture.poll_captured(), None);
    drop(capture);
    assert!(UnixStream::connect(&path).is_err(), "the door is gone with the thread");
    std::fs::remove_file(path).unwrap();
}

/// The run loop asks whether a program records, then takes what was captured: it is to hear of what changes in between.
#[test]
fn regression_a_program_that_records_is_slept_over() {
    let outbox = Outbox::new().unwrap();
    let shared = Arc::new(Shared { outbox, latency: Mutex::default(), spoken: Spoken::default() });
    let capture = Capture { shared: Arc::clone(&shared), thread: None };
    let is_readable = || {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&capture, PollFlags::IN)], Some(&at_once)).unwrap() > 0
    };
    assert!(!capture.poll_recorded().0);
    assert!(shared.spoken.tell(true, Figures::default()));
    shared.outbox.wake();
    assert_eq!(capture.poll_captured(), None);
    assert!(is_readable(), "it sleeps");
    assert!(capture.poll_recorded().0);
    assert_eq!(capture.poll_captured(), None);
    assert!(!is_readable(), "it spins");
}
