//! What the relay carries on this machine: `link_speed [MBIT_PER_SECOND] [SECONDS]` through a 10 ms link.

use std::env;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use wayferry_stage::{Link, LinkConfig, now};

fn main() {
    let mut arguments = env::args().skip(1).map(|it| it.parse::<u64>().expect("a number"));
    let megabits = arguments.next().unwrap_or(300);
    let seconds = arguments.next().unwrap_or(5);
    let target = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    target.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let one_way_delay = Duration::from_millis(10);
    let config = LinkConfig { one_way_delay, ..LinkConfig::default() };
    let link = Link::start(config, target.local_addr().expect("an address")).expect("a link");
    let receiver = thread::spawn(move || {
        let (mut late, mut buffer) = (Vec::new(), [0u8; 2048]);
        while target.recv(&mut buffer).is_ok() {
            let sent = Duration::from_nanos(u64::from_le_bytes(buffer[..8].try_into().expect("eight")));
            late.push(now().saturating_sub(sent + one_way_delay));
        }
        late.sort_unstable();
        late
    });
    let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (start, mut sent) = (Instant::now(), 0u64);
    let mut payload = [0u8; 1452];
    while start.elapsed() < Duration::from_secs(seconds) {
        let due = start.elapsed().as_nanos() as u64 * megabits / 8 / 1000 / 1480;
        while sent < due {
            payload[..8].copy_from_slice(&(now().as_nanos() as u64).to_le_bytes());
            client.send_to(&payload, link.local_addr()).expect("sent");
            sent += 1;
        }
        thread::sleep(Duration::from_micros(200));
    }
    let late = receiver.join().expect("the receiver ends");
    let at = |share: f64| late[(late.len() as f64 * share) as usize];
    println!(
        "sent {sent}, came {}, late p50 {:?} p99 {:?} p99.9 {:?}",
        late.len(),
        at(0.5),
        at(0.99),
        at(0.999)
    );
    println!("{:?}", link.stats().up);
}
