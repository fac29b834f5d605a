//! What a view says, for tests: messages by what they mean.

#![allow(dead_code, reason = "each test uses a part")]

use bytes::Bytes;
use wayferry_message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_page::{Page, Role};
use wayferry_pixels::{Compression, Content, Draft, Encoder, Format, Size};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};

pub(crate) const PROGRAM: ConnectionId = ConnectionId(1);

pub(crate) const COMPOSITOR: WireId = WireId(4);
pub(crate) const SUBCOMPOSITOR: WireId = WireId(6);
pub(crate) const SHELL: WireId = WireId(8);
pub(crate) const VIEWPORTER: WireId = WireId(10);

/// A page that shows one program, which has bound everything.
pub(crate) fn page() -> Page {
    page_as(Role::View)
}

/// The same as a viewer or as a display; of both, the first four globals are the same.
pub(crate) fn page_as(role: Role) -> Page {
    let mut page = Page::new(role);
    page.open(PROGRAM).expect("room");
    bind_all(&mut page);
    page
}

/// The program binds everything.
pub(crate) fn bind_all(page: &mut Page) {
    for global in page.snapshot().globals {
        let id = WireId(2 + 2 * u64::from(global.name));
        let bind =
            ToDisplay::Bind { global: global.name, interface: global.interface, version: global.version, id };
        say(page, &bind);
    }
}

pub(crate) fn say(page: &mut Page, message: &ToDisplay) {
    page.on_message(Time::ZERO, PROGRAM, &message.encode());
}

/// All that the page has said since.
pub(crate) fn said(page: &mut Page) -> Vec<ToApp> {
    let said = std::iter::from_fn(|| page.poll_message());
    said.map(|(_, bytes)| ToApp::decode(&bytes).expect("sound")).collect()
}

pub(crate) fn request(object: WireId, opcode: u16, args: Vec<WireArg>) -> Request {
    Request { object, opcode, args }
}

pub(crate) fn ask(object: WireId, opcode: u16, args: Vec<WireArg>) -> ToDisplay {
    ToDisplay::Request(request(object, opcode, args))
}

/// A window: its surface, with the two objects after it.
pub(crate) fn window(surface: u64) -> [ToDisplay; 4] {
    let [surface, xdg_surface, toplevel] = [surface, surface + 2, surface + 4].map(WireId);
    [
        create(surface),
        ask(SHELL, 2, vec![WireArg::NewId(xdg_surface), WireArg::Object(surface)]),
        ask(xdg_surface, 1, vec![WireArg::NewId(toplevel)]),
        ToDisplay::Unit(unit(surface, 1, UnitContent::Keep)),
    ]
}

pub(crate) fn create(surface: WireId) -> ToDisplay {
    ask(COMPOSITOR, 0, vec![WireArg::NewId(surface)])
}

/// A surface inside another one: with the object after it.
pub(crate) fn child(surface: u64, parent: u64) -> [ToDisplay; 2] {
    let [surface, subsurface, parent] = [surface, surface + 2, parent].map(WireId);
    let args = vec![WireArg::NewId(subsurface), WireArg::Object(surface), WireArg::Object(parent)];
    [create(surface), ask(SUBCOMPOSITOR, 1, args)]
}

pub(crate) fn unit(surface: WireId, number: u64, content: UnitContent) -> Unit {
    let (state, children) = (Vec::new(), Vec::new());
    let (offset, feedback, answered) = ((0, 0), false, None);
    Unit { surface, number, state, content, offset, feedback, answered, children }
}

/// A unit that names an update of the same number.
pub(crate) fn show(surface: u64, number: u64) -> Unit {
    unit(WireId(surface), number, UnitContent::Update(UpdateSeq(number)))
}

pub(crate) fn header(surface: u64, seq: u64, side: u32, fresh: bool) -> UpdateHeader {
    UpdateHeader {
        connection: PROGRAM,
        surface: SurfaceId(surface),
        seq: UpdateSeq(seq),
        size: (side, side),
        format: Format::Xrgb8888.code(),
        fresh,
        covers: 0,
        unit: None,
    }
}

/// All of a square in one colour.
pub(crate) fn chunks(side: u32, colour: u8) -> Vec<Bytes> {
    let size = Size::new(side, side).expect("a size");
    let mut content = Content::new(size, Format::Xrgb8888);
    content.fill(&[colour; 4]);
    let mut draft = Draft::new(size, Format::Xrgb8888);
    draft.replace(content);
    let chunks = Encoder::new(Compression::Lz4).encode(&mut draft);
    chunks.into_iter().map(Bytes::from).collect()
}

/// A whole content of 8 × 8 pixels arrives.
pub(crate) fn bring(page: &mut Page, surface: u64, seq: u64, colour: u8) {
    page.on_update(Time::ZERO, &header(surface, seq, 8, true), chunks(8, colour));
}

/// The colours of all surfaces that are to be seen, as they are painted.
pub(crate) fn colours(page: &Page) -> Vec<Vec<u8>> {
    use wayferry_page::{Inside, Node};
    fn of(node: &Node<'_>, colours: &mut Vec<u8>) {
        for inside in &node.inside {
            match inside {
                Inside::Itself => colours.push(node.content.pixels()[0]),
                Inside::Child(child) => of(child, colours),
            }
        }
    }
    let windows = page.programs().flat_map(|(_, program)| program.windows());
    let each = windows.map(|window| {
        let mut colours = Vec::new();
        of(&window.root, &mut colours);
        colours
    });
    each.collect()
}
