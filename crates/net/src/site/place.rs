//! What counts as one place of callers, so that who comes from one has no more than others.
//!
//! It says nothing of how many there may be. Invariant: this machine is one place, by each of its own addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address of IPv4, or a network of IPv6 (/64), which one caller may have to himself. All addresses of the loopback
/// device are one.
pub(super) fn place(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        ip if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip => ip,
    }
}
