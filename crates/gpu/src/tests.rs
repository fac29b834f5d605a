//! Session and reader against each other, in one thread: readers that end at any moment.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, pwrite};
use wayferry_pixels::{Region, Size};

use super::ask::{Answer, Ask, BufferId, Job};
use super::client::{Client, Due, Owner};
use super::dmabuf::{Described, Dmabuf, Plane};
use super::fake::{self, Memory};
use super::format::{Fourcc, Modifier};
use super::importer::Route;
use super::reader::Reader;
use super::timeline::{Point, Timeline};
use super::wire::{FromReader, Means, ToReader};

const BYTES: usize = 4 * 2 * 4;
/// A reader that imports a buffer of these bytes ends.
const DEADLY: u8 = 255;

/// A client, and the reader that it has started.
#[derive(Default)]
struct World {
    client: Client,
    reader: Option<Reader<Memory>>,
    /// Answers of the reader that have not come.
    coming: Vec<FromReader>,
    now: Duration,
    answers: Vec<(Owner, Answer)>,
    starts: usize,
    /// A reader that reads ends.
    deadly_read: bool,
}

fn dmabuf(value: u8) -> Rc<Dmabuf> {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
    assert_eq!(pwrite(&fd, &[value; BYTES], 0), Ok(BYTES));
    let size = Size::new(4, 2).expect("a size");
    let fourcc = Fourcc::new(*b"XR24");
    let described = Described { size, fourcc, modifier: Modifier::LINEAR, flipped: false };
    let planes = vec![Plane { fd, offset: 0, stride: 16 }];
    Rc::new(Dmabuf::new(described, planes, |_| true).expect("a buffer"))
}

impl World {
    fn up() -> Self {
        let mut world = Self::default();
        world.step();
        world.step();
        assert!(world.client.offer().is_some());
        world
    }

    /// The first buffer has been imported; its bytes are fives.
    fn with_buffer() -> Self {
        let mut world = Self::up();
        world.client.ask(world.now, 1, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(5) });
        world.settle();
        world
    }

    /// A program asks for the first buffer's pixels.
    fn ask_to_read(&mut self, owner: Owner, job: u64) {
        let ask = Ask::Read { job: Job(job), buffer: BufferId(1), region: whole(), fence: None };
        self.client.ask(self.now, owner, ask);
    }

    /// The reader is started if it is due, is told everything, and one of its answers comes.
    fn step(&mut self) {
        match self.client.on_timeout(self.now) {
            Some(Due::Start) => {
                self.starts += 1;
                self.reader = Some(Reader::new(Memory));
                let pairs = vec![(Fourcc::new(*b"XR24"), Modifier::LINEAR)];
                let means = Means { name: "fake".to_owned(), device: Some(1), lacks_fences: false, pairs };
                self.coming = vec![FromReader::Ready(means)];
            }
            Some(Due::Kill) => self.kill(),
            None => {}
        }
        let are_ready = |(name, fds): (u64, Vec<BorrowedFd<'_>>)| fds.iter().all(is_ready).then_some(name);
        let drawn: Vec<u64> = self.client.undrawn().filter_map(are_ready).collect();
        drawn.into_iter().for_each(|name| self.client.on_drawn(self.now, name));
        while let Some(reader) = &mut self.reader
            && let Some(packet) = self.client.output()
        {
            let message = ToReader::decode(&packet.bytes).expect("it says something");
            let fds: Vec<OwnedFd> =
                packet.fds().into_iter().map(|fd| fd.try_clone_to_owned().expect("a descriptor")).collect();
            self.client.sent();
            let works_on = match message {
                ToReader::Read { image, .. } if self.deadly_read => Some(image),
                ToReader::Import { image, .. } if first_byte(&fds) == DEADLY => Some(image),
                _ => None,
            };
            if let Some(image) = works_on {
                self.coming.push(FromReader::Begun { image });
                return self.kill();
            }
            reader.on_message(message, fds, &mut |answer| self.coming.push(answer));
        }
        if let Some(reader) = self.reader.as_mut().filter(|reader| !reader.is_idle()) {
            reader.end_one(&mut |answer| self.coming.push(answer));
        }
        while !self.coming.is_empty() {
            let answer = self.coming.remove(0);
            self.client.on_packet(self.now, &answer.encode()).expect("it is understood");
            if !matches!(answer, FromReader::Begun { .. }) {
                break;
            }
        }
        self.answers.extend(std::iter::from_fn(|| self.client.poll_answer()));
    }

    fn kill(&mut self) {
        if self.reader.take().is_some() {
            // What it has said is in the socket.
            for answer in std::mem::take(&mut self.coming) {
                self.client.on_packet(self.now, &answer.encode()).expect("it is understood");
            }
            self.client.on_end(self.now);
            self.answers.extend(std::iter::from_fn(|| self.client.poll_answer()));
        }
    }

    /// Long enough for everything, also for a reader to come back.
    fn settle(&mut self) {
        for _ in 0..400 {
            self.now += Duration::from_millis(500);
            self.step();
        }
    }
}

fn pixels(answer: &Answer) -> Option<Vec<u8>> {
    let Answer::Read { frame, .. } = answer else { return None };
    let mut bytes = vec![0; BYTES];
    frame.as_ref()?.read(0, &mut bytes).expect("it is there");
    Some(bytes)
}

fn first_byte(fds: &[OwnedFd]) -> u8 {
    let mut byte = [0];
    fds.first().map_or(Ok(0), |fd| pread(fd, &mut byte, 0)).expect("a byte");
    byte[0]
}

fn is_ready(fd: &BorrowedFd<'_>) -> bool {
    let now = Timespec::default();
    poll(&mut [PollFd::from_borrowed_fd(*fd, PollFlags::IN)], Some(&now)) == Ok(1)
}

fn whole() -> Region {
    Region::full(Size::new(4, 2).expect("a size"))
}

/// Four readings of eight seconds each are no hang.
#[test]
fn regression_a_slow_reader_was_taken_for_one_that_hangs() {
    let mut world = World::with_buffer();
    for job in 2..6 {
        world.ask_to_read(1, job);
    }
    for _ in 0..5 {
        world.step();
        world.now += Duration::from_secs(8);
    }
    assert_eq!(world.starts, 1);
    let figures = world.client.figures();
    assert_eq!((figures.readers, figures.read, figures.unread, figures.bytes), (1, 4, 0, 4 * BYTES as u64));
    assert_eq!(figures.took, Duration::from_secs(8 + 16 + 24));
}

#[test]
fn what_is_asked_is_answered() {
    let mut world = World::up();
    world.client.ask(world.now, 7, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(5) });
    world.client.ask(
        world.now,
        7,
        Ask::Read { job: Job(2), buffer: BufferId(1), region: whole(), fence: None },
    );
    world.client.ask(
        world.now,
        8,
        Ask::Read { job: Job(2), buffer: BufferId(1), region: whole(), fence: None },
    );
    world.settle();
    let answers = std::mem::take(&mut world.answers);
    assert!(
        matches!(answers[0], (8, Answer::Read { job: Job(2), frame: None })),
        "names are each program's own"
    );
    assert!(matches!(answers[1], (7, Answer::Imported { buffer: BufferId(1), outcome: Ok(_) })));
    assert_eq!((answers.len(), answers[2].0, pixels(&answers[2].1)), (3, 7, Some(vec![5; BYTES])));
    drop(answers);
    world.client.ask(world.now, 7, Ask::Forget { buffer: BufferId(1) });
    world.settle();
    assert_eq!(world.reader.as_ref().map(Reader::images), Some(0));
    assert_eq!(world.starts, 1);
}

#[test]
fn a_buffer_that_ends_every_reader_is_refused_and_the_others_stay() {
    let mut world = World::with_buffer();
    world.answers.clear();
    world.client.ask(world.now, 1, Ask::Import { buffer: BufferId(2), dmabuf: dmabuf(DEADLY) });
    world.client.ask(
        world.now,
        1,
        Ask::Read { job: Job(3), buffer: BufferId(2), region: whole(), fence: None },
    );
    world.step();
    assert!(world.client.offer().is_none(), "who begins now draws in software");
    world.settle();
    let answers = std::mem::take(&mut world.answers);
    let [
        (1, Answer::Imported { buffer: BufferId(2), outcome: Err(_) }),
        (1, Answer::Read { job: Job(3), frame: None }),
    ] = &answers[..]
    else {
        panic!("{answers:?}");
    };
    assert_eq!((world.starts, world.client.offer().is_some()), (3, true));
    world.ask_to_read(1, 4);
    world.client.ask(
        world.now,
        1,
        Ask::Read { job: Job(5), buffer: BufferId(2), region: whole(), fence: None },
    );
    world.settle();
    assert_eq!(world.answers.iter().find_map(|(_, answer)| pixels(answer)), Some(vec![5; BYTES]));
    assert_eq!((world.answers.len(), world.starts), (2, 3));
}

#[test]
fn a_reader_that_hangs_is_ended_and_one_that_lies_is_refused() {
    let mut world = World::up();
    world.client.ask(world.now, 1, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(5) });
    let due = world.client.next_timeout().expect("it is waited for");
    assert_eq!(world.client.on_timeout(due), Some(Due::Kill));
    let lies = [
        FromReader::Read { job: 1, outcome: Ok(()) },
        FromReader::Imported { image: 77, outcome: Ok(Route::Gpu) },
        FromReader::Ready(Means {
            name: String::new(),
            device: None,
            lacks_fences: false,
            pairs: Vec::new(),
        }),
    ];
    for lie in lies {
        let mut world = World::up();
        world.client.ask(world.now, 1, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(5) });
        assert!(world.client.on_packet(world.now, &lie.encode()).is_err(), "{lie:?}");
    }
    // What a liar was asked is asked of the next one.
    let mut world = World::with_buffer();
    world.answers.clear();
    world.ask_to_read(1, 2);
    let drawn: Vec<u64> = world.client.undrawn().map(|(name, _)| name).collect();
    drawn.into_iter().for_each(|name| world.client.on_drawn(world.now, name));
    let lie = FromReader::Read { job: 99, outcome: Ok(()) };
    assert!(world.client.on_packet(world.now, &lie.encode()).is_err());
    world.kill();
    world.settle();
    assert_eq!(world.answers.iter().find_map(|(_, answer)| pixels(answer)), Some(vec![5; BYTES]));
    let mut world = World::up();
    let unasked = FromReader::Imported { image: 1, outcome: Ok(Route::Gpu) };
    assert!(world.client.on_packet(world.now, &unasked.encode()).is_err());
}

/// What is asked of a reader that has ended already has not ended it.
#[test]
fn regression_buffers_were_blamed_for_readers_that_ended_by_themselves() {
    let mut world = World::with_buffer();
    for job in 2..6 {
        world.answers.clear();
        world.ask_to_read(1, job);
        let drawn: Vec<u64> = world.client.undrawn().map(|(name, _)| name).collect();
        drawn.into_iter().for_each(|name| world.client.on_drawn(world.now, name));
        world.kill();
        world.settle();
        assert_eq!(
            world.answers.iter().find_map(|(_, answer)| pixels(answer)),
            Some(vec![5; BYTES]),
            "{job}"
        );
    }
}

#[test]
fn what_is_cancelled_before_it_is_drawn_is_answered_at_once() {
    let mut world = World::with_buffer();
    world.answers.clear();
    let timeline: Rc<dyn Timeline> = Rc::new(fake::Timeline::default());
    let fence = Rc::new(Point::new(&timeline, 1).fence().expect("a descriptor"));
    let read = Ask::Read { job: Job(2), buffer: BufferId(1), region: whole(), fence: Some(fence) };
    world.client.ask(world.now, 1, read);
    world.settle();
    assert!(world.answers.is_empty(), "it is not drawn");
    world.client.ask(world.now, 2, Ask::Cancel { job: Job(2) });
    assert!(world.client.poll_answer().is_none(), "another program's");
    world.client.ask(world.now, 1, Ask::Cancel { job: Job(2) });
    assert!(matches!(world.client.poll_answer(), Some((1, Answer::Read { job: Job(2), frame: None }))));
    assert_eq!(world.client.undrawn().count(), 0);
}

/// A driver without fences, where the kernel has no timelines of its device.
#[test]
fn a_driver_that_lacks_fences_is_of_no_use_without_timelines() {
    let mut client = Client::default();
    assert_eq!(client.on_timeout(Duration::ZERO), Some(Due::Start));
    let means =
        Means { name: "egl: fake".to_owned(), device: Some(0), lacks_fences: true, pairs: Vec::new() };
    assert!(client.on_packet(Duration::ZERO, &FromReader::Ready(means).encode()).is_err());
    client.on_end(Duration::ZERO);
    assert!(client.offer().is_none() && client.next_timeout().is_none());
    assert!(client.unable().is_some_and(|why| why.contains("fences")), "{:?}", client.unable());
}

/// The same when a reader has been up: what is asked is not left without an answer.
#[test]
fn regression_a_later_reader_without_timelines_ended_all_reading() {
    let mut world = World::with_buffer();
    world.answers.clear();
    world.kill();
    world.ask_to_read(1, 2);
    world.now += Duration::from_secs(1);
    assert_eq!(world.client.on_timeout(world.now), Some(Due::Start));
    let pairs = Vec::new();
    let means = Means { name: "egl: fake".to_owned(), device: Some(0), lacks_fences: true, pairs };
    assert!(world.client.on_packet(world.now, &FromReader::Ready(means).encode()).is_err());
    world.client.on_end(world.now);
    world.settle();
    assert_eq!(world.answers.iter().find_map(|(_, answer)| pixels(answer)), Some(vec![5; BYTES]));
}

/// A GPU works on two buffers when it ends: neither is blamed, and then they are read one by one.
#[test]
fn regression_a_buffer_was_blamed_for_the_one_read_beside_it() {
    let mut world = World::up();
    world.client.ask(world.now, 1, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(5) });
    world.client.ask(world.now, 2, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(6) });
    world.settle();
    world.answers.clear();
    let draw = |world: &mut World| {
        let drawn: Vec<u64> = world.client.undrawn().map(|(name, _)| name).collect();
        drawn.into_iter().for_each(|name| world.client.on_drawn(world.now, name));
    };
    let mut job = 10;
    let mut ask_both = |world: &mut World| {
        job += 1;
        world.ask_to_read(1, job);
        world.ask_to_read(2, job);
        draw(world);
    };
    let told = |world: &mut World| {
        let mut reads = Vec::new();
        while let Some(packet) = world.client.output() {
            if let Ok(ToReader::Read { image, .. }) = ToReader::decode(&packet.bytes) {
                reads.push(image);
            }
            world.client.sent();
        }
        reads
    };
    ask_both(&mut world);
    let both = told(&mut world);
    assert_eq!(both.len(), 2);
    for image in &both {
        world.client.on_packet(world.now, &FromReader::Begun { image: *image }.encode()).expect("it is said");
    }
    world.reader = None;
    world.client.on_end(world.now);
    for _ in 0..20 {
        world.now += Duration::from_millis(500);
        world.step();
    }
    assert!(
        world.answers.iter().any(|(owner, answer)| *owner == 1 && pixels(answer) == Some(vec![5; BYTES]))
    );
    assert!(
        world.answers.iter().any(|(owner, answer)| *owner == 2 && pixels(answer) == Some(vec![6; BYTES]))
    );
    ask_both(&mut world);
    assert_eq!(told(&mut world).len(), 1, "one by one");
}

/// A reader that came up shows that one can; the next may be started too early.
#[test]
fn regression_a_later_reader_that_can_read_nothing_ends_all_reading() {
    let mut world = World::with_buffer();
    world.answers.clear();
    world.kill();
    world.ask_to_read(1, 2);
    world.now += Duration::from_secs(1);
    assert_eq!(world.client.on_timeout(world.now), Some(Due::Start));
    let unable = FromReader::Unable { why: "out of memory".to_owned() };
    assert!(world.client.on_packet(world.now, &unable.encode()).is_err());
    world.client.on_end(world.now);
    world.settle();
    assert_eq!(world.answers.iter().find_map(|(_, answer)| pixels(answer)), Some(vec![5; BYTES]));
}

/// Each commit of the same buffer is another reading.
#[test]
fn regression_a_buffer_ends_readers_each_time_that_it_is_read() {
    let mut world = World::up();
    world.client.ask(world.now, 1, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(5) });
    world.client.ask(world.now, 2, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(6) });
    world.settle();
    let mut read = |owner: u64, job: u64| {
        world.answers.clear();
        world.deadly_read = owner == 1;
        world.ask_to_read(owner, job);
        world.settle();
        let answers = std::mem::take(&mut world.answers);
        assert!(
            matches!(answers[..], [(of, Answer::Read { job: Job(of_job), .. })] if (of, of_job) == (owner, job))
        );
        (pixels(&answers[0].1), world.starts)
    };
    assert_eq!(read(1, 10), (None, 3), "two readers have ended");
    assert_eq!(read(1, 11), (None, 3), "it is refused");
    assert_eq!(read(2, 12), (Some(vec![6; BYTES]), 3), "the other's is read");
}

#[test]
fn regression_memory_for_many_frames_stays_for_ever() {
    let mut world = World::up();
    let job = |world: &mut World, name: u64| {
        world.ask_to_read(1, name);
    };
    world.client.ask(world.now, 1, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf(5) });
    (2..42).for_each(|name| job(&mut world, name));
    world.settle();
    let slots = |world: &World| world.reader.as_ref().map_or(0, Reader::slots);
    assert_eq!((world.answers.len(), slots(&world)), (41, 40));
    world.answers.clear();
    job(&mut world, 42);
    world.settle();
    world.answers.clear();
    job(&mut world, 43);
    world.settle();
    assert!(slots(&world) <= 5, "{}", slots(&world));
}

#[test]
fn a_reader_that_can_read_nothing_is_not_started_again() {
    let mut client = Client::default();
    assert_eq!(client.on_timeout(Duration::ZERO), Some(Due::Start));
    let unable = FromReader::Unable { why: "no render node".to_owned() };
    client.on_packet(Duration::ZERO, &unable.encode()).expect("it is understood");
    client.on_end(Duration::ZERO);
    assert_eq!((client.next_timeout(), client.unable()), (None, Some("no render node")));
    assert!(client.offer().is_none());
}

#[test]
fn a_reader_that_never_comes_up_keeps_nobody_waiting() {
    let mut world = World::with_buffer();
    world.kill();
    world.ask_to_read(1, 2);
    for _ in 0..8 {
        world.now += Duration::from_secs(60);
        assert_eq!(world.client.on_timeout(world.now), Some(Due::Start));
        world.client.on_end(world.now);
    }
    let answers: Vec<_> = std::iter::from_fn(|| world.client.poll_answer()).collect();
    assert!(matches!(answers[..], [(1, Answer::Read { job: Job(2), frame: None })]), "{answers:?}");
}

/// What may happen to programs and readers.
#[derive(Clone, Debug)]
enum Event {
    Import { owner: u64 },
    Read { owner: u64, nth: usize, fenced: bool },
    Reach,
    Cancel { owner: u64, nth: usize },
    Forget { owner: u64, nth: usize },
    Part { owner: u64 },
    Kill,
    Step,
    Pass,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..2u64).prop_map(|owner| Event::Import { owner }),
        4 => (0..2u64, 0..4usize, any::<bool>())
            .prop_map(|(owner, nth, fenced)| Event::Read { owner, nth, fenced }),
        1 => Just(Event::Reach),
        1 => (0..2u64, 0..4usize).prop_map(|(owner, nth)| Event::Cancel { owner, nth }),
        1 => (0..2u64, 0..4usize).prop_map(|(owner, nth)| Event::Forget { owner, nth }),
        1 => (0..2u64).prop_map(|owner| Event::Part { owner }),
        1 => Just(Event::Kill),
        6 => Just(Event::Step),
        2 => Just(Event::Pass),
    ]
}

proptest! {
    /// Whenever readers end: each ask of a program that is still there is answered once, by what the buffer holds or,
    /// if it was forgotten or cancelled or ended readers, by nothing.
    #[test]
    fn every_ask_is_answered_once(events in proptest::collection::vec(event(), 1..80)) {
        let mut world = World::up();
        let mut buffers: BTreeMap<u64, Vec<(BufferId, u8)>> = BTreeMap::new();
        let mut asked: BTreeMap<(u64, Job), u8> = BTreeMap::new();
        let mut imports: BTreeMap<(u64, BufferId), usize> = BTreeMap::new();
        let mut last = 0;
        let fences = Rc::new(fake::Timeline::default());
        let timeline: Rc<dyn Timeline> = Rc::clone(&fences) as Rc<dyn Timeline>;
        for event in events {
            match event {
                Event::Import { owner } => {
                    last += 1;
                    let (buffer, value) = (BufferId(last), last as u8);
                    buffers.entry(owner).or_default().push((buffer, value));
                    imports.insert((owner, buffer), 0);
                    world.client.ask(world.now, owner, Ask::Import { buffer, dmabuf: dmabuf(value) });
                }
                Event::Reach => fences.reach(last),
                Event::Cancel { owner, nth } => {
                    let theirs = asked.keys().filter(|(of, _)| *of == owner);
                    if let Some((_, job)) = theirs.clone().nth(nth) {
                        world.client.ask(world.now, owner, Ask::Cancel { job: *job });
                    }
                }
                Event::Read { owner, nth, fenced } => {
                    let Some(&(buffer, value)) = buffers.get(&owner).and_then(|all| all.get(nth)) else { continue };
                    last += 1;
                    asked.insert((owner, Job(last)), value);
                    let point = Point::new(&timeline, last);
                    let fence = fenced.then(|| Rc::new(point.fence().expect("a descriptor")));
                    let read = Ask::Read { job: Job(last), buffer, region: whole(), fence };
                    world.client.ask(world.now, owner, read);
                }
                Event::Forget { owner, nth } => {
                    let all = buffers.entry(owner).or_default();
                    // A program's connection forgets only what it does not wait for.
                    let is_asked = |value: u8| asked.values().any(|asked| *asked == value);
                    if let Some(&(buffer, value)) = all.get(nth).filter(|(_, value)| !is_asked(*value)) {
                        all.remove(nth);
                        let _ = value;
                        imports.remove(&(owner, buffer));
                        world.client.ask(world.now, owner, Ask::Forget { buffer });
                    }
                }
                Event::Part { owner } => {
                    world.client.part(owner);
                    buffers.remove(&owner);
                    asked.retain(|(of, _), _| *of != owner);
                    imports.retain(|(of, _), _| *of != owner);
                    world.answers.retain(|(of, _)| *of != owner);
                }
                Event::Kill => world.kill(),
                Event::Step => world.step(),
                Event::Pass => world.now += Duration::from_millis(300),
            }
            check(&mut world, &mut asked, &mut imports)?;
        }
        fences.reach(last);
        world.settle();
        check(&mut world, &mut asked, &mut imports)?;
        prop_assert!(asked.is_empty(), "never answered: {asked:?}");
        prop_assert!(imports.values().all(|count| *count == 1), "imports: {imports:?}");
        let alive: usize = buffers.values().map(Vec::len).sum();
        prop_assert!(world.reader.as_ref().map_or(0, Reader::images) <= alive);
    }
}

fn check(
    world: &mut World,
    asked: &mut BTreeMap<(u64, Job), u8>,
    imports: &mut BTreeMap<(u64, BufferId), usize>,
) -> Result<(), TestCaseError> {
    for (owner, answer) in std::mem::take(&mut world.answers) {
        match &answer {
            Answer::Read { job, .. } => {
                let value = asked.remove(&(owner, *job));
                prop_assert!(value.is_some(), "not asked, or answered twice: {answer:?}");
                let read = pixels(&answer);
                prop_assert!(read.is_none() || read == value.map(|value| vec![value; BYTES]));
            }
            Answer::Imported { buffer, .. } => {
                let count = imports.get_mut(&(owner, *buffer));
                count.into_iter().for_each(|count| *count += 1);
            }
        }
    }
    Ok(())
}

/// A buffer and a reader in threads of their own, over a real socket.
#[test]
fn a_reader_ends_with_its_session() {
    let (link, end) = super::Link::pair().expect("a pair");
    let means = Means { name: "fake".to_owned(), device: None, lacks_fences: false, pairs: Vec::new() };
    let reader = std::thread::spawn(move || super::serve(end, means, Memory));
    let fd: OwnedFd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
    drop((link, fd));
    reader.join().expect("it ends");
}
