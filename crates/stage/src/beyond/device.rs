//! A TUN device of this network namespace.
//!
//! With `unsafe`: the kernel is told the device's name and kind by an `ioctl`, which rustix
//! has no function for. Invariant: the device is gone when the file is closed.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

/// `struct ifreq` of netdevice(7), as far as `TUNSETIFF` reads it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Makes one in the calling thread's network, with an address of 24 bits of network and the MTU of Ethernet, and brings
/// it up. Reading it gives a packet that the kernel sends, or an error where there is none.
///
/// # Errors
/// There is no `/dev/net/tun`, no right to make one, or one already.
pub fn tun(address: Ipv4Addr) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let device = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
    let mut name = [0; 16];
    name[..NAME.len()].copy_from_slice(NAME.as_bytes());
    let request = Request { name, flags: TUN | NO_PACKET_INFORMATION, rest: [0; 22] };
    // SAFETY: `Request` is as long as `struct ifreq` and laid out as it; the kernel copies it and keeps no pointer.
    unsafe { ioctl(&device, Setter::<SET_INTERFACE, Request>::new(request)) }?;
    let address = format!("{address}/24");
    ip(&["address", "add", &address, "dev", NAME])?;
    ip(&["link", "set", "dev", NAME, "mtu", "1500", "up"])?;
    ip(&["link", "set", "dev", "lo", "up"])?;
    Ok(device)
}

fn ip(words: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(words).stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("`ip {}`: {}", words.join(" "), said.trim())))
        }
    }
}

/// The device's name, in a namespace that is ours alone.
const NAME: &str = "wayferry0";

/// `TUNSETIFF` of linux/if_tun.h. Its number says an `int`, although it takes a `struct ifreq`.
const SET_INTERFACE: Opcode = opcode::write::<i32>(b'T', 202);

/// `IFF_TUN` and `IFF_NO_PI` of the same.
const TUN: u16 = 1;
const NO_PACKET_INFORMATION: u16 = 0x1000;
