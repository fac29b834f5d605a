//! What a page shows that comes as a viewer in the end, beside what was shown directly.
//!
//! Where a popup is, its compositor decides: only what it shows is compared, above all else in its parent. Invariant:
//! what is compared is there to be seen.

use std::rc::Rc;

use wayferry_page::{Inside, Node, Page};
use wayferry_pixels::{Content, convert};
use wayferry_wayland::blob;

use crate::shown::{Own, Record};

/// A surface, and what is in it.
#[derive(Debug, PartialEq)]
struct Sheet {
    content: (u64, (i32, i32)),
    scale: i32,
    transform: i32,
    source: Option<[i32; 4]>,
    destination: Option<(i32, i32)>,
    /// The lowest first.
    inside: Vec<Inner>,
}

/// Where a surface is, unless it is a popup, and what it shows; nothing stands for the surface around it itself.
#[derive(Debug, PartialEq)]
struct Inner(Option<(i32, i32)>, Option<Sheet>);

/// What differs.
pub(crate) fn difference(direct: &Record, page: &Page) -> Option<String> {
    let all = direct.end();
    let is_window = |own: &Own| own.root && own.popup.is_none() && own.numbers.acknowledged.is_some();
    let windows = all.iter().filter(|(_, own)| is_window(own));
    let expected: Vec<Sheet> = windows.filter_map(|(index, _)| expected(&all, *index)).collect();
    let programs = page.programs();
    let windows = programs.flat_map(|(_, program)| program.windows());
    let mut shown: Vec<Sheet> = windows.map(|window| sheet(&window.root)).collect();
    expected.iter().zip(&mut shown).for_each(|(expected, shown)| forget_places(expected, shown));
    (expected != shown)
        .then(|| format!("a page shows\n    {shown:?}\n  and directly there is\n    {expected:?}"))
}

fn expected(all: &[(usize, Rc<Own>)], index: usize) -> Option<Sheet> {
    let own = &all.iter().find(|(other, _)| *other == index)?.1;
    let stack = own.stack.iter().filter_map(|(child, at)| match *child == index {
        true => Some(Inner(Some((0, 0)), None)),
        false => expected(all, *child).map(|child| Inner(Some(*at), Some(child))),
    });
    let popups = all
        .iter()
        .filter(|(_, popup)| popup.root && popup.popup.as_ref().is_some_and(|(parent, ..)| *parent == index));
    let popups = popups.filter_map(|(popup, _)| Some(Inner(None, Some(expected(all, *popup)?))));
    Some(Sheet {
        content: own.content?,
        scale: own.numbers.scale,
        transform: own.numbers.transform,
        source: own.numbers.source,
        destination: own.numbers.destination,
        inside: stack.chain(popups).collect(),
    })
}

fn sheet(node: &Node<'_>) -> Sheet {
    let inside = node.inside.iter().map(|inside| match inside {
        Inside::Itself => Inner(Some((0, 0)), None),
        Inside::Child(child) => Inner(Some(child.at), Some(sheet(child))),
    });
    Sheet {
        content: name(node.content),
        scale: node.shape.scale,
        transform: node.shape.transform.into(),
        source: node.shape.crop,
        destination: node.shape.destination,
        inside: inside.collect(),
    }
}

/// Where there is to be no place, there is none.
fn forget_places(expected: &Sheet, shown: &mut Sheet) {
    for (Inner(place, expected), Inner(at, shown)) in expected.inside.iter().zip(&mut shown.inside) {
        if place.is_none() {
            *at = None;
        }
        if let (Some(expected), Some(shown)) = (expected, shown) {
            forget_places(expected, shown);
        }
    }
}

fn name(content: &Content) -> (u64, (i32, i32)) {
    let size = content.size();
    let mut pixels = vec![0; size.rect().area() as usize * 4];
    convert::row(content.format(), content.pixels(), &mut pixels);
    (blob::hash(&pixels) as u64, (size.width() as i32, size.height() as i32))
}
