//! The desk and a made-up card, in virtual time.

use super::*;

/// A machine with a card that plays 10 ms every 10 ms.
struct Machine {
    world: World,
    works: bool,
    ring: Option<Arc<Ring>>,
    opened: u32,
    heard: Vec<i16>,
}

impl Machine {
    /// Without a server.
    fn new() -> Self {
        let mut world = World::new();
        world.desk = Desk::new("test", true);
        (world.network, world.sounds) = (Network::Refuses, true);
        Self { world, works: true, ring: None, opened: 0, heard: Vec::new() }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.world.now + span;
        while self.world.now < end {
            self.world.step();
            self.change();
            if let Some(ring) = &self.ring {
                let mut out = [1; STEP_FRAMES * CHANNELS];
                ring.take(&mut out, STEP, |sample| sample);
                self.heard.extend(out);
            }
        }
    }

    /// What `alsa` does.
    fn change(&mut self) {
        let wanted = self.world.desk.card().cloned();
        let is_new = wanted
            .as_ref()
            .is_some_and(|wanted| self.ring.as_ref().is_none_or(|ring| !Arc::ptr_eq(ring, wanted)));
        self.ring = wanted;
        let Some(ring) = self.ring.as_ref().filter(|_| is_new) else { return };
        match self.works {
            true => ring.open(STEP_FRAMES),
            false => ring.fail("no card"),
        }
        self.opened += 1;
    }

    fn unplug(&self) {
        self.ring.as_ref().unwrap().fail("unplugged");
    }

    fn state(&self) -> DeviceState {
        self.world.desk.state()
    }
}

#[test]
fn a_card_plays_without_a_gap_and_silence_closes_it() {
    let mut machine = Machine::new();
    machine.pass(Duration::from_secs(5));
    assert_eq!((machine.state(), machine.opened, machine.world.connections), (DeviceState::Playing, 1, 1));
    let first = machine.heard.iter().position(|sample| *sample != 0).unwrap();
    assert!(machine.heard[first..].iter().all(|sample| *sample == 0x5555), "no gap, no splice");
    assert!(machine.world.lag().unwrap() < Duration::from_millis(120), "{:?}", machine.world.lag());
    machine.world.hush();
    machine.pass(Duration::from_millis(1300));
    assert_eq!((machine.state(), machine.ring.is_none()), (DeviceState::Closed, true));
    assert_eq!(machine.world.desk.wake_at(&machine.world.source), None);
    assert_eq!(machine.world.notices, []);
}

#[test]
fn a_server_that_appears_is_preferred_after_the_next_silence() {
    let mut machine = Machine::new();
    machine.pass(Duration::from_secs(1));
    machine.world.network = Network::Works;
    machine.pass(Duration::from_secs(20));
    assert_eq!(machine.world.connections, 1, "what plays goes on");
    machine.world.hush();
    machine.pass(Duration::from_secs(2));
    machine.world.sounds = true;
    machine.pass(Duration::from_secs(1));
    assert_eq!((machine.world.connections, machine.opened), (2, 1));
    assert!(machine.world.server.heard.contains(&0x55));
    assert_eq!(machine.world.notices, []);
}

#[test]
fn without_a_card_either_both_are_named_once_and_tried_every_5_s() {
    let mut machine = Machine::new();
    machine.works = false;
    machine.pass(Duration::from_secs(600));
    let tried = "refused; ALSA's `default`: no card".into();
    assert_eq!(machine.world.notices, [Notice::NoServer { tried }]);
    assert!((100..=121).contains(&machine.opened), "{}", machine.opened);
    machine.works = true;
    machine.pass(Duration::from_secs(12));
    assert_eq!(machine.world.notices[1..], [Notice::Back]);
}

#[test]
fn a_card_that_is_unplugged_is_told_of_once_and_tried_ever_less_often() {
    let mut machine = Machine::new();
    machine.pass(Duration::from_secs(1));
    machine.works = false;
    machine.unplug();
    machine.pass(Duration::from_secs(1));
    assert_eq!(machine.opened, 3, "after 0.25 and 0.75 s");
    machine.pass(Duration::from_secs(60));
    assert_eq!(machine.world.notices, [Notice::Lost { why: "unplugged".into() }]);
    assert!(machine.opened < 20, "{}", machine.opened);
    machine.works = true;
    machine.pass(Duration::from_secs(10));
    assert_eq!(machine.world.notices[1..], [Notice::Back]);
    assert!(machine.world.lag().unwrap() < Duration::from_millis(120), "the past is never played");
}

#[test]
fn a_server_that_was_lost_has_time_to_come_back_before_a_card_is_taken() {
    let mut machine = Machine::new();
    machine.world.network = Network::Works;
    machine.pass(Duration::from_secs(1));
    machine.world.network = Network::Refuses;
    machine.world.lose();
    machine.pass(Duration::from_secs(7));
    assert_eq!((machine.state(), machine.opened), (DeviceState::Waiting, 0));
    machine.pass(Duration::from_secs(8));
    assert_eq!((machine.state(), machine.opened), (DeviceState::Playing, 1));
    let lost = Notice::Lost { why: "broken".into() };
    assert_eq!(machine.world.notices, [lost, Notice::Back]);
}

/// A video is paused, and the server starts anew: it found its card taken as soon as the video went on.
#[test]
fn regression_a_server_that_is_lost_in_silence_finds_its_card_taken() {
    let mut machine = Machine::new();
    machine.world.network = Network::Works;
    machine.pass(Duration::from_secs(1));
    machine.world.hush();
    machine.pass(Duration::from_millis(1300));
    assert_eq!(machine.state(), DeviceState::Corked);
    machine.world.network = Network::Refuses;
    machine.world.lose();
    machine.world.sounds = true;
    machine.pass(Duration::from_millis(7900));
    assert_eq!((machine.state(), machine.opened), (DeviceState::Waiting, 0));
    machine.pass(Duration::from_millis(200));
    assert_eq!((machine.state(), machine.opened), (DeviceState::Playing, 1));
}

/// The time was the sum of the waits between tries, and those were still the longest.
#[test]
fn regression_a_server_that_is_lost_twice_has_less_time_to_come_back() {
    let mut machine = Machine::new();
    machine.world.network = Network::Works;
    machine.pass(Duration::from_secs(1));
    for lost_for in [6, 7] {
        machine.world.network = Network::Refuses;
        machine.world.lose();
        machine.pass(Duration::from_secs(lost_for));
        assert_eq!((machine.state(), machine.opened), (DeviceState::Waiting, 0));
        machine.world.network = Network::Works;
        machine.pass(Duration::from_secs(5));
        assert_eq!((machine.state(), machine.opened), (DeviceState::Playing, 0));
    }
}

#[test]
fn a_card_that_stands_still_lets_the_player_go_on() {
    let mut machine = Machine::new();
    machine.pass(Duration::from_secs(1));
    let lag = machine.world.lag().unwrap();
    machine.world.pass(Duration::from_secs(5));
    machine.pass(Duration::from_secs(5));
    assert!(machine.world.lag().unwrap() <= lag + Duration::from_millis(30), "{:?}", machine.world.lag());
    assert_eq!((machine.world.notices, machine.opened), (vec![], 1));
}

#[test]
fn a_card_that_takes_long_to_open_is_opened_once_and_nothing_late_is_played() {
    let mut machine = Machine::new();
    machine.world.pass(Duration::from_secs(30));
    assert_eq!(machine.state(), DeviceState::Opening);
    machine.pass(Duration::from_secs(1));
    assert_eq!((machine.state(), machine.opened, machine.world.connections), (DeviceState::Playing, 1, 1));
    assert!(machine.world.lag().unwrap() < Duration::from_millis(120), "{:?}", machine.world.lag());
    assert_eq!(machine.world.notices, []);
}

#[test]
fn regression_a_card_that_is_never_opened_keeps_a_server_from_being_tried() {
    let mut machine = Machine::new();
    machine.world.pass(Duration::from_secs(39));
    machine.world.hush();
    machine.world.pass(Duration::from_millis(500));
    let wake = machine.world.desk.wake_at(&machine.world.source).unwrap();
    assert!(wake.since(machine.world.now) < Duration::from_secs(1), "without a packet, too");
    machine.world.pass(Duration::from_secs(1));
    assert_eq!(machine.state(), DeviceState::Waiting);
    let tried = "refused; ALSA's `default`: does not answer".into();
    assert_eq!(machine.world.notices, [Notice::NoServer { tried }]);
    (machine.world.network, machine.world.sounds) = (Network::Works, true);
    machine.world.pass(Duration::from_secs(9));
    assert!(machine.world.server.heard.contains(&0x55));
    assert_eq!(machine.world.notices[1..], [Notice::Back]);
}
