//! What was shown and what was said, and whether two runs of a program agree on it.
//!
//! The oracle. It knows nothing of how a proxy works: every state of a window that is shown through it must have been
//! shown directly, in that order, and the last must be the same; states may be left out. Children that a program ever
//! desynchronised are judged by themselves, for their commits have no order towards those of their parents: what such a
//! child directly was while it belonged to a window may be seen there, also if that window came or went meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use crate::heard::Heard;

/// Everything there is to see of one surface, but for what is in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Own {
    /// A window, a popup that is shown, or the pointer's picture.
    pub(crate) root: bool,
    /// It is one of these, or in one, by commits of all that is above it.
    pub(crate) seen: bool,
    /// Content: its name and its size.
    pub(crate) content: Option<(u64, (i32, i32))>,
    pub(crate) numbers: Numbers,
    /// Itself and its children with their positions, the lowest first.
    pub(crate) stack: Vec<(usize, (i32, i32))>,
    /// Of a popup: its parent, its positioner and whether it grabs.
    pub(crate) popup: Option<(usize, [i32; 11], bool)>,
}

/// State of a surface.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) offset: (i32, i32),
    pub(crate) scale: i32,
    pub(crate) transform: i32,
    pub(crate) source: Option<[i32; 4]>,
    pub(crate) destination: Option<(i32, i32)>,
    /// Regions, by name.
    pub(crate) opaque: Option<u64>,
    pub(crate) input: Option<u64>,
    pub(crate) geometry: Option<[i32; 4]>,
    pub(crate) least: (i32, i32),
    pub(crate) most: (i32, i32),
    pub(crate) acknowledged: Option<(i32, i32)>,
}

/// All surfaces at one time.
type Look = BTreeMap<usize, Rc<Own>>;

#[derive(Default)]
pub(crate) struct Record {
    /// Surfaces that ever were told to commit by themselves.
    pub(crate) desynchronised: BTreeSet<usize>,
    /// Each with the number of the turn in which it was.
    looks: Vec<(usize, Look)>,
    /// Of the compositor: what it is sent in one go.
    pub(crate) turn: usize,
    /// Titles and the like: surface, what, and its values.
    words: BTreeMap<(usize, &'static str), Vec<String>>,
}

/// A window, or a surface in it.
#[derive(Clone, PartialEq)]
enum Tree {
    Itself,
    /// A child that is judged by itself.
    Apart(usize),
    Surface(Rc<Own>, Vec<((i32, i32), Tree)>),
}

/// What a look has of a surface.
#[derive(PartialEq)]
enum Sight {
    Gone,
    /// It belongs to a window, but not yet by a commit, or the window is not shown.
    Hidden,
    There(Tree),
}

/// What was to be seen of a surface, one state after another, and what is at the end.
#[derive(Default)]
struct Track {
    states: Vec<Option<Tree>>,
    end: Option<Tree>,
}

impl fmt::Debug for Tree {
    /// What differs from a surface about which nothing was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Itself => f.write_str("itself"),
            Self::Apart(index) => write!(f, "surface {index}"),
            Self::Surface(own, inside) => {
                let (name, (width, height)) = own.content.unwrap_or_default();
                write!(f, "{:04x} {width}×{height}", name & 0xffff)?;
                let plain = format!("{:?}", Numbers::default());
                let numbers = format!("{:?}", own.numbers);
                let parts = numbers.split_inclusive(['{', ',', '}']).map(str::trim);
                for part in parts.filter(|part| !plain.contains(part.trim_end_matches(['}', ',']))) {
                    write!(f, " {part}")?;
                }
                if let Some((parent, [width, height, x, y, ..], grab)) = own.popup {
                    write!(f, " popup of {parent}: {width}×{height} at {x}, {y}, grab: {grab}")?;
                }
                match &inside[..] {
                    [(_, Self::Itself)] => Ok(()),
                    inside => write!(f, " {inside:?}"),
                }
            }
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            offset: (0, 0),
            scale: 1,
            transform: 0,
            source: None,
            destination: None,
            opaque: None,
            input: None,
            geometry: None,
            least: (0, 0),
            most: (0, 0),
            acknowledged: None,
        }
    }
}

impl Record {
    pub(crate) fn look(&mut self, look: BTreeMap<usize, Own>) {
        let last = self.looks.last().map(|(_, look)| look);
        let mut same = last.is_some_and(|last| last.len() == look.len());
        let shared: Look = look
            .into_iter()
            .map(|(index, own)| match last.and_then(|last| last.get(&index)) {
                Some(old) if **old == own => (index, Rc::clone(old)),
                _ => {
                    same = false;
                    (index, Rc::new(own))
                }
            })
            .collect();
        if !same {
            self.looks.push((self.turn, shared));
        }
    }

    /// All surfaces of windows at the end, in the order of their creation.
    pub(crate) fn end(&self) -> Vec<(usize, Rc<Own>)> {
        let last = self.looks.last().into_iter().flat_map(|(_, look)| look);
        last.map(|(index, own)| (*index, Rc::clone(own))).collect()
    }

    pub(crate) fn word(&mut self, surface: usize, what: &'static str, text: String) {
        let words = self.words.entry((surface, what)).or_default();
        if words.last() != Some(&text) {
            words.push(text);
        }
    }

    /// What was to be seen of each window, and of each child that is judged by itself: of those, unless `seen`, also
    /// what was hidden.
    fn tracks(&self, apart: &BTreeSet<usize>, seen: bool) -> BTreeMap<usize, Track> {
        let mut tracks: BTreeMap<usize, Track> = BTreeMap::new();
        for (place, (turn, look)) in self.looks.iter().enumerate() {
            let later = self.looks[place..].iter().take_while(|(other, _)| other == turn);
            let last = later.last().map_or(look, |(_, last)| last);
            for (index, own) in look {
                if own.root || apart.contains(index) {
                    tracks.entry(*index).or_default();
                }
            }
            for (index, track) in &mut tracks {
                let tree = match (sight(last, *index, apart, seen), sight(look, *index, apart, seen)) {
                    // What is gone at the end of the turn was not there to be seen.
                    (Sight::Gone, _) | (_, Sight::Gone) => None,
                    (Sight::Hidden, _) | (_, Sight::Hidden) => continue,
                    (_, Sight::There(tree)) => Some(tree),
                };
                if track.states.last().unwrap_or(&None) != &tree {
                    track.states.push(tree);
                }
            }
        }
        let last = self.looks.last().map(|(_, look)| look);
        for (index, track) in &mut tracks {
            track.end = match last.map(|look| sight(look, *index, apart, true)) {
                Some(Sight::There(tree)) => Some(tree),
                _ => None,
            };
        }
        tracks.retain(|_, track| !track.states.is_empty());
        tracks
    }
}

/// What is to be seen of a surface; unless `seen`, also what is hidden.
fn sight(look: &Look, index: usize, apart: &BTreeSet<usize>, seen: bool) -> Sight {
    let own = look.get(&index).filter(|own| own.root || apart.contains(&index));
    match own.and_then(|own| Some((own, tree(look, own, index, apart)?))) {
        None => Sight::Gone,
        Some((own, _)) if seen && !own.seen => Sight::Hidden,
        Some((_, tree)) => Sight::There(tree),
    }
}

fn tree(look: &Look, own: &Rc<Own>, index: usize, apart: &BTreeSet<usize>) -> Option<Tree> {
    own.content?;
    let inside = own.stack.iter().filter_map(|(child, position)| {
        let tree = match look.get(child) {
            _ if *child == index => return Some(((0, 0), Tree::Itself)),
            Some(_) if apart.contains(child) => Some(Tree::Apart(*child)),
            Some(own) => tree(look, own, *child, apart),
            None => None,
        };
        Some((*position, tree?))
    });
    // What it contains is told by the tree, and what contains it by that one's.
    let own = Rc::new(Own { stack: Vec::new(), seen: true, ..(**own).clone() });
    Some(Tree::Surface(own, inside.collect()))
}

/// What differs between a program's direct run and one through the proxy.
pub(crate) fn difference(direct: &Record, through: &Record) -> Option<String> {
    let apart = &direct.desynchronised;
    let (shown, expected) = (through.tracks(apart, true), direct.tracks(apart, false));
    for index in shown.keys().chain(expected.keys()) {
        let empty = Track::default();
        let shown = shown.get(index).unwrap_or(&empty);
        let expected = expected.get(index).unwrap_or(&empty);
        let what = || format!("surface {index}");
        let order = out_of_order(&shown.states, &expected.states, &None, what);
        if let Some(text) = order.or_else(|| other_end(&shown.end, &expected.end, what)) {
            return Some(text);
        }
    }
    for key in through.words.keys().chain(direct.words.keys()) {
        let empty = Vec::new();
        let shown = through.words.get(key).unwrap_or(&empty);
        let expected = direct.words.get(key).unwrap_or(&empty);
        let initial = if key.1 == "state" { "0".to_owned() } else { String::new() };
        let what = || format!("{} of surface {}", key.1, key.0);
        let (last, wanted) = (shown.last().unwrap_or(&initial), expected.last().unwrap_or(&initial));
        let order = out_of_order(shown, expected, &initial, what);
        if let Some(text) = order.or_else(|| other_end(last, wanted, what)) {
            return Some(text);
        }
    }
    None
}

/// Whether one list is part of another, in its order; both begin with `initial`.
fn out_of_order<T: PartialEq + fmt::Debug>(
    shown: &[T],
    expected: &[T],
    initial: &T,
    what: impl Fn() -> String,
) -> Option<String> {
    let mut rest = std::iter::once(initial).chain(expected).peekable();
    for (place, state) in shown.iter().enumerate() {
        while rest.peek().is_some_and(|next| *next != state) {
            rest.next();
        }
        if rest.peek().is_none() {
            let ever = expected.contains(state) || state == initial;
            let why = if ever { "was shown out of order" } else { "was never shown directly" };
            return Some(format!(
                "{}: state {place} {why}:\n    {state:?}\n  before it:\n    {:?}\n  directly:\n    {}",
                what(),
                place.checked_sub(1).map_or(initial, |before| &shown[before]),
                expected.iter().map(|state| format!("{state:?}")).collect::<Vec<_>>().join("\n    "),
            ));
        }
    }
    None
}

fn other_end<T: PartialEq + fmt::Debug>(last: &T, wanted: &T, what: impl Fn() -> String) -> Option<String> {
    (last != wanted)
        .then(|| format!("{}: at the end is shown\n    {last:?}\n  directly\n    {wanted:?}", what()))
}

/// What differs between what the compositor said and what the program heard.
pub(crate) fn misheard(
    said: &[(Heard, Option<usize>)],
    heard: &[Heard],
    gone: &BTreeSet<usize>,
) -> Option<String> {
    // Of a surface that the program has destroyed it may hear or not.
    let excused = |to: &Option<usize>| to.is_some_and(|to| gone.contains(&to));
    let mut inputs = heard.iter().filter(|heard| heard.is_input()).peekable();
    for (said, to) in said.iter().filter(|(said, _)| said.is_input()) {
        if inputs.peek() == Some(&said) {
            inputs.next();
        } else if !excused(to) {
            return Some(format!("the program did not hear {said:?}, but {:?}", inputs.peek()));
        }
    }
    if let Some(invented) = inputs.next() {
        return Some(format!("the program heard what was not said: {invented:?}"));
    }
    let tracks: BTreeSet<_> = said.iter().filter_map(|(said, _)| said.track()).collect();
    for track in tracks.iter().copied().chain(heard.iter().filter_map(Heard::track)) {
        let of = |heard: &&Heard| heard.track() == Some(track);
        let said_last = said.iter().rev().find(|(said, to)| of(&said) && !excused(to));
        let heard_last = heard.iter().rfind(of);
        if let (Some((said, _)), last) = (said_last, heard_last)
            && last != Some(said)
        {
            return Some(format!("the last that was said is {said:?}, that was heard is {last:?}"));
        }
    }
    let invented = heard.iter().filter(|heard| heard.track().is_some());
    let mut invented = invented.filter(|heard| !said.iter().any(|(said, _)| said == *heard));
    invented.next().map(|invented| format!("the program heard what never was: {invented:?}"))
}
