//! Several byte streams on the one that ssh gives a command as its stdin and stdout.
//!
//! The display's end is *near*, the other one *far*, beside the program. A *strand* is what the two carry for others:
//! the program's stdin, stdout and stderr, the session's notes, and *meetings*, each both ways, on which the two sides
//! of a session meet. The first meeting is there from the beginning; the far end opens later ones. Each direction of a
//! strand has room of its own, so that what is not taken on one never holds up another. No sockets and no clock.
//! Invariant: of each strand no more is kept than the room that the peer was given.
//!
//! The caller, in each turn: [`Trunk::receive`] what came; [`Trunk::waiting`] and [`Trunk::take`] for each strand whose
//! receiver is ready; then, while what is to be written is short, [`Trunk::answer`], and [`Trunk::send`] as far as
//! [`Trunk::room`] goes.

mod frame;

use std::collections::{BTreeMap, VecDeque};

use frame::{Decoder, Frame, Search, put};
pub use frame::{MARK, MAX_PIECE, TrunkError};

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The display's.
    Near,
    /// The program's.
    Far,
}

/// One end. See the module.
#[derive(Debug)]
pub struct Trunk {
    end: End,
    /// Behind the mark of the peer.
    search: Option<Search>,
    decoder: Decoder,
    strands: BTreeMap<u32, Strand>,
    /// The number of the next meeting.
    next: u32,
    /// Meetings that the peer has opened, of which the caller has not heard.
    opened: Vec<u32>,
    /// This end's mark has been said.
    greeted: bool,
}

/// A byte stream of others.
#[derive(Debug)]
struct Strand {
    /// The peer does not know of it yet.
    unopened: bool,
    outgoing: Outgoing,
    /// What the peer still has room for.
    room: u32,
    /// The peer may say more.
    hears: bool,
    queue: VecDeque<u8>,
    /// Bytes at the front of the queue for which the peer needed no room.
    free: usize,
    /// The receiver is gone, and whether the peer is yet to be told.
    discards: bool,
    stops: bool,
    /// The peer's receiver is gone.
    unwanted: bool,
    /// The peer may say so much before it is given more room, and how much has been taken since it was.
    granted: u32,
    taken: u32,
    window: u32,
}

/// The direction away from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outgoing {
    Open,
    /// The peer does not know yet that nothing follows.
    Ending,
    Ended,
}

impl Strand {
    fn new(window: u32, outgoing: Outgoing, hears: bool) -> Self {
        let queue = VecDeque::new();
        let (room, granted) = (window, window);
        let (unopened, free, taken) = (false, 0, 0);
        let (discards, stops, unwanted) = (false, false, false);
        Self {
            unopened,
            outgoing,
            room,
            hears,
            queue,
            free,
            discards,
            stops,
            unwanted,
            granted,
            taken,
            window,
        }
    }

    /// Neither end says any more; something may wait here for its receiver.
    fn is_said(&self) -> bool {
        self.outgoing == Outgoing::Ended && !self.hears
    }
}

impl Trunk {
    /// With its first strands. The far end has said its [`MARK`] before that: when it came up.
    pub fn new(end: End) -> Self {
        let one_way = |from| {
            let outgoing = if from == end { Outgoing::Open } else { Outgoing::Ended };
            Strand::new(STDIO_WINDOW, outgoing, from != end)
        };
        let strands = [
            (STDIN, one_way(End::Near)),
            (STDOUT, one_way(End::Far)),
            (STDERR, one_way(End::Far)),
            (NOTES, one_way(End::Far)),
            (MEETING, Strand::new(MEETING_WINDOW, Outgoing::Open, true)),
        ];
        Self {
            end,
            search: Some(Search::default()),
            decoder: Decoder::default(),
            strands: strands.into(),
            next: MEETING + 1,
            opened: Vec::new(),
            greeted: end == End::Far,
        }
    }

    /// Whether the peer has said its mark.
    pub fn is_met(&self) -> bool {
        self.search.is_none()
    }

    /// Takes what the peer said.
    ///
    /// # Errors
    /// It makes no sense. Nothing behind it does, then.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), TrunkError> {
        let mut bytes = bytes;
        if let Some(search) = &mut self.search {
            let mut noise = Vec::new();
            let behind = search.look(bytes, &mut noise);
            self.pass(&noise)?;
            let Some(behind) = behind else { return Ok(()) };
            self.search = None;
            bytes = &bytes[behind..];
        }
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next()? {
            match frame {
                Frame::Data { strand, payload } => hear(&mut self.strands, strand, payload)?,
                Frame::End { strand } => heard(&mut self.strands, strand)?.hears = false,
                Frame::Room { strand, bytes } => match self.strands.get_mut(&strand) {
                    Some(said) => {
                        let room = said.room.checked_add(bytes).filter(|room| *room <= said.window);
                        said.room = room.ok_or(TrunkError::TooMuch { strand })?;
                    }
                    // It has crossed the strand's end.
                    None if strand < self.next => {}
                    None => return Err(TrunkError::WrongStrand { strand }),
                },
                Frame::Stop { strand } => {
                    if self.end == End::Near || !OUTPUT.contains(&strand) {
                        return Err(TrunkError::WrongStrand { strand });
                    }
                    self.strands.get_mut(&strand).into_iter().for_each(|strand| strand.unwanted = true);
                }
                Frame::Open { strand } => {
                    if self.end == End::Far || strand != self.next || self.is_full() {
                        return Err(TrunkError::WrongStrand { strand });
                    }
                    self.begin(false);
                    self.opened.push(strand);
                }
            }
        }
        Ok(())
    }

    /// Nothing comes from the peer any more, and nothing goes there.
    pub fn end_of_stream(&mut self) {
        if let Some(mut search) = self.search.take() {
            let mut noise = Vec::new();
            search.end(&mut noise);
            // The far end has no use for it.
            let _ = self.pass(&noise);
        }
        for strand in self.strands.values_mut() {
            (strand.hears, strand.outgoing) = (false, Outgoing::Ended);
        }
    }

    /// What came before the mark: at the near end, what a login has printed.
    fn pass(&mut self, noise: &[u8]) -> Result<(), TrunkError> {
        match self.strands.get_mut(&STDOUT) {
            _ if noise.is_empty() => {}
            Some(stdout) if self.end == End::Near => {
                if !stdout.discards {
                    stdout.queue.extend(noise);
                    stdout.free += noise.len();
                }
            }
            _ => return Err(TrunkError::NoMark),
        }
        Ok(())
    }

    /// Whether more of the peer's bytes may be taken. What a login prints waits for its reader.
    pub fn takes(&self) -> bool {
        let waiting = self.strands.get(&STDOUT).map_or(0, |stdout| stdout.queue.len());
        self.search.is_none() || waiting < STDIO_WINDOW as usize
    }

    /// A meeting that the peer has opened since this was last asked.
    pub fn take_opened(&mut self) -> Option<u32> {
        self.opened.pop()
    }

    /// Opens a meeting; `None` at the near end, and while there are too many.
    pub fn open(&mut self) -> Option<u32> {
        (self.end == End::Far && !self.is_full()).then(|| self.begin(true))
    }

    /// The far end never counts fewer than the near one does when it hears of another: an end is counted until both
    /// have said so, and its own goes before.
    fn is_full(&self) -> bool {
        self.strands.range(MEETING..).filter(|(_, strand)| !strand.is_said()).count() >= MAX_MEETINGS
    }

    fn begin(&mut self, unopened: bool) -> u32 {
        let meetings = self.strands.range(MEETING..);
        let mut said = meetings.filter(|(_, strand)| strand.is_said()).map(|(number, _)| *number);
        if let (Some(first), Some(_)) = (said.next(), said.nth(MAX_MEETINGS - 2)) {
            // Its receiver takes nothing.
            self.strands.remove(&first);
        }
        let number = self.next;
        self.next += 1;
        let strand = Strand { unopened, ..Strand::new(MEETING_WINDOW, Outgoing::Open, true) };
        self.strands.insert(number, strand);
        number
    }

    /// What has come on a strand and was not taken; not always all of it.
    pub fn waiting(&self, strand: u32) -> &[u8] {
        self.strands.get(&strand).map_or(&[], |strand| strand.queue.as_slices().0)
    }

    /// Whether everything that will ever come on a strand has been taken.
    pub fn is_heard(&self, strand: u32) -> bool {
        self.strands.get(&strand).is_none_or(|strand| !strand.hears && strand.queue.is_empty())
    }

    /// So many bytes of [`Trunk::waiting`] have been passed on.
    pub fn take(&mut self, strand: u32, count: usize) {
        if let Some(strand) = self.strands.get_mut(&strand) {
            strand.queue.drain(..count);
            let free = count.min(strand.free);
            strand.free -= free;
            strand.taken += (count - free) as u32;
        }
    }

    /// A strand's receiver is gone: all that comes is thrown away, and its sender not held up. What the program writes
    /// is thrown away beside the program, once the peer has heard of that.
    pub fn discard(&mut self, strand: u32) {
        let count = self.strands.get(&strand).map_or(0, |strand| strand.queue.len());
        self.take(strand, count);
        let stops = self.end == End::Near && OUTPUT.contains(&strand);
        if let Some(strand) = self.strands.get_mut(&strand).filter(|strand| !strand.discards) {
            (strand.discards, strand.stops) = (true, stops);
        }
    }

    /// How much may be sent on a strand now, in one piece.
    pub fn room(&self, strand: u32) -> usize {
        let strand = self.strands.get(&strand);
        let strand = strand.filter(|strand| strand.outgoing == Outgoing::Open && !strand.unopened);
        strand
            .map_or(0, |strand| if strand.unwanted { MAX_PIECE } else { MAX_PIECE.min(strand.room as usize) })
    }

    /// Whether a strand may be sent on, now or later.
    pub fn is_open(&self, strand: u32) -> bool {
        self.strands.get(&strand).is_some_and(|strand| strand.outgoing == Outgoing::Open)
    }

    /// Sends this, which is no longer than [`Trunk::room`]; nothing once the peer has said that it takes none.
    pub fn send(&mut self, strand: u32, payload: &[u8], out: &mut Vec<u8>) {
        debug_assert!(payload.len() <= self.room(strand));
        let said = self.strands.get_mut(&strand).filter(|said| !said.unwanted);
        if let Some(said) = said.filter(|_| !payload.is_empty()) {
            said.room -= payload.len() as u32;
            put(out, Frame::Data { strand, payload });
        }
    }

    /// No more is sent on a strand.
    pub fn end(&mut self, strand: u32) {
        if let Some(strand) =
            self.strands.get_mut(&strand).filter(|strand| strand.outgoing != Outgoing::Ended)
        {
            strand.outgoing = Outgoing::Ending;
        }
    }

    /// Says what the peer has to know; forgets what is over.
    pub fn answer(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.greeted, true) {
            out.extend_from_slice(MARK);
        }
        for (&strand, said) in &mut self.strands {
            if std::mem::take(&mut said.unopened) {
                put(out, Frame::Open { strand });
            }
            if said.outgoing == Outgoing::Ending {
                put(out, Frame::End { strand });
                said.outgoing = Outgoing::Ended;
            }
            if std::mem::take(&mut said.stops) && said.hears {
                put(out, Frame::Stop { strand });
            }
            if said.hears && said.taken >= said.window / GRANTS {
                let bytes = std::mem::take(&mut said.taken);
                said.granted += bytes;
                put(out, Frame::Room { strand, bytes });
            }
        }
        self.strands.retain(|_, strand| !strand.is_said() || !strand.queue.is_empty());
    }

    /// The strands that there are.
    pub fn strands(&self) -> impl Iterator<Item = u32> + '_ {
        self.strands.keys().copied()
    }
}

/// The strand on which the peer may still say something.
fn heard(strands: &mut BTreeMap<u32, Strand>, strand: u32) -> Result<&mut Strand, TrunkError> {
    strands.get_mut(&strand).filter(|heard| heard.hears).ok_or(TrunkError::WrongStrand { strand })
}

fn hear(strands: &mut BTreeMap<u32, Strand>, strand: u32, payload: &[u8]) -> Result<(), TrunkError> {
    let heard = heard(strands, strand)?;
    let length = payload.len() as u32;
    heard.granted = heard.granted.checked_sub(length).ok_or(TrunkError::TooMuch { strand })?;
    if heard.discards {
        heard.taken += length;
    } else {
        heard.queue.extend(payload);
    }
    Ok(())
}

/// The program's stdin.
pub const STDIN: u32 = 0;
/// Its stdout.
pub const STDOUT: u32 = 1;
/// Its stderr.
pub const STDERR: u32 = 2;
/// What the session tells its user.
pub const NOTES: u32 = 3;
/// What the program writes, and what is told with it.
const OUTPUT: [u32; 3] = [STDOUT, STDERR, NOTES];
/// The first meeting.
pub const MEETING: u32 = 4;
/// Meetings that there are at once; as many that are over may wait for their receivers.
pub const MAX_MEETINGS: usize = 8;
/// Room on each of the first four: 2.5 MB/s at a round trip of 100 ms, and no more before what a meeting carries.
const STDIO_WINDOW: u32 = 256 << 10;
/// Room on a meeting: as much as ssh gives a channel.
const MEETING_WINDOW: u32 = 2 << 20;
/// A strand is given room when this part of its window has been taken.
const GRANTS: u32 = 4;

#[cfg(test)]
mod tests;
