//! The stage's own ends of clipboard pipes: a thread each, which ends with its pipe.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};

/// Data that the stage offers: a type and its bytes, each.
#[derive(Clone, Debug)]
pub(crate) struct Bundle(Arc<Vec<(String, Vec<u8>)>>);

impl Bundle {
    pub(crate) fn new(data: Vec<(String, Vec<u8>)>) -> Bundle {
        Bundle(Arc::new(data))
    }

    pub(crate) fn types(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, bytes)| bytes.as_slice())
    }
}

/// Writes the bytes of one type into a pipe until its reader stops.
pub(crate) fn write(bundle: Bundle, name: String, pipe: OwnedFd) {
    thread::spawn(move || {
        let mut pipe = File::from(pipe);
        let mut rest = bundle.bytes(&name).unwrap_or_default();
        while !rest.is_empty() {
            match pipe.write(rest) {
                Ok(0) => return,
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    // The client chose a non-blocking pipe; wait for its reader.
                    if poll(&mut [PollFd::new(&pipe, PollFlags::OUT)], None).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
}

/// Reads a pipe to its end; the receiver gets all of it, or nothing if the pipe breaks.
pub(crate) fn read(pipe: OwnedFd) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if File::from(pipe).read_to_end(&mut bytes).is_ok() {
            let _ = sender.send(bytes);
        }
    });
    receiver
}
