//! The bytes between a page's WebSocket and its session, both ways, on one thread.
//!
//! What they mean is not known here, and where messages begin and end means nothing. Who does not read is not read
//! from: what waits for the session is at most two messages, and what waits for the browser at most one piece. A
//! browser that says nothing, not even that it heard a ping, is given up. Invariant: when one end is over, what it has
//! said before goes on to the other, and then that is over, too.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SendFlags;
use tungstenite::protocol::WebSocket;
use tungstenite::{Error, Message};

use super::socket::{MESSAGE_MAX, Road};
use super::wire::Wire;

/// See the module.
pub(super) struct Relay<S> {
    socket: WebSocket<S>,
    road: UnixStream,
    /// What the browser has said and the session has not taken.
    waiting: Vec<u8>,
    /// What was said to the browser has not left, and has to by then.
    blocked: Option<Instant>,
    /// The browser may have said more although nothing comes: it waits inside of TLS, or was not heard to its end.
    more: bool,
    next_ping: Instant,
}

/// Which end is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Browser,
    Session,
}

/// What there is to do.
struct Ready {
    browser: bool,
    session: bool,
}

impl<S: Wire> Relay<S> {
    /// Between these.
    pub(super) fn new(mut socket: WebSocket<S>, road: &Road) -> io::Result<Self> {
        let road = UnixStream::from(road.socket.try_clone()?);
        road.set_nonblocking(true)?;
        let timed = socket.get_mut().timed_mut();
        timed.stream.set_nonblocking(true)?;
        timed.until = Instant::now() + SILENCE;
        let next_ping = Instant::now() + PING_EVERY;
        Ok(Self { socket, road, waiting: Vec::new(), blocked: None, more: true, next_ping })
    }

    /// Until one end is over.
    pub(super) fn run(mut self) -> io::Result<()> {
        let over = loop {
            if let Some(over) = self.turn()? {
                break over;
            }
        };
        match over {
            Over::Browser => self.tell_session(),
            Over::Session => self.tell_browser(),
        }
    }

    fn turn(&mut self) -> io::Result<Option<Over>> {
        let ready = self.wait()?;
        Ok(self.move_on(&ready).err())
    }

    fn move_on(&mut self, ready: &Ready) -> Result<(), Over> {
        if ready.browser || self.more {
            self.hear_browser()?;
        }
        self.pass_on()?;
        if self.blocked.is_some() {
            self.say(None)?;
        }
        if ready.session && self.blocked.is_none() {
            self.hear_session()?.map_or(Ok(()), |bytes| self.say(Some(Message::Binary(bytes))))?;
        }
        if Instant::now() >= self.next_ping && self.blocked.is_none() {
            self.next_ping = Instant::now() + PING_EVERY;
            self.say(Some(Message::Ping(Bytes::new())))?;
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < MESSAGE_MAX
    }

    /// Waits until there is something to do.
    fn wait(&self) -> io::Result<Ready> {
        let timed = self.socket.get_ref().timed();
        // A message of which nothing leaves is looked after at its time as a ping is.
        let next = self.blocked.unwrap_or(self.next_ping);
        let mut patience = timed.left()?.min(next.saturating_duration_since(Instant::now()));
        if self.more && self.has_room() {
            patience = Duration::ZERO;
        }
        let flag = |wanted: bool, flag: PollFlags| if wanted { flag } else { PollFlags::empty() };
        let browser = flag(self.has_room(), PollFlags::IN) | flag(self.blocked.is_some(), PollFlags::OUT);
        let session =
            flag(self.blocked.is_none(), PollFlags::IN) | flag(!self.waiting.is_empty(), PollFlags::OUT);
        let wanted = [(timed.stream.as_fd(), browser), (self.road.as_fd(), session)];
        // One of which nothing is wanted would be told to be over without end.
        let asked = wanted.iter().enumerate().filter(|(_, (_, flags))| !flags.is_empty());
        let (at, mut fds): (Vec<_>, Vec<_>) =
            asked.map(|(at, (fd, flags))| (at, PollFd::from_borrowed_fd(*fd, *flags))).unzip();
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready =
            |which| at.iter().zip(&fds).any(|(at, fd): (&usize, _)| *at == which && !fd.revents().is_empty());
        Ok(Ready { browser: is_ready(0), session: is_ready(1) })
    }

    /// Takes what the browser says while there is room, but no more than some messages, and some bytes: of empty ones,
    /// and of pieces of one, there may be no end, and the session is to be heard, too.
    fn hear_browser(&mut self) -> Result<(), Over> {
        self.socket.get_mut().timed_mut().budget = BYTES_IN_A_TURN;
        for _ in 0..MESSAGES_IN_A_TURN {
            if !self.has_room() {
                break;
            }
            let heard = match self.socket.read() {
                Ok(Message::Binary(bytes)) => bytes,
                Ok(Message::Pong(_)) => Bytes::new(),
                // It says nothing of whether its page is there: no browser has any of its own.
                Ok(Message::Ping(_)) => continue,
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.more = self.socket.get_ref().timed().budget == 0;
                    return Ok(());
                }
                // Nothing else is said here.
                _ => return Err(Over::Browser),
            };
            self.waiting.extend_from_slice(&heard);
            self.socket.get_mut().timed_mut().until = Instant::now() + SILENCE;
        }
        self.more = true;
        Ok(())
    }

    /// Gives the session what waits for it.
    fn pass_on(&mut self) -> Result<(), Over> {
        while !self.waiting.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.road, &self.waiting, flags) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(Over::Session),
            }
        }
        Ok(())
    }

    /// What the session says, if anything.
    fn hear_session(&self) -> Result<Option<Bytes>, Over> {
        let mut piece = vec![0; PIECE];
        match rustix::io::read(&self.road, &mut piece) {
            Ok(0) => Err(Over::Session),
            Ok(count) => {
                piece.truncate(count);
                Ok(Some(piece.into()))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(_) => Err(Over::Session),
        }
    }

    /// Says this to the browser, behind what waits for it.
    fn say(&mut self, message: Option<Message>) -> Result<(), Over> {
        let said = message.map_or(Ok(()), |message| self.socket.write(message));
        match said.and_then(|()| self.socket.flush()) {
            Ok(()) => self.blocked = None,
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                // One that speaks and does not read has to end, too: the session is not heard meanwhile.
                let until = *self.blocked.get_or_insert_with(|| Instant::now() + SILENCE);
                if Instant::now() >= until {
                    return Err(Over::Browser);
                }
            }
            Err(_) => return Err(Over::Browser),
        }
        Ok(())
    }

    /// The browser is over: a last word of its page may be under way.
    fn tell_session(mut self) -> io::Result<()> {
        self.road.set_nonblocking(false)?;
        self.road.set_write_timeout(Some(LAST_WORDS))?;
        self.road.write_all(&self.waiting)?;
        self.road.shutdown(Shutdown::Write)?;
        // What carries it has passed it on when it ends.
        self.road.set_read_timeout(Some(LAST_WORDS))?;
        let mut piece = vec![0; PIECE];
        for _ in 0..LAST_PIECES {
            if self.road.read(&mut piece)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The session is over, and may have said why.
    fn tell_browser(mut self) -> io::Result<()> {
        let timed = self.socket.get_mut().timed_mut();
        timed.until = Instant::now() + LAST_WORDS;
        timed.stream.set_nonblocking(false)?;
        // It may have been found out by what it does not take any more, before that was read.
        while let Ok(Some(bytes)) = self.hear_session() {
            self.socket.send(Message::Binary(bytes)).map_err(io::Error::other)?;
        }
        // One that is gone hears nothing.
        let _ = self.socket.close(None);
        self.socket.into_inner().end()
    }
}

/// Messages of the browser that are taken before the session is looked at again.
const MESSAGES_IN_A_TURN: usize = 64;
/// The same in bytes, also of messages that are not whole yet.
const BYTES_IN_A_TURN: usize = 2 * MESSAGE_MAX;
/// Bytes of the session that are passed on at once: a frame of its carrier.
const PIECE: usize = 16 << 10;
/// How often a browser is asked whether it is there; all of them answer by themselves.
const PING_EVERY: Duration = Duration::from_secs(5);
/// How long it may say nothing: two of those are missing then. A page gives up a socket sooner, and its next one needs
/// the place.
const SILENCE: Duration = Duration::from_secs(15);
/// How often a session is heard that has to end.
const LAST_PIECES: usize = 64;
/// How long one end may take to hear the last of the other.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tungstenite::protocol::{Role, WebSocketConfig};

    use super::super::wire::Timed;
    use super::*;

    /// A relay, its browser and its session.
    fn relay() -> (Relay<Timed>, WebSocket<TcpStream>, UnixStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let browser = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (stream, _) = listener.accept().expect("it was called");
        rustix::net::sockopt::set_socket_send_buffer_size(&stream, 1).expect("an option");
        rustix::net::sockopt::set_socket_recv_buffer_size(&browser, 1).expect("an option");
        let (session, theirs) = UnixStream::pair().expect("a pair");
        session.set_nonblocking(true).expect("it can be so");
        let timed = Timed::new(stream, Instant::now());
        let config = WebSocketConfig::default().write_buffer_size(0);
        let socket = WebSocket::from_raw_socket(timed, Role::Server, Some(config));
        let road = Road { socket: theirs.into(), keeper: Box::new(()) };
        let browser = WebSocket::from_raw_socket(browser, Role::Client, None);
        (Relay::new(socket, &road).expect("descriptors"), browser, session)
    }

    fn turn(relay: &mut Relay<Timed>) {
        assert_eq!(relay.turn().expect("it goes on"), None);
    }

    #[test]
    fn of_a_session_nothing_is_taken_that_its_browser_does_not_take() {
        let (mut relay, mut browser, mut session) = relay();
        let (mut taken, mut untaken) = (0, 0);
        while untaken < 3 {
            while session.write(&[7; PIECE]).is_ok() {}
            // There is something to do in each turn, at the least.
            browser.send(Message::Binary(b"a".to_vec().into())).expect("room");
            turn(&mut relay);
            let is_taken = session.write(&[7; 1]).is_ok();
            (taken, untaken) = if is_taken { (taken + 1, 0) } else { (taken, untaken + 1) };
            assert!(taken < 64, "a megabyte of what the browser does not take");
        }
        assert!(relay.blocked.is_some());
        let mut heard = [0; 3];
        session.read_exact(&mut heard).expect("what the browser said");
        assert_eq!(&heard, b"aaa");
    }

    #[test]
    fn a_browser_that_speaks_and_does_not_read_is_given_up_and_one_that_reads_slowly_is_not() {
        let (mut relay, mut browser, mut session) = relay();
        while relay.blocked.is_none() {
            let _ = session.write(&[7; PIECE]);
            turn(&mut relay);
        }
        browser.send(Message::Binary(b"hello".to_vec().into())).expect("room");
        turn(&mut relay);
        // It reads, and the next one waits from then on.
        let (first, stop) = (relay.blocked, Arc::<AtomicBool>::default());
        let told = Arc::clone(&stop);
        let reading = std::thread::spawn(move || {
            while !told.load(Ordering::Acquire) {
                browser.read().expect("a piece");
            }
            browser
        });
        while relay.blocked == first {
            turn(&mut relay);
        }
        stop.store(true, Ordering::Release);
        // Without a wait, which might be for what is not read any more.
        let ready = Ready { browser: false, session: true };
        while !reading.is_finished() {
            let _ = session.write(&[7; PIECE]);
            relay.move_on(&ready).expect("it goes on");
        }
        let _browser = reading.join().expect("it reads");
        // The system may still have room for some.
        let over = (0..1000).find_map(|_| {
            let _ = session.write(&[7; PIECE]);
            relay.blocked = relay.blocked.map(|_| Instant::now());
            relay.move_on(&ready).err()
        });
        assert_eq!(over, Some(Over::Browser));
    }

    /// The session had sent its guest away, who went on moving the pointer, and was told that the link was lost.
    #[test]
    fn regression_the_last_words_of_a_session_that_hears_nothing_more_are_lost() {
        let (mut relay, mut browser, mut session) = relay();
        session.write_all(b"goodbye").expect("room");
        drop(session);
        relay.waiting = b"hello?".to_vec();
        assert_eq!(relay.move_on(&Ready { browser: false, session: false }), Err(Over::Session));
        let end = std::thread::spawn(move || relay.tell_browser());
        assert_eq!(browser.read().expect("a word"), Message::Binary(b"goodbye".to_vec().into()));
        assert!(matches!(browser.read(), Ok(Message::Close(None))));
        drop(browser);
        let _ = end.join().expect("it ends");
    }

    #[test]
    fn of_a_browser_little_waits_for_its_session() {
        let (mut relay, mut browser, mut session) = relay();
        browser.get_mut().set_nonblocking(true).expect("it can be so");
        let mut said = 0;
        while relay.has_room() {
            said += usize::from(browser.send(Message::Binary(vec![7; MESSAGE_MAX].into())).is_ok());
            turn(&mut relay);
        }
        assert!(said > 0 && relay.waiting.len() < 2 * MESSAGE_MAX, "{}", relay.waiting.len());
        let (mut heard, before) = (Vec::new(), relay.waiting.len());
        assert!(session.read_to_end(&mut heard).is_err() && !heard.is_empty(), "it takes what there is");
        turn(&mut relay);
        assert!(relay.waiting.len() < before, "it goes on as the session takes it");
    }

    #[test]
    fn regression_a_browser_that_says_nothing_without_end_kept_its_place_when_the_session_was_over() {
        let (mut relay, mut browser, session) = relay();
        drop(session);
        let stop = Arc::<AtomicBool>::default();
        let told = Arc::clone(&stop);
        let flood = std::thread::spawn(move || {
            // Until it is closed.
            while !told.load(Ordering::Acquire) && browser.send(Message::Binary(Bytes::new())).is_ok() {}
        });
        let over = (0..1000).find_map(|_| relay.turn().expect("it goes on"));
        stop.store(true, Ordering::Release);
        drop(relay);
        flood.join().expect("it ends");
        assert_eq!(over, Some(Over::Session));
    }

    /// One message in pieces of no bytes, which never ends: it was heard while more came, and nothing else was.
    #[test]
    fn regression_pieces_of_a_message_without_end_kept_a_place_when_the_session_was_over() {
        let (mut relay, mut browser, session) = relay();
        drop(session);
        let stream = browser.get_mut();
        stream.set_nonblocking(true).expect("it can be so");
        // RFC 6455 §5.2: binary and not the last; then none of its opcode. Both masked with nothing.
        let mut said = stream.write(&[2, 0x80, 0, 0, 0, 0]).expect("room");
        let pieces = [0, 0x80, 0, 0, 0, 0].repeat(1 << 10);
        while said < 8 * BYTES_IN_A_TURN {
            match stream.write(&pieces) {
                Ok(count) if count == pieces.len() => said += count,
                // The rest of a piece would be missing.
                _ => break,
            }
        }
        assert!(said > 2 * BYTES_IN_A_TURN, "{said}");
        assert_eq!(relay.turn().expect("no trouble"), Some(Over::Session));
        assert!(relay.more, "it was not heard to its end");
        let rest = relay.socket.get_ref().timed().stream.peek(&mut [0]);
        assert!(rest.is_ok(), "{rest:?}");
    }

    /// Each of them was taken for a sign that its page is there.
    #[test]
    fn regression_a_browser_kept_its_place_by_pings_of_its_own() {
        let (mut relay, mut browser, _session) = relay();
        let before = relay.socket.get_ref().timed().until;
        for said in [Message::Ping(Bytes::new()), Message::Pong(Bytes::new())] {
            let renews = matches!(said, Message::Pong(_));
            browser.send(said).expect("room");
            turn(&mut relay);
            assert_eq!(relay.socket.get_ref().timed().until > before, renews);
        }
    }

    #[test]
    fn a_browser_that_answers_no_ping_is_given_up_and_one_that_does_is_not() {
        let (mut relay, mut browser, _session) = relay();
        relay.next_ping = Instant::now();
        turn(&mut relay);
        assert!(relay.next_ping > Instant::now(), "it was sent");
        assert!(matches!(browser.read(), Ok(Message::Ping(_))));
        let before = relay.socket.get_ref().timed().until;
        browser.flush().expect("the answer leaves");
        turn(&mut relay);
        assert!(relay.socket.get_ref().timed().until > before, "it was heard");
        relay.socket.get_mut().timed_mut().until = Instant::now();
        assert_eq!(relay.turn().map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    }

    #[test]
    fn text_and_messages_that_are_too_long_end_it() {
        for said in [Message::Text("hello".into()), Message::Binary(vec![0; 1 << 25].into())] {
            let (mut relay, mut browser, _session) = relay();
            relay.socket.set_config(|config| config.max_frame_size = Some(MESSAGE_MAX));
            browser.get_mut().set_nonblocking(true).expect("it can be so");
            let _ = browser.send(said);
            assert_eq!(relay.turn().expect("no trouble"), Some(Over::Browser));
        }
    }
}
