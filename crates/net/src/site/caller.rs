//! Whose a caller on this machine is.
//!
//! The kernel lists who owns each socket (proc(5), `/proc/net/tcp`). Invariant: where that cannot be read, no caller is
//! taken for this user.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Whether the other end of a connection of this machine is a socket of the user that this process runs as.
pub(super) fn is_own(stream: &TcpStream) -> bool {
    let (Ok(theirs), Ok(ours)) = (stream.peer_addr(), stream.local_addr()) else { return false };
    let user = rustix::process::geteuid().as_raw();
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().any(|table| {
        let table = fs::read_to_string(table).unwrap_or_default();
        owner(&table, theirs, ours) == Some(user)
    })
}

/// Who owns the socket that is bound to `local` and connected to `remote`, and is open there. One that was closed is
/// listed for as long as the kernel has something to do with it, without an inode and as root's.
fn owner(table: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let ends = [local, remote].map(names);
    table.lines().find_map(|line| {
        // Its number, both ends, the state, queues, timers, what was not acknowledged, the user, probes, and the inode.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, from, to, state, .., user, _, inode] = fields.get(..10)? else { return None };
        let is_it = [from, to].into_iter().zip(&ends).all(|(end, names)| names.contains(&(*end).to_owned()));
        let is_open = *state == ESTABLISHED && *inode != "0";
        (is_it && is_open).then(|| user.parse().ok())?
    })
}

/// An end as the tables have it: of IPv4, and the same where a socket of IPv6 is bound to it.
fn names(address: SocketAddr) -> [String; 2] {
    let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
    let long = |octets: [u8; 16]| -> String {
        let (words, _) = octets.as_chunks();
        words.iter().copied().map(word).collect()
    };
    let names = match address.ip() {
        IpAddr::V4(ip) => [word(ip.octets()), long(ip.to_ipv6_mapped().octets())],
        IpAddr::V6(ip) => [long(ip.octets()), long(ip.octets())],
    };
    names.map(|name| format!("{name}:{:04X}", address.port()))
}

/// `TCP_ESTABLISHED` of the kernel, as the tables have it.
const ESTABLISHED: &str = "01";

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_caller_of_this_user_is_known_at_both_addresses_and_one_of_another_is_not() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let caller = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
            let (stream, _) = listener.accept().expect("it was called");
            assert!(is_own(&stream), "{address}");
            drop(caller);
        }
        let ends = ["127.0.0.1:40001", "127.0.0.1:8000"].map(|end| end.parse().expect("an address"));
        let line = |from: &str, to: &str, user: u32| {
            format!(
                "   1: {from} {to} 01 00000000:00000000 00:00000000 00000000 {user:5}        0 77 1 0 20\n"
            )
        };
        let [from, to] = ends.map(|end| names(end)[0].clone());
        let table =
            ["  sl  local_address rem_address\n", &line(&to, &from, 7), &line(&from, &to, 65534)].concat();
        assert_eq!(owner(&table, ends[0], ends[1]), Some(65534), "and not who listens");
        assert_eq!(owner("", ends[0], ends[1]), None);
        assert_eq!(owner("1: x y z\n\n", ends[0], ends[1]), None);
    }

    /// It is listed as root's, so any user could use up the address that opens root's link, by asking and going.
    #[test]
    fn regression_a_caller_that_has_gone_is_taken_for_root() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let caller = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
            let (stream, _) = listener.accept().expect("it was called");
            let [theirs, ours] =
                [stream.peer_addr(), stream.local_addr()].map(|end| end.expect("an address"));
            drop(caller);
            let tables =
                ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).expect("a table"));
            let listed = format!(" {} {} ", names(theirs)[0], names(ours)[0]);
            assert!(tables.iter().any(|table| table.contains(&listed)), "{address}: not listed any more");
            assert!(tables.iter().all(|table| owner(table, theirs, ours).is_none()), "{address}");
        }
    }
}
