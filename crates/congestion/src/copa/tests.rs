//! The controller over an ideal link: a fixed delay, a line that serves one packet after the other, an endless queue.

use std::collections::VecDeque;

use super::*;

const MTU: u16 = 1250;

/// A sender that noq's calls are made for.
struct Rig {
    copa: Box<dyn Controller>,
    shared: Shared,
    zero: Instant,
    now: Duration,
    line: f64,
    delay: Duration,
    /// When the line is free again.
    free: Duration,
    /// When it was sent and when its acknowledgement comes.
    under_way: VecDeque<(Duration, Duration)>,
    /// Every so many packets are lost.
    loses: u64,
    sent: u64,
    delivered: u64,
    /// What the pacer allows, in bytes.
    credit: f64,
}

impl Rig {
    fn new(megabits: f64, delay: Duration) -> Self {
        let (zero, shared) = (Instant::now(), Shared::default());
        let copa = Arc::new(CopaFactory::new(shared.clone())).build(zero, MTU);
        Self {
            copa,
            shared,
            zero,
            now: Duration::ZERO,
            line: megabits * 125_000.0,
            delay,
            free: Duration::ZERO,
            under_way: VecDeque::new(),
            loses: u64::MAX,
            sent: 0,
            delivered: 0,
            credit: 0.0,
        }
    }

    fn in_flight(&self) -> u64 {
        self.under_way.len() as u64 * u64::from(MTU)
    }

    fn send(&mut self) {
        self.copa.on_packet_sent(self.zero + self.now, MTU, self.sent);
        self.sent += 1;
        self.free = self.free.max(self.now) + Duration::from_secs_f64(f64::from(MTU) / self.line);
        self.under_way.push_back((self.now, self.free + self.delay));
    }

    fn acknowledge(&mut self) {
        let instant = self.zero + self.now;
        let mut lost = None;
        let mut came = false;
        while let Some((sent, _)) = self.under_way.front().copied().filter(|(_, due)| *due <= self.now) {
            self.under_way.pop_front();
            let number = self.sent - self.under_way.len() as u64 - 1;
            if number % self.loses == self.loses - 1 {
                lost = Some((number, sent));
            } else {
                self.acked(sent);
                came = true;
                self.delivered += 1;
            }
        }
        if came {
            self.copa.on_end_acks(instant, self.in_flight(), false, None);
        }
        if let Some((number, sent)) = lost {
            self.copa.on_packet_lost(MTU, number, instant);
            self.copa.on_congestion_event(instant, self.zero + sent, false, false, MTU.into(), number);
        }
    }

    /// noq's estimator of round trips cannot be made here, so this goes past the trait.
    fn acked(&mut self, sent: Duration) {
        let (instant, sent) = (self.zero + self.now, self.zero + sent);
        let copa = std::mem::replace(&mut self.copa, Box::new(Copa::new(instant, MTU, Shared::default())));
        let mut copa = *copa.into_any().downcast::<Copa>().unwrap();
        copa.on_acked(instant, sent, MTU.into());
        self.copa = Box::new(copa);
    }

    /// Goes on for so long, with always something to send or with nothing.
    fn run(&mut self, span: Duration, sends: bool) {
        let step = Duration::from_micros(500);
        let end = self.now + span;
        while self.now < end {
            self.now += step;
            self.acknowledge();
            let pace = self.copa.metrics().pacing_rate.unwrap_or(1_000_000);
            self.credit = (self.credit + pace as f64 * step.as_secs_f64()).min(10.0 * f64::from(MTU));
            while sends && self.credit >= f64::from(MTU) {
                if self.in_flight() + u64::from(MTU) > self.copa.window() {
                    self.copa.on_cwnd_limited();
                    break;
                }
                self.credit -= f64::from(MTU);
                self.send();
            }
        }
    }

    /// What went through in this time, of what the line carries.
    fn used(&mut self, span: Duration) -> f64 {
        let before = self.delivered;
        self.run(span, true);
        (self.delivered - before) as f64 * f64::from(MTU) / (self.line * span.as_secs_f64())
    }
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn it_fills_the_line_and_tells_what_it_knows() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.run(MS * 1000, true);
    assert!(rig.used(MS * 5000) > 0.97);
    let state = rig.shared.state();
    assert!((2_400_000..=2_600_000).contains(&state.rate.unwrap()), "{state:?}");
    assert!(state.base_rtt >= MS * 40 && state.base_rtt < MS * 42, "{state:?}");
    assert!(state.queue_delay < MS * 5, "{state:?}");
    assert_eq!((state.in_flight, state.window), (rig.in_flight(), rig.copa.window()));
}

#[test]
fn losses_do_not_slow_it() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.loses = 20;
    rig.run(MS * 1000, true);
    assert!(rig.used(MS * 5000) > 0.92);
}

#[test]
fn somebody_who_drops_does() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.run(MS * 1000, true);
    let before = rig.copa.window();
    rig.loses = 5;
    rig.run(MS * 300, true);
    assert!(rig.copa.window() < before * 9 / 10);
}

#[test]
fn an_idle_sender_keeps_window_and_pace() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.run(MS * 1000, true);
    rig.run(MS * 3000, false);
    assert!(rig.copa.window() >= 100_000);
    assert!(rig.copa.metrics().pacing_rate.unwrap() >= 2_400_000);
}

#[test]
fn a_slower_line_is_met_with_a_drained_queue() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.run(MS * 2000, true);
    rig.line /= 10.0;
    rig.run(MS * 2000, true);
    assert!(rig.shared.state().queue_delay < MS * 60, "{:?}", rig.shared.state());
    assert!(rig.used(MS * 3000) > 0.9);
}

#[test]
fn a_longer_way_becomes_the_base() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.run(MS * 2000, true);
    rig.delay = MS * 140;
    rig.run(MS * 1000, true);
    assert!(rig.used(MS * 2000) > 0.85);
    assert!(rig.shared.state().base_rtt >= MS * 140);
}

#[test]
fn nothing_coming_through_halves_the_window_once_a_round_trip() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.run(MS * 1000, true);
    let before = rig.copa.window();
    let (now, sent) = (rig.zero + rig.now, rig.zero + rig.now);
    rig.copa.on_congestion_event(now, sent, true, false, 10_000, 9);
    let after = rig.copa.window();
    assert!(after <= before * 6 / 10, "{before} {after}");
    rig.copa.on_congestion_event(now + MS, rig.zero, true, false, 10_000, 8);
    assert_eq!(rig.copa.window(), after);
}

#[test]
fn a_clone_publishes_to_the_same_place() {
    let mut rig = Rig::new(20.0, MS * 40);
    rig.run(MS * 1000, true);
    rig.copa = rig.copa.clone_box();
    rig.run(MS * 100, true);
    assert_eq!(rig.shared.state().in_flight, rig.in_flight());
}
