//! What a viewer's display half shows on: a compositor, or a page.
//!
//! Both are asked for the same things, so that a viewer need not know which it has. Checked on the way: neither
//! accuses the view, and what a page's script has painted by what was told to be new is what is there.

use std::collections::HashMap;

use bytes::Bytes;
use wayferry_message::WireId;
use wayferry_page::{Damage, Inside, Node, Page, Role, rgba};
use wayferry_pixels::{Content, Rect, Size};
use wayferry_proto::{ConnectionId, Time, UpdateHeader};
use wayferry_wayland::snapshot::Snapshot;
use wayferry_wayland::{Action, End, display};

use crate::compositor::{self, Compositor, Tree, picture};

/// Which display half a viewer has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Compositor,
    Page,
}

pub(crate) enum Screen {
    Compositor(Box<Desk>),
    Page(Box<Sheet>),
}

/// A display half with its compositor.
pub(crate) struct Desk {
    display: display::Connection,
    compositor: Compositor,
}

/// A page with what its script has painted.
pub(crate) struct Sheet {
    page: Page,
    canvases: HashMap<WireId, Canvas>,
    /// The windows as they were painted last.
    painted: Vec<Tree>,
    /// Every picture that was there to be painted.
    shown: Vec<u128>,
}

struct Canvas {
    size: Size,
    pixels: Vec<u8>,
}

impl Screen {
    pub(crate) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Compositor => {
                let config =
                    display::Config { cursor_theme: "no such theme".to_owned(), ..Default::default() };
                let display = display::Connection::new(config);
                Self::Compositor(Box::new(Desk { display, compositor: Compositor::new() }))
            }
            Kind::Page => {
                let mut page = Page::new(Role::View);
                page.open(ConnectionId(1)).expect("room for a program");
                Self::Page(Box::new(Sheet::new(page)))
            }
        }
    }

    /// What it tells of itself.
    pub(crate) fn snapshot(&self) -> Snapshot {
        match self {
            Self::Compositor(_) => compositor::snapshot(),
            Self::Page(_) => Page::new(Role::View).snapshot(),
        }
    }

    /// Takes a message of the view; gives what is answered.
    pub(crate) fn on_message(&mut self, now: Time, message: &[u8]) -> Vec<Vec<u8>> {
        match self {
            Self::Compositor(desk) => desk.display.on_message(now, message),
            Self::Page(sheet) => sheet.page.on_message(now, ConnectionId(1), message),
        }
        self.collect()
    }

    pub(crate) fn on_update(&mut self, now: Time, header: &UpdateHeader, chunks: Vec<Bytes>) -> Vec<Vec<u8>> {
        match self {
            Self::Compositor(desk) => {
                desk.display.on_update(now, header, chunks);
                let mut room = display::Room::ENDLESS;
                desk.display.work(now, &mut room);
            }
            Self::Page(sheet) => sheet.page.on_update(now, header, chunks),
        }
        self.collect()
    }

    /// It draws, and answers with everything that input devices could say, if it has any.
    pub(crate) fn draw(&mut self, now: Time, input: (u8, u32)) -> Vec<Vec<u8>> {
        match self {
            Self::Compositor(desk) => desk.draw(now, input),
            Self::Page(sheet) => sheet.draw(),
        }
        self.collect()
    }

    pub(crate) fn pass(&mut self, now: Time) -> Vec<Vec<u8>> {
        match self {
            Self::Compositor(desk) => {
                if desk.display.next_timeout().is_some_and(|at| at <= now) {
                    desk.display.on_timeout(now);
                }
            }
            Self::Page(sheet) => sheet.page.on_timeout(now),
        }
        self.collect()
    }

    /// The windows in the order of their creation.
    pub(crate) fn windows(&self) -> Vec<Tree> {
        match self {
            Self::Compositor(desk) => desk.compositor.windows(),
            Self::Page(sheet) => sheet.windows(),
        }
    }

    /// All pictures that were shown.
    pub(crate) fn shown(&self) -> Vec<u128> {
        match self {
            Self::Compositor(desk) => desk.compositor.logs.iter().flatten().flatten().copied().collect(),
            Self::Page(sheet) => sheet.shown.clone(),
        }
    }

    fn collect(&mut self) -> Vec<Vec<u8>> {
        match self {
            Self::Compositor(desk) => desk.collect(),
            Self::Page(sheet) => sheet.collect(),
        }
    }
}

impl Desk {
    fn draw(&mut self, now: Time, (kind, value): (u8, u32)) {
        self.compositor.input_event(kind, value);
        self.compositor.release(usize::MAX);
        self.compositor.tick();
        let (bytes, fds) = self.compositor.output.take();
        self.display.input().fds_mut().extend(fds);
        for part in bytes.chunks(1 << 12) {
            self.display.input().push(part, []).expect("events fit");
            self.display.process(now);
        }
    }

    fn collect(&mut self) -> Vec<Vec<u8>> {
        let (bytes, fds) = self.display.output().take();
        self.compositor.input.fds_mut().extend(fds);
        for part in bytes.chunks(1 << 12) {
            self.compositor.input.push(part, []).expect("requests fit");
            self.compositor.process();
        }
        let mut said = Vec::new();
        while let Some(action) = self.display.poll_action() {
            if let Action::Message(bytes) = action {
                said.push(bytes);
            }
        }
        if let Some(End::PeerViolation(what)) = self.display.end() {
            panic!("the display half accuses the view: {what}");
        }
        said
    }
}

impl Sheet {
    fn new(page: Page) -> Self {
        Self { page, canvases: HashMap::new(), painted: Vec::new(), shown: Vec::new() }
    }

    /// A script draws when it is told that there is something new, and else has painted all that there is.
    fn draw(&mut self) {
        if !self.page.wants_frame() {
            assert_eq!(self.painted, self.windows(), "nothing has changed since it was painted");
            return;
        }
        self.paint();
        self.painted = self.windows();
        self.page.on_frame(0);
    }

    fn collect(&mut self) -> Vec<Vec<u8>> {
        assert_eq!(self.page.poll_ended(), None, "the page accuses the view");
        fn note(node: &Node<'_>, shown: &mut Vec<u128>) {
            shown.push(name(node.content));
            node.inside.iter().for_each(|inside| {
                if let Inside::Child(child) = inside {
                    note(child, shown);
                }
            });
        }
        for (_, program) in self.page.programs() {
            program.windows().for_each(|window| note(&window.root, &mut self.shown));
        }
        std::iter::from_fn(|| self.page.poll_message()).map(|(_, message)| message).collect()
    }

    fn windows(&self) -> Vec<Tree> {
        fn tree(node: &Node<'_>, title: Option<Vec<u8>>) -> Tree {
            let inside = node.inside.iter().map(|inside| match inside {
                Inside::Itself => None,
                Inside::Child(child) => Some(tree(child, None)),
            });
            Tree {
                picture: name(node.content),
                scale: node.shape.scale,
                transform: node.shape.transform.into(),
                destination: node.shape.destination,
                position: node.at,
                title,
                inside: inside.collect(),
            }
        }
        let programs = self.page.programs();
        let windows = programs.flat_map(|(_, program)| program.windows());
        windows.map(|window| tree(&window.root, Some(window.title.as_bytes().to_vec()))).collect()
    }

    /// What a script does: paints what is new of what is to be seen, and looks at nothing else.
    fn paint(&mut self) {
        fn parts(node: &Node<'_>, surfaces: &mut Vec<(WireId, Content)>) {
            surfaces.push((node.surface, node.content.clone()));
            for inside in &node.inside {
                if let Inside::Child(child) = inside {
                    parts(child, surfaces);
                }
            }
        }
        let program = self.page.program(ConnectionId(1)).expect("it is shown");
        let mut surfaces = Vec::new();
        program.windows().for_each(|window| parts(&window.root, &mut surfaces));
        for (surface, content) in surfaces {
            let whole = content.size().rect();
            match program.take_damage(surface).expect("it is there") {
                Damage::All => {
                    let canvas = Canvas { size: content.size(), pixels: rgba(&content, whole) };
                    self.canvases.insert(surface, canvas);
                }
                Damage::Part(region) => {
                    let canvas = self.canvases.get_mut(&surface).expect("all of it came first");
                    region.rects().iter().for_each(|part| canvas.put(*part, &rgba(&content, *part)));
                }
            }
            let canvas = &self.canvases[&surface];
            assert_eq!(canvas.size, content.size());
            assert!(canvas.pixels == rgba(&content, whole), "surface {} is painted as it is", surface.0);
        }
    }
}

impl Canvas {
    fn put(&mut self, part: Rect, pixels: &[u8]) {
        let row = part.width as usize * 4;
        for (y, pixels) in (part.y..part.bottom()).zip(pixels.chunks_exact(row)) {
            let at = (y as usize * self.size.width() as usize + part.x as usize) * 4;
            self.pixels[at..at + row].copy_from_slice(pixels);
        }
    }
}

fn name(content: &Content) -> u128 {
    picture((content.size().width() as i32, content.size().height() as i32), content.pixels())
}
