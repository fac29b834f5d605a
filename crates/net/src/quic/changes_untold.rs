//! Systems whose kernels are not listened to: a connection stays where it is until the peer does not answer.

use std::io;

/// There are none.
pub(super) struct Changes;

impl Changes {
    pub(super) fn open() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Never: there is none to call it.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        std::future::pending().await
    }
}
