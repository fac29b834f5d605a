//! Places for peers that have proved nothing yet: how many there are, and who loses one when another peer comes.
//!
//! It knows neither secrets nor carriers: what holds a place is the caller's. The newest arrival always gets a place,
//! so a flood can push out only what came before. When all places are taken, the source that holds most of them loses
//! its oldest one, so a flood from one source pushes out its own. Invariant: no more places are taken than there are.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

/// Where a peer comes from, as far as places are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// This machine, on a byte stream.
    Here,
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 network of 64 bits: one machine may use all addresses of it (RFC 4291 §2.5.4).
    V6([u8; 8]),
}

impl From<IpAddr> for Source {
    fn from(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => {
                let mut network = [0; 8];
                network.copy_from_slice(&ip.octets()[..8]);
                Self::V6(network)
            }
        }
    }
}

/// A limited number of places, each held by a `T`, the oldest first.
#[derive(Debug)]
pub struct Places<T> {
    limit: usize,
    taken: VecDeque<Place<T>>,
}

#[derive(Debug)]
struct Place<T> {
    number: u64,
    source: Source,
    holder: T,
}

impl<T> Places<T> {
    /// So many places, at least one.
    pub const fn new(limit: usize) -> Self {
        Self { limit: if limit == 0 { 1 } else { limit }, taken: VecDeque::new() }
    }

    /// Gives a place to the newest arrival; returns the holder that lost one for it. The caller numbers holders, and
    /// uses no number twice.
    pub fn enter(&mut self, number: u64, source: Source, holder: T) -> Option<T> {
        let loser = if self.taken.len() < self.limit { None } else { self.loser(source) };
        let lost = loser.and_then(|index| self.taken.remove(index));
        self.taken.push_back(Place { number, source, holder });
        lost.map(|place| place.holder)
    }

    /// Takes a holder out, with its source.
    pub fn leave(&mut self, number: u64) -> Option<(Source, T)> {
        let index = self.taken.iter().position(|place| place.number == number)?;
        self.taken.remove(index).map(|place| (place.source, place.holder))
    }

    /// Takes the oldest holder out.
    pub fn pop(&mut self) -> Option<T> {
        self.taken.pop_front().map(|place| place.holder)
    }

    /// Whether the holder with this number has a place.
    pub fn contains(&self, number: u64) -> bool {
        self.taken.iter().any(|place| place.number == number)
    }

    /// The holder with this number.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.taken.iter_mut().find(|place| place.number == number).map(|place| &mut place.holder)
    }

    /// All holders with their numbers, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.taken.iter().map(|place| (place.number, &place.holder))
    }

    /// How many places are taken.
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Whether no place is taken.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// The oldest place of the source that holds most of them once `newcomer` has one more. Of sources that hold as
    /// many, the one that came first.
    fn loser(&self, newcomer: Source) -> Option<usize> {
        let mut held = HashMap::from([(newcomer, 1)]);
        for place in &self.taken {
            *held.entry(place.source).or_insert(0) += 1;
        }
        let most = self.taken.iter().map(|place| held[&place.source]).max()?;
        self.taken.iter().position(|place| held[&place.source] == most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from(last: u8) -> Source {
        IpAddr::from([192, 0, 2, last]).into()
    }

    fn numbers(places: &Places<char>) -> String {
        places.iter().map(|(_, holder)| *holder).collect()
    }

    #[test]
    fn the_newest_gets_a_place_and_the_oldest_of_its_source_loses_one() {
        let mut places = Places::new(3);
        assert_eq!(places.enter(1, from(1), 'a'), None);
        assert_eq!(places.enter(2, from(2), 'b'), None);
        assert_eq!(places.enter(3, from(2), 'c'), None);
        assert_eq!(places.enter(4, from(2), 'd'), Some('b'));
        assert_eq!(places.enter(5, from(3), 'e'), Some('c'), "the source that has most");
        assert_eq!(numbers(&places), "ade");
        assert_eq!(places.enter(6, from(4), 'f'), Some('a'), "all have as many");
        assert_eq!(places.leave(4), Some((from(2), 'd')));
        assert_eq!((places.leave(4), places.pop(), places.len()), (None, Some('e'), 1));
    }

    #[test]
    fn one_network_is_one_source() {
        let source = |text: &str| Source::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), from(1));
        assert_ne!(from(1), from(2));
    }

    proptest! {
        /// However many come from elsewhere, a source that holds one place keeps it while another holds two.
        #[test]
        fn a_flood_from_one_source_pushes_out_its_own(
            limit in 2..20usize,
            arrivals in prop::collection::vec(0..4u8, 1..200),
        ) {
            let mut places = Places::new(limit);
            prop_assert_eq!(places.enter(0, from(9), 9), None);
            for (number, source) in (1..).zip(arrivals) {
                let busiest = (0..4).map(|of| places.iter().filter(|(_, held)| **held == of).count()).max();
                let lost = places.enter(number, from(source), source);
                prop_assert!(places.len() <= limit);
                prop_assert!(places.iter().any(|(taken, _)| taken == number), "the newest has a place");
                prop_assert!(lost != Some(9) || busiest <= Some(1));
                if lost == Some(9) {
                    return Ok(());
                }
            }
        }
    }
}
