//! What the page's module of WebAssembly takes to make pixels of updates, beside the same natively.
//!
//! One session with a page that views is played here, and what the page receives in it is kept. That is played once
//! more in the browser, in the module that `share` serves. Timed is what follows each picture: all of its bytes are
//! taken, and its pixels given as a canvas has them. Invariant: both get the same bytes, and give the same pixels.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use wayferry_host::settings::Compress;
use wayferry_message::{Request, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_page::{Role, rgba};
use wayferry_page_wasm::viewer::{Ticket, Viewer};
use wayferry_proto::{
    Arrival, Capabilities, ChannelId, Config, ConnectionId, Header, HostTime, Secret, Session, SessionId,
    Side, StreamId, SurfaceId, Time, Transmit, UpdateHeader, UpdateSeq,
};
use wayferry_scenes::codec::Codec;
use wayferry_scenes::{Canvas, Color, Frame, Rect, Scene, Sequence, photograph};
use wayferry_stage::now;

use super::desk::Desk;
use super::row;
use super::row::{Row, Target};
use crate::bench::pixels::Wayferry;
use crate::error::{Error, SessionError};

/// Milliseconds for each picture.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    native: Vec<f64>,
    page: Vec<f64>,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A terminal full of text.
    Text,
    Photograph,
}

/// Plays so many pictures of a kind, each in the place of the one before.
pub(super) fn measure(desk: &mut Desk<'_>, kind: Kind, count: usize) -> Result<Decoded, Error> {
    let mut stage = Stage::new()?;
    desk.evaluate(include_str!("decode.js"))?;
    let mut decoded = Decoded::default();
    for number in 0..WARM + count {
        let (native, sum) = stage.show(&kind.picture(number as u64))?;
        let told = desk.evaluate(&format!("decode({})", script(&std::mem::take(&mut stage.received))))?;
        if told["sum"].as_u64() != Some(sum) {
            return Err(SessionError::Lost(format!("the page decodes other pixels: {told}")).into());
        }
        if number >= WARM {
            decoded.native.push(native);
            decoded.page.extend(told["time"].as_f64());
        }
    }
    Ok(decoded)
}

/// What is told of a kind.
pub(super) fn told(kind: Kind, Decoded { native, page }: Decoded) -> Vec<Row> {
    let [ratio, in_page, alone] = match kind {
        Kind::Text => ["decode-text", "text-in-page", "text-native"],
        Kind::Photograph => ["decode-photo", "photo-in-page", "photo-native"],
    };
    let ratios = page.iter().zip(&native).map(|(page, native)| page / native).collect();
    let row = |case, unit, figures, target| row(case, unit, 0.0, [figures, vec![], vec![]], target);
    vec![
        row(ratio, "×", ratios, Some(Target::AtMost(0.5, 2.0))),
        row(in_page, "ms", page, None),
        row(alone, "ms", native, None),
    ]
}

impl Kind {
    fn picture(self, seed: u64) -> Canvas {
        let (width, height) = SIZE;
        match self {
            Self::Photograph => photograph(width, height, seed),
            Self::Text => {
                let scene = Scene::new(Sequence::Term, seed);
                let mut canvas = Canvas::new(width, height, Color(0, 0, 0));
                canvas.pixels_mut().copy_from_slice(scene.frame().pixels);
                canvas
            }
        }
    }
}

/// An app side with one window, and a page that views it.
struct Stage {
    codec: Wayferry,
    host: Session,
    viewer: Viewer,
    channel: ChannelId,
    shown: u64,
    /// How far each of the host's streams and the page's is.
    streams: [BTreeMap<StreamId, u64>; 2],
    /// What the page has received that the browser has not.
    received: Vec<Arrival>,
    /// What the page has taken for it.
    taken: Duration,
}

impl Stage {
    fn new() -> Result<Self, Error> {
        let secret = || Secret::from(SECRET);
        let mut host = Session::new(Config {
            session: SESSION,
            accepted_secrets: vec![secret()],
            capabilities: Capabilities::VIEW,
            ..Config::new(Side::App)
        });
        let ticket = Ticket { session: SESSION, secret: secret(), incarnation: secret() };
        let viewer = Viewer::new(Role::View, ticket, Time::ZERO, HostTime(0));
        let channel = host.open(Header::Wayland { connection: PROGRAM });
        let (width, height) = SIZE;
        let mut stage = Self {
            codec: Wayferry::new(Compress::default(), width, height)?,
            host,
            viewer,
            channel,
            shown: 0,
            streams: Default::default(),
            received: Vec::new(),
            taken: Duration::ZERO,
        };
        stage.settle();
        for message in window() {
            stage.say(&message)?;
        }
        Ok(stage)
    }

    fn say(&mut self, message: &ToDisplay) -> Result<(), Error> {
        self.host.send(self.channel, &message.encode()).map_err(|error| lost(&error.to_string()))
    }

    /// Shows a picture; gives the milliseconds that the page takes, and the sum of its pixels.
    fn show(&mut self, picture: &Canvas) -> Result<(f64, u64), Error> {
        let (width, height) = SIZE;
        let damage = [Rect::new(0, 0, width, height)];
        let frame = Frame { width, height, pixels: picture.pixels(), damage: &damage, scroll: None };
        self.codec.draw(&frame);
        let chunks = self.codec.encode(&frame);
        self.shown += 1;
        let seq = UpdateSeq(self.shown);
        let header = UpdateHeader {
            connection: PROGRAM,
            surface: SurfaceId(SURFACE.0),
            seq,
            size: SIZE,
            format: 1,
            fresh: self.shown == 1,
            covers: 0,
            unit: None,
        };
        self.host.send_update(header, chunks).map_err(|error| lost(&error.to_string()))?;
        self.say(&shows(self.shown))?;
        self.taken = Duration::ZERO;
        self.settle();
        let start = now();
        let program = self.viewer.page().program(PROGRAM).ok_or_else(|| lost("no program"))?;
        let content = program.content(SURFACE).ok_or_else(|| lost("no picture"))?;
        let pixels = rgba(content, content.size().rect());
        let time = (self.taken + now() - start).as_secs_f64() * 1e3;
        self.viewer.on_frame(Time::ZERO, Time::ZERO);
        Ok((time, sum(&pixels)))
    }

    /// Carries what both say.
    fn settle(&mut self) {
        loop {
            let mut is_idle = true;
            let start = now();
            let said: Vec<_> = std::iter::from_fn(|| self.viewer.poll_transmit(Time::ZERO)).collect();
            self.taken += now() - start;
            for transmit in said {
                is_idle = false;
                for arrival in carry(&mut self.streams[0], transmit) {
                    self.host.receive(Time::ZERO, arrival);
                }
            }
            while self.host.poll_event().is_some() {}
            while let Some(transmit) = self.host.poll_transmit(Time::ZERO) {
                is_idle = false;
                for arrival in carry(&mut self.streams[1], transmit) {
                    self.received.push(arrival.clone());
                    let start = now();
                    self.viewer.receive(Time::ZERO, arrival);
                    self.taken += now() - start;
                }
            }
            if is_idle {
                return;
            }
        }
    }
}

/// What the other side receives.
fn carry(streams: &mut BTreeMap<StreamId, u64>, transmit: Transmit) -> Vec<Arrival> {
    let Transmit::Data { stream, bytes, finish } = transmit else { return Vec::new() };
    let length = streams.entry(stream).or_default();
    let offset = *length;
    *length += bytes.len() as u64;
    let end = finish.then_some(Arrival::Finished { stream, length: *length });
    [Arrival::Data { stream, offset, bytes }].into_iter().chain(end).collect()
}

/// What was received, as a list in JavaScript: of data the stream, where it begins and its bytes in hexadecimal
/// digits, of an end the stream and its length.
fn script(received: &[Arrival]) -> String {
    let mut script = String::from("[");
    for arrival in received {
        match arrival {
            Arrival::Data { stream, offset, bytes } => {
                let _ = write!(script, "[{},{offset},\"", stream.0);
                for byte in bytes {
                    let _ = write!(script, "{byte:02x}");
                }
                script.push_str("\"],");
            }
            Arrival::Finished { stream, length } => {
                let _ = write!(script, "[{},{length}],", stream.0);
            }
            _ => {}
        }
    }
    script.push(']');
    script
}

/// Of 32-bit words, with what is beyond 32 bits left out.
fn sum(pixels: &[u8]) -> u64 {
    let words = pixels.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
    words.fold(0u32, |sum, word| sum.wrapping_mul(31).wrapping_add(word)).into()
}

/// A window on that surface, which shows nothing yet.
fn window() -> Vec<ToDisplay> {
    let bind = |global, interface: &str, id| ToDisplay::Bind {
        global,
        interface: interface.to_owned(),
        version: 1,
        id: WireId(id),
    };
    let ask = |object, opcode, args| ToDisplay::Request(Request { object: WireId(object), opcode, args });
    let (new, object) = (WireArg::NewId, WireArg::Object);
    vec![
        bind(1, "wl_compositor", 4),
        bind(3, "xdg_wm_base", 6),
        ask(4, 0, vec![new(SURFACE)]),
        ask(6, 2, vec![new(WireId(10)), object(SURFACE)]),
        ask(10, 1, vec![new(WireId(12))]),
    ]
}

/// The window shows that update.
fn shows(number: u64) -> ToDisplay {
    ToDisplay::Unit(Unit {
        surface: SURFACE,
        number,
        state: Vec::new(),
        content: UnitContent::Update(UpdateSeq(number)),
        offset: (0, 0),
        feedback: false,
        answered: None,
        children: Vec::new(),
    })
}

fn lost(what: &str) -> Error {
    SessionError::Lost(format!("the page that is measured: {what}")).into()
}

/// Of what is shown: that of the sequence with text.
const SIZE: (u32, u32) = (1920, 1080);
/// Pictures that are not counted, until the browser has compiled what they need.
const WARM: usize = 3;

const PROGRAM: ConnectionId = ConnectionId(1);
const SURFACE: WireId = WireId(8);
/// Known to `decode.js`.
const SESSION: SessionId = SessionId([1; 16]);
const SECRET: [u8; 32] = [7; 32];
