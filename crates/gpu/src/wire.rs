//! What a session and its reader say to each other: packets, each with the descriptors that it names.
//!
//! Numbers are little-endian; a packet is its kind, a byte, and its fields in order. Both ends are of one version,
//! which the first packet of a reader begins with: one of another version is of no use. Invariant: a packet is taken
//! whole or not at all.

use wayferry_pixels::{Rect, Region, Size};

use super::dmabuf::{Described, MAX_PLANES};
use super::format::{Fourcc, Modifier};
use super::importer::Route;

/// Bytes of a packet: that of the longest list of formats.
pub const MAX_PACKET: usize = 64 << 10;
/// Descriptors of a packet.
pub const MAX_FDS: usize = MAX_PLANES;
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Bytes of words for people; of more, the beginning.
const MAX_WORDS: usize = 400;

/// What a session tells its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToReader {
    /// Import a buffer; with the descriptors of its planes, in order.
    Import {
        /// Its name.
        image: u64,
        /// What its program said.
        described: Described,
        /// Offset and stride of each plane.
        planes: Vec<(u32, u32)>,
    },
    /// Memory for pixels, with its descriptor; in place of what had that name.
    Lend {
        /// Its name.
        slot: u32,
        /// Its length.
        bytes: u64,
    },
    /// Read a region of a buffer into memory.
    Read {
        /// The name of this reading.
        job: u64,
        /// The buffer.
        image: u64,
        /// The memory.
        slot: u32,
        /// What of it.
        region: Region,
    },
    /// Forget a buffer.
    Forget {
        /// Its name.
        image: u64,
    },
}

/// What a reader tells its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromReader {
    /// It is there; the first packet, and only that.
    Ready(Means),
    /// It can read nothing here, and another one could not either; in place of [`Self::Ready`].
    Unable {
        /// In words for the user.
        why: String,
    },
    /// A driver gets to work on this buffer, until that is answered: if the reader ends before, it may be over that.
    Begun {
        /// Its name.
        image: u64,
    },
    /// A buffer is imported, or why it cannot be.
    Imported {
        /// Its name.
        image: u64,
        /// How it will be read; in words for the program's author.
        outcome: Result<Route, String>,
    },
    /// A buffer has been read, or why it could not be.
    Read {
        /// The name of the reading.
        job: u64,
        /// In words for the user.
        outcome: Result<(), String>,
    },
}

/// What a reader reads with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Means {
    /// In words for the user, as `egl: Mesa Intel(R) UHD Graphics 620`.
    pub name: String,
    /// The number (`dev_t`) of its render node, if it reads with one.
    pub device: Option<u64>,
    /// Its driver attaches no fences to buffers: programs have to tell by timelines when they have drawn.
    pub lacks_fences: bool,
    /// What it can import, in the order of preference.
    pub pairs: Vec<(Fourcc, Modifier)>,
}

/// A packet that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl ToReader {
    /// As a packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        match self {
            Self::Import { image, described, planes } => {
                out.u8(0).u64(*image).u32(described.size.width()).u32(described.size.height());
                out.u32(described.fourcc.0).u64(described.modifier.0).u8(described.flipped.into());
                for (offset, stride) in planes {
                    out.u32(*offset).u32(*stride);
                }
            }
            Self::Lend { slot, bytes } => drop(out.u8(1).u32(*slot).u64(*bytes)),
            Self::Read { job, image, slot, region } => {
                out.u8(2).u64(*job).u64(*image).u32(*slot);
                for rect in region.rects() {
                    out.u32(rect.x).u32(rect.y).u32(rect.width).u32(rect.height);
                }
            }
            Self::Forget { image } => drop(out.u8(3).u64(*image)),
        }
        out.0
    }

    /// What a packet says.
    ///
    /// # Errors
    /// Nothing.
    pub fn decode(packet: &[u8]) -> Result<Self, Malformed> {
        let mut input = In(packet);
        let message = match input.u8()? {
            0 => {
                let image = input.u64()?;
                let size = Size::new(input.u32()?, input.u32()?).map_err(|_| Malformed)?;
                let (fourcc, modifier) = (Fourcc(input.u32()?), Modifier(input.u64()?));
                let described = Described { size, fourcc, modifier, flipped: input.u8()? != 0 };
                let planes = input.rest(|input| Ok((input.u32()?, input.u32()?)), MAX_PLANES)?;
                Self::Import { image, described, planes }
            }
            1 => Self::Lend { slot: input.u32()?, bytes: input.u64()? },
            2 => {
                let (job, image, slot) = (input.u64()?, input.u64()?, input.u32()?);
                let rects = input.rest(In::rect, MAX_PACKET)?;
                Self::Read { job, image, slot, region: rects.into_iter().collect() }
            }
            3 => Self::Forget { image: input.u64()? },
            _ => return Err(Malformed),
        };
        input.end().map(|()| message)
    }
}

impl FromReader {
    /// As a packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out::default();
        match self {
            Self::Ready(Means { name, device, lacks_fences, pairs }) => {
                out.u8(0).words(VERSION).u8(device.is_some().into()).u64(device.unwrap_or(0));
                out.u8((*lacks_fences).into()).words(name);
                for (fourcc, modifier) in pairs {
                    out.u32(fourcc.0).u64(modifier.0);
                }
            }
            Self::Imported { image, outcome } => {
                let (outcome, route) = match outcome {
                    Ok(Route::Gpu) => (Ok(()), 0),
                    Ok(Route::Mapped) => (Ok(()), 1),
                    Err(why) => (Err(why.clone()), 0),
                };
                out.u8(1).u64(*image).u8(route).outcome(&outcome);
            }
            Self::Read { job, outcome } => drop(out.u8(2).u64(*job).outcome(outcome)),
            Self::Unable { why } => drop(out.u8(3).words(why)),
            Self::Begun { image } => drop(out.u8(4).u64(*image)),
        }
        out.0
    }

    /// What a packet says.
    ///
    /// # Errors
    /// Nothing.
    pub fn decode(packet: &[u8]) -> Result<Self, Malformed> {
        let mut input = In(packet);
        let message = match input.u8()? {
            0 => {
                let version = input.words()?;
                if version != VERSION {
                    let why =
                        format!("what should read buffers is of version {version}, and this is {VERSION}");
                    return Ok(Self::Unable { why });
                }
                let (has_device, device) = (input.u8()?, input.u64()?);
                let (lacks_fences, name) = (input.u8()? != 0, input.words()?);
                let pair = |input: &mut In<'_>| Ok((Fourcc(input.u32()?), Modifier(input.u64()?)));
                let pairs = input.rest(pair, MAX_PACKET)?;
                let device = (has_device != 0).then_some(device);
                Self::Ready(Means { name, device, lacks_fences, pairs })
            }
            1 => {
                let (image, route) = (input.u64()?, input.u8()?);
                let route = if route == 0 { Route::Gpu } else { Route::Mapped };
                Self::Imported { image, outcome: input.outcome()?.map(|()| route) }
            }
            2 => Self::Read { job: input.u64()?, outcome: input.outcome()? },
            3 => Self::Unable { why: input.words()? },
            4 => Self::Begun { image: input.u64()? },
            _ => return Err(Malformed),
        };
        input.end().map(|()| message)
    }
}

/// A packet that is being written.
#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Words for people: their length, two bytes, and UTF-8.
    fn words(&mut self, words: &str) -> &mut Self {
        let end = words.floor_char_boundary(MAX_WORDS);
        // At most [`MAX_WORDS`].
        self.0.extend((end as u16).to_le_bytes());
        self.0.extend(&words.as_bytes()[..end]);
        self
    }

    /// Empty words for what went well.
    fn outcome(&mut self, outcome: &Result<(), String>) -> &mut Self {
        match outcome {
            Ok(()) => self.words(""),
            Err(why) if why.is_empty() => self.words("no reason was given"),
            Err(why) => self.words(why),
        }
    }
}

/// What is left of a packet that is being read.
struct In<'a>(&'a [u8]);

impl In<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.take().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    fn words(&mut self) -> Result<String, Malformed> {
        let length = usize::from(self.take().map(u16::from_le_bytes)?);
        if length > MAX_WORDS || length > self.0.len() {
            return Err(Malformed);
        }
        let (words, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8(words.to_vec()).map_err(|_| Malformed)
    }

    fn outcome(&mut self) -> Result<Result<(), String>, Malformed> {
        self.words().map(|why| if why.is_empty() { Ok(()) } else { Err(why) })
    }

    fn rect(&mut self) -> Result<Rect, Malformed> {
        let [x, y, width, height] = [self.u32()?, self.u32()?, self.u32()?, self.u32()?];
        let fits = |from: u32, length: u32| length > 0 && from.checked_add(length).is_some();
        if fits(x, width) && fits(y, height) { Ok(Rect { x, y, width, height }) } else { Err(Malformed) }
    }

    /// As many of a kind as are left, no more than `most`.
    fn rest<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, Malformed>,
        most: usize,
    ) -> Result<Vec<T>, Malformed> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            if all.len() == most {
                return Err(Malformed);
            }
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rect() -> impl Strategy<Value = Rect> {
        (0u32..99, 0u32..99, 1u32..99, 1u32..99).prop_map(|(x, y, width, height)| Rect {
            x,
            y,
            width,
            height,
        })
    }

    fn described() -> impl Strategy<Value = Described> {
        (1u32..999, 1u32..999, any::<u32>(), any::<u64>(), any::<bool>()).prop_map(
            |(width, height, fourcc, modifier, flipped)| {
                let size = Size::new(width, height).expect("a size");
                Described { size, fourcc: Fourcc(fourcc), modifier: Modifier(modifier), flipped }
            },
        )
    }

    fn to_reader() -> impl Strategy<Value = ToReader> {
        let planes = proptest::collection::vec(any::<(u32, u32)>(), 0..=MAX_PLANES);
        prop_oneof![
            (any::<u64>(), described(), planes).prop_map(|(image, described, planes)| ToReader::Import {
                image,
                described,
                planes
            }),
            any::<(u32, u64)>().prop_map(|(slot, bytes)| ToReader::Lend { slot, bytes }),
            (any::<(u64, u64, u32)>(), proptest::collection::vec(rect(), 0..9)).prop_map(
                |((job, image, slot), rects)| {
                    ToReader::Read { job, image, slot, region: rects.into_iter().collect() }
                }
            ),
            any::<u64>().prop_map(|image| ToReader::Forget { image }),
        ]
    }

    fn from_reader() -> impl Strategy<Value = FromReader> {
        let outcome = || prop_oneof![Just(Ok(())), "[a-zé]{1,50}".prop_map(Err)];
        let routed = (outcome(), any::<bool>())
            .prop_map(|(outcome, mapped)| outcome.map(|()| if mapped { Route::Mapped } else { Route::Gpu }));
        let pairs = proptest::collection::vec(any::<(u32, u64)>(), 0..9);
        let pairs =
            pairs.prop_map(|pairs| pairs.into_iter().map(|(f, m)| (Fourcc(f), Modifier(m))).collect());
        prop_oneof![
            ("[a-z]{0,20}", any::<Option<u64>>(), any::<bool>(), pairs).prop_map(
                |(name, device, lacks_fences, pairs)| FromReader::Ready(Means {
                    name,
                    device,
                    lacks_fences,
                    pairs
                })
            ),
            (any::<u64>(), routed).prop_map(|(image, outcome)| FromReader::Imported { image, outcome }),
            (any::<u64>(), outcome()).prop_map(|(job, outcome)| FromReader::Read { job, outcome }),
            "[a-z]{0,20}".prop_map(|why| FromReader::Unable { why }),
            any::<u64>().prop_map(|image| FromReader::Begun { image }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard(to in to_reader(), from in from_reader()) {
            prop_assert_eq!(ToReader::decode(&to.encode()), Ok(to));
            prop_assert_eq!(FromReader::decode(&from.encode()), Ok(from));
        }

        #[test]
        fn what_is_cut_or_longer_says_nothing(from in from_reader(), cut in 1usize..9) {
            let packet = from.encode();
            let short = FromReader::decode(&packet[..packet.len() - cut.min(packet.len())]);
            prop_assert!(short != Ok(from.clone()));
            let long: Vec<u8> = packet.into_iter().chain([7; 5]).collect();
            prop_assert!(FromReader::decode(&long) != Ok(from));
        }

        #[test]
        fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (ToReader::decode(&bytes), FromReader::decode(&bytes));
        }
    }

    #[test]
    fn a_reader_of_another_version_is_of_no_use() {
        let mut out = Out::default();
        out.u8(0).words("0.0.1-other").u8(1).u64(2).u64(3);
        let Ok(FromReader::Unable { why }) = FromReader::decode(&out.0) else { panic!("it is understood") };
        assert!(why.contains("0.0.1-other") && why.contains(VERSION), "{why}");
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let why = "é".repeat(MAX_WORDS);
        let message = FromReader::Read { job: 1, outcome: Err(why) };
        let Ok(FromReader::Read { outcome: Err(heard), .. }) = FromReader::decode(&message.encode()) else {
            panic!("it says something");
        };
        assert_eq!(heard.len(), MAX_WORDS);
    }
}
