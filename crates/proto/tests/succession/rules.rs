//! Each rule once.

use std::time::Duration;

use wayferry_proto::succession::{
    AWAY_PATIENCE, Around, EXIT_PATIENCE, End, MAX_OWED, Output, Presence, Program, Report, Rules, Succession,
};
use wayferry_proto::{CloseReason, ClosedBy, Control, Event, Time};

use crate::desk::{Desk, Holder, lost};

const NOW: Time = Time::from_millis(1_000);
const LATER: Time = Time::from_millis(2_000);
const LINGER: Duration = Duration::from_secs(60);
const GONE: Option<u32> = Some(6);
const DONE: Option<u32> = Some(0);
const RULES: Rules = Rules { followed: true, linger: Some(LINGER) };

fn alone() -> Succession<Holder> {
    Succession::new(RULES, Time::ZERO, None)
}

/// A session that a display has.
fn attached() -> (Succession<Holder>, Desk) {
    attached_by(RULES)
}

fn attached_by(rules: Rules) -> (Succession<Holder>, Desk) {
    let (mut succession, mut desk) = (Succession::new(rules, Time::ZERO, None), Desk::new(1, 1));
    succession.enter(NOW, desk.knock(NOW));
    desk.talk(NOW, succession.display_mut().expect("it is there"));
    drop(outputs(&mut succession));
    (succession, desk)
}

/// A session whose display has lost its carrier.
fn away() -> (Succession<Holder>, Desk) {
    let (mut succession, desk) = attached();
    cut(&mut succession, NOW);
    drop(outputs(&mut succession));
    (succession, desk)
}

fn cut(succession: &mut Succession<Holder>, now: Time) {
    let display = succession.display_mut().expect("it is there");
    display.cut(now);
    let events: Vec<Event> = std::iter::from_fn(|| display.session.poll_event()).collect();
    assert!(events.contains(&Event::Suspended { reason: lost() }), "{events:?}");
    succession.lose_carrier(now, lost());
}

fn outputs(succession: &mut Succession<Holder>) -> Vec<Output<Holder>> {
    std::iter::from_fn(|| succession.poll_output()).collect()
}

/// Their names, with what can be compared.
fn names(outputs: &[Output<Holder>]) -> Vec<String> {
    let name = |output: &Output<Holder>| match output {
        Output::Drop(holder) => format!("drop {}", holder.carrier),
        Output::Dismiss(holder) => format!("dismiss {}", holder.carrier),
        Output::GiveUpCarrier => "give up carrier".into(),
        Output::Detach => "detach".into(),
        Output::Forget => "forget".into(),
        Output::Report(report) => match report {
            Report::Attached => "attached".into(),
            Report::Away(_) => "away".into(),
            Report::Back => "back".into(),
            Report::Lost(..) => "lost".into(),
            Report::Missed => "missed".into(),
            Report::Expired => "expired".into(),
        },
        Output::Over(End::Code(code)) => format!("over {code}"),
        Output::Over(End::Display(..)) => "over with the display".into(),
    };
    outputs.iter().map(name).collect()
}

fn done(succession: &mut Succession<Holder>) -> Vec<String> {
    names(&outputs(succession))
}

fn presence(succession: &Succession<Holder>) -> Presence {
    succession.presence().0
}

#[test]
fn the_first_display_is_attached() {
    let (mut succession, mut desk) = (alone(), Desk::new(1, 1));
    assert_eq!(presence(&succession), Presence::Detached);
    succession.enter(NOW, desk.knock(NOW));
    assert_eq!(done(&mut succession), ["attached"]);
    assert_eq!(succession.presence(), (Presence::Attached, NOW));
}

#[test]
fn a_display_that_is_replaced_is_told_gone_once() {
    let (mut succession, _) = attached();
    succession.enter(LATER, Desk::new(2, 2).knock(LATER));
    let mut outputs = outputs(&mut succession);
    assert_eq!(names(&outputs), ["dismiss 1", "detach", "attached"]);
    let Output::Dismiss(old) = &mut outputs[0] else { panic!("{outputs:?}") };
    assert_eq!(old.close_code(LATER), GONE);
    assert_eq!(succession.display().map(|display| display.carrier), Some(2));
}

#[test]
fn one_that_is_away_is_replaced_as_one_that_is_there() {
    let (mut succession, _) = away();
    succession.enter(LATER, Desk::new(2, 2).knock(LATER));
    assert_eq!(done(&mut succession), ["dismiss 1", "detach", "attached"]);
}

#[test]
fn a_lost_carrier_is_given_up_and_its_display_waited_for() {
    let (mut succession, _) = attached();
    cut(&mut succession, LATER);
    assert_eq!(done(&mut succession), ["away", "give up carrier"]);
    assert_eq!(succession.presence(), (Presence::Away, LATER));
    succession.lose_carrier(LATER, lost());
    assert_eq!(done(&mut succession), [""; 0], "it is away already");
}

#[test]
fn a_carrier_that_was_lost_before_the_display_came_on_another_is_not_lost_again() {
    let (mut succession, mut desk) = attached();
    succession.display_mut().expect("it is there").cut(LATER);
    desk.resume(2);
    succession.enter(LATER, desk.knock(LATER));
    assert_eq!(done(&mut succession), ["drop 1", "back"]);
    let told = succession.display_mut().and_then(|display| display.session.poll_event());
    assert_eq!(told, Some(Event::Suspended { reason: lost() }));
    succession.lose_carrier(LATER, lost());
    assert_eq!(done(&mut succession), [""; 0]);
    assert_eq!(presence(&succession), Presence::Attached);
}

#[test]
fn the_same_display_gets_its_session_back() {
    for (mut succession, mut desk) in [away(), attached()] {
        desk.resume(2);
        succession.enter(LATER, desk.knock(LATER));
        let mut outputs = outputs(&mut succession);
        assert_eq!(names(&outputs), ["drop 1", "back"]);
        let events = desk.talk(LATER, succession.display_mut().expect("it is there"));
        assert!(events.contains(&Event::Resumed), "{events:?}");
        let Output::Drop(old) = &mut outputs[0] else { panic!("{outputs:?}") };
        assert!(old.session.peer().is_none(), "its session went on");
        assert_eq!(succession.presence(), (Presence::Attached, LATER));
    }
}

#[test]
fn one_that_resumes_what_is_not_there_is_declined() {
    let (_, mut desk) = away();
    let mut succession = alone();
    desk.resume(2);
    succession.enter(LATER, desk.knock(LATER));
    assert_eq!(done(&mut succession), ["attached"]);
    let events = desk.talk(LATER, succession.display_mut().expect("it is there"));
    assert!(events.contains(&Event::Declined), "{events:?}");
}

#[test]
fn a_late_attempt_is_dropped_without_an_answer() {
    let (mut succession, mut desk) = away();
    desk.resume(2);
    let late = desk.knock(LATER);
    desk.resume(3);
    succession.enter(LATER, desk.knock(LATER));
    assert_eq!(done(&mut succession), ["drop 1", "back"]);
    let presence = succession.presence();
    succession.enter(LATER, late);
    assert_eq!(done(&mut succession), ["drop 2"]);
    assert_eq!(succession.presence(), presence);
    assert_eq!(succession.display().map(|display| display.carrier), Some(3));
}

#[test]
fn one_whose_session_ended_at_this_moment_begins_anew() {
    let (mut succession, mut desk) = attached();
    succession.display_mut().expect("it is there").session.close(CloseReason::Done);
    desk.resume(2);
    succession.enter(LATER, desk.knock(LATER));
    assert_eq!(done(&mut succession), ["drop 1", "detach", "attached"]);
    let events = desk.talk(LATER, succession.display_mut().expect("it is there"));
    assert!(events.contains(&Event::Declined), "{events:?}");
}

#[test]
fn one_that_leaves_cannot_come_again() {
    let (mut succession, _) = attached();
    succession.close(LATER, CloseReason::Done, ClosedBy::Peer, Around::default());
    assert_eq!(done(&mut succession), ["forget", "drop 1", "detach"]);
    assert_eq!(succession.presence(), (Presence::Detached, LATER));
}

#[test]
fn one_that_is_lost_may_come_again() {
    let (mut succession, _) = attached();
    succession.close(LATER, CloseReason::Timeout, ClosedBy::Us, Around::default());
    assert_eq!(done(&mut succession), ["lost", "drop 1", "detach"]);
}

#[test]
fn a_session_that_cannot_be_followed_ends_with_its_display() {
    let (mut succession, _) = attached_by(Rules { followed: false, linger: None });
    succession.close(LATER, CloseReason::Done, ClosedBy::Peer, Around::default());
    assert_eq!(done(&mut succession), ["over with the display"]);
}

#[test]
fn detach_sends_the_display_away() {
    for (mut succession, _) in [attached(), away()] {
        assert!(succession.detach(LATER));
        let mut outputs = outputs(&mut succession);
        assert_eq!(names(&outputs), ["dismiss 1", "detach", "forget"]);
        let Output::Dismiss(old) = &mut outputs[0] else { panic!("{outputs:?}") };
        assert!([DONE, None].contains(&old.close_code(LATER)));
        assert!(!succession.detach(LATER), "none is there");
        assert_eq!(done(&mut succession), ["forget"], "one that was lost cannot come again either");
    }
}

#[test]
fn no_more_is_owed_than_the_limit() {
    let (mut succession, _) = away();
    succession.display_mut().expect("it is away").owe(MAX_OWED / 2);
    succession.look(LATER);
    assert_eq!(done(&mut succession), [""; 0]);
    succession.display_mut().expect("it is away").owe(MAX_OWED / 2);
    succession.look(LATER);
    assert_eq!(done(&mut succession), ["drop 1", "detach"], "without `forget`: it may come, and begins anew");
    assert_eq!(succession.presence(), (Presence::Detached, LATER));
}

#[test]
fn what_waits_for_a_display_that_is_there_is_not_owed() {
    let (mut succession, _) = attached();
    succession.display_mut().expect("it is there").owe(MAX_OWED);
    succession.look(LATER);
    assert_eq!(done(&mut succession), [""; 0]);
}

#[test]
fn a_ticket_that_no_display_used_expires_once() {
    let mut succession: Succession<Holder> = Succession::new(RULES, Time::ZERO, Some(NOW));
    assert_eq!(succession.next_timeout(), Some(NOW));
    succession.look(Time::ZERO);
    assert_eq!(done(&mut succession), [""; 0]);
    succession.look(NOW);
    succession.look(LATER);
    assert_eq!(done(&mut succession), ["expired"]);
}

#[test]
fn regression_a_ticket_expires_while_the_session_leaves() {
    let mut succession: Succession<Holder> = Succession::new(RULES, Time::ZERO, Some(NOW));
    assert!(succession.end(Time::ZERO, 7, Around { viewers: true, ..Around::default() }));
    succession.look(LATER);
    assert_eq!(done(&mut succession), [""; 0], "the code was decided");
    assert_ne!(succession.next_timeout(), Some(NOW));
}

#[test]
fn a_display_that_came_in_time_ends_the_wait() {
    let mut succession = Succession::new(RULES, Time::ZERO, Some(NOW));
    succession.enter(Time::ZERO, Desk::new(1, 1).knock(Time::ZERO));
    succession.look(LATER);
    assert_eq!(done(&mut succession), ["attached"]);
}

#[test]
fn another_display_is_waited_for_no_longer_than_linger() {
    let around = Around { program: Program::Started, ..Around::default() };
    for (mut succession, _) in [attached(), away()] {
        succession.show();
        succession.detach(LATER);
        drop(outputs(&mut succession));
        assert_eq!(succession.next_timeout(), Some(LATER + LINGER));
        assert_eq!(succession.deserted(NOW + LINGER, around), None);
        assert_eq!(succession.deserted(LATER + LINGER, around), Some(0));
        assert_eq!(done(&mut succession), ["missed"]);
    }
    let (mut succession, _) = attached();
    succession.show();
    assert_eq!(succession.deserted(LATER + LINGER, around), None, "one is there");
    assert_eq!(alone().deserted(LATER + LINGER, around), None, "none has ever been there");
}

#[test]
fn what_remains_of_an_owner_that_left_is_waited_for() {
    let shell = Around { program: Program::Without, ..Around::default() };
    let with_programs = Around { connected: true, ..shell };
    let (mut succession, _) = attached();
    succession.show();
    assert_eq!(succession.deserted(NOW, shell), None, "the owner is there");
    succession.orphan();
    assert_eq!(succession.deserted(NOW, with_programs), None);
    assert_eq!(succession.deserted(NOW, shell), Some(0));
    let own = Around { program: Program::Started, ..shell };
    assert_eq!(succession.deserted(NOW, own), None, "the session's program goes on");
}

#[test]
fn a_session_whose_owner_left_before_any_display_came_is_over() {
    let waits = Around { program: Program::Waits, connected: true, ..Around::default() };
    let mut succession = alone();
    succession.orphan();
    assert_eq!(succession.deserted(NOW, waits), Some(0));
    assert_eq!(succession.deserted(NOW, Around { program: Program::Started, ..waits }), None);
    succession.show();
    assert_eq!(succession.deserted(NOW, waits), None);
}

#[test]
fn the_display_hears_the_code_and_has_time_to_answer() {
    let (mut succession, mut desk) = attached();
    assert!(succession.end(NOW, 7, Around::default()));
    let events = desk.talk(NOW, succession.display_mut().expect("it is there"));
    assert!(events.contains(&Event::Control(Control::Exit { code: 7 })), "{events:?}");
    assert_eq!(succession.next_timeout(), Some(NOW + EXIT_PATIENCE));
    succession.leave(NOW, Around::default());
    assert_eq!(done(&mut succession), [""; 0]);
    succession.leave(NOW + EXIT_PATIENCE, Around::default());
    let mut outputs = outputs(&mut succession);
    assert_eq!(names(&outputs), ["dismiss 1", "over 7"]);
    let Output::Dismiss(old) = &mut outputs[0] else { panic!("{outputs:?}") };
    assert_eq!(old.close_code(NOW), DONE);
}

#[test]
fn the_end_waits_for_a_display_that_is_away_unless_a_user_waits_for_it() {
    let awaited = Around { awaited: true, ..Around::default() };
    for (around, patience) in [(Around::default(), AWAY_PATIENCE), (awaited, Duration::ZERO)] {
        let (mut succession, _) = away();
        succession.end(NOW, 7, around);
        assert_eq!(succession.next_timeout(), Some(NOW + patience));
    }
}

#[test]
fn a_display_that_comes_back_hears_of_the_end() {
    let (mut succession, mut desk) = away();
    succession.end(NOW, 7, Around::default());
    desk.resume(2);
    succession.enter(LATER, desk.knock(LATER));
    let events = desk.talk(LATER, succession.display_mut().expect("it is there"));
    assert!(events.contains(&Event::Control(Control::Exit { code: 7 })), "{events:?}");
    succession.close(LATER, CloseReason::Done, ClosedBy::Peer, Around::default());
    assert_eq!(done(&mut succession), ["drop 1", "back", "over 7"]);
}

#[test]
fn an_end_without_a_display_waits_for_viewers_only() {
    let viewers = Around { viewers: true, ..Around::default() };
    let mut succession = alone();
    succession.end(NOW, 7, viewers);
    succession.leave(NOW, viewers);
    assert_eq!(done(&mut succession), [""; 0]);
    succession.leave(NOW, Around::default());
    assert_eq!(done(&mut succession), ["over 7"]);
}

#[test]
fn viewers_hear_of_the_end_after_the_display_has_answered() {
    let viewers = Around { viewers: true, ..Around::default() };
    let (mut succession, _) = attached();
    succession.end(NOW, 7, viewers);
    succession.close(NOW, CloseReason::Done, ClosedBy::Peer, viewers);
    assert_eq!(done(&mut succession), ["drop 1"]);
    succession.leave(NOW + EXIT_PATIENCE, viewers);
    assert_eq!(done(&mut succession), ["over 7"]);
}

#[test]
fn the_code_is_decided_once() {
    let (mut succession, _) = attached();
    assert!(succession.end(NOW, 7, Around::default()));
    assert!(!succession.end(NOW, 8, Around::default()));
    assert_eq!(succession.leaving(), Some(7));
    succession.show();
    succession.orphan();
    assert_eq!(succession.deserted(LATER + LINGER, Around::default()), None);
    succession.leave(NOW + EXIT_PATIENCE, Around::default());
    assert_eq!(done(&mut succession), ["dismiss 1", "over 7"]);
}

#[test]
fn nothing_follows_the_end() {
    let mut succession = alone();
    succession.end(NOW, 7, Around::default());
    succession.leave(NOW, Around::default());
    assert_eq!(done(&mut succession), ["over 7"]);
    succession.enter(LATER, Desk::new(1, 1).knock(LATER));
    assert_eq!(done(&mut succession), ["drop 1"]);
    assert!(!succession.detach(LATER));
    succession.look(LATER);
    succession.leave(LATER, Around::default());
    assert!(!succession.end(LATER, 8, Around::default()));
    assert_eq!(done(&mut succession), [""; 0]);
    assert_eq!(succession.next_timeout(), None);
}
