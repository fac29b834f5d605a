//! The session: handshake, channels, timers.
//!
//! It does not know what the messages of Wayland and event channels, chunks and snapshots mean. How it outlives its
//! carrier is in [`resume`]. Invariant: after the end, nothing is stored and nothing more comes out but
//! [`Transmit::Close`] and [`Event::Closed`], once each.

mod config;
mod event;
mod incoming;
mod jointly;
mod ledger;
mod losses;
mod numbers;
mod outgoing;
mod protect;
mod queue;
mod resume;
mod stream;
mod timers;
mod unseen;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

pub use config::{Config, Limits, MAX_SECRETS, Repair};
pub use event::Event;
pub use losses::Loss;
pub use protect::Worth;

use crate::wire::{Reader, Writer};
use crate::{
    Arrival, Capabilities, ChannelId, ClockMap, CloseReason, ClosedBy, Compression, ConnectionId, Control,
    Error, Header, Hello, HostTime, Kind, LinkState, Listen, LossPrior, MAX_BLOB, MAX_MESSAGE, MAX_SNAPSHOT,
    MAX_SOUND, RemoteChannelId, RepairHeader, Route, SessionId, StreamId, SurfaceId, Time, Transmit,
    UpdateHeader, UpdateSeq, route,
};
use incoming::{Incoming, Output, Source};
use losses::Losses;
use outgoing::{MainFailed, Outgoing, Place};
use resume::Resumption;
use timers::{Due, Timers};

/// Updates of fewer bytes go before larger ones.
pub const SMALL_UPDATE: usize = 16 << 10;

/// Largest chunk of an update in bytes: 64 KiB of pixels that did not compress, and room for what is around them.
pub const MAX_CHUNK: usize = (64 << 10) + 1024;

/// Most chunks of an update.
pub const MAX_CHUNKS: usize = 1 << 16;

/// Largest update in bytes. A surface can have more new pixels than that (1 GiB at most); they are sent as several
/// updates, and the unit waits for the last. As much of one update may wait for the rest while nothing else may come.
pub const MAX_UPDATE: usize = 20 << 20;

/// Bytes of a pipe that may be on their way or with a reader that has not taken them.
pub const PIPE_WINDOW: usize = 256 << 10;

/// Most bytes of a channel of messages that are handed over at once, unless one message is longer: a protected block,
/// and what its receiver keeps so that it can be rebuilt.
pub const MAX_FLUSH: usize = 64 << 10;

/// Code of a stream that is given up or stopped without a fault.
pub const STREAM_CANCELLED: u32 = 0;

/// Code with which a stream is stopped whose header is not accepted.
pub const STREAM_REFUSED: u32 = 1;

/// Most warnings of a session; a peer must not fill a log.
const MAX_WARNINGS: u32 = 64;

/// Most refused streams that the peer is told about. Later ones are only stopped.
const MAX_REFUSALS: u32 = 64;

/// One side of a session. See the crate's documentation for the run loop.
#[derive(Debug)]
pub struct Session {
    config: Config,
    outgoing: Outgoing,
    incoming: Incoming,
    events: VecDeque<Event>,
    timers: Timers,
    clock: ClockMap,
    losses: Losses,
    /// What the peer has said of what it sends.
    peer_loss: Option<Loss>,
    agreed: Option<Agreed>,
    state: State,
    resumption: Resumption,
    /// It never goes on over another carrier.
    forgone: bool,
    /// The peer was declined before it had said what it has: that is still to come, and means nothing.
    in_vain: bool,
    /// How many carriers there were before (display).
    attempt: u64,
    /// In which attempt of the display it began.
    began: u64,
    warnings: u32,
    refusals: u32,
    open_failed: bool,
    /// The peer has said something after its hello.
    welcome: bool,
}

/// Whether a session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Without a carrier.
    Suspended,
    Closed,
}

/// What the two hellos agreed on.
#[derive(Debug)]
struct Agreed {
    peer: Hello,
    version: u32,
    compression: Compression,
    /// Which of the accepted secrets the peer showed.
    secret: Option<usize>,
}

/// What repair has cost a side as a sender, and saved it as a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairCounts {
    /// Blocks of this side that were protected.
    pub blocks: u64,
    /// Rows that were sent for them.
    pub rows: u64,
    /// Bytes of these rows.
    pub bytes: u64,
    /// Blocks of the peer's that were rebuilt before QUIC had sent them again.
    pub rebuilt: u64,
    /// Bytes of them that had not come.
    pub rebuilt_bytes: u64,
}

impl Session {
    /// Starts a session: the control stream and the hello are queued at once.
    pub fn new(config: Config) -> Self {
        let hello = Control::Hello(config.hello(0, 0));
        let mut session = Self::silent(config);
        session.outgoing.control(&hello);
        session
    }

    /// A session that has not said hello.
    fn silent(config: Config) -> Self {
        let resumable = config.offered().has(Capabilities::RESUME);
        Self {
            outgoing: Outgoing::new(config.repair, config.main_only, resumable),
            incoming: Incoming::new(config.side, config.streams, config.limits),
            events: VecDeque::new(),
            timers: Timers::new(config.start, config.silence, config.side),
            clock: ClockMap::default(),
            losses: Losses::default(),
            peer_loss: None,
            agreed: None,
            state: State::Open,
            resumption: Resumption::No,
            forgone: false,
            in_vain: false,
            attempt: 0,
            began: 0,
            warnings: 0,
            refusals: 0,
            open_failed: false,
            welcome: false,
            config,
        }
    }

    /// Takes what the carrier tells. A mistake of the peer refuses its stream or ends the session.
    pub fn receive(&mut self, now: Time, arrival: Arrival) {
        if self.state != State::Open {
            return;
        }
        if !arrival.is_of_carrier() {
            self.timers.heard(now);
        }
        let taken = self.take(arrival);
        // What came before a mistake counts.
        if let Err(error) = self.take_outputs(now).and(taken).and_then(|()| self.check_unacknowledged()) {
            self.close((&error).into());
        }
        self.note_news(now);
        self.note_work(now);
    }

    /// Takes what the carrier knows of its link now; to be told often, best before [`Session::poll_transmit`].
    pub fn set_link(&mut self, now: Time, link: &LinkState) {
        self.outgoing.set_link(now, link);
        self.losses.set_link(link);
    }

    /// What the peer may make this side store from now on: less than it was told at the start, once it is known who the
    /// peer is.
    pub fn restrict(&mut self, limits: Limits) {
        self.config.limits = limits;
        self.incoming.restrict(limits);
    }

    /// Bytes that came and wait for the rest of their streams, less those of the one that has most, up to
    /// [`MAX_UPDATE`]: the carrier should let the peer have so much less on the way. A peer that sends one update after
    /// the other holds nothing for long, and the one that it is at always goes on.
    pub fn held(&self) -> usize {
        self.incoming.held()
    }

    /// What the carrier has to do next. Poll until `None`: small messages queued meanwhile become one piece.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.note_news(now);
        self.note_work(now);
        let (config, agreed) = (&self.config, &self.agreed);
        self.outgoing.poll(now, |kind| match agreed {
            Some(agreed) => route(kind, config.streams, config.main_only, &agreed.peer),
            None => Route::Main,
        })
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Session::on_timeout`] is to be called; `None` after the end, and while there is no carrier. May change
    /// with every other call.
    pub fn next_timeout(&self) -> Option<Time> {
        let repair = self.outgoing.protector().next();
        let timers = self.timers.next(self.outgoing.has_pipes());
        (self.state == State::Open).then(|| repair.map_or(timers, |repair| repair.min(timers)))
    }

    /// Does what is due at `now`: pings, deadlines, repair. Harmless when nothing is.
    pub fn on_timeout(&mut self, now: Time) {
        if self.state != State::Open {
            return;
        }
        self.outgoing.send_repair(now);
        while self.state == State::Open {
            match self.timers.due(now, self.outgoing.has_pipes()) {
                Some(Due::Silence) if self.outlives(&CloseReason::Timeout) => {}
                Some(Due::Silence) => self.close(CloseReason::Timeout),
                Some(Due::Receipt) => self.send_receipt(),
                Some(Due::Ping(token)) => {
                    let sent = self.host_time(now);
                    self.outgoing.control(&Control::Ping { token, sent });
                }
                Some(Due::Boost(on)) => self.outgoing.boost_pipes(on),
                None => break,
            }
        }
        self.note_news(now);
    }

    /// Opens a long-lived channel ([`Header::Wayland`], [`Header::Events`], [`Header::Pipe`]) or one for a
    /// [`Header::Blob`] (see [`Session::send_blob`]). May be called before the peer's hello: the channel then waits for
    /// it. The peer hears of it at once, not with the first message.
    ///
    /// # Panics
    /// For [`Header::Control`], [`Header::Update`] and [`Header::Repair`], and for a kind that this side does not open.
    pub fn open(&mut self, header: Header) -> ChannelId {
        let kind = header.kind();
        assert!(
            !matches!(kind, Kind::Control | Kind::Update | Kind::Repair) && kind.opened_by(self.config.side),
            "the {:?} side does not open {header:?}",
            self.config.side
        );
        if self.is_closed() {
            return ChannelId(u64::MAX);
        }
        self.outgoing.open(header)
    }

    /// Sends a message of at most [`MAX_MESSAGE`] bytes on a Wayland or event channel. Does nothing when the channel is
    /// gone.
    ///
    /// # Errors
    /// The message is too long.
    pub fn send(&mut self, channel: ChannelId, message: &[u8]) -> Result<(), Error> {
        if message.len() > MAX_MESSAGE {
            return Err(Error::Misuse { expected: "a message of at most 64 KiB" });
        }
        self.outgoing.send(channel, message);
        Ok(())
    }

    /// Appends raw bytes to a pipe, or to a blob up to its length. Does nothing when the channel is gone. What exceeds
    /// [`Session::pipe_room`] waits here for the reader.
    pub fn write(&mut self, channel: ChannelId, bytes: Bytes) {
        if !bytes.is_empty() {
            self.outgoing.write(channel, bytes);
        }
    }

    /// Sends a blob on a stream of its own.
    ///
    /// # Errors
    /// It exceeds [`MAX_BLOB`]; nothing is sent.
    pub fn send_blob(&mut self, hash: u128, bytes: Bytes) -> Result<(), Error> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if length > MAX_BLOB {
            return Err(Error::Misuse { expected: "a blob of at most 4 MiB" });
        }
        let channel = self.open(Header::Blob { hash, length });
        self.write(channel, bytes);
        self.finish(channel);
        Ok(())
    }

    /// Ends a channel after what has been sent on it. The handle is void afterwards.
    pub fn finish(&mut self, channel: ChannelId) {
        self.outgoing.finish(channel);
    }

    /// Gives a channel up; see [`STREAM_CANCELLED`] for the code. The handle is void afterwards.
    pub fn reset(&mut self, channel: ChannelId, code: u32) {
        self.outgoing.reset(channel, code);
    }

    /// Does not want a channel of the peer any more; see [`STREAM_CANCELLED`] for the code. The handle is void
    /// afterwards; no event follows but those that are queued already.
    pub fn stop(&mut self, channel: RemoteChannelId, code: u32) {
        if let Some(source) = self.incoming.stop(channel, code) {
            self.stop_source(source, code);
        }
    }

    /// The reader of a pipe has taken `bytes` more out of memory: the peer may send as many again.
    pub fn consumed(&mut self, channel: RemoteChannelId, bytes: usize) {
        if let Some(credit) = self.incoming.consumed(channel, bytes) {
            self.outgoing.control(&credit);
        }
    }

    /// How many bytes may be written to a pipe now without waiting here for the reader; 0 when the channel is gone.
    pub fn pipe_room(&self, channel: ChannelId) -> usize {
        self.outgoing.pipe_room(channel)
    }

    /// Sends an update on a stream of its own and returns its length in bytes, without the stream's header.
    ///
    /// # Errors
    /// It exceeds [`MAX_UPDATE`], [`MAX_CHUNKS`] or [`MAX_CHUNK`], or a chunk is empty; nothing is sent.
    pub fn send_update(&mut self, header: UpdateHeader, chunks: Vec<Vec<u8>>) -> Result<u64, Error> {
        self.send_content(header, chunks, Worth::Plain)
    }

    /// As [`Self::send_update`], an update of which the caller knows what it is to the user.
    ///
    /// # Errors
    /// As there.
    pub fn send_content(
        &mut self,
        header: UpdateHeader,
        chunks: Vec<Vec<u8>>,
        worth: Worth,
    ) -> Result<u64, Error> {
        if chunks.len() > MAX_CHUNKS || chunks.iter().map(Vec::len).sum::<usize>() > MAX_UPDATE {
            return Err(Error::Misuse { expected: "an update of at most 65 536 chunks and 20 MiB" });
        }
        if !chunks.iter().all(|chunk| (1..=MAX_CHUNK).contains(&chunk.len())) {
            return Err(Error::Misuse { expected: "chunks of 1 byte to 65 KiB" });
        }
        if self.is_closed() {
            return Ok(0);
        }
        Ok(self.outgoing.update(header, chunks, worth))
    }

    /// Takes an update back of which nothing has been handed to the carrier, and returns its length in bytes; `None`
    /// when it is too late. The display is to be told what replaces it: the next update of the surface goes in its
    /// place.
    pub fn take_back(&mut self, connection: ConnectionId, surface: SurfaceId, seq: UpdateSeq) -> Option<u64> {
        self.outgoing.take_back(connection, surface, seq)
    }

    /// Gives up all updates of a surface that the peer has not said to have, whether they have left or not: nothing of
    /// them is sent again. Returns the first of them and how many bytes all have. `None` if there are none, or that
    /// would spare nothing: one has left in the main channel, or the carrier is a byte stream. The display is to be
    /// told what replaces them.
    pub fn give_up(&mut self, connection: ConnectionId, surface: SurfaceId) -> Option<(UpdateSeq, u64)> {
        self.outgoing.give_up(connection, surface)
    }

    /// Sends a packet of at most [`MAX_SOUND`] bytes on a channel of sound. Such a channel can still be
    /// [reset](Session::reset) when it is finished: what the peer does not have of it is given up. Does nothing when it
    /// is gone, as all of them are with their carrier.
    ///
    /// # Errors
    /// The packet is too long.
    pub fn send_sound(&mut self, channel: ChannelId, packet: &[u8]) -> Result<(), Error> {
        if packet.len() > MAX_SOUND {
            return Err(Error::Misuse { expected: "a packet of sound of at most 4 KiB" });
        }
        self.outgoing.send(channel, packet);
        Ok(())
    }

    /// Sends a datagram of sound, if the peer takes them and the link is there; see [`LinkState::datagram`].
    pub fn send_datagram(&mut self, bytes: &[u8]) {
        if self.may_sound() {
            let mut datagram = Writer::new();
            datagram.varint(Kind::Sound.code()).raw(bytes);
            self.outgoing.transmit(Transmit::Datagram { bytes: datagram.into_vec().into() });
        }
    }

    /// Tells the peer what of its sound is wanted; gives whether it could be told now. Not kept for another carrier.
    pub fn listen(&mut self, listen: Listen) -> bool {
        let may = self.may_sound();
        if may {
            self.outgoing.control(&Control::Listen(listen));
        }
        may
    }

    /// Whether both sides understand sound, the display is no view that may not hear it, and they are past their hellos
    /// and all that is resumed.
    pub fn may_sound(&self) -> bool {
        let settled = self.state == State::Open && self.resumption == Resumption::No;
        let common = self.capabilities();
        let is_deaf = common.has(Capabilities::VIEW) && !common.has(Capabilities::SHARED_SOUND);
        settled && common.has(Capabilities::SOUND) && !is_deaf
    }

    /// Sends a message of the main channel, such as [`Control::Snapshot`] or [`Control::Exit`]. They go
    /// out even before the peer's hello has come.
    ///
    /// # Errors
    /// It is too long, or the session's own.
    pub fn control(&mut self, message: &Control) -> Result<(), Error> {
        let too_long = matches!(message, Control::Snapshot(bytes) if bytes.len() > MAX_SNAPSHOT);
        if !message.is_lasting() || message.is_internal() || too_long {
            return Err(Error::Misuse {
                expected: "a message for the peer's user, a snapshot of at most 64 KiB",
            });
        }
        if !self.is_closed() {
            self.outgoing.control(message);
        }
        Ok(())
    }

    /// Ends the session. What the carrier has not delivered may be lost: agree on the end first.
    pub fn close(&mut self, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        let suspended = self.is_suspended();
        let (code, text) = reason.to_wire();
        self.end(reason, ClosedBy::Us);
        if !suspended {
            self.outgoing.transmit(Transmit::Close { code, reason: text });
        }
    }

    /// The peer could not be heard until now, or not answer: patience with it begins here. To be called before anything
    /// arrives.
    pub fn await_peer(&mut self, now: Time) {
        self.timers = Timers::new(now, self.config.silence, self.config.side);
    }

    /// Which session this is: as configured, else as the peer names it. [`SessionId::ANY`] while neither says.
    pub fn id(&self) -> SessionId {
        let named = [Some(self.config.session), self.peer().map(|peer| peer.session)];
        named.into_iter().flatten().find(|id| *id != SessionId::ANY).unwrap_or(SessionId::ANY)
    }

    /// The peer's hello, once it has come.
    pub fn peer(&self) -> Option<&Hello> {
        self.agreed.as_ref().map(|agreed| &agreed.peer)
    }

    /// The protocol version in use, once the peer's hello has come.
    pub fn version(&self) -> Option<u32> {
        self.agreed.as_ref().map(|agreed| agreed.version)
    }

    /// The abilities of both sides; none before the peer's hello has come.
    pub fn capabilities(&self) -> Capabilities {
        self.peer().map_or(Capabilities::NONE, |peer| peer.capabilities.common(self.config.offered()))
    }

    /// What the link has lost of late of what the peer sent, where both have [`Capabilities::LOSS`] and the peer has
    /// said so.
    pub fn peer_loss(&self) -> Option<Loss> {
        self.peer_loss
    }

    /// The first compression of our list that the peer understands; [`Compression::None`] when there is none.
    pub fn compression(&self) -> Compression {
        self.agreed.as_ref().map_or(Compression::None, |agreed| agreed.compression)
    }

    /// Maps times of the two hosts.
    pub fn clock(&self) -> &ClockMap {
        &self.clock
    }

    /// Since when the peer owes a word: when it was last heard, or, after a rest, when it was asked again. `None` while
    /// the session has a carrier and rests, and nothing is expected of the peer.
    pub fn owed_since(&self, now: Time) -> Option<Time> {
        match self.state {
            State::Open => self.timers.owed_since(now),
            State::Suspended | State::Closed => Some(self.timers.last_contact()),
        }
    }

    /// For how long the peer has owed a word, see [`Self::owed_since`].
    pub fn contact_age(&self, now: Time) -> Duration {
        self.owed_since(now).map_or(Duration::ZERO, |since| now - since)
    }

    /// What repair has cost and saved so far.
    pub fn repair(&self) -> RepairCounts {
        let (sent, rebuilt) = (self.outgoing.protector().sent(), self.incoming.rebuilt());
        RepairCounts {
            blocks: sent.blocks,
            rows: sent.rows,
            bytes: sent.bytes,
            rebuilt: rebuilt.blocks,
            rebuilt_bytes: rebuilt.bytes,
        }
    }

    /// What this side's repair has learned of the link: for the next connection over it.
    pub fn loss_prior(&self) -> LossPrior {
        self.outgoing.protector().loss_prior()
    }

    /// The share of this side's packets that the link loses, from 0 to 1, and how many it loses in a row; as far as is
    /// known. `None` without adaptive or fixed repair.
    pub fn loss(&self) -> Option<(f64, f64)> {
        self.outgoing.protector().loss()
    }

    /// Whether something small that is sent now is repaired: the link is there, and known to lose.
    pub fn repairs(&self, now: Time) -> bool {
        let (config, agreed) = (&self.config, &self.agreed);
        let takes = |peer| route(Kind::Repair, config.streams, config.main_only, peer) == Route::Own;
        agreed.as_ref().is_some_and(|agreed| takes(&agreed.peer)) && self.outgoing.protector().repairs(now)
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether the peer has taken this side's hello, as everything tells that it says after its own: an app side says
    /// hello to every display that comes, and may refuse it still.
    pub fn is_welcome(&self) -> bool {
        self.welcome
    }

    /// Which of [`Config::accepted_secrets`] the peer showed, or, counted behind those, of
    /// [`Config::accepted_digests`]; a display that comes again may need none.
    pub fn matched_secret(&self) -> Option<usize> {
        self.agreed.as_ref().and_then(|agreed| agreed.secret)
    }

    /// How many bytes of content may be handed over now, so that the link has enough to do and pictures do not get old
    /// on their way here: [`LinkState::ahead`] − unsent − what is queued here.
    pub fn content_budget(&self, link: &LinkState) -> u64 {
        let queued = self.outgoing.queued_content() as u64;
        link.ahead().saturating_sub(link.unsent).saturating_sub(queued)
    }

    /// How many bytes of updates that only make content better may be handed over now: [`LinkState::aside`] − unsent −
    /// what is queued here. They travel as other updates do, for those of the same surface wait for them; that there
    /// are few is what keeps them out of the way. Pipes, which give way to them, do not count.
    pub fn refinement_budget(&self, link: &LinkState) -> u64 {
        let queued = self.outgoing.queued_content() as u64;
        let pipes = if self.outgoing.has_pipes() { link.ahead() / 2 } else { 0 };
        link.aside().saturating_sub(link.unsent.saturating_sub(pipes)).saturating_sub(queued)
    }

    /// Looks whether anything but pings has gone either way.
    fn note_work(&mut self, now: Time) {
        // Both are to be asked.
        let worked = self.outgoing.take_worked() | self.incoming.take_worked();
        if worked && self.state == State::Open {
            self.timers.worked(now);
        }
    }

    fn host_time(&self, now: Time) -> HostTime {
        self.config.clock_origin + now.since_start()
    }

    fn take(&mut self, arrival: Arrival) -> Result<(), Error> {
        match arrival {
            Arrival::Data { stream, offset, bytes } => {
                self.incoming.data(Source::Own(stream), offset, &bytes)
            }
            Arrival::Finished { stream, length } => self.incoming.finished(Source::Own(stream), length),
            Arrival::Reset { stream, code } => self.incoming.reset(Source::Own(stream), code),
            Arrival::Stopped { stream, code } => {
                self.stopped(Place::Own(stream), code);
                Ok(())
            }
            Arrival::Acknowledged { stream } => {
                self.outgoing.acknowledged(stream);
                Ok(())
            }
            Arrival::OpenFailed { stream, bytes, finish } => {
                self.open_failed(stream, bytes, finish);
                Ok(())
            }
            Arrival::Datagram { bytes } => self.take_datagram(&bytes),
            Arrival::Closed { reason } => {
                let by = if reason.is_of_link() || self.is_refusal(&reason) {
                    ClosedBy::Link
                } else {
                    ClosedBy::Peer
                };
                if by == ClosedBy::Peer || !self.outlives(&reason) {
                    self.end(reason, by);
                }
                Ok(())
            }
        }
    }

    /// A datagram means nothing before the hello, and one of another kind than sound and repair never. One that cannot
    /// be read is as good as lost.
    fn take_datagram(&mut self, bytes: &Bytes) -> Result<(), Error> {
        self.incoming.note_work();
        let mut reader = Reader::new(bytes);
        let kind = reader.varint("a datagram's kind").ok().and_then(Kind::from_code);
        match kind {
            Some(Kind::Sound) if self.may_sound() => {
                self.events.push_back(Event::Datagram { bytes: bytes.slice_ref(reader.rest()) });
            }
            Some(Kind::Repair) if self.resumption == Resumption::No && self.repairs_in_datagrams() => {
                if let Ok(header) = RepairHeader::from_datagram(&mut reader) {
                    return self.incoming.row(&header, reader.rest());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether both sides send rows of repair in datagrams, and on no streams.
    fn repairs_in_datagrams(&self) -> bool {
        self.capabilities().has(Capabilities::DATAGRAM_REPAIR)
    }

    fn take_outputs(&mut self, now: Time) -> Result<(), Error> {
        while let Some(output) = self.incoming.pop() {
            match output {
                Output::Event(event) => self.events.push_back(event),
                Output::Control(message) => self.take_control(now, message)?,
                Output::UnknownControl => self.warn("ignored a control message of an unknown type".into()),
                Output::Refuse { source, kind, why } => self.refuse(source, kind, &why),
                Output::Stop { source, code } => self.stop_source(source, code),
            }
        }
        Ok(())
    }

    fn take_control(&mut self, now: Time, message: Control) -> Result<(), Error> {
        if self.agreed.is_none() != matches!(message, Control::Hello(_)) {
            let got = if self.agreed.is_none() { "another message before it" } else { "a second one" };
            return Err(Error::Violation { expected: "one hello, first", got: got.into() });
        }
        self.check_turn(&message)?;
        self.welcome |= !matches!(message, Control::Hello(_));
        if message.is_waited_for() {
            self.incoming.note_work();
        }
        match message {
            Control::Hello(peer) => self.take_hello(now, peer)?,
            Control::Ping { token, .. } => {
                self.timers.pinged(now)?;
                self.outgoing.control(&Control::Pong { token, received: self.host_time(now) });
                if self.capabilities().has(Capabilities::LOSS)
                    && let Some(loss) = self.losses.look()
                {
                    self.outgoing.control(&Control::Loss(loss));
                }
            }
            Control::Loss(loss) => self.peer_loss = Some(loss),
            Control::Pong { token, received } => {
                let sent = self.timers.ponged(token)?;
                self.clock.sample(self.host_time(sent), received, self.host_time(now));
            }
            Control::PipeCredit { connection, pipe, consumed } => {
                self.outgoing.credit(Header::Pipe { connection, pipe }, consumed)?;
            }
            Control::Refused { kind } => self.warn(format!("the peer refused a stream of kind {kind}")),
            Control::Embedded { stream, offset, finish, bytes } => {
                let source = Source::Main(stream);
                let end = offset.saturating_add(bytes.len() as u64);
                self.incoming.data(source, offset, &bytes)?;
                if finish {
                    self.incoming.finished(source, end)?;
                }
            }
            Control::EmbeddedReset { stream, code } => self.incoming.reset(Source::Main(stream), code)?,
            Control::EmbeddedStop { stream, code } => self.stopped(Place::Main(stream), code),
            Control::Received(receipt) => {
                self.incoming.ledger()?;
                self.outgoing.received(&receipt)?;
            }
            Control::Resume(theirs) => self.take_resume(now, theirs)?,
            Control::Declined => self.take_declined(now)?,
            Control::GivenUp { number, code } => {
                self.incoming.ledger()?.message();
                self.incoming.given_up(number, code)?;
            }
            message @ (Control::Snapshot(_)
            | Control::AppClosed { .. }
            | Control::Exit { .. }
            | Control::OpenUrl { .. }
            | Control::UrlDone { .. }
            | Control::Notify(_)
            | Control::CloseNotification { .. }
            | Control::NotificationClosed { .. }
            | Control::NotificationAction { .. }
            | Control::File(_)
            | Control::FetchFile { .. }
            | Control::FileDone { .. }
            | Control::TrayItem(_)
            | Control::TrayGone { .. }
            | Control::TrayMenu(_)
            | Control::TrayAct { .. }
            | Control::Tray { .. }) => {
                if let Ok(ledger) = self.incoming.ledger() {
                    ledger.message();
                }
                // The user may have said that there are to be none.
                if message.needs().is_none_or(|needed| self.capabilities().has(needed)) {
                    self.events.push_back(Event::Control(message));
                }
            }
            Control::Listen(_) if !self.may_sound() => {}
            message @ Control::Listen(_) => self.events.push_back(Event::Control(message)),
        }
        Ok(())
    }

    fn take_hello(&mut self, now: Time, peer: Hello) -> Result<(), Error> {
        let config = &self.config;
        let Some(version) = config.versions.common(peer.versions) else {
            self.close(CloseReason::Incompatible { ours: config.versions, theirs: peer.versions });
            return Ok(());
        };
        if peer.side != config.side.peer() {
            let got = format!("two {:?} sides", peer.side);
            return Err(Error::Violation { expected: "an app side and a display side", got });
        }
        let Ok(secret) = config.admits(&peer) else {
            self.close(CloseReason::BadSecret);
            return Ok(());
        };
        if !config.session.matches(peer.session) {
            self.close(CloseReason::Gone);
            return Ok(());
        }
        let common = config.compression.iter().find(|compression| peer.compression.contains(compression));
        let compression = common.copied().unwrap_or(Compression::None);
        self.clock.guess(self.host_time(now), peer.clock);
        // The secret has done its work; it need not travel to logs.
        let peer = Hello { secret: None, ..peer };
        self.events.push_back(Event::Ready { peer: peer.clone() });
        self.agreed = Some(Agreed { peer, version, compression, secret });
        self.greeted(now)
    }

    fn stopped(&mut self, place: Place, code: u32) {
        let Some((channel, header)) = self.outgoing.stopped(place, code) else { return };
        if header.kind() != Kind::Update {
            self.events.push_back(Event::Stopped { channel, header, code });
        }
    }

    fn open_failed(&mut self, stream: StreamId, bytes: Bytes, finish: bool) {
        match self.outgoing.open_failed(stream, bytes, finish) {
            Err(MainFailed) => {
                let reason = CloseReason::LinkLost("no stream could be opened".into());
                if !self.outlives(&reason) {
                    self.close(reason);
                }
            }
            Ok(()) if !self.open_failed => {
                self.open_failed = true;
                self.warn("a stream could not be opened; its channel goes through the main one".into());
            }
            Ok(()) => {}
        }
    }

    fn refuse(&mut self, source: Source, kind: u64, why: &str) {
        self.warn(format!("refused a stream of kind {kind}: {why}"));
        self.stop_source(source, STREAM_REFUSED);
        if self.refusals < MAX_REFUSALS {
            self.refusals += 1;
            self.outgoing.control(&Control::Refused { kind });
        }
    }

    fn stop_source(&mut self, source: Source, code: u32) {
        match source {
            Source::Own(stream) => self.outgoing.transmit(Transmit::Stop { stream, code }),
            // Its stream is stopped when it comes.
            Source::Rows(_) => {}
            Source::Main(stream) => self.outgoing.control(&Control::EmbeddedStop { stream, code }),
        }
    }

    fn warn(&mut self, text: String) {
        if self.warnings < MAX_WARNINGS {
            self.warnings += 1;
            self.events.push_back(Event::Warning(text));
        }
    }

    /// Frees everything but the events that happened before.
    fn end(&mut self, reason: CloseReason, by: ClosedBy) {
        self.state = State::Closed;
        self.outgoing = Outgoing::closed();
        self.incoming.clear();
        self.events.push_back(Event::Closed { reason, by });
    }
}

#[cfg(test)]
mod tests;
