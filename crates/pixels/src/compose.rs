//! From classified cells to the body of a chunk.
//!
//! Neighbouring cells of one class are joined to a rectangle; successive palette cells share a palette as
//! long as it has room. Nothing is compressed, and no more than the present content is read.
//!
//! The one invariant: the rectangles of a body are the cells it was made from, each pixel once.

use crate::chunk::{
    Copy, PALETTE, PICTURE, SAME_PALETTE, SOLID, WHOLE_PICTURE, write_copies, write_palette, write_rects,
};
use crate::classify::{Cell, Class, Classifier};
use crate::content::Content;
use crate::geometry::Rect;
use crate::palette::Palette;
use crate::picture::{FOURTH, Planes, Samples, predict};

/// Memory for making bodies.
pub(crate) struct Composer {
    palette: Palette,
    rects: Vec<(u8, Rect)>,
    /// Colours of palettes that are done, and of solid rectangles and pictures, by rectangle.
    colours: Vec<Colours>,
    numbers: Vec<u8>,
    /// Where the numbers of the present palette start.
    numbered: usize,
    planes: Planes,
    samples: Samples,
    body: Vec<u8>,
}

/// What the colour stream has for a rectangle.
enum Colours {
    Solid(u32),
    None,
    Palette(Vec<u32>),
    Fourth(u8),
}

impl Composer {
    pub(crate) fn new() -> Self {
        Self {
            palette: Palette::new(),
            rects: Vec::new(),
            colours: Vec::new(),
            numbers: Vec::new(),
            numbered: 0,
            planes: Planes::default(),
            samples: Samples::default(),
            body: Vec::new(),
        }
    }

    /// The body of a chunk with these copies and cells.
    pub(crate) fn compose(
        &mut self,
        content: &Content,
        copies: &[Copy],
        cells: &[Cell],
        found: &Classifier,
    ) -> &[u8] {
        self.start();
        let mut rest = cells;
        while let Some((first, others)) = rest.split_first() {
            let length = 1 + others.iter().zip(rest).take_while(|(next, cell)| continues(cell, next)).count();
            let (run, behind) = rest.split_at(length);
            let rect = first.rect.bounding(run[length - 1].rect);
            match &first.class {
                Class::Solid(colour) => self.add(SOLID, rect, Colours::Solid(*colour)),
                Class::Picture => self.picture(content, rect),
                Class::Palette { .. } => self.palette_run(run, found),
            }
            rest = behind;
        }
        self.finish(content.format().bytes_per_pixel(), copies)
    }

    fn start(&mut self) {
        self.palette.clear();
        self.rects.clear();
        self.colours.clear();
        self.numbers.clear();
        self.numbered = 0;
        self.planes.iter_mut().for_each(Vec::clear);
        self.body.clear();
    }

    fn add(&mut self, class: u8, rect: Rect, colours: Colours) {
        self.rects.push((class, rect));
        self.colours.push(colours);
    }

    fn picture(&mut self, content: &Content, rect: Rect) {
        match predict(content, rect, &mut self.samples, &mut self.planes) {
            Some(fourth) => self.add(PICTURE, rect, Colours::Fourth(fourth)),
            None => self.add(WHOLE_PICTURE, rect, Colours::None),
        }
    }

    /// Adds palette cells that lie side by side: one rectangle, unless they need more than one palette.
    fn palette_run(&mut self, run: &[Cell], found: &Classifier) {
        let mut open = false;
        for Cell { rect, class } in run {
            let Class::Palette { colours, numbers } = class else { continue };
            let (colours, numbers) = (&found.colours[colours.clone()], &found.numbers[numbers.clone()]);
            let mut renumbered = [0; 256];
            let class = if !self.palette.colours().is_empty() && self.palette.join(colours, &mut renumbered) {
                SAME_PALETTE
            } else {
                self.close_palette();
                self.palette.join(colours, &mut renumbered);
                PALETTE
            };
            self.numbers.extend(numbers.iter().map(|number| renumbered[usize::from(*number)]));
            match self.rects.last_mut() {
                Some((_, joined)) if open && class == SAME_PALETTE => *joined = joined.bounding(*rect),
                _ => self.add(class, *rect, Colours::None),
            }
            open = true;
        }
    }

    /// The palette has got all of its colours.
    fn close_palette(&mut self) {
        if let Some(first) = self.rects.iter().rposition(|(class, _)| *class == PALETTE) {
            let mut colours = self.palette.colours().to_vec();
            let numbers = &mut self.numbers[self.numbered..];
            if numbers.len() <= WORTH_SORTING {
                sort(&mut colours, numbers);
            }
            self.colours[first] = Colours::Palette(colours);
        }
        self.numbered = self.numbers.len();
        self.palette.clear();
    }

    fn finish(&mut self, pixel: usize, copies: &[Copy]) -> &[u8] {
        self.close_palette();
        write_copies(&mut self.body, copies);
        write_rects(&mut self.body, self.rects.iter().copied());
        for colours in &self.colours {
            match colours {
                Colours::Solid(colour) => self.body.extend_from_slice(&colour.to_le_bytes()[..pixel]),
                Colours::None => {}
                Colours::Palette(colours) => write_palette(&mut self.body, colours, pixel),
                Colours::Fourth(value) if pixel == 4 => self.body.push(*value),
                Colours::Fourth(_) => {}
            }
        }
        self.body.extend_from_slice(&self.numbers);
        for plane in &self.planes[..=FOURTH] {
            self.body.extend_from_slice(plane);
        }
        &self.body
    }
}

/// Puts like colours beside each other, which makes their differences few.
fn sort(colours: &mut [u32], numbers: &mut [u8]) {
    let mut order: Vec<u8> = (0..colours.len() as u8).collect();
    order.sort_unstable_by_key(|number| colours[usize::from(*number)]);
    let before = colours.to_vec();
    let mut renumbered = [0; 256];
    for (number, old) in order.into_iter().enumerate() {
        colours[number] = before[usize::from(old)];
        renumbered[usize::from(old)] = number as u8;
    }
    for number in numbers {
        *number = renumbered[usize::from(*number)];
    }
}

/// Whether a cell goes on where the one before it ends, in the same way.
fn continues(cell: &Cell, next: &Cell) -> bool {
    let beside =
        (cell.rect.y, cell.rect.height, cell.rect.right()) == (next.rect.y, next.rect.height, next.rect.x);
    let alike = match (&cell.class, &next.class) {
        (Class::Solid(one), Class::Solid(other)) => one == other,
        (Class::Palette { .. }, Class::Palette { .. }) | (Class::Picture, Class::Picture) => true,
        _ => false,
    };
    // only whole cells may have another behind them
    beside && alike && cell.rect.width == crate::classify::CELL
}

/// Numbers up to which a palette is sorted.
const WORTH_SORTING: usize = 32 << 10;
