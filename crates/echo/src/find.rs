//! Looks for a caret: by what two keys in a row changed, by its colour in what changed, and where a program says it is.
//!
//! It sees one content and where it changed, and judges no prediction.
//!
//! The one invariant: where two places may be the caret's, it finds none.

use wayferry_pixels::{Content, Rect, Region};

use crate::caret::{Caret, Kind};
use crate::line::Line;
use crate::plane::{Plane, most};

/// Boxes around what changed together: parts of one row of text with less than its height and a little between them.
pub(crate) fn boxes(damage: &Region) -> Vec<Rect> {
    let mut rects: Vec<Rect> = damage.rects().to_vec();
    rects.sort_unstable_by_key(|rect| (rect.y, rect.x));
    let mut bands: Vec<(Rect, Vec<Rect>)> = Vec::new();
    for rect in rects {
        match bands.last_mut().filter(|(band, _)| rect.y <= band.bottom()) {
            Some((band, parts)) => {
                *band = around(*band, rect);
                parts.push(rect);
            }
            None => bands.push((rect, vec![rect])),
        }
    }
    bands.into_iter().flat_map(|(band, parts)| joined(band.height, parts)).take(MAX_BOXES).collect()
}

fn joined(height: u32, mut parts: Vec<Rect>) -> Vec<Rect> {
    let gap = (height + height / 5).max(24);
    parts.sort_unstable_by_key(|rect| rect.x);
    let mut boxes: Vec<Rect> = Vec::new();
    for part in parts {
        match boxes.last_mut().filter(|last| part.x <= last.right() + gap) {
            Some(last) => *last = around(*last, part),
            None => boxes.push(part),
        }
    }
    boxes
}

fn around(a: Rect, b: Rect) -> Rect {
    let (x, y) = (a.x.min(b.x), a.y.min(b.y));
    Rect::new(x, y, a.right().max(b.right()) - x, a.bottom().max(b.bottom()) - y)
}

/// Learns a caret from the boxes that two keys in a row changed: from the old caret to the new one's end, each.
#[derive(Default)]
pub(crate) struct Bootstrap(Vec<Rect>);

impl Bootstrap {
    /// A key changed these; the caret and its place, when it is known now.
    pub(crate) fn saw(&mut self, content: &Content, boxes: &[Rect]) -> Option<(Caret, u32, u32)> {
        let is_key = |rect: &&Rect| (6..=64).contains(&rect.height) && rect.width <= 3 * rect.height;
        let new: Vec<Rect> = boxes.iter().filter(is_key).take(4).copied().collect();
        let old = std::mem::replace(&mut self.0, new);
        let pairs = self.0.iter().flat_map(|new| old.iter().map(move |old| (*old, *new)));
        let mut found = pairs.filter_map(|(old, new)| caret_of(content, old, new));
        found.next()
    }

    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

/// The caret whose end two boxes share: the older one ends with it, the newer one begins with where it was.
fn caret_of(content: &Content, old: Rect, new: Rect) -> Option<(Caret, u32, u32)> {
    let width = old.right().checked_sub(new.x).filter(|width| *width > 0)?;
    if old.x >= new.x || old.right() >= new.right() || width > new.height.max(old.height) {
        return None;
    }
    let x = new.right() - width;
    let same_rows = (old.y, old.height) == (new.y, new.height);
    if same_rows && (width <= BAR || new.width == 2 * width) {
        let kind = if width <= BAR { Kind::Bar } else { Kind::Block };
        return solid(content, kind, Rect::new(x, new.y, width, new.height));
    }
    (new.width == 2 * width && width > BAR).then(|| underline(content, around(old, new), x, width))?
}

/// A block or a bar that fills `rect`.
fn solid(content: &Content, kind: Kind, rect: Rect) -> Option<(Caret, u32, u32)> {
    let (colour, _) = most(Plane::read(content, rect)?.pixels().iter().copied())?;
    let height = rect.height as usize;
    let caret = Caret::new(kind, rect.width as usize, height, 0..height, colour);
    let line = Line::open(content, &caret, rect.x, rect.y)?;
    caret.is_at(&line.strip, line.pen).then_some((caret, rect.x, rect.y))
}

/// An underline in the columns from `x`: the rows of a strip are guessed from a cell's usual form.
fn underline(content: &Content, changed: Rect, x: u32, width: u32) -> Option<(Caret, u32, u32)> {
    let cell = Plane::read(content, Rect::new(x, changed.y, width, changed.height))?;
    let paper = cell.paper(0..cell.width());
    let is_full = |y: usize| {
        let (colour, count) = most(cell.row(y, 0..cell.width()).iter().copied())?;
        (colour != paper && count * 10 >= cell.width() * 9).then_some(colour)
    };
    let top = (0..cell.height()).find(|y| is_full(*y).is_some())?;
    let colour = is_full(top)?;
    let thickness = (top..cell.height()).take_while(|y| is_full(*y) == Some(colour)).count();
    let y = changed.y + top as u32;
    let above = (width + width / 2).min(y) as usize;
    let room = (content.size().height() - y) as usize;
    let height = above + (thickness.max(width as usize / 2)).min(room);
    let is_thin = thickness <= UNDERLINE && above + thickness <= height;
    let caret = is_thin
        .then(|| Caret::new(Kind::Underline, width as usize, height, above..above + thickness, colour))?;
    let line = Line::open(content, &caret, x, y)?;
    caret.is_at(&line.strip, line.pen).then_some((caret, x, y))
}

/// The caret in a rectangle that the program says it is in.
pub(crate) fn hinted(content: &Content, rect: Rect) -> Option<(Caret, u32, u32)> {
    let height = rect.height;
    if !(6..=64).contains(&height) || rect.width > height {
        return None;
    }
    let block = || solid(content, Kind::Block, rect).filter(|_| rect.width > BAR);
    // A hollow block, as terminals have it without the keyboard, has sides and a top.
    let ends_beside = |caret: &Caret, width: u32| {
        [rect.y, rect.y + height - 1].iter().all(|y| pixel(content, rect.x + width, *y) != Some(caret.colour))
    };
    let bar = |width: u32| {
        let found = solid(content, Kind::Bar, Rect::new(rect.x, rect.y, width, height));
        found.filter(|(caret, ..)| ends_beside(caret, width))
    };
    let is_low = |(_, _, y): &(Caret, u32, u32)| (y - rect.y) * 2 >= height;
    let below = || underline(content, rect, rect.x, rect.width).filter(|_| rect.width > BAR).filter(is_low);
    block().or_else(|| (1..=BAR).rev().find_map(bar)).or_else(below)
}

/// Where a caret appeared in what changed; `None` where there are several such places, or none.
pub(crate) fn search(content: &Content, caret: &Caret, boxes: &[Rect]) -> Option<(u32, u32)> {
    let mut found: Vec<(bool, u32, u32)> = Vec::new();
    for changed in boxes {
        let places = match caret.kind {
            Kind::Block => blocks(content, caret, *changed),
            Kind::Bar | Kind::Underline => solids(content, caret, *changed),
        };
        found.extend(places);
        if found.len() > MAX_PLACES {
            return None;
        }
    }
    // A whole block is the caret at a line's end; among those over letters none stands out.
    let whole = found.iter().filter(|(is_whole, ..)| *is_whole).count();
    let mut rest = found.iter().filter(|(is_whole, ..)| whole != 1 || *is_whole);
    let (_, x, y) = *rest.next()?;
    rest.next().is_none().then_some((x, y))
}

/// Cells of the grid that look like the block, alone on both sides.
fn blocks(content: &Content, caret: &Caret, changed: Rect) -> Vec<(bool, u32, u32)> {
    let (width, height) = (caret.width as u32, caret.height as u32);
    let from = |start: u32, grid: u32, step: u32| start + (grid % step + step - start % step) % step;
    let rows = (from(changed.y, caret.grid.1, height)..(changed.bottom() + 1).saturating_sub(height))
        .step_by(caret.height);
    let columns = from(changed.x, caret.grid.0, width)..(changed.right() + 1).saturating_sub(width);
    let (mut found, mut tries) = (Vec::new(), 0);
    for y in rows {
        for x in columns.clone().step_by(caret.width) {
            let corners = [(x, y), (x + width - 1, y), (x, y + height - 1), (x + width - 1, y + height - 1)];
            let is_own = |(x, y): &(u32, u32)| {
                pixel(content, *x, *y).is_some_and(|seen| caret.colours().any(|own| own == seen))
            };
            if corners.iter().filter(|corner| is_own(corner)).count() < 3 {
                continue;
            }
            tries += 1;
            if tries > MAX_TRIES {
                return found;
            }
            let Some(line) = Line::open(content, caret, x, y) else { continue };
            let neighbour = |x: Option<usize>| x.is_some_and(|x| caret.is_at(&line.strip, x));
            if caret.is_at(&line.strip, line.pen)
                && !neighbour(line.pen.checked_sub(caret.width))
                && !neighbour(Some(line.pen + caret.width))
            {
                let cell = line.strip.cut(line.pen..line.pen + caret.width);
                found.push((!cell.has_ink(0..caret.width, cell.pixel(0, 0)), x, y));
            }
        }
    }
    found
}

/// Rectangles of the caret's size and colour, with another colour around them.
fn solids(content: &Content, caret: &Caret, changed: Rect) -> Vec<(bool, u32, u32)> {
    let (width, height) = (caret.width as u32, caret.rows.len() as u32);
    let is_own = |x: u32, y: u32| pixel(content, x, y) == Some(caret.colour);
    let (mut found, mut tries) = (Vec::new(), 0);
    // A lattice that no caret fits between.
    for y in (changed.y + height - 1..changed.bottom()).step_by(height as usize) {
        for x in (changed.x + width - 1..changed.right()).step_by(width as usize) {
            if !is_own(x, y) {
                continue;
            }
            tries += 1;
            if tries > 64 * MAX_TRIES {
                return found;
            }
            let left = (0..width).take_while(|by| *by <= x && is_own(x - by, y)).count() as u32;
            let top = (0..height).take_while(|by| *by <= y && is_own(x, y - by)).count() as u32;
            let (left, top) = (x + 1 - left, y + 1 - top);
            let is_filled = (top..top + height).all(|y| (left..left + width).all(|x| is_own(x, y)));
            let beside =
                (top..top + height).any(|y| (left > 0 && is_own(left - 1, y)) || is_own(left + width, y));
            let ends =
                (left..left + width).any(|x| (top > 0 && is_own(x, top - 1)) || is_own(x, top + height));
            if is_filled && !beside && !ends {
                found.push((false, left, top));
            }
        }
    }
    found
}

fn pixel(content: &Content, x: u32, y: u32) -> Option<u32> {
    Plane::pixel_of(content, x, y)
}

/// Columns of the widest bar.
const BAR: u32 = 3;

/// Rows of the thickest underline.
const UNDERLINE: usize = 4;

/// Boxes of one change that are looked at.
const MAX_BOXES: usize = 256;

/// Cells of a block's colour that are looked at in one box, and 64 times as many pixels of a bar's.
const MAX_TRIES: usize = 32;

/// Places that may be a caret's after which no further one is looked for.
const MAX_PLACES: usize = 16;
