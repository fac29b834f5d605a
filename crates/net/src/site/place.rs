//! Which callers share what one may have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What counts as one place: an address of IPv4, or a network of IPv6, which one caller may have to himself. This
/// machine is one, at all addresses of its loopback device.
pub(super) fn place(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        ip if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        ip => ip,
    }
}
