use super::*;
use crate::{Delivered, Kinds, Side};

fn hello() -> Hello {
    Hello {
        versions: Versions::CURRENT,
        side: Side::Display,
        session: SessionId([7; 16]),
        capabilities: Capabilities::from_bits(1 << 40),
        streams: Kinds::ALL,
        secret: Some([9; 32].into()),
        compression: vec![Compression::Zstd, Compression::None],
        clock: HostTime(123_456_789_012),
        software: "wayferry 0.1.0".into(),
        incarnation: Some([8; 32].into()),
        resuming: true,
        attempt: 5,
        began: 2,
    }
}

fn encode(message: &Control) -> Bytes {
    let mut writer = Writer::new();
    message.encode(&mut writer);
    writer.into_vec().into()
}

#[test]
fn where_a_file_is_may_be_told_or_not() {
    for place in [None, Some(b"/home/ann/\xff".to_vec())] {
        let told = Control::FileDone { id: 9, fate: FileFate::Kept, place };
        assert_eq!(Control::decode(&encode(&told)), Ok(Some(told)));
    }
    let cut = Control::decode(&Bytes::from_static(&[25, 9, 0, 5, b'/']));
    assert!(cut.is_err());
}

#[test]
fn messages_survive_the_wire() {
    let connection = ConnectionId(3);
    let messages = [
        Control::Hello(hello()),
        Control::Hello(Hello { secret: None, compression: vec![], ..hello() }),
        Control::Hello(Hello { incarnation: None, resuming: false, attempt: 0, began: 0, ..hello() }),
        Control::Ping { token: 1, sent: HostTime(2) },
        Control::Pong { token: 1, received: HostTime(3) },
        Control::Loss(Loss { packets: 1 << 40, lost: 77 }),
        Control::Snapshot(Bytes::from_static(b"snapshot")),
        Control::AppClosed { connection, error: None },
        Control::AppClosed { connection, error: Some("broke".into()) },
        Control::Exit { code: -1 },
        Control::PipeCredit { connection, pipe: 5, consumed: 1 << 40 },
        Control::Refused { kind: 77 },
        Control::Embedded { stream: 1, offset: 99, finish: true, bytes: Bytes::from_static(b"part") },
        Control::EmbeddedReset { stream: 1, code: u32::MAX },
        Control::EmbeddedStop { stream: 1, code: 0 },
        Control::Received(receipt()),
        Control::Resume(Resume { receipt: receipt(), stopped: vec![(9, 7), (4, u32::MAX)] }),
        Control::Declined,
        Control::GivenUp { number: 77, code: 3 },
        Control::Listen(Listen { track: 2, rate: 96_000, target: 80, delay: 1 << 20 }),
        Control::OpenUrl { id: 7, url: "https://example.org/".into() },
        Control::UrlDone { id: 7, fate: UrlFate::Refused },
        Control::Notify(Note { id: 7, summary: "it is done".into(), ..Note::default() }),
        Control::CloseNotification { id: 7 },
        Control::NotificationClosed { id: u32::MAX, end: NoteEnd::Dismissed },
        Control::NotificationAction { id: 7, key: "default".into(), token: Some("t-1".into()) },
        Control::NotificationAction { id: 7, key: "reply".into(), token: None },
        Control::File(FileOffer { id: 8, answers: None, size: 1 << 40, name: "a b.pdf".into() }),
        Control::File(FileOffer { id: 8, answers: Some(9), ..FileOffer::default() }),
        Control::FetchFile { id: 9, path: "results/../x".into() },
        Control::FileDone { id: 9, fate: FileFate::NoSpace, place: None },
        Control::TrayItem(TrayItem { id: 7, title: "mail".into(), ..TrayItem::default() }),
        Control::TrayGone { id: u32::MAX },
        Control::TrayMenu(TrayMenu { item: 7, entries: vec![] }),
        Control::TrayAct { id: 7, act: Some(TrayAct::Activate) },
        Control::TrayAct { id: 7, act: Some(TrayAct::Secondary) },
        Control::TrayAct { id: 7, act: Some(TrayAct::Menu) },
        Control::TrayAct { id: 7, act: Some(TrayAct::Scroll { delta: -120, is_sideways: true }) },
        Control::TrayAct { id: 7, act: Some(TrayAct::Choose(12)) },
        Control::TrayAct { id: 7, act: Some(TrayAct::Open(0)) },
        Control::TrayAct { id: 7, act: Some(TrayAct::Token("t-1".into())) },
        Control::TrayAct { id: 7, act: None },
        Control::Tray { is_there: true },
    ];
    for message in messages {
        let frame = encode(&message);
        assert_eq!(Control::decode(&frame), Ok(Some(message.clone())));
        let open_ended = matches!(message, Control::Snapshot(_) | Control::Embedded { .. });
        let before = before_resume(&message);
        for cut in (0..frame.len()).filter(|cut| !open_ended && Some(*cut) != before) {
            assert!(Control::decode(&frame.slice(..cut)).is_err(), "{cut} bytes of {message:?}");
        }
    }
}

fn receipt() -> Receipt {
    let open = vec![Delivered { number: 5, offset: 0 }, Delivered { number: 9, offset: 1 << 40 }];
    Receipt { lasting: 3, done: vec![1..=4, 6..=6, 1000..=1 << 50], open }
}

/// Where the hello of a build ended that could not resume.
fn before_resume(message: &Control) -> Option<usize> {
    let Control::Hello(hello) = message else { return None };
    let fields = if hello.incarnation.is_some() { 1 + 32 + 3 } else { 4 };
    Some(encode(message).len() - fields)
}

#[test]
fn the_hello_of_a_build_that_cannot_resume_is_understood() {
    let message = Control::Hello(hello());
    let old = encode(&message).slice(..before_resume(&message).unwrap());
    let hello = Hello { incarnation: None, resuming: false, attempt: 0, began: 0, ..hello() };
    assert_eq!(Control::decode(&old), Ok(Some(Control::Hello(hello))));
}

#[test]
fn a_newer_hello_is_understood_and_a_newer_message_ignored() {
    let mut writer = Writer::new();
    Control::Hello(hello()).encode(&mut writer);
    writer.str("a field of version 2");
    assert_eq!(Control::decode(&writer.into_vec().into()), Ok(Some(Control::Hello(hello()))));
    assert_eq!(Control::decode(&Bytes::from_static(&[0x3f, 1, 2])), Ok(None));
}

#[test]
fn addresses_have_a_length_and_answers_of_later_builds_a_meaning() {
    let url = |length| encode(&Control::OpenUrl { id: 1, url: "x".repeat(length) });
    assert!(Control::decode(&url(MAX_URL)).is_ok());
    assert!(Control::decode(&url(MAX_URL + 1)).is_err());
    let later = Control::decode(&Bytes::from_static(&[18, 1, 99]));
    assert_eq!(later, Ok(Some(Control::UrlDone { id: 1, fate: UrlFate::Failed })));
}

#[test]
fn the_highest_common_version_is_chosen() {
    let versions = |min, max| Versions { min, max };
    assert_eq!(versions(1, 3).common(versions(2, 9)), Some(3));
    assert_eq!(versions(4, 9).common(versions(1, 5)), Some(5));
    assert_eq!(versions(1, 2).common(versions(3, 4)), None);
}

#[test]
fn secrets_are_compared_and_hidden() {
    let secret = Secret::from([1; 32]);
    let mut other = [1; 32];
    other[31] = 2;
    assert_eq!(secret, Secret::from([1; 32]));
    assert_ne!(secret, Secret::from(other));
    assert_eq!(format!("{secret:?}"), "Secret(…)");
}
