//! A relay on loopback that holds back what the server says until it is told not to.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Between one client at a time and a server.
pub(crate) struct Gate {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    front: UdpSocket,
    back: UdpSocket,
    state: Mutex<State>,
}

struct State {
    open: bool,
    over: bool,
    client: Option<SocketAddr>,
    held: Vec<Vec<u8>>,
}

impl Gate {
    /// An open one.
    pub(crate) fn before(server: SocketAddr) -> Self {
        let bind = || UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let (front, back) = (bind(), bind());
        back.connect(server).unwrap();
        let address = front.local_addr().unwrap();
        let state = State { open: true, over: false, client: None, held: Vec::new() };
        let shared = Arc::new(Shared { front, back, state: Mutex::new(state) });
        let (there, here) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads =
            vec![std::thread::spawn(move || there.forth()), std::thread::spawn(move || here.back())];
        Self { address, shared, threads }
    }

    /// Where the client connects to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn shut(&self) {
        self.shared.state.lock().unwrap().open = false;
    }

    /// Lets through what was held back, and what comes.
    pub(crate) fn open(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.open = true;
        let held = std::mem::take(&mut state.held);
        if let Some(client) = state.client {
            held.iter().for_each(|datagram| drop(self.shared.front.send_to(datagram, client)));
        }
    }
}

impl Shared {
    fn forth(&self) {
        let mut datagram = [0; 65536];
        while let Ok((length, from)) = self.front.recv_from(&mut datagram) {
            let mut state = self.state.lock().unwrap();
            if state.over {
                return;
            }
            state.client = Some(from);
            // Fails while no socket is bound there.
            let _ = self.back.send(&datagram[..length]);
        }
    }

    fn back(&self) {
        let mut datagram = [0; 65536];
        loop {
            let received = self.back.recv(&mut datagram);
            let mut state = self.state.lock().unwrap();
            if state.over {
                return;
            }
            let Ok(length) = received else { continue };
            match state.client {
                Some(client) if state.open => drop(self.front.send_to(&datagram[..length], client)),
                _ => state.held.push(datagram[..length].to_vec()),
            }
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().over = true;
        let waker = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        waker.send_to(b"", self.address).unwrap();
        // The other one hears only from the server: it is told by an end of its reading.
        rustix::net::shutdown(&self.shared.back, rustix::net::Shutdown::Both).unwrap();
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}
