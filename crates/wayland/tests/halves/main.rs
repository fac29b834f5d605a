//! Random programs through both halves, in any order of arrival: no commit is ever torn.

mod compositor;
mod everything;
mod honest;
mod limits;
mod program;
mod rig;
mod screen;
mod typing;
mod viewer;

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;

use compositor::{Seen, Tree};
use everything::Everything;
use program::{Deed, Program, SURFACES};
use rig::Rig;
use screen::Kind;
use viewer::Viewer;

#[derive(Debug, Clone)]
enum Step {
    Act(Deed),
    ToDisplay(usize),
    ToApp(usize),
    Update(usize),
    Spoil(usize),
    Compositor,
    Release(usize),
    Tick,
    Input(u8, u32),
    Pass(u64),
    /// Content is opened and painted that takes so many bytes of memory.
    Work(usize),
    /// With this budget; whether what has not arrived can be taken back.
    Flush(u64, bool),
    /// The link is gone for a while; so many more updates are not known to have come, and those that are under way come
    /// nevertheless or not.
    Outage(u64, bool),
    /// The display is lost.
    Detach,
    /// Another one is there.
    Attach,
    /// Another viewer comes, in the place of the one that was there.
    View(Kind),
    /// Its link takes so much at each turn.
    ViewBudget(u64),
    ViewDown(usize),
    ViewUp(usize),
    ViewUpdate(usize),
    ViewSpoil(usize),
    ViewCompositor(u8, u32),
}

fn deed() -> impl Strategy<Value = Deed> {
    let surface = || 0..SURFACES;
    prop_oneof![
        12 => (surface(), proptest::option::weighted(0.85, any::<[u8; 4]>()), any::<bool>(), any::<bool>())
            .prop_map(|(surface, paint, by_buffer, frame)| Deed::Commit { surface, paint, by_buffer, frame }),
        1 => surface().prop_map(|surface| Deed::Unmap { surface }),
        1 => (surface(), any::<(u8, u8)>()).prop_map(|(surface, size)| Deed::Resize { surface, size }),
        1 => (surface(), any::<u8>()).prop_map(|(surface, scale)| Deed::Scale { surface, scale }),
        1 => (surface(), any::<u8>()).prop_map(|(surface, transform)| Deed::Transform { surface, transform }),
        1 => (surface(), any::<Option<(u8, u8)>>()).prop_map(|(surface, size)| Deed::Viewport { surface, size }),
        2 => (surface(), any::<bool>()).prop_map(|(surface, sync)| Deed::Sync { surface, sync }),
        1 => (surface(), surface(), any::<bool>())
            .prop_map(|(surface, sibling, above)| Deed::Place { surface, sibling, above }),
        1 => (surface(), any::<(u8, u8)>()).prop_map(|(surface, to)| Deed::Move { surface, to }),
        1 => (surface(), any::<u8>()).prop_map(|(surface, title)| Deed::Title { surface, title }),
        1 => surface().prop_map(|surface| Deed::Renew { surface }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => deed().prop_map(Step::Act),
        3 => (1usize..20).prop_map(Step::ToDisplay),
        2 => (1usize..20).prop_map(Step::ToApp),
        4 => (0usize..16).prop_map(Step::Update),
        1 => (0usize..16).prop_map(Step::Spoil),
        2 => Just(Step::Compositor),
        1 => (1usize..8).prop_map(Step::Release),
        1 => Just(Step::Tick),
        1 => any::<(u8, u32)>().prop_map(|(kind, value)| Step::Input(kind, value)),
        3 => (1u64..40).prop_map(Step::Pass),
        3 => (prop_oneof![Just(0u64), 1..500u64, Just(u64::MAX)], any::<bool>())
            .prop_map(|(budget, taking)| Step::Flush(budget, taking)),
    ]
}

/// Says how many commits were folded into newer ones on the way.
fn run(steps: &[Step]) -> usize {
    play(steps).0
}

/// As [`run`]; says too what there is to see at the end.
fn play(steps: &[Step]) -> (usize, Vec<Seen>) {
    play_in(Rig::new(), steps)
}

fn play_in(mut rig: Rig, steps: &[Step]) -> (usize, Vec<Seen>) {
    let mut program = Program::new(&mut rig);
    let mut viewer = None;
    for step in steps {
        turn(&mut rig, &mut viewer);
        match step {
            Step::View(kind) => {
                viewer = Some(Viewer::new(*kind));
                rig.app.set_watched(true);
            }
            Step::ViewBudget(_)
            | Step::ViewDown(_)
            | Step::ViewUp(_)
            | Step::ViewUpdate(_)
            | Step::ViewSpoil(_)
            | Step::ViewCompositor(..) => look(&rig, &mut viewer, step),
            Step::Act(deed) => program.act(&mut rig, deed),
            Step::ToDisplay(count) => rig.deliver_down(*count),
            Step::ToApp(count) => rig.deliver_up(*count),
            Step::Update(which) => rig.update(*which),
            Step::Spoil(which) => rig.spoil(*which),
            Step::Compositor => rig.compositor(),
            Step::Release(count) => rig.compositor.release(*count),
            Step::Tick => rig.compositor.tick(),
            Step::Input(kind, value) => rig.compositor.input_event(*kind, *value),
            Step::Pass(time) => rig.pass(Duration::from_millis(*time)),
            Step::Work(room) => rig.work(*room),
            Step::Flush(budget, taking) => rig.flush(*budget, *taking),
            Step::Outage(more, comes) => rig.break_off(*more, *comes),
            Step::Detach => rig.detach(),
            Step::Attach => attach(&mut rig, &mut program),
        }
    }
    program.read(&mut rig);
    if !rig.app.is_attached() {
        attach(&mut rig, &mut program);
    }
    rig.finish();
    // Popups may have been over with their display; the program opens new ones.
    program.act(&mut rig, &Deed::Renew { surface: 3 });
    rig.finish();
    program.commit_all(&mut rig);
    rig.finish();
    program.read(&mut rig);
    if let Some(viewer) = viewer {
        check_viewer(&mut rig, viewer, &program);
    }
    assert_eq!((rig.app.end(), rig.display.end()), (None, None));
    assert_eq!(program.waiting, Vec::<u32>::new(), "frame callbacks that no half answered");
    for (surface, log) in rig.compositor.logs.iter().enumerate() {
        // What could not be painted shows nothing where there was nothing before.
        let blank = rig.was_spoiled(surface);
        let log = log.iter().copied().filter(|shown| shown.is_some() || !blank);
        check_order(program.history(surface), log, surface);
    }
    for (surface, last) in program.truth() {
        assert_eq!(
            rig.compositor.logs[surface].last().copied().flatten(),
            last,
            "surface {surface} at the end"
        );
    }
    (rig.folded.len(), rig.compositor.scene())
}

/// Regression: a commit that waited for a window's first configure counted twice in what is kept.
#[test]
fn children_keep_their_order_at_the_display_after_the_next() {
    let place = |surface, sibling, above| Step::Act(Deed::Place { surface, sibling, above });
    run(&[Step::Attach, place(4, 1, false), place(1, 0, false), paint(0), Step::View(Kind::Compositor)]);
}

/// What left for the active display, and what there is to be seen, meets the viewer.
fn turn(rig: &mut Rig, viewer: &mut Option<Viewer>) {
    let published: Vec<_> = std::iter::from_fn(|| rig.app.poll_published()).collect();
    viewer.iter_mut().for_each(|viewer| viewer.turn(rig, &published));
}

fn look(rig: &Rig, viewer: &mut Option<Viewer>, step: &Step) {
    let Some(viewer) = viewer else { return };
    match *step {
        Step::ViewBudget(budget) => viewer.budget = budget,
        Step::ViewDown(count) => viewer.deliver_down(rig, count),
        Step::ViewUp(count) => viewer.deliver_up(rig, count),
        Step::ViewUpdate(which) => viewer.update(rig, which),
        Step::ViewSpoil(which) => viewer.spoil(which),
        Step::ViewCompositor(kind, value) => viewer.draw(rig, (kind, value)),
        _ => {}
    }
}

/// In the end there is the same to be seen as at the active display, and on the way nothing that was never committed.
fn check_viewer(rig: &mut Rig, viewer: Viewer, program: &Program) {
    let mut viewer = Some(viewer);
    for _ in 0..40 {
        rig.pass(Duration::from_millis(100));
        turn(rig, &mut viewer);
        let Some(viewer) = &mut viewer else { return };
        viewer.budget = u64::MAX;
        viewer.settle(rig);
    }
    let Some(viewer) = viewer else { return };
    let seen = viewer.screen.windows().into_iter().map(Tree::untitled_if_empty);
    let expected = rig.compositor.windows().into_iter().map(Tree::untitled_if_empty);
    assert_eq!(seen.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let committed: HashSet<u128> = program.commits.iter().flatten().flatten().copied().collect();
    let shown = viewer.screen.shown();
    let strange = shown.iter().filter(|picture| !committed.contains(picture)).count();
    assert!(viewer.spoiled || strange == 0, "{strange} pictures that were never committed");
}

fn attach(rig: &mut Rig, program: &mut Program) {
    rig.detach();
    rig.attach();
    program.meet_display();
}

/// Each picture that was shown is one that was committed, in the order of the commits; some may be left out.
fn check_order(commits: &[Option<u128>], log: impl Iterator<Item = Option<u128>>, surface: usize) {
    let mut place = 0;
    for shown in log {
        let Some(found) = commits[place.min(commits.len())..].iter().position(|commit| *commit == shown)
        else {
            // Commits that came before any with a buffer show nothing.
            assert!(shown.is_none() && place == 0, "surface {surface}: never committed, or out of order");
            continue;
        };
        place += found;
    }
}

proptest! {
    #[test]
    fn no_commit_is_torn_by_any_order_of_arrival(
        steps in proptest::collection::vec(step(), 1..160), cover: bool,
    ) {
        play_in(Rig::covering(cover), &steps);
    }
}

/// Windows that draw all the time, of which not all arrives, outages, viewers, and these steps now and then.
fn steps_with_outages(step: impl Strategy<Value = Step> + 'static) -> impl Strategy<Value = Vec<Step>> {
    let surface = prop_oneof![4 => Just(0usize), 1 => 0..SURFACES];
    let frame = (surface, any::<[u8; 4]>(), any::<bool>()).prop_map(|(surface, paint, frame)| {
        let deed = Deed::Commit { surface, paint: Some(paint), by_buffer: true, frame };
        vec![Step::Act(deed), Step::Pass(17), Step::Flush(u64::MAX, false)]
    });
    let all = || vec![Step::ToDisplay(20), Step::Compositor, Step::Release(8), Step::Tick, Step::ToApp(20)];
    let one = prop_oneof![
        10 => proptest::collection::vec(frame, 1..12).prop_map(|frames| frames.concat()),
        5 => proptest::collection::vec(0usize..16, 1..6)
            .prop_map(|some| some.into_iter().map(Step::Update).collect()),
        4 => Just(all()),
        3 => (0u64..3, any::<bool>()).prop_map(|(more, comes)| vec![Step::Outage(more, comes)]),
        3 => step.prop_map(|step| vec![step]),
    ];
    proptest::collection::vec(one, 1..40).prop_map(|steps| steps.concat())
}

proptest! {
    #[test]
    fn no_commit_is_torn_by_an_outage(steps in steps_with_outages(step()), cover: bool) {
        play_in(Rig::covering(cover), &steps);
    }

    #[test]
    fn viewers_see_nothing_of_an_outage(steps in steps_with_outages(watched(step())), cover: bool) {
        play_in(Rig::covering(cover), &steps);
    }

    #[test]
    fn no_large_commit_is_torn_by_an_outage(steps in steps_with_outages(large_step())) {
        run(&steps);
    }

    #[test]
    fn displays_come_and_go_between_outages(steps in steps_with_outages(wandering(step())), cover: bool) {
        play_in(Rig::covering(cover), &steps);
    }
}

/// Draws in a window, and lets that leave.
fn draw(rig: &mut Rig, program: &mut Program, surface: usize, colour: u8) {
    let paint = Some([colour, 7, 255 - colour, 3]);
    program.act(rig, &Deed::Commit { surface, paint, by_buffer: true, frame: false });
    rig.pass(Duration::from_millis(20));
    rig.flush(u64::MAX, false);
}

/// With a window that is shown.
fn shown() -> (Rig, Program) {
    let mut rig = Rig::new();
    let mut program = Program::new(&mut rig);
    draw(&mut rig, &mut program, 0, 100);
    rig.finish();
    (rig, program)
}

#[test]
fn what_an_outage_took_is_replaced_by_what_is_newest() {
    for (more, comes) in [(0, false), (0, true), (2, false), (2, true)] {
        let (mut rig, mut program) = shown();
        (0..60).for_each(|colour| draw(&mut rig, &mut program, 0, colour));
        let under_way = rig.updates_under_way().count();
        rig.break_off(more, comes);
        assert_eq!(
            rig.updates_under_way().count(),
            under_way,
            "it is not known that there is something newer"
        );
        draw(&mut rig, &mut program, 0, 60);
        assert_eq!(rig.updates_under_way().count(), if comes { under_way + 1 } else { 1 });
        let shown = rig.compositor.logs[0].len();
        rig.finish();
        assert_eq!(rig.compositor.logs[0].len(), shown + 1, "older pictures are shown");
        let last = program.truth().next().and_then(|(_, last)| last);
        assert_eq!(rig.compositor.logs[0].last().copied().flatten(), last);
    }
}

#[test]
fn regression_a_popup_comes_before_the_commit_that_an_outage_took() {
    let mut rig = Rig::new();
    let mut program = Program::new(&mut rig);
    rig.finish();
    let before = rig.compositor.orphans;
    draw(&mut rig, &mut program, 0, 0);
    program.act(&mut rig, &Deed::Renew { surface: 3 });
    (1..30).for_each(|colour| draw(&mut rig, &mut program, 0, colour));
    rig.break_off(0, false);
    draw(&mut rig, &mut program, 0, 60);
    rig.finish();
    assert_eq!(rig.compositor.orphans, before);
}

#[test]
fn regression_a_subsurface_ends_before_the_commit_that_an_outage_took() {
    let ends = [false, true].map(|outage| {
        let (mut rig, mut program) = shown();
        draw(&mut rig, &mut program, 4, 1);
        draw(&mut rig, &mut program, 0, 1);
        rig.finish();
        draw(&mut rig, &mut program, 0, 2);
        program.act(&mut rig, &Deed::Renew { surface: 4 });
        (3..30).for_each(|colour| draw(&mut rig, &mut program, 0, colour));
        if outage {
            rig.break_off(0, false);
        }
        draw(&mut rig, &mut program, 0, 60);
        rig.finish();
        rig.compositor.ends.clone()
    });
    assert_eq!(ends[0], ends[1]);
    assert!(!ends[0].is_empty());
}

#[test]
fn regression_one_outage_after_another_leaves_nothing_to_be_shown() {
    let (mut rig, mut program) = shown();
    (0..60).for_each(|colour| draw(&mut rig, &mut program, 0, colour));
    let mut first = None;
    for colour in 60..68 {
        rig.break_off(0, false);
        draw(&mut rig, &mut program, 0, colour);
        let oldest = rig.updates_under_way().next();
        assert_eq!(*first.get_or_insert(oldest), oldest, "what stands for others stays");
    }
}

/// Units that are so many that they are not all accounted for, with one among them that shows another surface.
#[test]
fn regression_a_unit_with_children_is_replaced_without_them() {
    let mut rig = Rig::new();
    let mut program = Program::new(&mut rig);
    draw(&mut rig, &mut program, 1, 1);
    draw(&mut rig, &mut program, 0, 1);
    rig.finish();
    // Something is heard all the time, so that many leave.
    rig.break_off(0, false);
    (0..70).for_each(|colour| draw(&mut rig, &mut program, 0, colour));
    draw(&mut rig, &mut program, 1, 90);
    draw(&mut rig, &mut program, 0, 91);
    program.act(&mut rig, &Deed::Sync { surface: 1, sync: false });
    rig.make();
    rig.deliver_down(1000);
    for _ in 0..64 {
        rig.update(0);
        rig.compositor();
        rig.compositor.release(100);
        rig.compositor.tick();
        rig.compositor();
    }
    rig.deliver_up(1000);
    rig.break_off(0, false);
    draw(&mut rig, &mut program, 0, 99);
    rig.finish();
}

/// As [`step`], with windows that take several slices to encode and to open.
fn large_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => step(),
        1 => (0..SURFACES).prop_map(|surface| Step::Act(Deed::Grow { surface })),
        2 => (0usize..1_000_000).prop_map(Step::Work),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_large_commit_is_torn_either(steps in proptest::collection::vec(large_step(), 1..80)) {
        run(&steps);
    }
}

/// With displays that come and go.
fn wandering(step: impl Strategy<Value = Step>) -> impl Strategy<Value = Step> {
    prop_oneof![20 => step, 1 => Just(Step::Detach), 1 => Just(Step::Attach)]
}

proptest! {
    #[test]
    fn no_commit_is_torn_or_lost_when_displays_come_and_go(
        steps in proptest::collection::vec(wandering(step()), 1..160)
    ) {
        let stays = |step: &&Step| !matches!(step, Step::Detach | Step::Attach);
        let undisturbed: Vec<Step> = steps.iter().filter(stays).cloned().collect();
        prop_assert_eq!(play(&steps).1, play(&undisturbed).1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Displays go while a commit is being encoded.
    #[test]
    fn no_large_commit_is_lost_with_its_display(
        steps in proptest::collection::vec(wandering(large_step()), 1..80)
    ) {
        run(&steps);
    }
}

/// Neither half accuses the other of anything, and the compositor gets nothing unsound, with any objects there are.
#[test]
fn an_object_of_every_kind_is_at_the_next_display_too() {
    for alone in [false, true] {
        let mut rig = Rig::new();
        let mut program = Everything::new(&mut rig);
        if alone {
            program.destroy_globals(&mut rig);
        }
        rig.finish();
        let census = |rig: &Rig| {
            let mut census = rig.compositor.census();
            census.retain(|interface, _| everything::lasts(interface));
            census
        };
        let before = census(&rig);
        assert!(before.len() >= if alone { 30 } else { 60 }, "{before:?}");
        for _ in 0..2 {
            rig.detach();
            rig.attach();
            rig.finish();
            assert_eq!((rig.app.end(), rig.display.end()), (None, None));
            assert_eq!(census(&rig), before);
        }
        program.destroy_all(&mut rig);
        rig.finish();
        assert_eq!((rig.app.end(), rig.display.end()), (None, None));
    }
}

/// With viewers.
fn watched(step: impl Strategy<Value = Step>) -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => step,
        1 => prop_oneof![Just(Kind::Compositor), Just(Kind::Page)].prop_map(Step::View),
        2 => prop_oneof![Just(0u64), 1..500u64, Just(u64::MAX)].prop_map(Step::ViewBudget),
        5 => (1usize..20).prop_map(Step::ViewDown),
        3 => (1usize..20).prop_map(Step::ViewUp),
        4 => (0usize..16).prop_map(Step::ViewUpdate),
        1 => (0usize..16).prop_map(Step::ViewSpoil),
        3 => any::<(u8, u32)>().prop_map(|(kind, value)| Step::ViewCompositor(kind, value)),
    ]
}

proptest! {
    /// Whenever a viewer comes, it comes to show what the active one shows; and no matter what its user
    /// does, the program's windows are as if no viewer had been there.
    #[test]
    fn a_view_that_joins_at_any_time_shows_what_the_active_display_shows(
        steps in proptest::collection::vec(watched(wandering(step())), 1..200)
    ) {
        let looks = |step: &&Step| !matches!(step, Step::View(_));
        let undisturbed: Vec<Step> = steps.iter().filter(looks).cloned().collect();
        prop_assert_eq!(play(&steps).1, play(&undisturbed).1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_view_of_large_windows_shows_what_the_active_display_shows(
        steps in proptest::collection::vec(watched(wandering(large_step())), 1..100)
    ) {
        run(&steps);
    }
}

/// A window that draws all the time, with what else a program says and does now and then. What it draws may be lost,
/// and come late or never before the end.
fn busy_steps() -> impl Strategy<Value = Vec<Step>> {
    // Most in the same place.
    let place = prop_oneof![5 => (0u8..3).prop_map(|x| [x, 0, 20, 20]), 1 => any::<[u8; 4]>()];
    let frame = (0..2usize, place, any::<bool>()).prop_map(|(surface, paint, frame)| {
        let deed = Deed::Commit { surface, paint: Some(paint), by_buffer: true, frame };
        vec![Step::Act(deed), Step::Pass(17), Step::Flush(u64::MAX, false)]
    });
    let all = || vec![Step::ToDisplay(20), Step::Compositor, Step::Release(8), Step::Tick, Step::ToApp(20)];
    let one = prop_oneof![
        12 => frame,
        8 => (0usize..8).prop_map(|which| vec![Step::Update(which)]),
        3 => Just(all()),
        1 => step().prop_map(|step| vec![step]),
    ];
    proptest::collection::vec(one, 1..120).prop_map(|steps| steps.concat())
}

proptest! {
    #[test]
    fn a_busy_window_shows_whole_frames_in_their_order_whatever_is_lost(steps in busy_steps()) {
        run(&steps);
    }
}

/// So that what is above is about something.
#[test]
fn a_busy_window_covers_what_is_lost() {
    let frame = |_| {
        let deed = Deed::Commit { surface: 0, paint: Some([0, 0, 20, 20]), by_buffer: true, frame: true };
        [Step::Act(deed), Step::Pass(17), Step::Flush(u64::MAX, false)]
    };
    let shown = [paint(0), Step::ToDisplay(20), Step::Update(0), Step::Compositor, Step::ToApp(20)];
    let busy: Vec<Step> = (1..8).flat_map(frame).collect();
    let mut rig = Rig::new();
    let mut program = Program::new(&mut rig);
    for step in shown.into_iter().chain(busy) {
        match step {
            Step::Act(deed) => program.act(&mut rig, &deed),
            Step::ToDisplay(count) => rig.deliver_down(count),
            Step::ToApp(count) => rig.deliver_up(count),
            Step::Update(which) => rig.update(which),
            Step::Pass(time) => rig.pass(Duration::from_millis(time)),
            Step::Flush(budget, taking) => rig.flush(budget, taking),
            _ => rig.compositor(),
        }
    }
    assert!(rig.covering >= 3, "{} updates cover others", rig.covering);
}

fn paint(surface: usize) -> Step {
    let paint = Some([0, 0, surface as u8, 1]);
    Step::Act(Deed::Commit { surface, paint, by_buffer: true, frame: false })
}

fn sync(surface: usize, sync: bool) -> Step {
    Step::Act(Deed::Sync { surface, sync })
}

/// The parent leaves the synchronised mode; its child, never in it by itself, had cached a commit because of it.
#[test]
fn a_cached_commit_never_follows_a_newer_one() {
    run(&[sync(2, false), paint(2), Step::Act(Deed::Unmap { surface: 2 }), sync(1, false), paint(2)]);
}

/// Another display is told of a child by its parent, and of what it has committed since by itself: that came last, and
/// what follows it must not come before.
#[test]
fn a_cached_commit_at_another_display_never_follows_a_newer_one() {
    let scale = |scale| Step::Act(Deed::Scale { surface: 2, scale });
    let commit = Deed::Commit { surface: 2, paint: None, by_buffer: false, frame: false };
    run(&[scale(7), paint(1), paint(2), scale(41), Step::Attach, Step::Act(commit)]);
}

/// A child's commit waits in its parent's unit for the pace of frames, and the child leaves the synchronised mode.
#[test]
fn a_commit_never_overtakes_an_older_one_in_the_parents_unit() {
    let older =
        [paint(0), Step::Flush(u64::MAX, false), paint(1), Step::Act(Deed::Unmap { surface: 1 }), paint(0)];
    let newer = [sync(1, false), paint(1), Step::Pass(20), Step::Flush(u64::MAX, false)];
    run(&[&older[..], &newer[..]].concat());
}

/// What the link has not taken when a newer commit is due is never shown, and the newer one brings its pixels.
#[test]
fn a_commit_whose_update_is_taken_back_is_folded_into_the_next() {
    let frame = |taking| [Step::Pass(20), Step::Flush(u64::MAX, taking)];
    let shown = [paint(0), paint(0), Step::ToDisplay(20), Step::Update(0), Step::Compositor, Step::Tick];
    let newer = |taking| [&[paint(0)], &frame(taking)[..], &[paint(0)], &frame(taking)[..]].concat();
    assert_eq!(run(&[&shown[..], &newer(true), &newer(true)].concat()), 3);
    assert_eq!(run(&[&shown[..], &newer(false), &newer(false)].concat()), 0);
}

/// A child that is not synchronised commits before its parent has content at another display.
#[test]
fn a_child_is_shown_in_order_at_another_display() {
    let unmap = Step::Act(Deed::Unmap { surface: 1 });
    run(&[sync(1, false), Step::Attach, paint(1), unmap.clone()]);
    run(&[paint(2), sync(1, false), Step::Attach, paint(1), unmap]);
}
