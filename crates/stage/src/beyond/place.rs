//! A network of its own for single threads and what they start.
//!
//! With `unsafe`, because threads of a process that leave what they share with others can be a danger to them.
//! Invariant: the thread ends with the value, and the network when no process is in it any more.
#![allow(unsafe_code)]

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// A thread in a network namespace that has nothing else in it.
#[derive(Debug)]
pub struct Place {
    /// Work for the thread; its end ends that.
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Place {
    /// Makes one.
    ///
    /// # Errors
    /// There is no right to.
    pub fn open() -> io::Result<Self> {
        let (work, jobs) = mpsc::channel::<Work>();
        let thread = std::thread::Builder::new().name("beyond".into());
        let thread = thread.spawn(move || jobs.into_iter().for_each(|job| job()))?;
        let place = Self { work: Some(work), thread: Some(thread) };
        place.run(leave)??;
        Ok(place)
    }

    /// Does this in that network, and waits for it: a program that is started there stays there.
    ///
    /// # Errors
    /// What was done there panicked.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (tell, told) = mpsc::channel();
        let job: Work = Box::new(move || drop(tell.send(job())));
        self.work.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The calling thread is in a network of its own from now on, and so is what it starts.
fn leave() -> io::Result<()> {
    // SAFETY: descriptors, memory and file systems stay shared: only the network is another.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}
