//! UDP sockets for noq that wake their thread for what arrives, and not for what it sends.
//!
//! tokio's own asks epoll for both at once, edge-triggered, and the kernel reports room after each packet that leaves:
//! a thread that sleeps until an answer comes is woken by its own question. So this asks for room only while there is
//! none, which is rare. A loop of the caller's may also watch a socket in place of tokio. Invariant: who found no
//! datagram, or no room, is woken when there is some; where the loop watches, the loop.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use noq::udp::{RecvMeta, Transmit, UdpSocketState};
use noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpSender};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::watch::{Joined, Watch};

/// What noq needs of tokio, with such sockets.
#[derive(Debug)]
pub(crate) struct UdpRuntime;

impl Runtime for UdpRuntime {
    fn new_timer(&self, instant: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(instant)
    }

    fn spawn(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(work);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        Ok(Box::new(Receiver::new(socket)?))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

/// A socket that receives.
#[derive(Debug)]
pub(crate) struct Receiver {
    io: Arc<Io>,
    watched: Watched,
    /// The last batch was not full: the system need not be asked whether there is more.
    drained: bool,
}

/// By whom.
#[derive(Debug)]
enum Watched {
    Tokio(AsyncFd<Arc<Io>>),
    Loop(#[expect(dead_code, reason = "leaves when it is dropped")] Joined<Arc<Io>>),
}

#[derive(Debug)]
struct Io {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl AsFd for Io {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Io {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Io {
    fn receive(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        self.state.recv((&self.socket).into(), bufs, meta)
    }
}

impl Receiver {
    /// Watched by tokio, inside a runtime of whose this is called.
    ///
    /// # Errors
    /// The system does not let the socket be set up, or watched.
    pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let io = Arc::new(Io { socket, state });
        let watched = watch(&io)?;
        Ok(Self { io, watched, drained: false })
    }

    /// Has a loop watch it, which polls who receives here when `loops` is readable.
    ///
    /// # Errors
    /// The system cannot do that; nothing changes.
    pub(crate) fn give_to(&mut self, loops: &Arc<Watch>) -> io::Result<()> {
        if let Watched::Tokio(_) = self.watched {
            self.watched = Watched::Loop(loops.join(Arc::clone(&self.io))?);
        }
        Ok(())
    }

    /// Has tokio watch it again, inside a runtime of whose this is called. Who receives here must be polled after.
    ///
    /// # Errors
    /// The system cannot do that; nothing changes.
    pub(crate) fn take_back(&mut self) -> io::Result<()> {
        if let Watched::Loop(_) = self.watched {
            self.watched = watch(&self.io)?;
            self.drained = false;
        }
        Ok(())
    }
}

fn watch(io: &Arc<Io>) -> io::Result<Watched> {
    register(Arc::clone(io), Interest::READABLE).map(Watched::Tokio)
}

#[expect(
    deprecated,
    reason = "what came in its place is unsafe, for descriptors that change or close; these do not"
)]
fn register<T: AsRawFd>(io: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(io, interest)
}

impl AsyncUdpSocket for Receiver {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender { io: Arc::clone(&self.io), room: None })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        match &self.watched {
            Watched::Tokio(tokio) => loop {
                let mut ready = ready!(tokio.poll_read_ready(cx))?;
                let Ok(received) = ready.try_io(|io| io.get_ref().receive(bufs, meta)) else { continue };
                // What comes from now on is told anew.
                if received.as_ref().is_ok_and(|count| *count < bufs.len()) {
                    ready.clear_ready();
                }
                return Poll::Ready(received);
            },
            // The loop is told for as long as there is more.
            Watched::Loop(_) if std::mem::take(&mut self.drained) => Poll::Pending,
            Watched::Loop(_) => match self.io.receive(bufs, meta) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                received => {
                    self.drained = received.as_ref().is_ok_and(|count| *count < bufs.len());
                    Poll::Ready(received)
                }
            },
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.socket.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.io.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.io.state.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    io: Arc<Io>,
    /// The socket once more, watched for room while there is none.
    room: Option<AsyncFd<UdpSocket>>,
}

impl UdpSender for Sender {
    /// What the system refuses is lost, as on the way: it is sent again if it matters.
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(room) = &self.room {
                drop(ready!(room.poll_write_ready(cx))?);
                self.room = None;
            }
            let Io { socket, state } = &*self.io;
            match state.try_send(socket.into(), transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
            let again = socket.try_clone();
            let room = again.and_then(|socket| register(socket, Interest::WRITABLE));
            // Without a descriptor for it there is none.
            let Ok(room) = room else { return Poll::Ready(Ok(())) };
            self.room = Some(room);
        }
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.io.state.max_gso_segments()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::process::Command;
    use std::time::Duration;

    use rustix::net::sockopt::set_socket_send_buffer_size;
    use tokio::time::timeout;

    use super::*;

    /// Run again in a namespace of its own, where packets wait for the address of a neighbour who does not answer.
    #[test]
    fn a_sender_without_room_is_woken_when_there_is_some() {
        if std::env::var_os(INSIDE).is_some() {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            return runtime.block_on(send_until_there_is_room());
        }
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--net"]).arg(std::env::current_exe().expect("a program"));
        unshare.args(["--exact", "udp::tests::a_sender_without_room_is_woken_when_there_is_some"]);
        let output = unshare.env(INSIDE, "").output().expect("`unshare` of util-linux");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }

    async fn send_until_there_is_room() {
        ip("link add near type veth peer name far");
        ip("address add 10.9.0.1/24 dev near");
        ip("link set near up");
        ip("link set far up");
        let socket = UdpSocket::bind("10.9.0.1:0").expect("a port");
        set_socket_send_buffer_size(&socket, 4096).expect("a small buffer");
        let receiver = Receiver::new(socket).expect("a socket");
        let mut sender = Sender { io: Arc::clone(&receiver.io), room: None };
        let packet = Transmit {
            destination: ([10, 9, 0, 2], 9).into(),
            ecn: None,
            contents: &[0; 1200],
            segment_size: None,
            src_ip: None,
        };
        let mut poll = |cx: &mut Context<'_>| Pin::new(&mut sender).poll_send(&packet, cx);
        let full = (0..1000).any(|_| poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
        assert!(full);
        ip("neighbour replace 10.9.0.2 lladdr 02:00:00:00:00:01 dev near");
        timeout(PATIENCE, poll_fn(poll)).await.expect("it is woken").expect("room");
        assert!(sender.room.is_none(), "it is still watched");
    }

    fn ip(arguments: &str) {
        let status = Command::new("ip").args(arguments.split(' ')).status().expect("`ip` of iproute2");
        assert!(status.success(), "ip {arguments}");
    }

    const PATIENCE: Duration = Duration::from_secs(20);
    const INSIDE: &str = "WAYFERRY_TEST_INSIDE";
}
