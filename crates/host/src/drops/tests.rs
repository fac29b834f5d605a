use std::io::Write;

use super::*;
use crate::edge::part::alone;

const PROGRAM: ConnectionId = ConnectionId(3);
const DRAG: DragKey = (PROGRAM, 1);

/// What is dragged says this.
fn list(text: &str) -> OwnedFd {
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    // It fits into the pipe.
    assert_eq!(rustix::io::write(&write, text.as_bytes()), Ok(text.len()));
    read
}

/// A desk with drops, what is told of them, and the hour.
struct Desk {
    drops: Drops,
    base: crate::edge::part::Base,
    events: std::sync::mpsc::Receiver<SessionEvent>,
    now: Time,
}

impl Desk {
    fn new() -> Self {
        let (base, events) = alone::base();
        Self { drops: Drops::new(), base, events, now: Time::ZERO }
    }

    fn step(&mut self, step: DragStep) {
        self.step_of(DRAG, step);
    }

    fn step_of(&mut self, key: DragKey, step: DragStep) {
        self.drops.on_step(self.now, key, step, &self.base.reporter);
    }

    /// The list is read to its end.
    fn turn(&mut self) {
        for _ in 0..64 {
            alone::turn(&mut self.drops, self.now, &mut self.base);
        }
    }

    /// Files to send, with this obstacle.
    fn files(&mut self, obstacle: Option<&str>) -> Vec<(u64, PathBuf)> {
        self.drops.next_files(obstacle, 100, &self.base.reporter)
    }

    fn sent(&mut self, ticket: u64, result: Result<&str, &str>) {
        let result = result.map(|path| path.as_bytes().to_vec()).map_err(str::to_owned);
        let sent = Sent { ticket, name: "name".into(), size: 1, result };
        self.drops.on_sent(sent, &self.base.reporter);
    }

    /// What the program is given on its pipes, in order, and whether it hears of a drop after that.
    fn given(&mut self) -> (Vec<(u64, String)>, bool) {
        let mut lists = Vec::new();
        for result in self.drops.take_results() {
            match result {
                Outcome::List { pipe, text, .. } => {
                    lists.push((pipe, String::from_utf8(text).expect("letters")));
                }
                Outcome::Told(key) => {
                    assert_eq!(key, DRAG);
                    return (lists, true);
                }
            }
        }
        (lists, false)
    }

    fn refused(&self) -> Vec<String> {
        let reasons = self.events.try_iter().map(|event| match event {
            SessionEvent::FileNotDropped { name, reason } => format!("{name}: {reason}"),
            event => format!("{event:?}"),
        });
        reasons.collect()
    }
}

fn wanted(pipe: u64) -> DragStep {
    DragStep::Wanted { pipe }
}

#[test]
fn no_file_is_sent_and_no_list_given_before_the_user_has_dropped_it() {
    let mut desk = Desk::new();
    desk.step(DragStep::List(list("file:///a\r\nhttp://x/\r\nfile:///b\r\n")));
    desk.step(wanted(2));
    desk.turn();
    desk.step(wanted(4));
    assert_eq!((desk.files(None), desk.given()), (vec![], (vec![], false)));
    desk.step(DragStep::Dropped);
    let files = desk.files(None);
    let paths: Vec<_> = files.iter().map(|(_, path)| path.display().to_string()).collect();
    assert_eq!(paths, ["/a", "/b"]);
    assert!(desk.files(None).is_empty(), "each is sent once");
    desk.sent(files[1].0, Ok("/there/b (2)"));
    assert_eq!(desk.given(), (vec![], false), "the first is on its way");
    desk.sent(files[0].0, Ok("/there/a"));
    let text = "file:///there/a\r\nhttp://x/\r\nfile:///there/b%20%282%29\r\n".to_owned();
    assert_eq!(desk.given(), (vec![(2, text.clone()), (4, text.clone())], true));
    desk.step(wanted(6));
    assert_eq!(desk.given(), (vec![(6, text)], false));
    desk.step(DragStep::Over);
    assert!(desk.drops.drags.is_empty() && desk.drops.under_way.is_empty());
}

#[test]
fn a_list_without_files_of_the_desk_is_given_at_once_and_as_it_is() {
    let mut desk = Desk::new();
    let text = "http://x/%7E \nfile://elsewhere/a";
    desk.step(DragStep::List(list(text)));
    desk.step(wanted(2));
    desk.turn();
    assert_eq!(desk.given(), (vec![(2, text.to_owned())], false));
    desk.step(DragStep::Dropped);
    assert!(desk.files(None).is_empty());
    assert_eq!(desk.given(), (vec![], true));
}

#[test]
fn what_is_not_dropped_is_given_to_no_program() {
    let mut desk = Desk::new();
    desk.step(DragStep::List(list("file:///a")));
    desk.step(wanted(2));
    desk.turn();
    desk.step(DragStep::Over);
    assert_eq!((desk.given(), desk.files(None)), ((vec![(2, String::new())], false), vec![]));
    // Nor is it after that.
    desk.step(wanted(4));
    assert_eq!(desk.given(), (vec![(4, String::new())], false));
}

#[test]
fn files_that_do_not_arrive_are_left_out_and_told_of() {
    let mut desk = Desk::new();
    desk.step(DragStep::List(list("file:///a\r\nfile:///b\r\n")));
    desk.turn();
    desk.step(DragStep::Dropped);
    let files = desk.files(None);
    desk.sent(files[0].0, Err("no room"));
    desk.sent(files[1].0, Err("gone"));
    desk.step(wanted(2));
    assert_eq!(desk.drops.take_results().len(), 2);
    assert_eq!(desk.refused(), ["name: no room", "name: gone"]);
}

#[test]
fn where_files_do_not_cross_other_addresses_do_and_the_user_is_told() {
    let mut desk = Desk::new();
    desk.step(DragStep::List(list("file:///d/a b\r\nhttp://x/\r\n")));
    desk.step(DragStep::Dropped);
    desk.step(wanted(2));
    desk.turn();
    assert!(desk.files(Some("off")).is_empty());
    assert_eq!(desk.given(), (vec![(2, "http://x/\r\n".to_owned())], true));
    assert_eq!(desk.refused(), ["a b: off"]);
}

#[test]
fn too_many_files_are_refused_together() {
    let text = "file:///a\r\n".repeat(MAX_FILES + 1);
    let mut desk = Desk::new();
    desk.step(DragStep::List(list(&text)));
    desk.step(DragStep::Dropped);
    desk.turn();
    assert!(desk.files(None).is_empty());
    assert_eq!((desk.given().1, desk.refused().len()), (true, 1));
}

#[test]
fn few_files_of_a_drop_are_on_their_way_at_a_time() {
    let mut desk = Desk::new();
    desk.step(DragStep::List(list(&"file:///a\r\n".repeat(MAX_FILES))));
    desk.step(DragStep::Dropped);
    desk.turn();
    let mut sent = 0;
    while !desk.given().1 {
        let files = desk.files(None);
        assert!(!files.is_empty() && desk.drops.under_way.len() <= AT_ONCE);
        sent += files.len();
        files.into_iter().for_each(|(ticket, _)| desk.sent(ticket, Ok("/x")));
    }
    assert_eq!(sent, MAX_FILES);
}

#[test]
fn a_program_at_the_desk_that_says_too_much_or_nothing_holds_up_no_drop() {
    let mut desk = Desk::new();
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    desk.step(DragStep::List(read));
    desk.step(DragStep::Dropped);
    desk.turn();
    assert_eq!(desk.given(), (vec![], false));
    desk.now += PATIENCE;
    desk.turn();
    assert_eq!((desk.given().1, desk.refused().len()), (true, 1));
    drop(write);
    desk.step(DragStep::Over);

    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    let writer = std::thread::spawn(move || {
        let piece = [b'x'; 4096];
        let mut pipe = std::fs::File::from(write);
        while pipe.write_all(&piece).is_ok() {}
    });
    desk.step(DragStep::List(read));
    desk.step(DragStep::Dropped);
    while !desk.given().1 {
        desk.turn();
    }
    writer.join().expect("its pipe is closed");
    assert_eq!(desk.refused().len(), 1);
}

#[test]
fn drags_without_end_are_forgotten_and_answered() {
    let mut desk = Desk::new();
    for drag in 0..100 {
        let key = (PROGRAM, drag);
        desk.step_of(key, DragStep::List(list("http://x/")));
        desk.step_of(key, DragStep::Dropped);
        desk.step_of(key, wanted(drag));
        desk.turn();
        assert!(desk.drops.drags.len() <= MAX_DRAGS);
        assert_eq!(desk.drops.take_results().len(), 2, "{drag}");
    }
    for pipe in 0..100 {
        desk.step_of((PROGRAM, 200), wanted(pipe));
    }
    assert_eq!(desk.drops.take_results().len(), 100, "each is answered");
    desk.step(DragStep::List(list("http://x/")));
    desk.turn();
    (0..100).for_each(|pipe| desk.step(wanted(pipe)));
    let (lists, _) = desk.given();
    assert_eq!(lists.iter().filter(|(_, text)| !text.is_empty()).count(), MAX_WANTED);
    desk.drops.on_connection_end(PROGRAM);
    assert!(desk.drops.drags.is_empty());
}

#[test]
fn a_program_that_ends_takes_its_drags_along_but_not_the_files() {
    let mut desk = Desk::new();
    desk.step(DragStep::List(list("file:///a\r\n")));
    desk.turn();
    desk.step(DragStep::Dropped);
    let files = desk.files(None);
    desk.drops.on_connection_end(PROGRAM);
    desk.sent(files[0].0, Ok("/there/a"));
    assert!(desk.drops.drags.is_empty());
    assert!(matches!(desk.events.try_recv(), Ok(SessionEvent::FileDropped { .. })));
}

#[test]
fn a_list_that_takes_long_while_it_is_dragged_is_waited_for_from_the_drop_on() {
    let mut desk = Desk::new();
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    desk.step(DragStep::List(read));
    desk.step(wanted(2));
    desk.now += 10 * PATIENCE;
    desk.turn();
    assert_eq!((desk.given(), desk.refused()), ((vec![], false), vec![]), "it is only dragged");
    desk.step(DragStep::Dropped);
    desk.now += PATIENCE / 2;
    desk.turn();
    rustix::io::write(&write, b"http://x/\r\n").expect("it fits");
    drop(write);
    desk.turn();
    assert_eq!(desk.given(), (vec![(2, "http://x/\r\n".to_owned())], true));
}

#[test]
fn a_list_that_cannot_be_read_is_told_of_only_if_it_is_dropped() {
    for is_dropped in [true, false] {
        let mut desk = Desk::new();
        // A directory opens, and cannot be read.
        desk.step(DragStep::List(std::fs::File::open("/").expect("it is there").into()));
        desk.step(wanted(2));
        desk.turn();
        assert_eq!((desk.given(), desk.refused().len()), ((vec![], false), 0));
        desk.step(if is_dropped { DragStep::Dropped } else { DragStep::Over });
        assert_eq!(desk.given(), (vec![(2, String::new())], is_dropped));
        assert_eq!(desk.refused().len(), usize::from(is_dropped));
    }
}

#[test]
fn a_program_hears_of_a_drop_whose_files_take_long_and_waits_for_the_list() {
    let mut desk = Desk::new();
    desk.step(DragStep::List(list("file:///a\r\n")));
    desk.turn();
    desk.step(DragStep::Dropped);
    desk.step(wanted(2));
    let files = desk.files(None);
    desk.now += HOLD / 2;
    desk.turn();
    assert_eq!(desk.given(), (vec![], false));
    desk.now += HOLD / 2;
    desk.turn();
    assert_eq!(desk.given(), (vec![], true), "once");
    desk.turn();
    desk.sent(files[0].0, Ok("/there/a"));
    assert_eq!(desk.given(), (vec![(2, "file:///there/a\r\n".to_owned())], false));
}

#[test]
fn a_drop_beyond_those_under_way_is_told_of() {
    let mut desk = Desk::new();
    for drag in 0..=MAX_DRAGS as u64 {
        desk.step_of((PROGRAM, drag), DragStep::List(list("file:///a\r\n")));
    }
    assert!(desk.refused().is_empty(), "nothing is dropped");
    desk.step_of((PROGRAM, MAX_DRAGS as u64), DragStep::Dropped);
    assert_eq!(desk.drops.take_results(), [Outcome::Told((PROGRAM, MAX_DRAGS as u64))]);
    assert_eq!(desk.refused().len(), 1);
}
