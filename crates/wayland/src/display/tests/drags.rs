//! What is dragged over a program's windows, and what it drags itself.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use super::rig::{Got, Rig};
use crate::action::DragStep;
use crate::message::{ToApp, WireArg, WireId};
use crate::wire::Arg;

const OFFER: u32 = 0xff00_0000;
const LIST: &str = "text/uri-list";
const MARK: &str = "application/x-wayferry-drag";

fn text(text: &str) -> Arg {
    Arg::Str(Some(text.as_bytes().to_vec()))
}

/// A program with a window and a data device, over which something of these types is dragged.
struct Dragged {
    rig: Rig,
    device: u32,
    offer: WireId,
}

impl Dragged {
    fn over(kinds: &[&str]) -> Self {
        let mut rig = Rig::new();
        let surface = rig.surface();
        let (manager, seat) = (rig.bind("wl_data_device_manager"), rig.bind("wl_seat"));
        let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
        let (device, surface) = (rig.id(device), rig.id(surface));
        rig.take_reported();
        rig.got.clear();
        rig.event(device, "data_offer", vec![Arg::NewId(OFFER)]);
        kinds.iter().for_each(|kind| rig.event(OFFER, "offer", vec![text(kind)]));
        let at = [Arg::Uint(7), Arg::Object(surface), Arg::Fixed(0), Arg::Fixed(0), Arg::Object(OFFER)];
        rig.event(device, "enter", at.into());
        rig.turn();
        let offer = rig.connection.objects.wire_of(OFFER).expect("an offer");
        Self { rig, device, offer }
    }

    /// As the program is told them.
    fn told(&mut self) -> Vec<(WireId, u16)> {
        let told = self.rig.take_reported().into_iter();
        told.filter_map(|told| match told {
            ToApp::Event(event) => Some((event.object, event.opcode)),
            _ => None,
        })
        .collect()
    }

    fn ask(&mut self, pipe: u64) {
        let kind = WireArg::Str(Some(LIST.into()));
        self.rig.request(self.offer, "receive", vec![kind, WireArg::Pipe(pipe)]);
    }

    /// As some compositors have it, with `leave` after it.
    fn drop(&mut self) {
        self.rig.event(self.device, "drop", vec![]);
        self.rig.event(self.device, "leave", vec![]);
        self.rig.turn();
    }

    /// The steps so far, and where the list comes from.
    fn steps(&mut self) -> (Vec<String>, Option<OwnedFd>) {
        let (mut steps, mut list) = (Vec::new(), None);
        for (drag, step) in self.rig.drags.drain(..) {
            steps.push(match step {
                DragStep::List(from) => {
                    list = Some(from);
                    format!("{drag} list")
                }
                DragStep::Wanted { pipe } => format!("{drag} wanted {pipe}"),
                DragStep::Dropped => format!("{drag} dropped"),
                DragStep::Over => format!("{drag} over"),
            });
        }
        (steps, list)
    }

    /// The descriptors on which the compositor was asked for data.
    fn asked(&mut self) -> Vec<OwnedFd> {
        let got = self.rig.got.drain(..).filter(|got| got.is("wl_data_offer", "receive"));
        got.flat_map(|got: Got| got.args)
            .filter_map(|arg| if let Arg::Fd(fd) = arg { Some(fd) } else { None })
            .collect()
    }
}

#[test]
fn the_list_of_a_drag_is_read_once_and_the_drop_told_when_it_is_ready() {
    let mut it = Dragged::over(&[LIST, "text/plain"]);
    it.told();
    it.ask(2);
    it.ask(4);
    it.drop();
    let [write] = <[OwnedFd; 1]>::try_from(it.asked()).expect("the compositor is asked once");
    let (steps, list) = it.steps();
    assert_eq!(steps, ["1 list", "1 wanted 2", "1 wanted 4", "1 dropped"]);
    File::from(write).write_all(b"file:///a").expect("written");
    let mut read = String::new();
    File::from(list.expect("a pipe")).read_to_string(&mut read).expect("read");
    assert_eq!(read, "file:///a");
    assert!(it.rig.pipes_out.is_empty(), "nothing of it goes by itself");
    assert_eq!(it.told(), [], "the program has not heard of the drop");
    it.rig.connection.on_drag_ready(1);
    it.rig.turn();
    let opcodes: Vec<u16> = it.told().into_iter().map(|(_, opcode)| opcode).collect();
    assert_eq!(opcodes, [4, 2], "drop, then leave");
    it.ask(6);
    it.rig.request(it.offer, "finish", vec![]);
    it.rig.request(it.offer, "destroy", vec![]);
    assert_eq!(it.steps().0, ["1 wanted 6", "1 over"]);
    assert!(it.rig.requests().ends_with(&["wl_data_offer.finish".into(), "wl_data_offer.destroy".into()]));
    it.rig.assert_alive();
}

#[test]
fn a_drop_of_a_list_that_was_never_asked_for_waits_too() {
    let mut it = Dragged::over(&[LIST]);
    it.told();
    it.drop();
    assert_eq!((it.asked().len(), it.steps().0), (1, vec!["1 list".to_owned(), "1 dropped".to_owned()]));
    assert_eq!(it.told(), []);
    // It lets go before it is told, and what waits comes.
    it.rig.request(it.offer, "destroy", vec![]);
    assert_eq!((it.steps().0, it.told().len()), (vec!["1 over".to_owned()], 2));
}

#[test]
fn what_a_program_of_a_session_drags_passes_unchanged_and_its_mark_is_not_seen() {
    let mut it = Dragged::over(&[LIST, MARK]);
    let offer = it.offer;
    assert_eq!(it.told().into_iter().filter(|(object, _)| *object == offer).count(), 1);
    it.ask(2);
    it.drop();
    assert_eq!((it.asked().len(), it.rig.pipes_out.len()), (1, 1));
    assert!(it.rig.drags.is_empty());
    assert_eq!(it.told().len(), 2, "drop and leave");
}

#[test]
fn a_list_in_the_clipboard_passes_unchanged() {
    let mut it = Dragged::over(&["text/plain"]);
    it.rig.event(it.device, "data_offer", vec![Arg::NewId(OFFER + 1)]);
    it.rig.event(OFFER + 1, "offer", vec![text(LIST)]);
    it.rig.event(it.device, "selection", vec![Arg::Object(OFFER + 1)]);
    it.rig.turn();
    it.offer = it.rig.connection.objects.wire_of(OFFER + 1).expect("an offer");
    it.ask(2);
    assert_eq!((it.asked().len(), it.rig.pipes_out.len(), it.rig.drags.len()), (1, 1, 0));
}

#[test]
fn a_host_that_asks_for_a_list_before_or_after_the_drag_is_not_given_the_desks() {
    let mut it = Dragged::over(&["text/plain"]);
    it.rig.event(it.device, "leave", vec![]);
    it.rig.event(it.device, "data_offer", vec![Arg::NewId(OFFER + 1)]);
    it.rig.event(OFFER + 1, "offer", vec![text(LIST)]);
    it.rig.turn();
    it.offer = it.rig.connection.objects.wire_of(OFFER + 1).expect("an offer");
    it.ask(2);
    assert_eq!((it.steps().0, it.rig.pipes_out.len()), (vec!["1 list".into(), "1 wanted 2".into()], 0));

    let mut it = Dragged::over(&[LIST]);
    it.rig.event(it.device, "leave", vec![]);
    it.rig.turn();
    it.ask(2);
    assert_eq!((it.steps().0, it.asked().len()), (vec!["1 wanted 2".to_owned()], 0));
    assert!(it.rig.pipes_out.is_empty());
}

#[test]
fn a_drag_of_the_program_has_a_mark_that_it_does_not_see() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let (manager, seat) = (rig.bind("wl_data_device_manager"), rig.bind("wl_seat"));
    let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
    let source = rig.make(manager, "create_data_source", vec![]);
    rig.request(source, "offer", vec![WireArg::Str(Some(LIST.into()))]);
    rig.got.clear();
    let null = WireArg::Object(WireId::NULL);
    let args = vec![WireArg::Object(source), WireArg::Object(surface), null, WireArg::Uint(3)];
    rig.request(device, "start_drag", args);
    let [mark, start] = &rig.got[..] else { panic!("{:?}", rig.got) };
    assert!(mark.is("wl_data_source", "offer") && start.is("wl_data_device", "start_drag"));
    assert!(matches!(&mark.args[..], [Arg::Str(Some(kind))] if kind == MARK.as_bytes()));

    let id = rig.id(source);
    rig.take_reported();
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    rig.event(id, "target", vec![text(MARK)]);
    rig.event(id, "send", vec![text(MARK), Arg::Fd(write)]);
    rig.turn();
    assert!(rig.take_reported().is_empty() && rig.pipes_in.is_empty());
    let mut nothing = Vec::new();
    File::from(read).read_to_end(&mut nothing).expect("it is closed");
    assert!(nothing.is_empty());
}

#[test]
fn a_device_that_is_named_as_an_ended_one_does_not_drop_what_that_one_had() {
    for is_asked in [true, false] {
        let mut it = Dragged::over(&[LIST]);
        if is_asked {
            it.ask(2);
        }
        it.steps();
        let old = it.rig.connection.objects.wire_of(it.device).expect("a device");
        it.rig.request(old, "release", vec![]);
        let over: &[&str] = if is_asked { &["1 over"] } else { &[] };
        assert_eq!(it.steps().0, over, "no leave comes");
        it.rig.turn();
        let (manager, seat) = (it.rig.bind("wl_data_device_manager"), it.rig.bind("wl_seat"));
        let args = vec![WireArg::NewId(old), WireArg::Object(seat)];
        it.rig.request(manager, "get_data_device", args);
        it.device = it.rig.id(old);
        it.rig.event(it.device, "data_offer", vec![Arg::NewId(OFFER + 1)]);
        it.rig.event(OFFER + 1, "offer", vec![text("text/plain")]);
        it.drop();
        assert_eq!(it.steps().0, [""; 0], "nothing of the old offer is dropped");
        it.rig.assert_alive();
    }
}

#[test]
fn what_enters_last_is_all_that_can_be_dropped() {
    let mut it = Dragged::over(&[LIST]);
    it.ask(2);
    it.steps();
    let surface = it.rig.surface();
    let surface = it.rig.id(surface);
    for offer in [OFFER + 1, 0] {
        if offer != 0 {
            it.rig.event(it.device, "data_offer", vec![Arg::NewId(offer)]);
            it.rig.event(offer, "offer", vec![text("text/plain")]);
        }
        let at = [Arg::Uint(8), Arg::Object(surface), Arg::Fixed(0), Arg::Fixed(0), Arg::Object(offer)];
        it.rig.event(it.device, "enter", at.into());
    }
    it.drop();
    assert_eq!(it.steps().0, ["1 over"]);
}

#[test]
fn the_clipboard_of_a_program_lives_while_its_dropped_files_are_on_their_way() {
    let mut it = Dragged::over(&[LIST]);
    it.drop();
    it.told();
    it.rig.event(it.device, "data_offer", vec![Arg::NewId(OFFER + 1)]);
    it.rig.event(OFFER + 1, "offer", vec![text("text/plain")]);
    it.rig.event(it.device, "selection", vec![Arg::Object(OFFER + 1)]);
    it.rig.turn();
    let opcodes: Vec<u16> = it.told().into_iter().map(|(_, opcode)| opcode).collect();
    assert_eq!(opcodes, [0, 0, 5], "data_offer, offer, selection");
    it.rig.connection.on_drag_ready(1);
    it.rig.turn();
    assert_eq!(it.told().len(), 2, "drop and leave");
}

#[test]
fn an_offer_that_comes_while_files_are_on_their_way_does_not_outlive_its_device_untold() {
    let mut it = Dragged::over(&[LIST]);
    it.drop();
    it.told();
    it.rig.event(it.device, "data_offer", vec![Arg::NewId(OFFER + 1)]);
    it.rig.turn();
    let device = it.rig.connection.objects.wire_of(it.device).expect("a device");
    assert_eq!(it.told(), [(device, 0)], "the program can destroy it");
}

#[test]
fn other_types_that_name_files_of_the_desk_are_hidden_beside_a_list_that_is_dragged() {
    let kinds = [
        "application/x-kde4-urilist",
        "application/vnd.portal.filetransfer",
        "application/vnd.portal.files",
        "x-special/gnome-copied-files",
    ];
    let offers = |it: &mut Dragged| {
        let offer = it.offer;
        it.told().into_iter().filter(|told| *told == (offer, 0)).count()
    };
    for (also, seen) in [(&[LIST][..], 1), (&[LIST, MARK], 5), (&[], 4)] {
        for is_first in [true, false] {
            let mut all = if is_first { also.to_vec() } else { kinds.to_vec() };
            all.extend(if is_first { &kinds[..] } else { also });
            let mut it = Dragged::over(&all);
            assert_eq!(offers(&mut it), seen, "{all:?}");
            for (pipe, kind) in (2..).step_by(2).zip(kinds) {
                let args = vec![WireArg::Str(Some(kind.into())), WireArg::Pipe(pipe)];
                it.rig.request(it.offer, "receive", args);
            }
            let is_passed = seen != 1;
            assert_eq!(
                it.asked().len(),
                if is_passed { 4 } else { 0 },
                "a host may ask for what it is not told"
            );
            assert_eq!(it.rig.pipes_out.len(), 4, "each is answered");
        }
    }
    let mut it = Dragged::over(&["text/plain"]);
    it.rig.event(it.device, "data_offer", vec![Arg::NewId(OFFER + 1)]);
    [LIST].iter().chain(&kinds).for_each(|kind| it.rig.event(OFFER + 1, "offer", vec![text(kind)]));
    it.rig.event(it.device, "selection", vec![Arg::Object(OFFER + 1)]);
    it.rig.turn();
    it.offer = it.rig.connection.objects.wire_of(OFFER + 1).expect("an offer");
    assert_eq!(offers(&mut it), 5, "the clipboard is as it is");
}
