//! What is to be painted, as a flat list of numbers.
//!
//! A script draws a window by drawing its surfaces in the order of the list, each at its place. The layout:
//!
//! | number of words | |
//! |---|---|
//! | 1 | windows |
//! | 13 for each | program, surface (two words, the lower first), surface of the window that it belongs to (two words, 0 and 0 without), x, y, width and height of the window in its surface, where in the text its title begins, ends, and its kind ends, in bytes; surfaces in it |
//! | 14 for each of those | surface (two words), x and y in the window's surface, width and height there, width and height in pixels, transform, whether a part is shown, and of that x, y, width, height in 1/256 of a pixel that is turned and scaled |
//!
//! Popups are surfaces of the window that they belong to, above all others, and may reach out of it.
//!
//! A cursor that is a surface is 17 words: program, surface (two words), x and y of the point of it that is where the
//! pointer is, in units, and the last 12 of the 14 for a surface, at 0 and 0.
//!
//! Invariant: a list says only what is there now; surfaces are named by their program and their two words.

use wayferry_message::WireId;
use wayferry_page::{Inside, Node, Page, Window};
use wayferry_proto::ConnectionId;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drawing {
    /// The numbers.
    pub words: Vec<i32>,
    /// Titles and kinds of windows, one after the other.
    pub text: String,
}

impl Drawing {
    /// What the page shows now.
    pub fn of(page: &Page) -> Self {
        let mut drawing = Self { words: vec![0], text: String::new() };
        for (connection, program) in page.programs() {
            for window in program.windows() {
                drawing.words[0] += 1;
                drawing.window(connection, &window);
            }
        }
        drawing
    }

    /// A cursor that is a surface.
    pub fn of_cursor(connection: ConnectionId, node: &Node<'_>, (x, y): (i32, i32)) -> Self {
        let mut drawing = Self::default();
        drawing.surface(node, (0, 0));
        // Behind the name of the surface.
        drawing.words.splice(2..2, [x, y]);
        drawing.words.insert(0, connection.0.cast_signed());
        drawing
    }

    fn window(&mut self, ConnectionId(program): ConnectionId, window: &Window<'_>) {
        let [low, high] = halves(window.root.surface);
        let from = self.text.len();
        self.text.push_str(window.title);
        let between = self.text.len();
        self.text.push_str(window.app_id);
        self.words.extend([program.cast_signed(), low, high]);
        self.words.extend(window.parent.map_or([0, 0], halves));
        self.words.extend(window.geometry);
        // The texts of all windows are some MiB at most.
        self.words.extend([from, between, self.text.len()].map(|place| place as i32));
        self.words.push(0);
        let count = self.words.len() - 1;
        self.node(&window.root, (0, 0), count);
    }

    /// A surface with all inside it, whose corner is there.
    fn node(&mut self, node: &Node<'_>, at: (i32, i32), count: usize) {
        for inside in &node.inside {
            match inside {
                Inside::Itself => {
                    self.words[count] += 1;
                    self.surface(node, at);
                }
                Inside::Child(child) => {
                    let at = (at.0.saturating_add(child.at.0), at.1.saturating_add(child.at.1));
                    self.node(child, at, count);
                }
            }
        }
    }

    fn surface(&mut self, node: &Node<'_>, at: (i32, i32)) {
        let pixels = node.content.size();
        let (width, height) = node.shape.size(pixels);
        self.words.extend(halves(node.surface));
        self.words.extend([at.0, at.1, width, height]);
        // Sides are at most 2¹⁴.
        self.words.extend([pixels.width() as i32, pixels.height() as i32, node.shape.transform.into()]);
        // A part is told in units of the surface.
        let part = node.shape.crop.map(|part| part.map(|value| value.saturating_mul(node.shape.scale)));
        self.words.push(i32::from(part.is_some()));
        self.words.extend(part.unwrap_or_default());
    }
}

/// The two words that name a surface.
pub fn halves(surface: WireId) -> [i32; 2] {
    [surface.0 as u32, (surface.0 >> 32) as u32].map(u32::cast_signed)
}

/// The surface of two words.
pub fn whole(low: u32, high: u32) -> WireId {
    WireId(u64::from(low) | u64::from(high) << 32)
}
