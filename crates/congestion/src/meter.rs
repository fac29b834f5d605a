//! What the sending side of one connection is known to have done, for those outside of noq.
//!
//! noq does not tell how many bytes lie in it that no packet has carried yet, so the estimate comes from around the
//! congestion controller: bytes written to streams, minus payload of packets sent, plus payload of packets lost (it is
//! sent again, not for the first time). Packets are taken to carry a little less than they do, so that the estimate
//! errs upward, and each time the connection has run out of data the estimate is set right.
//!
//! Invariant: content ≤ unsent, because everything else goes first.

use std::time::Duration;

use crate::metered::Report;
use crate::state::Shared;

/// Adds up the [`Report`]s of one connection's controllers. A clone counts on by itself, but knows of the same
/// controllers of ours.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    figures: Figures,
    /// What our own controller knows better than every controller tells.
    shared: Shared,
    /// The base round-trip time and the queue's delay as it last told them: one of a new path begins without.
    path: Option<(Duration, Duration)>,
    /// Written since noq last looked for something to send.
    unseen: u64,
    /// The last packet that was declared lost.
    last_lost: Option<u64>,
    mtu: u16,
}

/// What a [`Meter`] has added up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Stream bytes written and not sent, of all classes.
    pub unsent: u64,
    /// Those of content among them.
    pub content: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Mean deviation of round trips from that.
    pub rtt_deviation: Duration,
    /// The round-trip time of the empty path: our own controller's figure, or else the smallest that noq remembers.
    pub base_rtt: Duration,
    /// How long packets wait at the bottleneck: likewise, or else the difference of those two.
    pub queue_delay: Duration,
    /// The congestion window in bytes.
    pub window: u64,
    /// The controller's estimate of the bottleneck in bytes per second.
    pub rate: Option<u64>,
    /// The most that a packet carries of one stream.
    pub payload: u16,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// In how many runs those were sent.
    pub lost_runs: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
}

impl Meter {
    /// What is known now.
    pub fn figures(&self) -> Figures {
        let (base_rtt, queue_delay) = self.path.unwrap_or((self.figures.base_rtt, self.figures.queue_delay));
        Figures { base_rtt, queue_delay, ..self.figures }
    }

    /// Where our own controllers of this connection are to publish their state.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// `bytes` were written to a stream.
    pub fn on_written(&mut self, bytes: usize, content: bool) {
        let bytes = bytes as u64;
        self.figures.unsent += bytes;
        self.figures.content += if content { bytes } else { 0 };
        self.unseen += bytes;
    }

    /// Takes what a controller reports.
    pub fn take(&mut self, report: Report) {
        match report {
            Report::Begun { window, mtu } => {
                self.figures.window = window;
                self.set_mtu(mtu);
            }
            // What was written before that has been seen.
            Report::Looked => self.unseen = 0,
            Report::Sent { bytes, .. } => self.on_sent(bytes),
            Report::Acked { rtt, least } => {
                self.figures.acked_packets += 1;
                self.on_rtt(rtt);
                self.figures.base_rtt = least;
                self.figures.queue_delay = rtt.saturating_sub(least);
            }
            Report::Acks { ran_dry, window, rate, .. } => {
                (self.figures.window, self.figures.rate) = (window, rate);
                let state = self.shared.state();
                // Zero before our own controller has measured, and where another one is at work.
                if !state.base_rtt.is_zero() {
                    self.path = Some((state.base_rtt, state.queue_delay));
                }
                if ran_dry {
                    self.set_unsent(self.unseen);
                }
            }
            Report::Lost { bytes, number } => self.on_lost(bytes, number),
            Report::Mtu(mtu) => self.set_mtu(mtu),
        }
    }

    /// The smoothed round trip moves by an eighth of what a sample differs from it. RFC 9002 §5.3
    fn on_rtt(&mut self, rtt: Duration) {
        let before = std::mem::replace(&mut self.figures.rtt, rtt);
        if !before.is_zero() && before != rtt {
            let sample = before.abs_diff(rtt) * 8;
            self.figures.rtt_deviation = (self.figures.rtt_deviation * 3 + sample) / 4;
        }
    }

    fn on_sent(&mut self, bytes: u16) {
        self.figures.sent_packets += 1;
        // A packet above the path's MTU is a probe: padding, no data.
        if bytes <= self.mtu {
            self.set_unsent(self.figures.unsent.saturating_sub(payload(bytes)));
        }
    }

    fn on_lost(&mut self, bytes: u16, number: u64) {
        self.figures.lost_packets += 1;
        // What lies between may be acknowledgements, which have numbers too and are never known to be lost.
        let apart = |last: u64| number.saturating_sub(last) > 1 + RUN_GAP;
        self.figures.lost_runs += u64::from(self.last_lost.is_none_or(apart));
        self.last_lost = Some(number);
        self.figures.unsent += payload(bytes);
    }

    fn set_unsent(&mut self, bytes: u64) {
        self.figures.unsent = bytes;
        self.figures.content = self.figures.content.min(bytes);
    }

    fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.figures.payload = mtu.saturating_sub(LEAST_OVERHEAD);
    }
}

/// Lost packets with no more numbers between them are one run.
const RUN_GAP: u64 = 3;

/// Stream data of a packet, estimated low so that what is unsent is estimated high.
fn payload(bytes: u16) -> u64 {
    bytes.saturating_sub(PACKET_OVERHEAD).into()
}

/// Bytes of a packet that are not stream data: header with connection id and packet number (11), tag (16), and a
/// STREAM frame's header (up to 11). RFC 9000 §17.3, §19.8.
const PACKET_OVERHEAD: u16 = 38;

/// The least that they can be: flags, connection id of 8 bytes, packet number, tag, and a STREAM frame's type and id.
const LEAST_OVERHEAD: u16 = 28;

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use noq_proto::congestion::{Controller, CubicConfig};

    use super::*;
    use crate::metered::metered;

    struct Rig {
        meter: Arc<Mutex<Meter>>,
        controller: Box<dyn Controller>,
        now: Instant,
        packets: u64,
    }

    impl Rig {
        fn new() -> Self {
            let (meter, now) = (Arc::new(Mutex::new(Meter::default())), Instant::now());
            let controller = metered(Arc::new(CubicConfig::default()), meter.clone()).build(now, 1200);
            Self { meter, controller, now, packets: 0 }
        }

        /// noq looks for data and sends packets of this size.
        fn send(&mut self, sizes: &[u16]) {
            for size in sizes {
                let _ = self.controller.metrics();
                self.controller.on_packet_sent(self.now, *size, self.packets);
                self.packets += 1;
            }
            let _ = self.controller.metrics();
        }

        fn write(&self, bytes: usize, content: bool) {
            self.meter.lock().unwrap().on_written(bytes, content);
        }

        fn figures(&self) -> Figures {
            self.meter.lock().unwrap().figures()
        }

        fn unsent(&self) -> (u64, u64) {
            (self.figures().unsent, self.figures().content)
        }
    }

    #[test]
    fn packets_take_content_off_and_err_upward() {
        let mut rig = Rig::new();
        rig.write(100_000, true);
        assert_eq!(rig.unsent(), (100_000, 100_000));
        rig.send(&[1200; 50]);
        let left = rig.unsent().1;
        assert!((100_000 - 50 * 1200..=100_000 - 50 * 1150).contains(&left), "{left}");
    }

    #[test]
    fn everything_else_is_sent_before_content() {
        let mut rig = Rig::new();
        rig.write(10_000, true);
        rig.write(50_000, false);
        rig.send(&[1200; 20]);
        assert_eq!(rig.unsent().1, 10_000);
        rig.send(&[1200; 25]);
        assert!(rig.unsent().1 < 10_000);
    }

    #[test]
    fn running_dry_sets_the_estimate_right_but_for_what_noq_has_not_seen() {
        let mut rig = Rig::new();
        rig.write(5000, true);
        rig.send(&[1200, 1200, 1200, 800]);
        assert!(rig.unsent().0 > 0, "drifts upward");
        rig.write(700, true);
        rig.controller.on_end_acks(rig.now, 4400, true, Some(3));
        assert_eq!(rig.unsent(), (700, 700));
        rig.send(&[760]);
        rig.controller.on_end_acks(rig.now, 0, true, Some(4));
        assert_eq!(rig.unsent(), (0, 0));
    }

    #[test]
    fn data_that_waits_for_the_window_does_not_count_as_dry() {
        let mut rig = Rig::new();
        rig.write(50_000, true);
        rig.send(&[1200; 10]);
        let before = rig.unsent();
        rig.controller.on_end_acks(rig.now, 0, false, Some(9));
        assert_eq!(rig.unsent(), before);
    }

    #[test]
    fn a_retransmission_is_no_progress_and_a_probe_carries_nothing() {
        let mut rig = Rig::new();
        rig.write(50_000, true);
        rig.send(&[1200; 10]);
        let before = rig.unsent();
        rig.controller.on_packet_lost(1200, 3, rig.now);
        rig.send(&[1200, 1452]);
        assert_eq!(rig.unsent(), before);
        let figures = rig.figures();
        assert_eq!((figures.sent_packets, figures.lost_packets), (12, 1));
        assert!(figures.window > 0);
    }

    #[test]
    fn packets_lost_in_succession_are_one_run() {
        let mut rig = Rig::new();
        rig.send(&[1200; 10]);
        // What lies between may be acknowledgements, as 4 and 7.
        for number in [2, 3, 5, 6, 8, 9] {
            rig.controller.on_packet_lost(1200, number, rig.now);
        }
        assert_eq!((rig.figures().lost_packets, rig.figures().lost_runs), (6, 1));
        for number in [14, 15] {
            rig.controller.on_packet_lost(1200, number, rig.now);
        }
        assert_eq!((rig.figures().lost_packets, rig.figures().lost_runs), (8, 2));
    }

    #[test]
    fn the_deviation_of_round_trips_is_that_of_their_samples() {
        let mut meter = Meter::default();
        let mut rtt = 100.0;
        for number in 0..1000 {
            let sample = if number % 2 == 0 { 90.0 } else { 110.0 };
            rtt += (sample - rtt) / 8.0;
            let rtt = Duration::from_secs_f64(rtt / 1e3);
            meter.take(Report::Acked { rtt, least: rtt });
        }
        let deviation = meter.figures().rtt_deviation.as_secs_f64() * 1e3;
        assert!((deviation - 10.0).abs() < 1.0, "{deviation}");
    }

    #[test]
    fn a_packet_carries_what_the_path_does_less_the_least_around_it() {
        let mut rig = Rig::new();
        assert_eq!(rig.figures().payload, 1200 - 28);
        rig.controller.on_mtu_update(1452);
        assert_eq!(rig.figures().payload, 1452 - 28);
    }

    #[test]
    fn a_clone_of_the_controller_reports_to_the_same_meter() {
        let mut rig = Rig::new();
        rig.write(5000, true);
        rig.controller = rig.controller.clone_box();
        rig.send(&[1200]);
        assert!(rig.unsent().0 < 5000);
    }

    #[test]
    fn our_own_controller_knows_the_path_better() {
        let mut meter = Meter::default();
        let (rtt, least) = (Duration::from_millis(30), Duration::from_millis(20));
        meter.take(Report::Acked { rtt, least });
        assert_eq!((meter.figures().base_rtt, meter.figures().queue_delay), (least, rtt - least));
        let (base_rtt, queue_delay) = (rtt / 2, rtt / 3);
        let acks = Report::Acks { now: Instant::now(), in_flight: 0, ran_dry: false, window: 1, rate: None };
        meter.shared().publish(crate::State { base_rtt, queue_delay, ..crate::State::default() });
        meter.take(acks);
        assert_eq!((meter.figures().base_rtt, meter.figures().queue_delay), (base_rtt, queue_delay));
        // Another path's controller has measured nothing yet.
        meter.shared().publish(crate::State::default());
        meter.take(Report::Acked { rtt, least });
        meter.take(acks);
        assert_eq!((meter.figures().base_rtt, meter.figures().queue_delay), (base_rtt, queue_delay));
    }
}
