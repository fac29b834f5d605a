use std::collections::HashMap;
use std::net::IpAddr;

use super::*;
use crate::{Arrival, Digest, Side, Transmit};

type Candidates = Admission<u8, Session>;

const LATER: Time = Time::from_millis(3_600_000);
const DESK: u8 = 8;

fn admission() -> Candidates {
    Admission::new(Config::new(Side::App), secret(255))
}

fn secret(byte: u8) -> Secret {
    Secret::from([byte; 32])
}

/// What a display says first, as it arrives.
fn hello(secret: u8) -> Vec<Arrival> {
    hello_as(secret, 9)
}

fn hello_as(shown: u8, incarnation: u8) -> Vec<Arrival> {
    let (secret, resume) = (Some(secret(shown)), Some(secret(incarnation)));
    first_words(Config { secret, resume, ..Config::new(Side::Display) })
}

fn first_words(config: Config) -> Vec<Arrival> {
    let mut display = Session::new(config);
    let mut lengths = HashMap::new();
    let mut arrivals = Vec::new();
    while let Some(transmit) = display.poll_transmit(Time::ZERO) {
        if let Transmit::Data { stream, bytes, .. } = transmit {
            let length = lengths.entry(stream).or_insert(0);
            let offset = *length;
            *length += bytes.len() as u64;
            arrivals.push(Arrival::Data { stream, offset, bytes });
        }
    }
    arrivals
}

/// What became of one that came.
#[derive(Debug)]
struct Visit {
    number: u64,
    come: Option<(Role, Session)>,
    /// The one that lost its place for it.
    lost: Option<Session>,
}

impl Visit {
    fn part(&self) -> Option<Role> {
        self.come.as_ref().map(|(part, _)| *part)
    }
}

fn enter(
    admission: &mut Candidates,
    place: (Lane, Source),
    certificate: u8,
    said: Vec<Arrival>,
    now: Time,
) -> Visit {
    let (number, lost) = admission.come(place, certificate, now, Session::new);
    if let Some(session) = admission.get_mut(number) {
        said.into_iter().for_each(|arrival| session.receive(now, arrival));
    }
    Visit { number, come: look(admission, number, now), lost }
}

fn look(admission: &mut Candidates, number: u64, now: Time) -> Option<(Role, Session)> {
    match admission.look_at(number, now)? {
        Fate::Enters(entry, candidate, _) => Some((entry.role, candidate.begin(now))),
        Fate::Waits | Fate::Leaves(..) | Fate::Full(_) => None,
    }
}

/// On QUIC, from there.
fn connect(admission: &mut Candidates, from: u8, certificate: u8, said: Vec<Arrival>, now: Time) -> Visit {
    let lane = if admission.secrets().is_known(certificate) { Lane::Known } else { Lane::Stranger };
    let source = Source::from(IpAddr::from([192, 0, 2, from]));
    enter(admission, (lane, source), certificate, said, now)
}

/// On a byte stream.
fn add(admission: &mut Candidates, certificate: u8, said: Vec<Arrival>, now: Time) -> Option<Role> {
    enter(admission, (Lane::Here, Source::Here), certificate, said, now).part()
}

/// The code that its session closes with.
fn code(session: &mut Session) -> Option<u32> {
    let transmits = std::iter::from_fn(|| session.poll_transmit(Time::ZERO));
    transmits.into_iter().find_map(|transmit| match transmit {
        Transmit::Close { code, .. } => Some(code),
        _ => None,
    })
}

const TOO_MUCH: Option<u32> = Some(4);

#[test]
fn regression_one_ticket_becomes_eight_views() {
    let mut admission = admission();
    admission.secrets_mut().print(Role::View, secret(1), LATER);
    let (ticket, first, second) = (1, 10, 11);
    let mut come_as =
        |shown, incarnation| add(&mut admission, DESK, hello_as(shown, incarnation), Time::ZERO);
    assert_eq!(come_as(ticket, first), Some(Role::View));
    assert_eq!(come_as(ticket, second), None, "the ticket was used");
    assert_eq!(come_as(first, second), None, "by another");
    assert_eq!(come_as(first, first), Some(Role::View), "the same comes again");
    assert_eq!(admission.secrets().len(), (0, 1));
}

#[test]
fn regression_silent_strangers_block_admission() {
    let (mut admission, now) = (admission(), Time::ZERO);
    add(&mut admission, DESK, Vec::new(), now);
    for round in 0..200 {
        let visit = connect(&mut admission, round % 5, round, Vec::new(), now);
        let lost = visit.lost.map(|mut lost| code(&mut lost));
        let expected = (usize::from(round) >= MAX_STRANGERS).then_some(TOO_MUCH);
        assert_eq!(lost, expected, "never with code 0");
    }
    assert_eq!(admission.numbers().len(), MAX_STRANGERS + 1, "byte streams have places of their own");
    admission.secrets_mut().print(Role::Active, secret(1), LATER);
    assert_eq!(connect(&mut admission, 0, 201, hello(1), now).part(), Some(Role::Active));
}

#[test]
fn regression_a_flood_takes_the_place_of_a_display_that_was_here() {
    let (mut admission, now) = (admission(), Time::ZERO);
    admission.secrets_mut().print(Role::Active, secret(1), LATER);
    assert_eq!(connect(&mut admission, 1, 1, hello(1), now).part(), Some(Role::Active));
    // It comes again, and its first words are still on their way.
    let again = connect(&mut admission, 1, 1, Vec::new(), now);
    let strangers = (2..=250).map(|round| connect(&mut admission, round % 9, round, Vec::new(), now));
    assert_eq!(strangers.filter(|stranger| stranger.come.is_none()).count(), 249);
    assert!(admission.get_mut(again.number).is_some());
}

#[test]
fn a_stranger_that_says_nothing_goes_after_three_seconds() {
    let mut admission = admission();
    let stranger = connect(&mut admission, 1, 1, Vec::new(), Time::ZERO).number;
    assert_eq!(admission.next_timeout(), Some(Time::ZERO + PATIENCE));
    assert!(matches!(admission.look_at(stranger, Time::from_millis(2_999)), Some(Fate::Waits)));
    let Some(Fate::Leaves(mut session, None)) = admission.look_at(stranger, Time::from_millis(3_000)) else {
        panic!("it is still there");
    };
    assert_eq!((code(&mut session), admission.numbers().len()), (TOO_MUCH, 0));
}

/// Another display with the same secret has another incarnation, and stays outside.
#[test]
fn regression_both_ways_of_one_display_are_let_in() {
    let (mut admission, now) = (admission(), Time::ZERO);
    admission.secrets_mut().print(Role::Active, secret(7), LATER);
    let ways = [(); 2].map(|()| admission.come((Lane::Here, Source::Here), DESK, now, Session::new).0);
    for way in ways {
        let session = admission.get_mut(way).expect("a place");
        hello(7).into_iter().for_each(|arrival| session.receive(now, arrival));
    }
    let both = ways.map(|way| look(&mut admission, way, now).expect("the same, on two ways"));
    assert!(both.iter().all(|(part, session)| *part == Role::Active && !session.is_closed()));
    assert_eq!(admission.secrets().len(), (0, 1));
    assert_eq!(add(&mut admission, DESK, hello_as(7, 8), now), None);
}

/// One whose session could go on over another carrier stayed for good, in a viewer's place or as the display.
#[test]
fn regression_who_has_left_again_is_not_let_in() {
    let kinds = [Capabilities::NONE, Capabilities::RESUME];
    for (left, capabilities) in [true, false].into_iter().flat_map(|left| kinds.map(|kind| (left, kind))) {
        let mut admission = Candidates::new(Config { capabilities, ..Config::new(Side::App) }, secret(255));
        admission.secrets_mut().print(Role::Active, secret(7), LATER);
        let mut said = hello_of_a_page(7, 9, capabilities);
        if left {
            said.push(Arrival::Closed { reason: CloseReason::LinkLost("given up".into()) });
        }
        assert_eq!(add(&mut admission, DESK, said, Time::ZERO).is_none(), left);
        assert!(admission.numbers().is_empty());
        assert_eq!(admission.secrets().len().0 == 0, !left, "the ticket was not used");
    }
}

#[test]
fn a_viewer_that_has_left_is_forgotten_and_no_other() {
    let mut admission = admission();
    for (number, given) in [(1, 101), (2, 102)] {
        admission.secrets_mut().invite(Role::View, secret(given), number, Time::ZERO);
        assert_eq!(add(&mut admission, number, hello_as(given, number), Time::ZERO), Some(Role::View));
    }
    assert_eq!(admission.secrets_mut().forget_viewer(secret(1)), Some(1));
    assert_eq!(add(&mut admission, 1, hello_as(1, 1), Time::ZERO), None);
    assert_eq!(add(&mut admission, 2, hello_as(2, 2), Time::ZERO), Some(Role::View));
}

#[test]
fn regression_tickets_never_expire() {
    let mut admission = admission();
    for byte in [1, 2, 3] {
        admission.secrets_mut().print(Role::View, secret(byte), LATER);
    }
    let come_at =
        |admission: &mut Candidates, byte, now| add(admission, DESK, hello_as(byte, byte + 100), now);
    assert_eq!(come_at(&mut admission, 1, Time::from_millis(3_599_999)), Some(Role::View));
    assert_eq!(come_at(&mut admission, 2, LATER), None);
    admission.secrets_mut().revoke_printed();
    assert_eq!(come_at(&mut admission, 3, Time::ZERO), None);
}

fn digest(secret: &Secret) -> Digest {
    Digest(secret.expose().map(|byte| byte ^ 0xff))
}

fn hello_of_a_page(shown: u8, incarnation: u8, capabilities: Capabilities) -> Vec<Arrival> {
    let (secret, resume) = (Some(secret(shown)), Some(secret(incarnation)));
    first_words(Config { secret, resume, capabilities, ..Config::new(Side::Display) })
}

#[test]
fn a_link_lets_in_as_many_as_it_says_and_its_digest_opens_nothing() {
    let config = Config { digest: Some(digest), capabilities: Capabilities::VIEW, ..Config::new(Side::App) };
    let mut admission = Candidates::new(config, secret(255));
    let (now, good) = (Time::ZERO, (LATER, 2));
    admission.secrets_mut().link(Role::View, digest(&secret(1)), good, now).expect("a place");
    let mut come = |shown, incarnation, capabilities| {
        let said = hello_of_a_page(shown, incarnation, capabilities);
        add(&mut admission, DESK, said, now)
    };
    assert_eq!(come(1 ^ 0xff, 10, Capabilities::VIEW), None, "what is kept of a secret is none");
    assert_eq!(come(1, 10, Capabilities::NONE), None, "it does not say that it only views");
    assert_eq!(come(1, 10, Capabilities::VIEW), Some(Role::View));
    assert_eq!(come(1, 10, Capabilities::VIEW), Some(Role::View), "on another way");
    assert_eq!(come(1, 11, Capabilities::VIEW), Some(Role::View));
    assert_eq!(come(1, 12, Capabilities::VIEW), None, "it was used up");
    assert_eq!(come(11, 11, Capabilities::VIEW), Some(Role::View), "it comes again");
}

/// It had cost a use of the link, and the link's owner wondered who had come.
#[test]
fn regression_who_finds_all_places_taken_has_used_up_a_link() {
    let config = Config { digest: Some(digest), capabilities: Capabilities::VIEW, ..Config::new(Side::App) };
    let mut admission = Candidates::new(config, secret(255));
    let (now, good) = (Time::ZERO, (LATER, 2));
    admission.secrets_mut().link(Role::View, digest(&secret(1)), good, now).expect("a place");
    let mut come = |shown, incarnation, free| {
        admission.set_free(free);
        let said = hello_of_a_page(shown, incarnation, Capabilities::VIEW);
        let (number, _) = admission.come((Lane::Here, Source::Here), DESK, now, Session::new);
        let session = admission.get_mut(number).expect("a place");
        said.into_iter().for_each(|arrival| session.receive(now, arrival));
        let is_full = matches!(admission.look_at(number, now), Some(Fate::Full(_)));
        (is_full, admission.secrets().links(now).next().map(|link| link.uses))
    };
    assert_eq!(come(1, 10, 1), (false, Some(1)));
    assert_eq!(come(1, 11, 0), (true, Some(1)));
    assert_eq!(come(10, 10, 0), (false, Some(1)), "it comes again");
    assert_eq!(
        come(2, 12, 0),
        (false, Some(1)),
        "it has no link, and does not hear that there are no places"
    );
    assert_eq!(come(1, 11, 1), (false, None));
}

/// It was there when the link was good, and said nothing for a while.
#[test]
fn who_waits_with_a_link_that_is_revoked_is_refused() {
    let config = Config { digest: Some(digest), ..Config::new(Side::App) };
    let mut admission = Candidates::new(config, secret(255));
    let now = Time::ZERO;
    admission.secrets_mut().link(Role::Active, digest(&secret(1)), (LATER, 1), now).expect("a place");
    let visit = connect(&mut admission, 1, 1, Vec::new(), now);
    let revoked = admission.secrets_mut().revoke_links(None, now);
    assert!(revoked.any && !revoked.active);
    let session = admission.get_mut(visit.number).expect("a place");
    hello(1).into_iter().for_each(|arrival| session.receive(now, arrival));
    assert!(look(&mut admission, visit.number, now).is_none());
}

#[test]
fn a_page_on_a_byte_stream_comes_by_a_link_and_by_nothing_else() {
    let config = Config { digest: Some(digest), capabilities: Capabilities::VIEW, ..Config::new(Side::App) };
    let (mut admission, now) = (Candidates::new(config, secret(255)), Time::ZERO);
    let page = |shown, incarnation, role| {
        let says = if role == Role::View { Capabilities::VIEW } else { Capabilities::NONE };
        hello_of_a_page(shown, incarnation, says)
    };
    let come = |admission: &mut Candidates, said| {
        enter(admission, (Lane::Page, IpAddr::from([192, 0, 2, 1]).into()), 77, said, now).part()
    };
    assert_eq!(come(&mut admission, page(1, 10, Role::Active)), None, "without links there is no way in");
    let mut link = |role, byte| {
        admission.secrets_mut().link(role, digest(&secret(byte)), (LATER, 8), now).expect("a place")
    };
    let (view, _) = (link(Role::View, 1), link(Role::Active, 2));
    admission.secrets_mut().print(Role::Active, secret(3), LATER);
    admission.secrets_mut().invite(Role::Active, secret(4), DESK, now);
    for (shown, role, why) in [
        (9, Role::View, "a secret of no link"),
        (3, Role::Active, "a ticket's"),
        (3, Role::View, "a ticket's, for less"),
        (4, Role::Active, "that of a display that was met"),
        (1, Role::Active, "that of a link for viewing, for more"),
    ] {
        assert_eq!(come(&mut admission, page(shown, 10, role)), None, "{why}");
    }
    assert_eq!(come(&mut admission, page(1, 11, Role::View)), Some(Role::View));
    assert_eq!(come(&mut admission, page(2, 12, Role::Active)), Some(Role::Active));
    assert_eq!(come(&mut admission, page(12, 12, Role::Active)), Some(Role::Active), "it comes again");
    assert_eq!(
        add(&mut admission, DESK, hello_as(4, 13), now),
        Some(Role::Active),
        "a display comes as before"
    );
    assert_eq!(
        come(&mut admission, page(13, 13, Role::Active)),
        None,
        "what lets that come again is no link"
    );
    let revoked = admission.secrets_mut().revoke_links(Some(view), now);
    assert!(revoked.any);
    for (shown, incarnation) in [(1, 14), (11, 11)] {
        assert_eq!(come(&mut admission, page(shown, incarnation, Role::View)), None, "it was taken back");
    }
}

#[test]
fn a_page_on_a_byte_stream_has_a_place_of_its_own_for_a_while() {
    let (mut admission, now) = (admission(), Time::ZERO);
    for from in 0..MAX_PAGES as u8 {
        let place = (Lane::Page, IpAddr::from([192, 0, 2, from]).into());
        assert!(enter(&mut admission, place, from, Vec::new(), now).lost.is_none());
    }
    assert!(connect(&mut admission, 0, 99, Vec::new(), now).lost.is_none(), "strangers have others");
    let place = (Lane::Page, IpAddr::from([192, 0, 2, 1]).into());
    let lost = enter(&mut admission, place, 100, Vec::new(), now).lost;
    assert_eq!(lost.map(|mut lost| code(&mut lost)), Some(TOO_MUCH));
    let pages = |admission: &Candidates| admission.lanes[Lane::Page as usize].iter().count();
    assert_eq!(pages(&admission), MAX_PAGES);
    for number in admission.numbers() {
        assert!(look(&mut admission, number, now + PATIENCE).is_none());
    }
    assert_eq!(pages(&admission), MAX_PAGES, "longer than a stranger");
    for number in admission.numbers() {
        assert!(look(&mut admission, number, now + PAGE_PATIENCE).is_none());
    }
    assert_eq!(pages(&admission), 0);
}
