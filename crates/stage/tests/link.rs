//! The relay over real sockets.

use std::net::UdpSocket;
use std::time::Duration;

use wayferry_stage::{Link, LinkConfig, Loss};

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, std::net::SocketAddr) {
    let mut buffer = [0; 2048];
    let (length, from) = socket.recv_from(&mut buffer).expect("a datagram comes in time");
    (buffer[..length].to_vec(), from)
}

#[test]
fn carries_both_directions_of_two_clients() {
    let target = socket();
    let one_way_delay = Duration::from_millis(2);
    let link =
        Link::start(LinkConfig { one_way_delay, ..LinkConfig::default() }, target.local_addr().unwrap())
            .unwrap();
    let (first, second) = (socket(), socket());
    first.send_to(b"one", link.local_addr()).unwrap();
    second.send_to(b"two", link.local_addr()).unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (bytes, from) = receive(&target);
        target.send_to(&[&bytes[..], b" back"].concat(), from).unwrap();
        seen.push((bytes, from));
    }
    assert_ne!(seen[0].1, seen[1].1);
    assert_eq!(receive(&first).0, b"one back");
    assert_eq!(receive(&second).0, b"two back");
    let stats = link.stats();
    assert_eq!((stats.up.delivered, stats.down.delivered), (2, 2));
    assert_eq!(stats.up.delivered_bytes, 6);
}

#[test]
fn loses_what_its_seed_says() {
    let lost = |seed| {
        let target = socket();
        let config = LinkConfig { loss: Loss::Independent(0.3), seed, ..LinkConfig::default() };
        let link = Link::start(config, target.local_addr().unwrap()).unwrap();
        let client = socket();
        let mut through = Vec::new();
        for index in 0..100u8 {
            client.send_to(&[index], link.local_addr()).unwrap();
            while link.stats().up.offered <= u64::from(index) {
                std::thread::yield_now();
            }
        }
        while through.len() < 100 - link.stats().up.lost as usize {
            through.push(receive(&target).0[0]);
        }
        through
    };
    let through = lost(5);
    assert!(through.len() < 100);
    assert_eq!(through, lost(5));
    assert_ne!(through, lost(6));
}

#[test]
fn a_cut_link_is_silent_until_it_is_mended() {
    let target = socket();
    let link = Link::start(LinkConfig::default(), target.local_addr().unwrap()).unwrap();
    let client = socket();
    link.set_down(true);
    client.send_to(b"lost", link.local_addr()).unwrap();
    while link.stats().up.cut == 0 {
        std::thread::yield_now();
    }
    link.set_down(false);
    client.send_to(b"found", link.local_addr()).unwrap();
    assert_eq!(receive(&target).0, b"found");
}
