//! Packets between a session and the reader of GPU buffers.
//!
//! Input: 0 and a packet for either; or 1 and what a session meets that has asked for three readings: packets, each
//! behind a byte of time (ms) and a byte of length.

use std::rc::Rc;
use std::time::Duration;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use wayferry_gpu::wire::{FromReader, ToReader};
use wayferry_gpu::{Ask, BufferId, Client, Described, Dmabuf, Fourcc, Job, Modifier, Plane};
use wayferry_pixels::{Region, Size};

use crate::Input;

/// What was read is written as it was meant; of anything that a reader says, no ask is answered twice.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    if input.u8() % 2 == 0 { packet(input.0) } else { session(&mut input) }
}

fn packet(bytes: &[u8]) {
    if let Ok(message) = ToReader::decode(bytes) {
        assert_eq!(ToReader::decode(&message.encode()), Ok(message));
    }
    if let Ok(message) = FromReader::decode(bytes) {
        assert_eq!(FromReader::decode(&message.encode()), Ok(message));
    }
}

fn session(input: &mut Input<'_>) {
    let mut client = Client::default();
    let mut now = Duration::ZERO;
    client.on_timeout(now);
    client.ask(now, 1, Ask::Import { buffer: BufferId(1), dmabuf: dmabuf() });
    for job in 2..5 {
        let region = Region::full(size());
        client.ask(now, 1, Ask::Read { job: Job(job), buffer: BufferId(1), region, fence: None });
    }
    let mut answers = 0;
    while !input.is_empty() {
        now += Duration::from_millis(input.u8().into());
        let length = input.u8().into();
        let refused = client.on_packet(now, input.take(length)).is_err();
        client
            .undrawn()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|job| client.on_drawn(now, job));
        while client.output().is_some() {
            client.sent();
        }
        if refused {
            client.on_end(now);
        }
        client.on_timeout(now);
        answers += std::iter::from_fn(|| client.poll_answer()).count();
    }
    assert!(answers <= 4, "{answers} answers to four asks");
}

fn size() -> Size {
    Size::new(2, 2).expect("a size")
}

fn dmabuf() -> Rc<Dmabuf> {
    let fd = memfd_create("pixels", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&fd, 16).expect("room");
    let described =
        Described { size: size(), fourcc: Fourcc::new(*b"XR24"), modifier: Modifier::LINEAR, flipped: false };
    let plane = Plane { fd, offset: 0, stride: 8 };
    Rc::new(Dmabuf::new(described, vec![plane], |_| true).expect("a buffer"))
}
