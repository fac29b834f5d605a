//! The thread that serves the suite's clients, and what the suite's own thread asks of it.
//!
//! Knows no C. Invariant: a question is answered after all clients have been served.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use wayferry_wayland::display::Watcher;
use wayferry_wayland::wire::{ReadState, Socket};
use wayferry_wayland::{Action, app};

use crate::client::{Client, Clock, poll};

/// Something to do for the thread.
enum Question {
    /// Serve a client, called by the number of its descriptor.
    Add { name: i32, program: OwnedFd, compositor: OwnedFd },
    /// Do all that clients have asked for.
    Settle,
    /// The compositor's id of a client's object.
    Place { name: i32, id: u32 },
    /// End.
    Stop,
}

/// The suite's end.
pub(crate) struct Relay {
    questions: Sender<Question>,
    answers: Receiver<Option<u32>>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Begins to serve clients of the compositor that `watched` leads to.
    pub(crate) fn start(watched: OwnedFd) -> std::io::Result<Self> {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let (wake, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let thread = std::thread::spawn(move || {
            if let Ok(mut server) = Server::new(watched) {
                server.serve(&asked, &answer, woken);
            }
        });
        Ok(Self { questions, answers, wake, thread: Some(thread) })
    }

    pub(crate) fn add(&mut self, name: i32, program: OwnedFd, compositor: OwnedFd) {
        self.ask(Question::Add { name, program, compositor });
    }

    pub(crate) fn settle(&mut self) {
        self.ask(Question::Settle);
    }

    pub(crate) fn place(&mut self, name: i32, id: u32) -> Option<u32> {
        self.ask(Question::Place { name, id })
    }

    fn ask(&mut self, question: Question) -> Option<u32> {
        self.questions.send(question).ok()?;
        let _ = self.wake.write_all(b"?");
        self.answers.recv().ok().flatten()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ask(Question::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Server {
    clock: Clock,
    watcher: Watcher,
    watched: Socket,
    desk: Option<Rc<app::Desk>>,
    blobs: Vec<(u128, Rc<[u8]>)>,
    clients: BTreeMap<i32, Client>,
}

impl Server {
    fn new(watched: OwnedFd) -> std::io::Result<Self> {
        Ok(Self {
            clock: Clock::new(),
            watcher: Watcher::new(),
            watched: Socket::new(watched)?,
            desk: None,
            blobs: Vec::new(),
            clients: BTreeMap::new(),
        })
    }

    fn serve(&mut self, asked: &Receiver<Question>, answer: &Sender<Option<u32>>, mut woken: UnixStream) {
        loop {
            self.turn();
            while let Ok(question) = asked.try_recv() {
                let _ = woken.read(&mut [0; 64]);
                let reply = match question {
                    Question::Stop => {
                        let _ = answer.send(None);
                        return;
                    }
                    Question::Add { name, program, compositor } => {
                        self.add(name, program, compositor);
                        None
                    }
                    Question::Settle => {
                        self.settle();
                        None
                    }
                    Question::Place { name, id } => {
                        self.settle();
                        self.clients.get(&name).and_then(|client| client.place(id))
                    }
                };
                let _ = answer.send(reply);
            }
            let now = self.clock.now();
            let due = self.clients.values().filter_map(Client::next_timeout).min();
            let wait = due.map_or(LONGEST, |due| due.since(now).min(LONGEST));
            let sockets = self.clients.values().flat_map(Client::sockets).chain([&self.watched]);
            let fds: Vec<_> = sockets.map(AsFd::as_fd).chain([woken.as_fd()]).collect();
            poll(&fds, wait);
        }
    }

    fn turn(&mut self) {
        self.watch();
        for client in self.clients.values_mut() {
            client.turn(&mut self.clock);
        }
        self.clients.retain(|_, client| !client.is_over());
    }

    fn settle(&mut self) {
        for client in self.clients.values_mut() {
            client.turn(&mut self.clock);
            client.settle(&mut self.clock);
        }
    }

    /// Takes in what the compositor says of itself.
    fn watch(&mut self) {
        let now = self.clock.now();
        let _ = self.watched.flush(self.watcher.output());
        while let Ok(ReadState::Progress) = self.watched.read_into(self.watcher.input()) {
            let snapshot = self.watcher.process(now);
            while let Some(action) = self.watcher.poll_action() {
                if let Action::Blob { hash, bytes } = action {
                    let bytes: Rc<[u8]> = Rc::from(bytes);
                    self.clients.values_mut().for_each(|client| client.on_blob(now, hash, &bytes));
                    self.blobs.push((hash, bytes));
                }
            }
            if let Some(snapshot) = snapshot {
                let desk = Rc::new(app::Desk { snapshot, ..app::Desk::default() });
                self.clients.values_mut().for_each(|client| client.on_desk(now, &desk));
                self.desk = Some(desk);
            }
            let _ = self.watched.flush(self.watcher.output());
        }
    }

    fn add(&mut self, name: i32, program: OwnedFd, compositor: OwnedFd) {
        for _ in 0..FIRST_LOOKS {
            if self.desk.is_some() {
                break;
            }
            poll(&[self.watched.as_fd()], LONGEST);
            self.watch();
        }
        let desk = self.desk.clone().unwrap_or_default();
        let Ok(mut client) = Client::new(program, compositor, &desk) else { return };
        let now = self.clock.now();
        self.blobs.iter().for_each(|(hash, bytes)| client.on_blob(now, *hash, bytes));
        self.clients.insert(name, client);
    }
}

/// How long the thread sleeps at most.
const LONGEST: Duration = Duration::from_millis(50);
/// So often is looked for what the compositor says first.
const FIRST_LOOKS: usize = 200;
