//! HTTP/3's frames and field sections: what was written is read back, however it is cut, and nothing that a peer can
//! send makes the reader fail, keep more than its limit, or give what is not well-formed.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

#[path = "../src/http3/fault.rs"]
mod fault;
#[allow(dead_code, reason = "its other callers are in the module that loads it")]
#[path = "../src/http3/fields.rs"]
mod fields;
#[allow(dead_code, reason = "its other callers are in the module that loads it")]
#[path = "../src/http3/frames.rs"]
mod frames;
#[path = "../src/http3/huffman.rs"]
mod huffman;
#[path = "../src/http3/table.rs"]
mod table;

use fault::Fault;
use fields::{Kind, Section};
use frames::{DATA, Frame, Frames, HEADERS, Phase, put_number};

const LIMIT: usize = 4096;

fn frame(kind: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, kind);
    put_number(&mut bytes, content.len() as u64);
    bytes.extend(content);
    bytes
}

/// Everything that `bytes` say when they come in pieces of `size`, the data joined; and how it ended.
fn read(phase: Phase, from_server: bool, bytes: &[u8], size: usize) -> (Vec<Frame>, Result<(), Fault>) {
    let mut frames = Frames::new(phase, from_server, LIMIT);
    let mut told: Vec<Frame> = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        frames.give(Bytes::copy_from_slice(piece));
        loop {
            match frames.next() {
                Ok(None) => break,
                Err(fault) => return (told, Err(fault)),
                Ok(Some(Frame::Data(pieces))) => {
                    let data: Bytes = pieces.concat().into();
                    match told.last_mut() {
                        Some(Frame::Data(before)) => before.push(data),
                        _ => told.push(Frame::Data(vec![data])),
                    }
                }
                Ok(Some(frame)) => told.push(frame),
            }
        }
    }
    let joined = told.into_iter().map(|frame| match frame {
        Frame::Data(pieces) => Frame::Data(vec![pieces.concat().into()]),
        other => other,
    });
    (joined.collect(), frames.end())
}

fn code(result: Result<(), Fault>) -> u64 {
    result.expect_err("a fault").code
}

#[test]
fn a_message_is_read_in_pieces_of_any_size() {
    let mut bytes = frame(HEADERS, b"head");
    bytes.extend(frame(0x21, b"grease"));
    bytes.extend(frame(DATA, &[7; 300]));
    bytes.extend(frame(DATA, b""));
    bytes.extend(frame(DATA, b"more"));
    bytes.extend(frame(HEADERS, b"trailers"));
    let data = [&[7; 300][..], b"more"].concat();
    let expected = vec![
        Frame::Section(Bytes::from_static(b"head"), false),
        Frame::Data(vec![data.into()]),
        Frame::Section(Bytes::from_static(b"trailers"), true),
    ];
    for size in 1..bytes.len() + 1 {
        assert_eq!(read(Phase::Headers, false, &bytes, size), (expected.clone(), Ok(())), "{size}");
    }
}

/// RFC 9114 §4.1, §7.1, §7.2.8.
#[test]
fn what_must_not_come_is_refused_by_its_code() {
    let message = |bytes: &[u8]| code(read(Phase::Headers, true, bytes, 7).1);
    assert_eq!(message(&frame(DATA, b"first")), fault::FRAME_UNEXPECTED);
    assert_eq!(message(&frame(0x4, b"")), fault::FRAME_UNEXPECTED);
    assert_eq!(message(&frame(0x8, b"")), fault::FRAME_UNEXPECTED);
    assert_eq!(message(&frame(0xf0700, b"")), fault::FRAME_UNEXPECTED);
    assert_eq!(message(&frame(0x5, b"")), fault::ID_ERROR);
    assert_eq!(message(&frame(HEADERS, &[0; LIMIT + 1])), fault::EXCESSIVE_LOAD);
    assert_eq!(message(&frame(HEADERS, b"cut off")[..4]), fault::FRAME_ERROR);
    assert_eq!(
        message(&[frame(HEADERS, b""), frame(DATA, b"cut off")[..4].to_vec()].concat()),
        fault::FRAME_ERROR
    );
    assert_eq!(message(&frame(HEADERS, b"").repeat(3)), fault::FRAME_UNEXPECTED);
    assert_eq!(
        message(&[frame(HEADERS, b""), frame(DATA, b"").repeat(2000)].concat()),
        fault::EXCESSIVE_LOAD
    );
    assert_eq!(message(&frame(0x21, b"").repeat(2000)), fault::EXCESSIVE_LOAD);
}

/// RFC 9114 §6.2.1, §7.2.
#[test]
fn a_control_stream_begins_with_its_settings() {
    let mut settings = Vec::new();
    for number in [6, 1000, 8, 1, 0x21, 1 << 40] {
        put_number(&mut settings, number);
    }
    let bytes =
        [frame(0x4, &settings), frame(0x21, b"x"), frame(0xf0700, b"\x04u=1"), frame(0x7, b"\x08")].concat();
    let expected = vec![Frame::Settings(vec![(6, 1000), (8, 1), (0x21, 1 << 40)]), Frame::GoAway(8)];
    assert_eq!(read(Phase::Settings, false, &bytes, 3), (expected, Ok(())));
    let control = |from_server, bytes: &[u8]| code(read(Phase::Settings, from_server, bytes, 5).1);
    let settings = |content: &[u8]| frame(0x4, content);
    assert_eq!(control(false, &frame(0x7, b"\0")), fault::MISSING_SETTINGS);
    assert_eq!(control(false, &settings(b"").repeat(2)), fault::FRAME_UNEXPECTED);
    assert_eq!(control(false, &settings(b"\x06\x01\x06\x01")), fault::SETTINGS_ERROR);
    assert_eq!(control(false, &settings(b"\x02\x01")), fault::SETTINGS_ERROR);
    assert_eq!(control(false, &settings(b"\x06")), fault::FRAME_ERROR);
    assert_eq!(control(false, &[settings(b""), frame(DATA, b"")].concat()), fault::FRAME_UNEXPECTED);
    assert_eq!(control(false, &[settings(b""), frame(0x7, b"\0\0")].concat()), fault::FRAME_ERROR);
    assert_eq!(control(true, &[settings(b""), frame(0xd, b"\0")].concat()), fault::FRAME_UNEXPECTED);
    assert_eq!(control(true, &[settings(b""), frame(0xf0700, b"\0")].concat()), fault::FRAME_UNEXPECTED);
}

/// RFC 9218 §7.2.
#[test]
fn priorities_are_of_requests() {
    let control = |kind, content: &[u8]| {
        let bytes = [frame(0x4, b""), frame(kind, content)].concat();
        read(Phase::Settings, false, &bytes, 3).1
    };
    for content in [&b"\0u=1, i"[..], b"\x04", b"\x40\x08u=9", b"\x08=,\xff"] {
        assert_eq!(control(0xf0700, content), Ok(()), "{content:?}");
    }
    for content in [&b""[..], b"\x40"] {
        assert_eq!(code(control(0xf0700, content)), fault::FRAME_ERROR, "{content:?}");
        assert_eq!(code(control(0xf0701, content)), fault::FRAME_ERROR, "{content:?}");
    }
    for id in [b"\x01", b"\x02", b"\x03"] {
        assert_eq!(code(control(0xf0700, id)), fault::ID_ERROR, "{id:?}");
    }
    assert_eq!(code(control(0xf0701, b"\0u=1")), fault::ID_ERROR);
}

/// RFC 7541 Appendix C.4, C.6.
#[test]
fn huffmans_code_is_that_of_the_standard() {
    let texts: [(&[u8], &[u8]); 5] = [
        (b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", b"www.example.com"),
        (b"\xa8\xeb\x10\x64\x9c\xbf", b"no-cache"),
        (b"\x64\x02", b"302"),
        (b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3", b"https://www.example.com"),
        (b"", b""),
    ];
    for (coded, text) in texts {
        assert_eq!(huffman::decode(coded, text.len()).as_deref(), Some(text));
    }
    assert_eq!(huffman::decode(b"\x64\x02", 2), None, "more than the limit");
    assert_eq!(huffman::decode(b"\xff", 9), None, "too much padding");
    assert_eq!(huffman::decode(b"\x18", 9), None, "padding of zeros");
    assert_eq!(huffman::decode(b"\xff\xff\xff\xff", 9), None, "the end of a string");
}

/// RFC 9204 Appendix B.1.
#[test]
fn a_section_of_the_standard_is_read() {
    let section = fields::decode(b"\0\0\x51\x0b/index.html", Kind::Request, LIMIT).unwrap();
    assert_eq!(section.pseudo, [(":path", b"/index.html".as_slice().into())]);
}

#[test]
fn sections_that_are_wrong_have_their_code() {
    let of = |kind, bytes: &[u8]| code(fields::decode(bytes, kind, 200).map(drop));
    let field = |name: &str, value: &str| fields::encode([(name.as_bytes(), value.as_bytes())]);
    for (name, value) in [
        ("Upper", ""),
        ("", "x"),
        ("a b", ""),
        ("a", "x\ny"),
        ("a", " x"),
        ("connection", "close"),
        ("te", "gzip"),
        (":status", "200"),
        (":unknown", ""),
    ] {
        assert_eq!(of(Kind::Request, &field(name, value)), fault::MESSAGE_ERROR, "{name}: {value}");
    }
    let pseudo = [(&b":path"[..], &b"/"[..]), (b"a", b"b"), (b":method", b"GET")];
    assert_eq!(of(Kind::Request, &fields::encode(pseudo)), fault::MESSAGE_ERROR);
    assert_eq!(of(Kind::Request, &fields::encode([pseudo[0], pseudo[0]])), fault::MESSAGE_ERROR);
    assert_eq!(of(Kind::Trailers, &field(":path", "/")), fault::MESSAGE_ERROR);
    for broken in [&b""[..], b"\0", b"\x01\0", b"\0\0\x80", b"\0\0\x10", b"\0\0\xff\xff", b"\0\0\x51\x0b/"] {
        assert_eq!(of(Kind::Request, broken), fault::DECOMPRESSION_FAILED, "{broken:?}");
    }
    assert_eq!(
        of(Kind::Request, b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        fault::DECOMPRESSION_FAILED
    );
}

/// A small section that says a lot: lines of the static table, and Huffman's code.
#[test]
fn a_bomb_of_headers_is_refused() {
    let lines = [b"\0\0".to_vec(), vec![0xd9; 1000]].concat();
    assert_eq!(code(fields::decode(&lines, Kind::Trailers, 1000).map(drop)), fault::MESSAGE_ERROR);
    let lines = [b"\0\0".to_vec(), vec![0xdd; 1000]].concat();
    assert_eq!(code(fields::decode(&lines, Kind::Trailers, 1000).map(drop)), fault::EXCESSIVE_LOAD);
    // 700 bytes of zeros are 1120 times the character 0.
    let text = [b"\0\0\x51\xff\xbd\x04".to_vec(), vec![0; 700]].concat();
    assert_eq!(code(fields::decode(&text, Kind::Request, 1000).map(drop)), fault::EXCESSIVE_LOAD);
}

fn text(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(b'a'), Just(b'-'), 0x21..0x7f_u8, 0x80..=0xff_u8], 0..most)
}

fn field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let known = (0..99_u64).prop_map(|index| {
        let (name, value) = table::line(index).unwrap();
        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
    });
    prop_oneof![known, ("[a-z0-9-]{1,300}".prop_map(String::into_bytes), text(300))]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(fields in vec(field(), 0..20)) {
        let fields: Vec<_> = fields.into_iter().filter(|(name, value)| {
            name[0] != b':' && fields::check(name, value).is_ok() && name != b"te"
        }).collect();
        let encoded = fields::encode(fields.iter().map(|(name, value)| (&name[..], &value[..])));
        let section = fields::decode(&encoded, Kind::Trailers, 1 << 20).unwrap();
        let read: Vec<_> = section.fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        prop_assert_eq!(read, fields);
    }

    #[test]
    fn any_bytes_are_a_section_within_the_limit_or_none(bytes in vec(any::<u8>(), 0..300), limit in 0..2000_usize) {
        let bytes = [b"\0\0".to_vec(), bytes].concat();
        for kind in [Kind::Request, Kind::Response, Kind::Trailers] {
            if let Ok(Section { pseudo, fields }) = fields::decode(&bytes, kind, limit) {
                let size = pseudo.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>()
                    + fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>();
                prop_assert!(size <= limit);
                for (name, value) in &fields {
                    prop_assert!(fields::check(name, value).is_ok());
                }
            }
        }
    }

    #[test]
    fn any_bytes_say_the_same_however_they_are_cut(bytes in vec(prop_oneof![0..14_u8, any::<u8>()], 0..400), size in 1..50_usize) {
        for phase in [Phase::Headers, Phase::Settings] {
            for from_server in [false, true] {
                let (whole, outcome) = read(phase, from_server, &bytes, bytes.len());
                let (pieces, again) = read(phase, from_server, &bytes, size);
                prop_assert_eq!(outcome, again);
                // Before a fault less of the data may have been given.
                if outcome.is_ok() {
                    prop_assert_eq!(whole, pieces);
                }
            }
        }
    }
}
