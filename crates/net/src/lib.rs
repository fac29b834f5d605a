//! Carriers: QUIC on noq and a byte-stream multiplexer; identity and tickets.
//!
//! This is the only crate with an async runtime, and no caller notices: a [`Carrier`] is a handle with queues
//! and an eventfd, for a run loop that sits in poll(2). It moves the session's streams and knows nothing of what
//! is in them. Its one invariant: calls on a carrier never block, and what the peer sends never costs more memory
//! than the named limits.

pub mod byte_stream;
mod carrier;
pub mod endpoint;
mod http3;
pub mod identity;
mod inbox;
mod keylog;
mod outbox;
mod peers;
mod pem_file;
pub mod quic;
mod roots;
// Of sessions, which run on Linux; the Python package runs elsewhere, too.
#[cfg(target_os = "linux")]
pub mod site;
pub mod ticket;
mod tickets;
mod trust;
mod udp;
mod wake;
mod watch;

pub use self::byte_stream::ByteStream;
pub use self::carrier::{Carrier, QUEUE_LIMIT};
pub use self::identity::{Fingerprint, Identity, sha256};
pub use self::peers::{ADMITTED_MAX, Admitted, Peers};
pub use self::pem_file::{NotPem, PemContent, PemError, PemFault};
pub use self::roots::{Origin, Roots};
pub use self::ticket::Ticket;
pub use self::trust::{Named, NotAName, Trust};
