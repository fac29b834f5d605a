//! When the pixels of a commit are read, and what waits for them.

use super::*;

#[test]
fn a_commit_is_applied_with_its_pixels_and_its_buffer_comes_back_once() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    let frame = gpu.rig.frame(surface);
    gpu.rig.pass(FRAME);
    assert_eq!((gpu.reads(), gpu.rig.released()), (1, vec![]));
    assert_eq!(gpu.rig.content(surface), [1; BYTES]);
    assert!(!gpu.rig.connection.stalled(), "other requests go on");
    gpu.answer();
    gpu.answer();
    assert_eq!(gpu.shown(surface), (vec![2; BYTES], vec![buffer]));
    gpu.rig.commit(surface);
    gpu.settle();
    assert_eq!((gpu.rig.units().len(), gpu.named("done")), (1, vec![frame]));
}

/// A program whose buffer is busy draws into the next: of three frames the middle one is never read.
#[test]
fn what_is_replaced_before_it_is_read_is_never_read() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let first = gpu.show(surface, 2);
    assert_eq!(gpu.reads(), 1, "it is being read");
    let second = gpu.show(surface, 3);
    let third = gpu.show(surface, 4);
    assert_eq!((gpu.reads(), gpu.rig.released()), (1, vec![second]), "unread");
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![4; BYTES], vec![first, third]));
}

#[test]
fn a_frame_behind_a_barrier_is_never_replaced() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let manager = gpu.rig.bind("wp_fifo_manager_v1");
    let fifo = gpu.rig.id("wp_fifo_v1");
    gpu.rig.request(manager, "get_fifo", vec![Arg::NewId(fifo), Arg::Object(surface)]);
    let mut shown = Vec::new();
    for value in 2..5 {
        gpu.rig.request(fifo, "wait_barrier", vec![]);
        gpu.rig.request(fifo, "set_barrier", vec![]);
        gpu.show(surface, value);
    }
    for _ in 0..40 {
        gpu.ask();
        if let Some(answer) = gpu.reader.answer() {
            gpu.rig.connection.on_answer(gpu.rig.now, answer);
        }
        shown.push(gpu.rig.content(surface)[0]);
        gpu.rig.pass(Duration::from_millis(5));
        gpu.rig.units();
    }
    shown.dedup();
    assert_eq!(shown, [1, 2, 3, 4]);
}

#[test]
fn only_what_is_damaged_is_read() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.buffer(2);
    gpu.rig.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
    gpu.rig.request(surface, "damage_buffer", [1, 2, 2, 1].map(Arg::Int).into());
    gpu.rig.commit(surface);
    gpu.settle();
    let mut expected = [1; BYTES];
    expected[(2 * SIDE as usize + 1) * 4..][..8].fill(2);
    assert_eq!(gpu.rig.content(surface), expected);
}

#[test]
fn the_first_row_of_a_flipped_buffer_is_the_lowest() {
    let mut gpu = Gpu::new();
    let surface = gpu.rig.surface(gpu.compositor);
    let row = |y: usize| [y as u8; (SIDE * 4) as usize];
    let drawn: Vec<u8> = (0..SIDE as usize).flat_map(row).collect();
    let params = gpu.params();
    gpu.add(params, plane(&drawn));
    let buffer = gpu.rig.id("wl_buffer");
    let numbers = [Arg::Int(SIDE), Arg::Int(SIDE), Arg::Uint(XR24.0), Arg::Uint(1)];
    gpu.rig.request(params, "create_immed", std::iter::once(Arg::NewId(buffer)).chain(numbers).collect());
    gpu.rig.attach(surface, buffer);
    gpu.rig.commit(surface);
    gpu.settle();
    let expected: Vec<u8> = (0..SIDE as usize).rev().flat_map(row).collect();
    assert_eq!(gpu.rig.content(surface), expected);
}

#[test]
fn what_is_destroyed_while_it_is_read_ends_well() {
    // The buffer: its pixels are shown, and its id, which may be another's, is not released.
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    assert_eq!(gpu.reads(), 1);
    gpu.rig.request(buffer, "destroy", vec![]);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![2; BYTES], vec![]));
    gpu.ask();
    assert_eq!(gpu.reader.images(), 1, "that of the window before");

    // The surface: its buffer comes back when it has been read, not before.
    let buffer = gpu.show(surface, 3);
    assert_eq!(gpu.reads(), 1);
    gpu.rig.request(surface, "destroy", vec![]);
    assert_eq!(gpu.rig.released(), []);
    gpu.settle();
    assert_eq!(gpu.rig.released(), [buffer]);

    // Both.
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 3);
    assert_eq!(gpu.reads(), 1);
    gpu.rig.request(surface, "destroy", vec![]);
    gpu.rig.request(buffer, "destroy", vec![]);
    gpu.settle();
    assert_eq!((gpu.rig.released(), gpu.rig.connection.end()), (vec![], None));
}

#[test]
fn what_cannot_be_read_leaves_what_was_there() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let memory = file(&[2; BYTES]);
    let buffer = gpu.buffer_of(memory.try_clone().unwrap());
    rustix::fs::ftruncate(&memory, 8).unwrap();
    gpu.rig.attach(surface, buffer);
    gpu.rig.commit(surface);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![1; BYTES], vec![buffer]));
    assert_eq!(gpu.rig.connection.end(), None);
    gpu.show(surface, 3);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [3; BYTES]);
}

/// What a synchronised subsurface has drawn is shown with its parent's commit, and read then.
#[test]
fn a_subsurface_is_read_with_its_parents_commit() {
    let mut gpu = Gpu::new();
    let parent = gpu.window(1);
    let (child, subsurface) = gpu.child_of(parent);
    let unread = gpu.show(child, 2);
    let buffer = gpu.show(child, 3);
    gpu.settle();
    assert_eq!((gpu.reads(), gpu.rig.released()), (0, vec![unread]), "a newer one has replaced it");
    gpu.rig.units();
    let own = gpu.show(parent, 4);
    assert_eq!(gpu.reads(), 2);
    gpu.answer();
    gpu.answer();
    assert_eq!(gpu.rig.released(), [], "all or nothing");
    gpu.settle();
    assert_eq!(gpu.rig.released(), [buffer, own]);
    let units = gpu.rig.units();
    let [unit] = &units[..] else { panic!("one unit for both: {units:?}") };
    assert_eq!(unit.children.len(), 1);
    assert_eq!((gpu.rig.content(child), gpu.rig.content(parent)), (&[3; BYTES][..], &[4; BYTES][..]));
    // What commits of itself afterwards is in order.
    gpu.show(child, 5);
    gpu.rig.request(subsurface, "set_desync", vec![]);
    gpu.show(child, 6);
    gpu.settle();
    assert_eq!(gpu.rig.content(child), [6; BYTES]);
}

#[test]
fn what_builds_on_a_commit_waits_for_its_pixels() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    gpu.show(surface, 2);
    gpu.child_of(surface);
    // The only request with three arguments.
    let is_it = |sent: &ToDisplay| matches!(sent, ToDisplay::Request(request) if request.args.len() == 3);
    let crossed = |gpu: &Gpu| gpu.rig.sent.iter().any(is_it);
    let sync = gpu.rig.id("wl_callback");
    gpu.rig.request(1, "sync", vec![Arg::NewId(sync)]);
    assert!(gpu.rig.connection.stalled() && !crossed(&gpu));
    assert_eq!(gpu.named("done"), [], "what is behind it does not overtake it");
    gpu.settle();
    gpu.settle();
    assert!(!gpu.rig.connection.stalled() && crossed(&gpu));
    assert_eq!((gpu.rig.content(surface)[0], gpu.named("done")), (2, vec![sync]));
}

/// A window that is destroyed in front of the user has shown its last frame; a reader that hangs does not keep it.
#[test]
fn nothing_waits_for_a_reader_that_hangs() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    assert_eq!(gpu.reads(), 1);
    let sync = gpu.rig.id("wl_callback");
    gpu.rig.request(surface, "destroy", vec![]);
    gpu.rig.request(1, "sync", vec![Arg::NewId(sync)]);
    gpu.rig.pass(Duration::from_secs(6));
    assert_eq!((gpu.named("done"), gpu.rig.connection.end()), (vec![sync], None));
    gpu.settle();
    assert_eq!(gpu.rig.released(), [buffer], "late, and once");
}

#[test]
fn what_no_user_sees_is_not_read() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let wire = gpu.rig.connection.surfaces[&surface].wire;
    gpu.rig.tell(&ToApp::Visible { surface: wire, visible: false });
    let frame = gpu.rig.frame(surface);
    let first = gpu.show(surface, 2);
    gpu.rig.pass(Duration::from_secs(2));
    assert_eq!((gpu.reads(), gpu.named("done")), (0, vec![frame]), "it may draw, slowly");
    let second = gpu.show(surface, 3);
    gpu.rig.pass(Duration::from_secs(2));
    assert_eq!((gpu.reads(), gpu.rig.released()), (0, vec![first]));
    gpu.rig.tell(&ToApp::Visible { surface: wire, visible: true });
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![3; BYTES], vec![second]));
}

/// No more is read than leaves.
#[test]
fn nothing_is_read_while_the_last_frame_waits_for_the_link() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let answer_all = |gpu: &mut Gpu| {
        gpu.ask();
        while let Some(answer) = gpu.reader.answer() {
            gpu.rig.connection.on_answer(gpu.rig.now, answer);
        }
    };
    gpu.show(surface, 2);
    answer_all(&mut gpu);
    assert_eq!(gpu.rig.content(surface), [2; BYTES]);
    for value in 3..9 {
        gpu.show(surface, value);
        answer_all(&mut gpu);
    }
    assert_eq!(gpu.rig.content(surface), [2; BYTES], "it has not left");
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [8; BYTES]);
}

#[test]
fn planes_are_limited_and_parameters_without_buffers_cost_nothing() {
    let mut gpu = Gpu::new();
    for _ in 0..10_000 {
        gpu.params();
    }
    assert_eq!(gpu.rig.connection.end(), None);
    let memory = file(&[7; BYTES]);
    let mut added = Vec::new();
    for _ in 0..=MAX_OPEN_PLANES {
        let params = gpu.params();
        gpu.add(params, Added { file: memory.try_clone().unwrap(), ..plane(&[]) });
        added.push(params);
    }
    let last = *added.last().unwrap();
    gpu.create(last, SIDE, XR24, 0);
    assert_eq!((gpu.named("failed"), gpu.rig.connection.end()), (vec![last], None), "it is held back");
    gpu.rig.request(added[0], "destroy", vec![]);
    let surface = gpu.rig.surface(gpu.compositor);
    gpu.show(surface, 8);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [8; BYTES]);
}

#[test]
fn programs_without_a_display_go_on() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let buffer = gpu.show(surface, 2);
    gpu.rig.connection.detach(gpu.rig.now);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![2; BYTES], vec![buffer]));
    let buffer = gpu.show(surface, 3);
    gpu.settle();
    assert_eq!(gpu.shown(surface), (vec![3; BYTES], vec![buffer]));
}

/// A frame that cannot be read, and then one that draws elsewhere.
#[test]
fn regression_what_could_not_be_read_stayed_as_it_was_for_ever() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let draw = |gpu: &mut Gpu, value: u8, row: i32| {
        let buffer = gpu.buffer(value);
        gpu.rig.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
        gpu.rig.request(surface, "damage_buffer", [0, row, SIDE, 1].map(Arg::Int).into());
        gpu.rig.commit(surface);
    };
    draw(&mut gpu, 2, 0);
    gpu.answer();
    gpu.ask();
    let unread = gpu.reader.refuse().expect("it is asked");
    gpu.rig.connection.on_answer(gpu.rig.now, unread);
    assert_eq!(gpu.rig.content(surface), [1; BYTES]);
    draw(&mut gpu, 3, 1);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [3; BYTES], "all of it");
}

/// A window that another display wants larger is shown with its program's answer: that must be read.
#[test]
fn regression_a_fullscreen_window_never_came_to_another_display() {
    let mut gpu = Gpu::new();
    let surface = gpu.rig.surface(gpu.compositor);
    let (xdg, toplevel) = gpu.rig.toplevel(surface);
    gpu.rig.commit(surface);
    let configure = |rig: &mut Rig, serial: u32, size: i32| {
        // Fullscreen.
        rig.configure(xdg, toplevel, (size, size), &[2], serial);
        let events = rig.events();
        let told = events.into_iter().rfind(|event| event.object == xdg).expect("it is configured");
        let [Arg::Uint(serial)] = told.args[..] else { panic!("{told:?}") };
        rig.request(xdg, "ack_configure", vec![Arg::Uint(serial)]);
    };
    configure(&mut gpu.rig, 7, SIDE);
    gpu.show(surface, 1);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [1; BYTES]);
    gpu.rig.connection.detach(gpu.rig.now);
    gpu.rig.collect();
    gpu.rig.connection.attach(gpu.rig.now, &desk(), Compression::None);
    gpu.rig.collect();
    gpu.rig.units();
    configure(&mut gpu.rig, 3, SIDE * 2);
    gpu.show(surface, 2);
    gpu.settle();
    assert_eq!(gpu.rig.content(surface), [2; BYTES]);
    assert_ne!(gpu.rig.units().len(), 0, "it is shown");
}

/// A link that is silent answers nothing, and a program must not block in its swap.
#[test]
fn regression_a_silent_link_blocked_programs_that_draw_on_a_gpu() {
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let first = gpu.rig.frame(surface);
    gpu.show(surface, 2);
    gpu.ask();
    while let Some(answer) = gpu.reader.answer() {
        gpu.rig.connection.on_answer(gpu.rig.now, answer);
    }
    let wait = |gpu: &mut Gpu| {
        for _ in 0..60 {
            gpu.rig.now += Duration::from_millis(100);
            gpu.ask();
        }
    };
    wait(&mut gpu);
    assert_eq!(gpu.named("done"), [first]);
    let second = gpu.rig.frame(surface);
    gpu.show(surface, 3);
    wait(&mut gpu);
    assert_eq!(gpu.named("done"), [second]);
}

/// Subsurfaces without end, all of one large buffer: their pixels would be here all at once.
#[test]
fn regression_pixels_of_many_subsurfaces_take_memory_without_end() {
    let mut gpu = Gpu::new();
    let parent = gpu.window(1);
    gpu.rig.connection.room.limit(3 * BYTES as u64);
    let children: Vec<u32> = (0..8).map(|_| gpu.child_of(parent).0).collect();
    for child in children {
        gpu.show(child, 2);
    }
    gpu.rig.commit(parent);
    gpu.ask();
    assert_eq!(gpu.reads(), 0);
    assert!(matches!(gpu.rig.connection.end(), Some(End::TooMuch(_))), "{:?}", gpu.rig.connection.end());
}

/// A program on a GPU draws with each frame callback and times itself by feedback, 200 ms away from its display: it
/// draws at the full rate, and is told the times at which the display showed its frames, each once and in order.
#[test]
fn a_program_that_times_itself_by_feedback_draws_at_the_full_rate_far_from_its_display() {
    const WAY: Duration = Duration::from_millis(100);
    let mut gpu = Gpu::new();
    let surface = gpu.window(1);
    let presentation = gpu.rig.bind("wp_presentation");
    let begin = gpu.rig.now;
    let mut wants_frame = true;
    let (mut under_way, mut drawn, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    let (mut feedback_due, mut presented, mut discarded) = (0, Vec::new(), 0);
    while gpu.rig.now.since(begin) < Duration::from_secs(3) {
        if std::mem::take(&mut wants_frame) {
            let feedback = gpu.rig.id("wp_presentation_feedback");
            let args = vec![Arg::Object(surface), Arg::NewId(feedback)];
            gpu.rig.request(presentation, "feedback", args);
            gpu.rig.frame(surface);
            gpu.show(surface, drawn.len() as u8);
            drawn.push(gpu.rig.now);
            feedback_due += 1;
        }
        gpu.ask();
        while let Some(answer) = gpu.reader.answer() {
            gpu.rig.connection.on_answer(gpu.rig.now, answer);
        }
        gpu.rig.now += Duration::from_millis(1);
        let now = gpu.rig.now;
        gpu.rig.connection.on_timeout(now);
        gpu.rig.flush_with(Credit { content: u64::MAX, rtt: 2 * WAY, ..Credit::default() });
        under_way.extend(gpu.rig.unapplied_units().into_iter().map(|unit| (now + 2 * WAY, unit)));
        for (at, unit) in under_way.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            let time_ns = at.since_start().saturating_sub(WAY).as_nanos() as u64;
            let (surface, unit) = (unit.surface, unit.number);
            gpu.rig.tell(&ToApp::Applied { surface, unit });
            let sequence = shown.len() as u64;
            shown.push(time_ns);
            let (refresh_ns, flags) = (16_666_667, 1);
            gpu.rig.tell(&ToApp::Presented { surface, unit, time_ns, refresh_ns, sequence, flags });
        }
        for event in gpu.rig.events() {
            match (event.name, &event.args[..]) {
                ("done", _) if gpu.rig.interfaces[&event.object] == "wl_callback" => wants_frame = true,
                ("presented", [Arg::Uint(high), Arg::Uint(low), Arg::Uint(nanos), ..]) => {
                    let seconds = u64::from(*high) << 32 | u64::from(*low);
                    presented.push(seconds * 1_000_000_000 + u64::from(*nanos));
                }
                ("discarded", _) => discarded += 1,
                _ => {}
            }
        }
    }
    let last_second = drawn.iter().filter(|at| gpu.rig.now.since(**at) < Duration::from_secs(1)).count();
    assert!((58..=61).contains(&last_second), "{last_second} frames in the last second");
    assert!(presented.is_sorted_by(|a, b| a < b), "{presented:?}");
    assert!(presented.iter().all(|time| shown.contains(time)), "times that never were");
    // What was drawn in the last round trip is not known yet.
    assert!(presented.len() + discarded + 14 >= feedback_due && presented.len() > 150, "{}", presented.len());
}
