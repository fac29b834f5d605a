//! Displays for the tests: sessions that speak with an app side's by hand.

use std::collections::BTreeMap;

use wayferry_proto::{
    Arrival, Candidate, Capabilities, CloseReason, Config, ConnectionId, Event, Header, MAX_MESSAGE, Secret,
    Session, Side, StreamId, Time, Transmit,
};

/// What holds a display's session at the app side: one carrier.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) session: Session,
    /// Of all carriers of all desks.
    pub(crate) carrier: u32,
    /// How far what the app side said has been carried.
    heads: BTreeMap<StreamId, u64>,
}

impl AsRef<Session> for Holder {
    fn as_ref(&self) -> &Session {
        &self.session
    }
}

impl AsMut<Session> for Holder {
    fn as_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl Holder {
    /// The code that its session closes with.
    pub(crate) fn close_code(&mut self, now: Time) -> Option<u32> {
        let transmits = std::iter::from_fn(|| self.session.poll_transmit(now));
        transmits.fold(None, |code, transmit| match transmit {
            Transmit::Close { code, .. } => Some(code),
            _ => code,
        })
    }

    /// Whether its session has anything to say.
    pub(crate) fn speaks(&mut self, now: Time) -> bool {
        self.session.poll_transmit(now).is_some()
    }

    /// The carrier is lost.
    pub(crate) fn cut(&mut self, now: Time) {
        self.session.receive(now, Arrival::Closed { reason: lost() });
    }

    /// More than that many bytes wait for the display.
    pub(crate) fn owe(&mut self, bytes: usize) {
        let channel = self.session.open(Header::Wayland { connection: ConnectionId(7) });
        let message = vec![0; MAX_MESSAGE];
        for _ in 0..=bytes / MAX_MESSAGE {
            self.session.send(channel, &message).expect("it fits");
        }
    }
}

/// A display, over all of its carriers.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) session: Session,
    incarnation: u8,
    /// The carrier that it uses.
    pub(crate) carrier: u32,
    heads: BTreeMap<StreamId, u64>,
}

impl Desk {
    pub(crate) fn new(incarnation: u8, carrier: u32) -> Self {
        let session = Session::new(display_config(incarnation));
        Self { session, incarnation, carrier, heads: BTreeMap::new() }
    }

    /// Begins to go on over another carrier.
    pub(crate) fn resume(&mut self, carrier: u32) {
        let old = std::mem::replace(&mut self.session, Session::new(display_config(self.incarnation)));
        self.session = Session::resuming(display_config(self.incarnation), old);
        self.carrier = carrier;
        self.heads.clear();
    }

    /// What it says first has arrived over its carrier: one that may enter.
    pub(crate) fn knock(&mut self, now: Time) -> Candidate<Holder> {
        let mut session = Session::new(app_config());
        carry(now, &mut self.session, &mut session, &mut self.heads);
        while session.poll_event().is_some_and(|event| !matches!(event, Event::Ready { .. })) {}
        let holder = Holder { session, carrier: self.carrier, heads: BTreeMap::new() };
        Candidate::new(holder).expect("its hello is there")
    }

    /// All that the two sides have to say to each other over this carrier arrives; what the display was told comes
    /// back.
    pub(crate) fn talk(&mut self, now: Time, holder: &mut Holder) -> Vec<Event> {
        assert_eq!(self.carrier, holder.carrier, "one carrier");
        loop {
            let said = carry(now, &mut holder.session, &mut self.session, &mut holder.heads);
            if !carry(now, &mut self.session, &mut holder.session, &mut self.heads) && !said {
                return std::iter::from_fn(|| self.session.poll_event()).collect();
            }
        }
    }
}

/// Hands what one side says to the other. Says whether that was anything.
fn carry(now: Time, from: &mut Session, to: &mut Session, heads: &mut BTreeMap<StreamId, u64>) -> bool {
    let mut said = false;
    while let Some(transmit) = from.poll_transmit(now) {
        let Transmit::Data { stream, bytes, .. } = transmit else { continue };
        let head = heads.entry(stream).or_default();
        let offset = *head;
        *head += bytes.len() as u64;
        said = true;
        to.receive(now, Arrival::Data { stream, offset, bytes });
    }
    said
}

fn app_config() -> Config {
    Config { capabilities: Capabilities::RESUME, ..Config::new(Side::App) }
}

fn display_config(incarnation: u8) -> Config {
    Config { resume: Some(Secret::from([incarnation; 32])), ..Config::new(Side::Display) }
}

pub(crate) fn lost() -> CloseReason {
    CloseReason::LinkLost("cut".into())
}
