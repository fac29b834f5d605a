//! Connecting: the first address whose handshake completes wins.

use std::net::SocketAddr;

use super::{ClientTls, Config, Connection, Engine, Failure, Pending};

/// Where to connect to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server's addresses, the preferred one first. Each next one is tried when 250 ms have passed, or those before it
    /// have failed.
    pub addresses: Vec<SocketAddr>,
    /// The host that was asked for, a name or an address.
    pub server_name: String,
    /// The address to send from. `None`: what the system chooses.
    pub local: Option<SocketAddr>,
    /// Whether to give the connection out before the handshake is complete, if there is a ticket. Then only the first
    /// address is tried. What is sent until then may be sent again by somebody on the path.
    pub early_data: bool,
}

/// Connects; begins at once.
pub fn connect(
    engine: &Engine,
    target: Target,
    tls: ClientTls,
    config: Config,
) -> Pending<Result<Connection, Failure>> {
    let _ = (engine, target, tls, config);
    unimplemented!()
}
