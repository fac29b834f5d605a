//! A window as a view tells of it, byte by byte, and what a script would paint of it.

use bytes::Bytes;
use wayferry_message::snapshot::Snapshot;
use wayferry_message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_page::{Damage, Page, Role, rgba};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};

/// Names, and what is checked.
pub(crate) const CHECKS: &[(&str, fn())] = &[
    ("messages are the documented bytes", messages),
    ("a page tells what it can show", a_page_tells),
    ("a window is shown with its pixels", a_window_is_shown),
];

const PROGRAM: ConnectionId = ConnectionId(3);
const SURFACE: WireId = WireId(8);
const XDG_SURFACE: WireId = WireId(10);

fn messages() {
    let bind = bind(1, "wl_compositor", 4);
    assert_eq!(hex(&bind.encode()), "00 01 0d 77 6c 5f 63 6f 6d 70 6f 73 69 74 6f 72 01 04");
    assert_eq!(hex(&unit(2, UnitContent::Update(UpdateSeq(1))).encode()), "02 08 02 02 01 00 00 00 00 00");
    let applied = ToApp::Applied { surface: SURFACE, unit: 2 };
    assert_eq!(hex(&applied.encode()), "02 08 02");
    assert_eq!(ToApp::decode(&applied.encode()), Ok(applied));
    assert_eq!(ToDisplay::decode(&bind.encode()), Ok(bind));
}

fn a_page_tells() {
    let snapshot = Page::new(Role::View).snapshot();
    let globals: Vec<_> = snapshot.globals.iter().map(|global| &global.interface[..]).collect();
    assert_eq!(globals, ["wl_compositor", "wl_subcompositor", "xdg_wm_base", "wp_viewporter"]);
    assert_eq!(Snapshot::decode(&snapshot.encode()), Ok(snapshot));
}

fn a_window_is_shown() {
    let mut page = Page::new(Role::View);
    page.open(PROGRAM).expect("room");
    let window = [
        bind(1, "wl_compositor", 4),
        bind(3, "xdg_wm_base", 6),
        ask(4, 0, vec![WireArg::NewId(SURFACE)]),
        ask(6, 2, vec![WireArg::NewId(XDG_SURFACE), WireArg::Object(SURFACE)]),
        ask(10, 1, vec![WireArg::NewId(WireId(12))]),
        ask(12, 2, vec![WireArg::Str(Some(b"a window".to_vec()))]),
        unit(1, UnitContent::Keep),
    ];
    window.iter().for_each(|message| page.on_message(Time::ZERO, PROGRAM, &message.encode()));
    let said: Vec<_> = std::iter::from_fn(|| page.poll_message()).collect();
    let configure = ToApp::Event(Request { object: XDG_SURFACE, opcode: 0, args: vec![WireArg::Uint(1)] });
    let applied = |unit| ToApp::Applied { surface: SURFACE, unit };
    assert_eq!(said, [(PROGRAM, applied(1).encode()), (PROGRAM, configure.encode())]);
    assert!(page.programs().all(|(_, program)| program.windows().next().is_none()), "without content");

    page.on_message(Time::ZERO, PROGRAM, &unit(2, UnitContent::Update(UpdateSeq(1))).encode());
    assert_eq!(page.poll_message(), None, "its pixels are not there");
    // Four pixels in two rows: one solid rectangle of red, not compressed.
    let chunk = [0, 11, 0, 1, 0, 0, 0, 3, 1, 0, 0, 255, 7];
    let header = UpdateHeader {
        connection: PROGRAM,
        surface: SurfaceId(SURFACE.0),
        seq: UpdateSeq(1),
        size: (4, 2),
        format: 1,
        fresh: true,
        covers: 0,
        unit: None,
    };
    page.on_update(Time::ZERO, &header, vec![Bytes::copy_from_slice(&chunk)]);
    assert_eq!(page.poll_message(), Some((PROGRAM, applied(2).encode())));
    assert_eq!(page.poll_ended(), None);
    assert!(page.wants_frame());
    let program = page.program(PROGRAM).expect("it is shown");
    let window = program.windows().next().expect("a window");
    assert_eq!((window.title, window.geometry), ("a window", [0, 0, 4, 2]));
    assert_eq!(rgba(window.root.content, window.root.content.size().rect()), [255, 0, 0, 255].repeat(8));
    assert_eq!(program.take_damage(SURFACE), Some(Damage::All));
    page.on_frame(0);
    assert!(!page.wants_frame());
}

fn bind(global: u32, interface: &str, id: u64) -> ToDisplay {
    ToDisplay::Bind { global, interface: interface.to_owned(), version: 1, id: WireId(id) }
}

fn ask(object: u64, opcode: u16, args: Vec<WireArg>) -> ToDisplay {
    ToDisplay::Request(Request { object: WireId(object), opcode, args })
}

fn unit(number: u64, content: UnitContent) -> ToDisplay {
    let (state, children) = (Vec::new(), Vec::new());
    let (offset, feedback, answered) = ((0, 0), false, None);
    ToDisplay::Unit(Unit { surface: SURFACE, number, state, content, offset, feedback, answered, children })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
