//! What a script calls: one viewer, with numbers and bytes alone.
//!
//! What goes in as bytes is written to the place that [`input`] gives; what comes out as bytes lies at [`out`] until
//! the next call. Times are milliseconds since the viewer began. Invariant: a call before [`begin`] does nothing.
#![allow(unsafe_code, reason = "what a script calls has bare names")]

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use wayferry_audio::Codec;
use wayferry_page::{Area, Clip, Cursor, Damage, Level, Role, Task, Wheel, rgba};
use wayferry_pixels::Rect;
use wayferry_proto::{
    Arrival, CloseReason, ConnectionId, HostTime, Secret, SessionId, StreamId, Time, Transmit,
};
use wayferry_video::Layout;

use crate::acts::Act;
use crate::drawing::{Drawing, whole};
use crate::socket::Next;
use crate::sound::Ask;
use crate::viewer::{Notice, Over, Ticket, Viewer};

#[derive(Default)]
struct State {
    viewer: Option<Viewer>,
    input: Vec<u8>,
    out: Vec<u8>,
    /// Numbers that go with what came out.
    numbers: [u32; 3],
    text: String,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T: Default>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with(|state| state.try_borrow_mut().map(|mut state| act(&mut state)).unwrap_or_default())
}

fn viewing<T: Default>(act: impl FnOnce(&mut Viewer, &[u8], &mut Vec<u8>) -> T) -> T {
    with(|State { viewer, input, out, .. }| match viewer {
        Some(viewer) => act(viewer, input, out),
        None => T::default(),
    })
}

fn time(milliseconds: f64) -> Time {
    // What is no time counts as the beginning.
    Time::new(Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default())
}

fn arrive(now: f64, arrival: impl FnOnce(&[u8]) -> Arrival) {
    viewing(|viewer, input, _| viewer.receive(time(now), arrival(input)));
}

/// A place for so many bytes that the next call takes.
#[unsafe(no_mangle)]
extern "C" fn input(length: usize) -> *mut u8 {
    with(|state| {
        state.input.clear();
        state.input.resize(length, 0);
        Address(state.input.as_mut_ptr())
    })
    .0
}

/// Where the bytes are that the last call gave.
#[unsafe(no_mangle)]
extern "C" fn out() -> *mut u8 {
    with(|state| Address(state.out.as_mut_ptr())).0
}

/// How many these are.
#[unsafe(no_mangle)]
extern "C" fn out_length() -> usize {
    with(|state| state.out.len())
}

/// The first, second or third number that the last call gave.
#[unsafe(no_mangle)]
extern "C" fn number(index: usize) -> u32 {
    with(|state| state.numbers.get(index).copied().unwrap_or_default())
}

/// Begins a session, in the place of the one before: 16 bytes of its id and 32 of the secret, as a ticket has them, and
/// 32 random ones; as a viewer, or as its display if `control` is 1; with decoders of videos if `videos` is 1. Gives 1
/// if the bytes are that long.
#[unsafe(no_mangle)]
extern "C" fn begin(now: f64, control: u32, videos: u32) -> u32 {
    with(|state| {
        let Some((id, secrets)) = state.input.split_first_chunk() else { return 0 };
        let &[secret, incarnation] = secrets.as_chunks().0 else { return 0 };
        let ticket = Ticket {
            session: SessionId(*id),
            secret: Secret::from(secret),
            incarnation: Secret::from(incarnation),
        };
        state.input.fill(0);
        let role = if control == 1 { Role::Control } else { Role::View };
        let begin = if videos == 1 { Viewer::with_decoders } else { Viewer::new };
        state.viewer = Some(begin(role, ticket, time(now), HostTime(0)));
        1
    })
}

/// Goes on over another carrier, on which nothing was said.
#[unsafe(no_mangle)]
extern "C" fn resume(now: f64) {
    viewing(|viewer, _, _| viewer.resume(time(now)));
}

/// Bytes of a stream have come, the next in order from that place on.
#[unsafe(no_mangle)]
extern "C" fn stream_data(now: f64, stream: u32, offset: f64) {
    arrive(now, |bytes| Arrival::Data {
        stream: StreamId(stream.into()),
        offset: offset as u64,
        bytes: Bytes::copy_from_slice(bytes),
    });
}

/// A stream has ended after so many bytes.
#[unsafe(no_mangle)]
extern "C" fn stream_finished(now: f64, stream: u32, length: f64) {
    arrive(now, |_| Arrival::Finished { stream: StreamId(stream.into()), length: length as u64 });
}

/// The other side has given up a stream.
#[unsafe(no_mangle)]
extern "C" fn stream_reset(now: f64, stream: u32, code: u32) {
    arrive(now, |_| Arrival::Reset { stream: StreamId(stream.into()), code });
}

/// The other side does not want a stream of this one.
#[unsafe(no_mangle)]
extern "C" fn stream_stopped(now: f64, stream: u32, code: u32) {
    arrive(now, |_| Arrival::Stopped { stream: StreamId(stream.into()), code });
}

/// A datagram has come.
#[unsafe(no_mangle)]
extern "C" fn datagram(now: f64) {
    arrive(now, |bytes| Arrival::Datagram { bytes: Bytes::copy_from_slice(bytes) });
}

/// The other side has ended the session, with this code and text.
#[unsafe(no_mangle)]
extern "C" fn closed(now: f64, code: u32) {
    arrive(now, |text| {
        let reason = CloseReason::from_wire(code, &String::from_utf8_lossy(text));
        Arrival::Closed { reason }
    });
}

/// The link is gone.
#[unsafe(no_mangle)]
extern "C" fn lost(now: f64) {
    arrive(now, |_| Arrival::Closed { reason: CloseReason::LinkLost("the browser lost it".to_owned()) });
}

/// So many bytes that were to be sent have not left.
#[unsafe(no_mangle)]
extern "C" fn unsent(now: f64, bytes: usize) {
    viewing(|viewer, _, _| viewer.set_unsent(time(now), bytes));
}

/// The session is on one stream of bytes from now on, of which nothing was read or written.
#[unsafe(no_mangle)]
extern "C" fn socket_begin(now: f64) {
    viewing(|viewer, _, _| viewer.begin_socket(time(now)));
}

/// Bytes have come on it.
#[unsafe(no_mangle)]
extern "C" fn socket_data(now: f64) {
    viewing(|viewer, input, _| viewer.receive_bytes(time(now), input));
}

/// What is to be sent on it next, where the browser has so many bytes that it has not sent: 0 nothing, 1 what is at
/// [`out`], 2 that and nothing more, for the socket is to be closed then, 3 nothing until the browser has sent some.
#[unsafe(no_mangle)]
extern "C" fn socket_poll(now: f64, buffered: usize) -> u32 {
    viewing(|viewer, _, out| {
        out.clear();
        let (kind, bytes) = match viewer.send_bytes(time(now), buffered) {
            Next::Nothing => (0, Vec::new()),
            Next::Bytes(bytes) => (1, bytes),
            Next::Last(bytes) => (2, bytes),
            Next::Wait => (3, Vec::new()),
        };
        *out = bytes;
        kind
    })
}

/// How many milliseconds a ping takes; less than 0 before one has come back.
#[unsafe(no_mangle)]
extern "C" fn round_trip() -> f64 {
    let trip = viewing(|viewer, _, _| viewer.round_trip());
    trip.map_or(-1.0, |trip| trip.as_secs_f64() * 1000.0)
}

/// What the link loses, in percent; less than 0 while that is not known.
#[unsafe(no_mangle)]
extern "C" fn loss() -> f64 {
    viewing(|viewer, _, _| viewer.loss()).map_or(-1.0, |share| share * 100.0)
}

/// Does what is due.
#[unsafe(no_mangle)]
extern "C" fn on_timeout(now: f64) {
    viewing(|viewer, _, _| viewer.on_timeout(time(now)));
}

/// When [`on_timeout`] is to be called; less than 0 for never.
#[unsafe(no_mangle)]
extern "C" fn next_timeout() -> f64 {
    let next = viewing(|viewer, _, _| viewer.next_timeout());
    next.map_or(-1.0, |at| at.since_start().as_secs_f64() * 1000.0)
}

/// Leaves the session.
#[unsafe(no_mangle)]
extern "C" fn leave(now: f64) {
    viewing(|viewer, _, _| viewer.leave(time(now)));
}

/// What is to be done next with the link: 0 nothing, 1 open a stream (stream, priority), 2 append to it (stream; 1 if
/// it ends so), 3 give it a priority (stream, priority), 4 reset it (stream, code), 5 stop one of the other side's
/// (stream, code), 6 send a datagram, 7 end the session (code). Bytes are at [`out`].
#[unsafe(no_mangle)]
extern "C" fn poll_transmit(now: f64) -> u32 {
    with(|State { viewer, out, numbers, .. }| {
        out.clear();
        let stream = |stream: StreamId| u32::try_from(stream.0).unwrap_or(u32::MAX);
        let Some(transmit) = viewer.as_mut().and_then(|viewer| viewer.poll_transmit(time(now))) else {
            return 0;
        };
        let (kind, first, second) = match transmit {
            Transmit::Open { stream: id, priority } => (1, stream(id), priority.0.cast_unsigned()),
            Transmit::Data { stream: id, bytes, finish } => {
                out.extend_from_slice(&bytes);
                (2, stream(id), finish.into())
            }
            Transmit::Prioritise { stream: id, priority } => (3, stream(id), priority.0.cast_unsigned()),
            Transmit::Reset { stream: id, code } => (4, stream(id), code),
            Transmit::Stop { stream: id, code } => (5, stream(id), code),
            Transmit::Datagram { bytes } => {
                out.extend_from_slice(&bytes);
                (6, 0, 0)
            }
            Transmit::Close { code, reason } => {
                out.extend_from_slice(reason.as_bytes());
                (7, code, 0)
            }
        };
        *numbers = [first, second, 0];
        kind
    })
}

/// What has happened: 0 nothing, 1 the page is let in, 2 a program is not shown any more (why is at [`out`]), 3 the
/// link is lost and there may be another ([`resume`]), 4 the session goes on over that, 5 the same, but all is told
/// anew, 6 keys are passed over until those that wait have gone; and it is over: 10 it is done, 11 the ticket is not
/// good, 12 there are too many viewers, 13 another build, 14 the link was lost, 15 a rule was broken, 16 another
/// display has taken the session, 17 its link was taken back, 18 the session goes on without the page that came again.
#[unsafe(no_mangle)]
extern "C" fn poll_notice() -> u32 {
    viewing(|viewer, _, out| {
        out.clear();
        match viewer.poll_notice() {
            None => 0,
            Some(Notice::Welcome) => 1,
            Some(Notice::NotShown(why)) => {
                out.extend_from_slice(why.as_bytes());
                2
            }
            Some(Notice::Away) => 3,
            Some(Notice::Back) => 4,
            Some(Notice::Anew) => 5,
            Some(Notice::Missed) => 6,
            Some(Notice::Over(over)) => match over {
                Over::Done => 10,
                Over::Refused => 11,
                Over::Full => 12,
                Over::Incompatible => 13,
                Over::Lost => 14,
                Over::Broken => 15,
                Over::Taken => 16,
                Over::Revoked => 17,
                Over::Forgotten => 18,
            },
        }
    })
}

/// Whether there is something new to be drawn.
#[unsafe(no_mangle)]
extern "C" fn wants_frame() -> u32 {
    viewing(|viewer, _, _| viewer.page().wants_frame().into())
}

/// Everything that there is has been drawn, in the frame that the browser began at `began`.
#[unsafe(no_mangle)]
extern "C" fn on_frame(now: f64, began: f64) {
    viewing(|viewer, _, _| viewer.on_frame(time(now), time(began)));
}

/// What there is to be drawn, at [`out`]: the words of [`Drawing`]. Its text is given by [`text`].
#[unsafe(no_mangle)]
extern "C" fn drawing() {
    with(|State { viewer, out, text, .. }| {
        out.clear();
        let Some(viewer) = viewer else { return };
        let drawing = Drawing::of(viewer.page());
        out.extend(drawing.words.iter().flat_map(|word| word.to_le_bytes()));
        *text = drawing.text;
    });
}

/// The text of the last drawing, at [`out`].
#[unsafe(no_mangle)]
extern "C" fn text() {
    with(|State { out, text, .. }| {
        out.clear();
        out.extend_from_slice(text.as_bytes());
    });
}

/// What is to be painted anew of a surface, at [`out`]: of each rectangle four words, x, y, width and height. Gives how
/// many there are, or −1 if all of it is to be.
#[unsafe(no_mangle)]
extern "C" fn damage(program: u32, low: u32, high: u32) -> i32 {
    viewing(|viewer, _, out| {
        out.clear();
        let program = viewer.page().program(ConnectionId(program));
        match program.and_then(|program| program.take_damage(whole(low, high))) {
            None => 0,
            Some(Damage::All) => -1,
            Some(Damage::Part(region)) => {
                for rect in region.rects() {
                    let words = [rect.x, rect.y, rect.width, rect.height];
                    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                }
                // A region has at most 256.
                region.rects().len() as i32
            }
        }
    })
}

/// The pixels of a part of a surface, at [`out`], as `ImageData` has them.
#[unsafe(no_mangle)]
extern "C" fn pixels(program: u32, low: u32, high: u32, x: u32, y: u32, width: u32, height: u32) {
    viewing(|viewer, _, out| {
        out.clear();
        let program = viewer.page().program(ConnectionId(program));
        if let Some(content) = program.and_then(|program| program.content(whole(low, high))) {
            *out = rgba(content, Rect::new(x, y, width, height));
        }
    });
}

/// Windows are to fill so many units; `scale` is how many pixels there are for a unit, in 120ths.
#[unsafe(no_mangle)]
extern "C" fn set_area(now: f64, width: u32, height: u32, scale: u32) {
    act(now, Act::Area(Area::new(width, height, scale)));
}

/// The user works in the window of that surface.
#[unsafe(no_mangle)]
extern "C" fn focus_window(now: f64, program: u32, low: u32, high: u32) {
    act(now, Act::Focus(ConnectionId(program), whole(low, high)));
}

/// The window of that surface is to be closed.
#[unsafe(no_mangle)]
extern "C" fn close_window(now: f64, program: u32, low: u32, high: u32) {
    act(now, Act::Close(ConnectionId(program), whole(low, high)));
}

/// The pointer is there in the window of that surface, in units from the corner of the window, without shadows.
#[unsafe(no_mangle)]
extern "C" fn pointer_move(now: f64, program: u32, low: u32, high: u32, x: f64, y: f64) {
    act(now, Act::Point(ConnectionId(program), whole(low, high), [x, y]));
}

/// The pointer is in no window.
#[unsafe(no_mangle)]
extern "C" fn pointer_leave(now: f64) {
    act(now, Act::PointNowhere);
}

/// A button goes down if `pressed` is 1, else up; its code is evdev's, 272 for the first.
#[unsafe(no_mangle)]
extern "C" fn button(now: f64, code: u32, pressed: u32) {
    act(now, Act::Button(code, pressed == 1));
}

/// A wheel turns by so many units and 120ths of steps; without steps, fingers move on a touchpad, and with nothing at
/// all they have left it.
#[unsafe(no_mangle)]
extern "C" fn wheel(now: f64, dx: f64, dy: f64, steps_x: i32, steps_y: i32) {
    let wheel = Wheel { distance: [dx, dy], steps: [steps_x, steps_y] };
    act(now, Act::Wheel(wheel));
}

/// A key goes down if `pressed` is 1, else up; its code is evdev's. `level` is 1 with shift and 2 with the third
/// level's, together; where caps lock makes another letter, it is that letter's. The character that the browser says is
/// given in UTF-8, none if it is not known.
#[unsafe(no_mangle)]
extern "C" fn key(now: f64, code: u32, level: u32, pressed: u32) {
    viewing(|viewer, input, _| {
        let mut text = str::from_utf8(input).unwrap_or_default().chars();
        // More than one is no character of a key.
        let character = text.next().filter(|_| text.next().is_none());
        let level = Level::of(level).unwrap_or(Level::Plain);
        viewer.act(time(now), Act::Key { code, level, character, pressed: pressed == 1 });
    });
}

/// The modifiers are these: 1 shift, 2 caps lock, 4 control, 8 alt, 16 num lock, 64 super, 128 the third level's.
#[unsafe(no_mangle)]
extern "C" fn modifiers(now: f64, bits: u32) {
    act(now, Act::Modifiers(bits));
}

/// The browser's keyboard has the characters that are given in UTF-8: one for each key, behind the character whose
/// number is the key's code.
#[unsafe(no_mangle)]
extern "C" fn layout(now: f64) {
    viewing(|viewer, input, _| {
        let mut text = str::from_utf8(input).unwrap_or_default().chars();
        // One keyboard has no more keys.
        let pairs = std::iter::from_fn(|| Some((text.next()?.into(), text.next()?))).take(256);
        viewer.act(time(now), Act::Layout(pairs.collect()));
    });
}

/// Text is typed that comes from no key, given in UTF-8.
#[unsafe(no_mangle)]
extern "C" fn type_text(now: f64) {
    viewing(|viewer, input, _| {
        let text = str::from_utf8(input).unwrap_or_default();
        viewer.act(time(now), Act::Text(text.to_owned()));
    });
}

/// The script hears of no keys and buttons any more: all that are down go up.
#[unsafe(no_mangle)]
extern "C" fn blur(now: f64) {
    act(now, Act::Release);
}

/// What the browser's clipboard has is pasted: text in UTF-8, or a picture, as PNG, if `picture` is 1; `is_new` is 1
/// unless the browser was known to have it.
#[unsafe(no_mangle)]
extern "C" fn offer(now: f64, picture: u32, is_new: u32) {
    viewing(|viewer, input, _| {
        let bytes = Bytes::copy_from_slice(input);
        let clip = if picture == 1 { Clip::Picture(bytes) } else { Clip::Text(bytes) };
        viewer.act(time(now), Act::Offer(clip, is_new == 1));
    });
}

/// What a program has copied since: 0 nothing, 1 text in UTF-8, 2 a picture, as PNG; it is at [`out`].
#[unsafe(no_mangle)]
extern "C" fn poll_copied() -> u32 {
    viewing(|viewer, _, out| {
        let copied = viewer.page().poll_copied();
        let kind = match copied {
            None => 0,
            Some(Clip::Text(_)) => 1,
            Some(Clip::Picture(_)) => 2,
        };
        *out = copied.map(|(Clip::Text(bytes) | Clip::Picture(bytes))| bytes.to_vec()).unwrap_or_default();
        kind
    })
}

/// What the pointer looks like: 0 as it does by default, 1 it is not to be seen, 2 as a surface (its words, as
/// [`Drawing`] has them, are at [`out`]), 3 as style sheets name it (the name is at [`out`]).
#[unsafe(no_mangle)]
extern "C" fn cursor() -> u32 {
    viewing(|viewer, _, out| {
        out.clear();
        match viewer.page().cursor() {
            Cursor::Default => 0,
            Cursor::Hidden => 1,
            Cursor::Surface { connection, node, hotspot } => {
                let drawing = Drawing::of_cursor(connection, &node, hotspot);
                out.extend(drawing.words.iter().flat_map(|word| word.to_le_bytes()));
                2
            }
            Cursor::Named(name) => {
                out.extend_from_slice(name.as_bytes());
                3
            }
        }
    })
}

/// What the decoders of videos are to do next: 0 nothing, 1 decode the frame at [`out`] (decoder, which is a new one if
/// nothing was heard of it; the frame's number; 1 if it is a key frame), 2 end (decoder).
#[unsafe(no_mangle)]
extern "C" fn poll_task() -> u32 {
    with(|State { viewer, out, numbers, .. }| {
        out.clear();
        match viewer.as_mut().and_then(|viewer| viewer.page().poll_task()) {
            None => 0,
            Some(Task::Decode { decoder, number, is_key, data }) => {
                *numbers = [decoder, number, is_key.into()];
                *out = data;
                1
            }
            Some(Task::End { decoder }) => {
                *numbers = [decoder, 0, 0];
                2
            }
        }
    })
}

/// The frame with this number was decoded: its planes, without gaps, as I420 if `layout` is 0, or as NV12 if it is 1.
#[unsafe(no_mangle)]
extern "C" fn decoded_frame(now: f64, number: u32, layout: u32) {
    viewing(|viewer, input, _| {
        let layout = if layout == 1 { Layout::Nv12 } else { Layout::I420 };
        let planes = input.to_vec();
        viewer.on_videos(time(now), |page| page.on_decoded(time(now), number, layout, planes));
    });
}

/// The frame with this number will not be decoded, nor what follows on it.
#[unsafe(no_mangle)]
extern "C" fn undecodable_frame(now: f64, number: u32) {
    viewing(|viewer, _, _| viewer.on_videos(time(now), |page| page.on_undecodable(time(now), number)));
}

/// Whether the session has sound that may be heard.
#[unsafe(no_mangle)]
extern "C" fn may_sound() -> u32 {
    viewing(|viewer, _, _| viewer.may_sound().into())
}

/// How the page wants to hear it: 0 not at all, 1 in Opus, 2 as samples.
#[unsafe(no_mangle)]
extern "C" fn listen(now: f64, codec: u32) {
    let codec = u8::try_from(codec).ok().and_then(Codec::of_track);
    viewing(|viewer, _, _| viewer.listen(time(now), codec));
}

/// Gives the number of a packet of Opus to decode, which is at [`out`], or 0.
#[unsafe(no_mangle)]
extern "C" fn poll_encoded() -> u32 {
    viewing(|viewer, _, out| {
        let (number, payload) = viewer.sound().poll_encoded().unwrap_or_default();
        *out = payload;
        number
    })
}

/// The packet with this number was decoded, and those before it will not be: 32-bit samples of the left channel, and
/// then as many of the right.
#[unsafe(no_mangle)]
extern "C" fn decoded(number: u32) {
    viewing(|viewer, input, _| {
        let (left, right) = input.split_at(input.len() / 2);
        let each =
            |bytes: &[u8]| bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let (left, right): (Vec<f32>, Vec<f32>) = (each(left), each(right));
        let both: Vec<f32> = left.iter().zip(&right).flat_map(|(left, right)| [*left, *right]).collect();
        viewer.sound().decoder().decoded(number, &both);
    });
}

/// What was to be decoded will not be: there is another decoder from now on, or none.
#[unsafe(no_mangle)]
extern "C" fn undecoded() {
    viewing(|viewer, _, _| viewer.sound().decoder().failed());
}

/// The page's loudspeaker asks for sound: it has so many frames, had so many at the least since it asked last, did not
/// have so many when it should have played them, and plays them so many milliseconds before they are heard.
#[unsafe(no_mangle)]
extern "C" fn ask_sound(now: f64, held: u32, spare: u32, missed: u32, latency: f64) {
    let latency = time(latency).since_start();
    viewing(|viewer, _, _| viewer.sound().ask(time(now), Ask { held, spare, missed, latency }));
}

/// Gives 1 if there is an answer, at [`out`]: 32-bit samples of the left and the right channel by turns.
#[unsafe(no_mangle)]
extern "C" fn answer_sound(now: f64) -> u32 {
    viewing(|viewer, _, out| {
        let answer = viewer.sound().answer(time(now));
        out.clear();
        out.extend(answer.iter().flatten().flat_map(|sample| sample.to_le_bytes()));
        answer.is_some().into()
    })
}

fn act(now: f64, act: Act) {
    viewing(|viewer, _, _| viewer.act(time(now), act));
}

/// Bytes that the page keeps.
#[unsafe(no_mangle)]
extern "C" fn kept() -> usize {
    viewing(|viewer, _, _| viewer.page().kept())
}

/// A place in memory; none by default.
struct Address(*mut u8);

impl Default for Address {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}
