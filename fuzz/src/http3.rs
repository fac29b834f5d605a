//! HTTP/3 from the peer: the frames of its streams, and its field sections.
//!
//! Input: which parser, in one byte; for frames the size of the pieces that they come in, for sections and Huffman's
//! code the limit; then what the peer sends. The sections that frames have are read, too.

use bytes::Bytes;

use crate::Input;
use crate::http3_wire::fault::Fault;
use crate::http3_wire::fields::{self, Kind, LINE, Section};
use crate::http3_wire::frames::{Frame, Frames, Phase};
use crate::http3_wire::huffman;

/// Streams say the same in any pieces, with no more than the limit of each frame. A section is no larger than its limit
/// says, has only fields that may be sent, and is the same when it is written and read again.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 8 {
        0 => stream(&mut input, Phase::Headers, Kind::Request),
        1 => stream(&mut input, Phase::Headers, Kind::Response),
        2 => stream(&mut input, Phase::Settings, Kind::Request),
        3 => stream(&mut input, Phase::Settings, Kind::Response),
        4 => section(&mut input, Kind::Request),
        5 => section(&mut input, Kind::Response),
        6 => section(&mut input, Kind::Trailers),
        _ => text(&mut input),
    }
}

/// What a peer says on a stream, data joined, and how it ended.
type Told = (Vec<Frame>, Result<(), Fault>);

fn stream(input: &mut Input<'_>, phase: Phase, kind: Kind) {
    let size = usize::from(input.u8()) + 1;
    let (whole, outcome) = read(input.0, input.0.len().max(1), phase, kind);
    let (pieces, again) = read(input.0, size, phase, kind);
    assert_eq!(outcome, again, "the pieces matter");
    // Before a fault less of the data may have been given.
    assert!(outcome.is_err() || whole == pieces, "the pieces matter");
}

fn read(bytes: &[u8], size: usize, phase: Phase, kind: Kind) -> Told {
    let mut frames = Frames::new(phase, kind == Kind::Response, LIMIT);
    let mut told: Vec<Frame> = Vec::new();
    for piece in bytes.chunks(size) {
        frames.give(Bytes::copy_from_slice(piece));
        loop {
            match frames.next() {
                Ok(Some(frame)) => add(&mut told, frame, kind),
                Ok(None) => break,
                Err(fault) => return (told, Err(fault)),
            }
        }
    }
    let ended = frames.end();
    let rest = frames.rest();
    assert!(rest.is_none_or(|rest| rest.len() < 16), "more than the head of a frame is left");
    (told, ended)
}

fn add(told: &mut Vec<Frame>, frame: Frame, kind: Kind) {
    match frame {
        Frame::Data(pieces) => {
            let data = pieces.concat();
            assert!(!data.is_empty(), "nothing is told as data");
            match told.last_mut() {
                Some(Frame::Data(before)) => before[0] = [&before[0][..], &data].concat().into(),
                _ => told.push(Frame::Data(vec![data.into()])),
            }
        }
        Frame::Section(bytes, trailers) => {
            assert!(bytes.len() <= LIMIT, "a section of {} bytes", bytes.len());
            let kind = if trailers { Kind::Trailers } else { kind };
            drop(fields::decode(&bytes, kind, LIMIT));
            told.push(Frame::Section(bytes, trailers));
        }
        other => told.push(other),
    }
}

fn section(input: &mut Input<'_>, kind: Kind) {
    let limit = usize::from(input.u16());
    let Ok(read) = fields::decode(input.0, kind, limit) else { return };
    let lines = lines(&read);
    let size: usize = lines.iter().map(|(name, value)| name.len() + value.len() + LINE).sum();
    assert!(size <= limit, "{size} bytes of at most {limit}");
    for (name, value) in &lines {
        assert_eq!(fields::check(name, value), Ok(()), "{}", name.escape_ascii());
    }
    let written = fields::encode(lines.iter().map(|(name, value)| (&name[..], &value[..])));
    assert_eq!(fields::decode(&written, kind, limit).as_ref(), Ok(&read), "not what was written");
}

/// All fields of a section, in the order in which they are sent.
fn lines(section: &Section) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pseudo = section.pseudo.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec()));
    pseudo.chain(section.fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec()))).collect()
}

fn text(input: &mut Input<'_>) {
    let limit = usize::from(input.u16());
    if let Some(text) = huffman::decode(input.0, limit) {
        assert!(text.len() <= limit, "{} bytes of at most {limit}", text.len());
        assert!(input.0.len() * 8 < (text.len() + 1) * 30 + 8, "bits that say nothing");
    }
}

/// A frame, for seeds.
pub fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::http3_wire::frames::put_number(&mut bytes, kind);
    crate::http3_wire::frames::put_number(&mut bytes, content.len() as u64);
    bytes.extend(content);
    bytes
}

/// A field section, for seeds.
pub fn fields(lines: &[(&str, &str)]) -> Vec<u8> {
    fields::encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
}

/// Bytes of a frame that is read as a whole, and of a section.
const LIMIT: usize = 4096;
