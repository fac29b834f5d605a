//! The byte-stream carrier over real fds: what the run loop sees of messages, trouble and the end.

mod common;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use common::*;
use wayferry_net::byte_stream::wait_for_ends;
use wayferry_net::{ByteStream, Carrier};
use wayferry_proto::{Arrival, Class, CloseReason, StreamId, Transmit};

fn pair() -> (Box<dyn Carrier>, Box<dyn Carrier>) {
    let (one, two) = UnixStream::pair().unwrap();
    (ByteStream::spawn_on_socket(one.into()).unwrap(), ByteStream::spawn_on_socket(two.into()).unwrap())
}

/// A carrier and the bare other end, which has read the preamble: what is unread when a socket is closed becomes an
/// error on the other side.
fn with_raw_peer() -> (Box<dyn Carrier>, UnixStream) {
    let (one, mut two) = UnixStream::pair().unwrap();
    let carrier = ByteStream::spawn_on_socket(one.into()).unwrap();
    let mut preamble = [0; 8];
    two.read_exact(&mut preamble).unwrap();
    assert_eq!(&preamble, b"WFMUX1\r\n");
    (carrier, two)
}

#[test]
fn messages_cross_in_both_directions_at_once() {
    let (mut app, mut display) = pair();
    let big: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7) as u8).collect();
    send_all(&mut *app, 0, Class::Content, big.clone());
    send_all(&mut *display, 0, Class::Pipe, big.clone());
    send_all(&mut *display, 1, Class::Events, &b"key"[..]);
    let mut seen = (Streams::default(), Streams::default());
    while seen.0.whole.len() < 2 || seen.1.whole.is_empty() {
        for (carrier, streams) in [(&mut app, &mut seen.0), (&mut display, &mut seen.1)] {
            while let Some(arrival) = carrier.poll_arrival() {
                streams.take(arrival);
            }
        }
        if seen.0.whole.len() < 2 {
            common_wait(&*app, &*display);
        }
    }
    assert!(seen.0.whole.values().any(|bytes| bytes == b"key"));
    assert!(seen.0.whole.values().any(|bytes| *bytes == big));
    assert_eq!(seen.1.whole[&0], big);
    assert_eq!((app.link().unsent, display.link().unsent), (0, 0));
    assert!(app.link().rtt > std::time::Duration::ZERO && app.link().rate.is_some());
}

/// Either carrier has news.
fn common_wait(one: &dyn Carrier, two: &dyn Carrier) {
    use rustix::event::{PollFd, PollFlags, poll};
    let (first, second) = (one.wake_fd(), two.wake_fd());
    let mut fds = [PollFd::new(&first, PollFlags::IN), PollFd::new(&second, PollFlags::IN)];
    poll(&mut fds, None).unwrap();
    one.clear_wake();
    two.clear_wake();
}

#[test]
fn one_that_is_spawned_unread_writes_and_leaves_what_comes_to_its_caller_until_it_is_told() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut lines = ours.try_clone().unwrap();
    let mut carrier = ByteStream::spawn_unread(ours.into()).unwrap();
    send_all(&mut *carrier, 0, Class::Control, &b"first"[..]);
    (&theirs).write_all(b"a line\n").unwrap();
    let mut peer = ByteStream::spawn_on_socket(theirs.into()).unwrap();
    send_all(&mut *peer, 0, Class::Control, &b"answer"[..]);
    // It has come whole before a byte of the line was read.
    assert_eq!(Streams::receive(&mut *peer, 1).whole[&0], b"first");
    let mut line = [0; 7];
    // The socket does not wait while it carries.
    while lines.read_exact(&mut line[..1]).is_err() {}
    lines.read_exact(&mut line[1..]).unwrap();
    assert_eq!(&line, b"a line\n");
    assert!(carrier.poll_arrival().is_none());
    carrier.hold(0);
    assert_eq!(Streams::receive(&mut *carrier, 1).whole[&0], b"answer");
}

#[test]
fn content_waits_for_the_reader_and_a_key_does_not() {
    let (mut app, mut display) = pair();
    send_all(&mut *app, 0, Class::Content, vec![1; 4 << 20]);
    // No caller takes arrivals on the display side yet: one window leaves, the rest stays.
    let first = next(&mut *display);
    assert!(matches!(first, Arrival::Data { stream: StreamId(0), offset: 0, .. }));
    assert!(app.link().unsent >= 3 << 20);
    send_all(&mut *app, 1, Class::Wayland, &b"now"[..]);
    let mut before = 0;
    loop {
        match next(&mut *display) {
            Arrival::Data { stream: StreamId(1), bytes, .. } => {
                assert_eq!(&bytes[..], b"now");
                break;
            }
            Arrival::Data { bytes, .. } => before += bytes.len(),
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(before < 4 << 20, "the key came after all content");
}

#[test]
fn an_empty_queue_wakes_the_writer() {
    let (mut app, mut display) = pair();
    send_all(&mut *app, 0, Class::Content, vec![1; 1 << 20]);
    let reader = std::thread::spawn(move || {
        Streams::receive(&mut *display, 1);
        display
    });
    wait_sent(&*app);
    drop(reader.join().unwrap());
}

#[test]
fn stop_reaches_the_sender_and_ends_the_stream() {
    let (mut app, mut display) = pair();
    open(&mut *app, 3, Class::Pipe);
    send(&mut *app, 3, vec![0; 1 << 20], false);
    assert!(matches!(next(&mut *display), Arrival::Data { .. }));
    display.transmit(Transmit::Stop { stream: StreamId(0), code: 11 });
    assert_eq!(next(&mut *app), Arrival::Stopped { stream: StreamId(3), code: 11 });
    wait_sent(&*app);
    send_all(&mut *app, 4, Class::Pipe, &b"next"[..]);
    loop {
        match next(&mut *display) {
            Arrival::Data { stream: StreamId(1), bytes, .. } => break assert_eq!(&bytes[..], b"next"),
            Arrival::Data { stream: StreamId(0), .. } => {}
            other => panic!("unexpected {other:?}"),
        }
    }
}

#[test]
fn close_tells_both_sides_the_reason_after_the_messages() {
    let (mut app, mut display) = pair();
    open(&mut *app, 0, Class::Control);
    send(&mut *app, 0, &b"exit 3"[..], false);
    let reason = CloseReason::TooMuch("surfaces".into());
    close(&mut *app, &reason);
    assert!(matches!(next(&mut *display), Arrival::Data { bytes, .. } if &bytes[..] == b"exit 3"));
    assert_eq!(closed(&mut *display), reason);
    assert_eq!(closed(&mut *app), reason);
    assert_eq!(app.poll_arrival(), None);
}

#[test]
fn a_closed_carrier_may_be_dropped_at_once() {
    let (mut app, mut display) = pair();
    send_all(&mut *app, 0, Class::Wayland, vec![7; 1_000_000]);
    close(&mut *app, &CloseReason::Done);
    let reader = std::thread::spawn(move || {
        let whole = Streams::receive(&mut *display, 1).whole;
        (whole[&0].len(), closed(&mut *display))
    });
    drop(app);
    assert_eq!(reader.join().unwrap(), (1_000_000, CloseReason::Done));
}

#[test]
fn dropping_a_carrier_does_not_wait_for_a_peer_that_does_not_answer_its_close() {
    let (mut carrier, mut raw) = with_raw_peer();
    close(&mut *carrier, &CloseReason::Done);
    drop(carrier);
    // Had the drop waited, the carrier's descriptor would be closed.
    raw.write_all(b"x").expect("it waited for the peer");
    wait_for_ends();
    assert!(raw.write_all(b"x").is_err());
}

#[test]
fn the_other_end_sees_the_end_when_a_carrier_is_dropped() {
    let (carrier, mut raw) = with_raw_peer();
    drop(carrier);
    let mut rest = Vec::new();
    raw.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn the_end_of_the_stream_is_told_once() {
    let (mut carrier, raw) = with_raw_peer();
    drop(raw);
    assert_eq!(closed(&mut *carrier), CloseReason::LinkLost("the byte stream ended".into()));
    send_all(&mut *carrier, 0, Class::Control, &b"too late"[..]);
    assert_eq!(carrier.poll_arrival(), None);
}

#[test]
fn an_end_in_the_middle_of_a_frame_is_told_as_such() {
    let (mut carrier, mut raw) = with_raw_peer();
    raw.write_all(b"WFMUX1\r\n\x00\x00\x0aabc").unwrap();
    drop(raw);
    let CloseReason::LinkLost(text) = closed(&mut *carrier) else { panic!("another reason") };
    assert!(text.contains("in the middle of a frame"), "{text}");
}

#[test]
fn a_peer_that_is_not_wayferry_is_refused_with_its_words() {
    let (mut carrier, mut raw) = with_raw_peer();
    raw.write_all(b"bash: wayferry: command not found\n").unwrap();
    raw.shutdown(std::net::Shutdown::Write).unwrap();
    let CloseReason::ProtocolViolation(text) = closed(&mut *carrier) else { panic!("another reason") };
    assert!(text.contains("found `bash: wa`"), "{text}");
    let mut answer = Vec::new();
    raw.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"\x05\x03"), "the peer is told: {answer:?}");
}

#[test]
fn garbage_after_the_preamble_is_refused() {
    let (mut carrier, mut raw) = with_raw_peer();
    raw.write_all(b"WFMUX1\r\n\xff\xff\xff").unwrap();
    raw.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(closed(&mut *carrier), CloseReason::ProtocolViolation("unknown frame kind 0xff".into()));
}

#[test]
fn two_pipes_work_like_a_socket() {
    let pipe = || -> (OwnedFd, OwnedFd) {
        let (read, write) = std::io::pipe().unwrap();
        (read.into(), write.into())
    };
    let ((read_app, write_display), (read_display, write_app)) = (pipe(), pipe());
    let mut app = ByteStream::spawn(read_app, write_app).unwrap();
    let mut display = ByteStream::spawn(read_display, write_display).unwrap();
    send_all(&mut *app, 0, Class::Pipe, vec![9; 500_000]);
    assert_eq!(Streams::receive(&mut *display, 1).whole[&0].len(), 500_000);
    close(&mut *display, &CloseReason::Done);
    assert_eq!(closed(&mut *app), CloseReason::Done);
    drop(app);
    assert_eq!(closed(&mut *display), CloseReason::Done);
}

#[test]
fn inherited_fds_get_their_flags_back() {
    let (one, two) = UnixStream::pair().unwrap();
    let shared = one.try_clone().unwrap();
    let carrier = ByteStream::spawn_on_socket(one.into()).unwrap();
    drop((carrier, two));
    wait_for_ends();
    let flags = rustix::fs::fcntl_getfl(&shared).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
}

#[test]
fn a_reader_that_never_takes_anything_stops_the_sender() {
    let (mut app, mut display) = pair();
    // Not content: nothing holds it but the reader's full inbox and the kernel.
    for stream in 0..40 {
        send_all(&mut *app, stream, Class::Wayland, vec![0; 1 << 20]);
    }
    assert_eq!(Streams::receive(&mut *display, 40).whole.len(), 40);
}

#[test]
fn a_link_that_is_held_is_not_read_and_goes_on_when_it_is_not_held() {
    let (mut app, mut display) = pair();
    display.hold(u64::MAX);
    // Each answer shows that both threads have gone round at least once since the last one.
    for round in 0..4 {
        send_all(&mut *display, round, Class::Events, &b"round"[..]);
        assert_eq!(Streams::receive(&mut *app, 1).whole[&round], b"round");
        if round == 0 {
            send_all(&mut *app, 0, Class::Wayland, vec![7; 3_000_000]);
        }
    }
    assert!(display.poll_arrival().is_none());
    display.hold(0);
    assert_eq!(Streams::receive(&mut *display, 1).whole[&0].len(), 3_000_000);
}

#[test]
fn regression_stops_were_kept_without_end_for_a_peer_that_reads_nothing() {
    let (mut carrier, mut raw) = with_raw_peer();
    raw.write_all(b"WFMUX1\r\n").unwrap();
    let mut said = 0;
    // Each stream is stopped before its reset comes.
    while open_and_stop(&mut *carrier, &mut raw, said) {
        raw.write_all(&frames(said, &[2], &[0]).concat()).unwrap();
        said += ROUND;
        assert!(said < 1_000_000, "it is read on");
    }
    // Once it reads, all that it says is heard.
    let (mut writer, resets) = (raw.try_clone().unwrap(), frames(said, &[2], &[0]).concat());
    let writing = std::thread::spawn(move || writer.write_all(&resets));
    raw.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let (mut heard, mut piece) = (0, vec![0; 1 << 16]);
    while heard < 1 << 20 {
        heard += raw.read(&mut piece).expect("the stops that were kept");
    }
    writing.join().unwrap().unwrap();
    let last = StreamId(u64::from(said + ROUND - 1));
    let is_last = |arrival: &Arrival| matches!(arrival, Arrival::Reset { stream, .. } | Arrival::Data { stream, .. } if *stream == last);
    while !is_last(&next(&mut *carrier)) {}
}

/// Streams that are open at once.
const ROUND: u32 = 1000;

/// Frames of this kind for the next streams; the last one of them by itself.
fn frames(first: u32, kind: &[u8], rest: &[u8]) -> [Vec<u8>; 2] {
    // Varints of four bytes (RFC 9000 §16).
    let number = |stream: u32| (stream | 0x8000_0000).to_be_bytes();
    let frames = |streams: std::ops::Range<u32>| -> Vec<u8> {
        streams.flat_map(|stream| [kind, &number(stream), rest].concat()).collect()
    };
    let last = first + ROUND - 1;
    [frames(first..last), frames(last..first + ROUND)]
}

/// Opens streams, and stops all when they have come; `false` where they do not within two seconds.
///
/// The last one comes when the others were stopped: the thread that has read it takes the stops before it reads again.
fn open_and_stop(carrier: &mut dyn Carrier, raw: &mut UnixStream, first: u32) -> bool {
    let [others, last] = frames(first, &[0], &[1, b'x']);
    raw.write_all(&others).unwrap();
    if !stop(carrier, ROUND - 1) {
        return false;
    }
    raw.write_all(&last).unwrap();
    stop(carrier, 1)
}

/// Stops so many streams, each when it has come.
fn stop(carrier: &mut dyn Carrier, count: u32) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut stopped = 0;
    while stopped < count {
        match carrier.poll_arrival() {
            Some(Arrival::Data { stream, .. }) => {
                carrier.transmit(Transmit::Stop { stream, code: 1 });
                stopped += 1;
            }
            Some(_) => {}
            None => {
                let wake = carrier.wake_fd();
                let mut fds = [PollFd::new(&wake, PollFlags::IN)];
                let moment = Timespec { tv_sec: 2, tv_nsec: 0 };
                if poll(&mut fds, Some(&moment)).unwrap() == 0 {
                    return false;
                }
                carrier.clear_wake();
            }
        }
    }
    true
}
