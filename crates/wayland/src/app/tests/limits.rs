//! Honest programs that have much of something: a limit holds them back, it does not end them.

use super::*;

/// A window of foot announces half a gibibyte that it hardly touches: what is announced costs nothing.
#[test]
fn regression_forty_pools_of_half_a_gibibyte_each_end_no_connection() {
    let mut rig = Rig::new();
    let shm = rig.bind("wl_shm");
    let sparse = |size: i32| {
        let fd = file(&[]);
        rustix::fs::ftruncate(&fd, u64::from(size.cast_unsigned())).unwrap();
        fd
    };
    for _ in 0..40 {
        let pool = rig.id("wl_shm_pool");
        let args = vec![Arg::NewId(pool), Arg::Fd(sparse(512 << 20)), Arg::Int(512 << 20)];
        rig.request(shm, "create_pool", args);
        rig.request(pool, "resize", vec![Arg::Int(i32::MAX)]);
    }
    assert_eq!(rig.connection.end(), None);
    assert!(rig.events().iter().all(|event| event.name != "error"));
}

/// A window with an icon of 1024 pixels a side, its icon object gone again as programs do it.
fn iconic(rig: &mut Rig, manager: u32, buffer: u32) -> u32 {
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    let (_, toplevel) = rig.toplevel(surface);
    let icon = rig.id("xdg_toplevel_icon_v1");
    rig.request(manager, "create_icon", vec![Arg::NewId(icon)]);
    rig.request(icon, "add_buffer", vec![Arg::Object(buffer), Arg::Int(1)]);
    rig.request(manager, "set_icon", vec![Arg::Object(toplevel), Arg::Object(icon)]);
    rig.request(icon, "destroy", vec![]);
    // The link takes what there is.
    rig.flush(u64::MAX);
    toplevel
}

fn desk_with_icons() -> Rc<Desk> {
    let mut desk = Desk::clone(&desk());
    let interface = "xdg_toplevel_icon_manager_v1".to_owned();
    desk.snapshot.globals.push(Global { name: 30, interface, version: 1 });
    Rc::new(desk)
}

#[test]
fn regression_64_windows_with_large_icons_live() {
    let mut rig = Rig::with_desk(&desk_with_icons());
    let (manager, shm) = (rig.bind("xdg_toplevel_icon_manager_v1"), rig.bind("wl_shm"));
    let one = rig.buffer(shm, 1024, 1024, 9);
    for _ in 0..32 {
        iconic(&mut rig, manager, one);
    }
    let grown = rig.connection.kept_bytes();
    assert!(grown < 1 << 20, "{grown} bytes are kept of one icon");
    // Nothing makes these smaller: four megabytes each.
    for salt in 0..32 {
        let icon = rig.grainy(shm, 1000, salt);
        iconic(&mut rig, manager, icon);
        rig.request(icon, "destroy", vec![]);
    }
    assert_eq!(rig.connection.end(), None);
    assert!(rig.connection.kept_bytes() < birth::MAX_KEPT as u64);
    let blobs = rig.pipes.iter().filter(|action| matches!(action, Action::Blob { .. })).count();
    assert_eq!(blobs, 64);
}

#[test]
fn regression_icons_stay_at_home_where_the_compositor_takes_none() {
    let mut rig = Rig::new();
    let (manager, shm) = (rig.bind("xdg_toplevel_icon_manager_v1"), rig.bind("wl_shm"));
    let buffer = rig.buffer(shm, 64, 64, 9);
    iconic(&mut rig, manager, buffer);
    assert!(rig.pipes.is_empty(), "the display did not ask for {:?}", rig.pipes);
    // Another display may take them; one that is too large for an icon no display does.
    let large = rig.buffer(shm, 2000, 2, 9);
    iconic(&mut rig, manager, large);
    rig.connection.detach(rig.now);
    rig.connection.attach(rig.now, &desk_with_icons(), Compression::default());
    rig.collect();
    assert_eq!(rig.pipes.len(), 1);
    assert_eq!(rig.connection.end(), None);
}

#[test]
fn regression_a_program_that_is_held_back_does_not_hang() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    rig.toplevel(surface);
    let hangs = |rig: &Rig| rig.sent.iter().any(|message| matches!(message, ToDisplay::Hang(true)));
    let pass = |rig: &mut Rig, seconds: u64| {
        for _ in 0..seconds {
            rig.now += Duration::from_secs(1);
            rig.connection.on_timeout(rig.now);
            rig.collect();
        }
    };
    pass(&mut rig, 7);
    assert!(rig.events().iter().any(|event| event.name == "ping"));
    // The run loop has enough of what it says: its answer would not be read.
    rig.connection.set_read(rig.now, false);
    pass(&mut rig, 60);
    rig.connection.set_read(rig.now, true);
    pass(&mut rig, 9);
    assert!(!hangs(&rig), "it had no time to answer");
    pass(&mut rig, 3);
    assert!(hangs(&rig), "now it had");
}

#[test]
fn a_pool_is_closed_when_its_buffers_are_gone() {
    let mut rig = Rig::new();
    let shm = rig.bind("wl_shm");
    let pool = rig.id("wl_shm_pool");
    rig.request(shm, "create_pool", vec![Arg::NewId(pool), Arg::Fd(file(&[0; 64])), Arg::Int(64)]);
    let open = match &rig.connection.objects.of(pool).unwrap().data {
        object::Data::Pool(pool) => Rc::downgrade(pool),
        other => panic!("{other:?}"),
    };
    let buffer = rig.id("wl_buffer");
    let args = std::iter::once(Arg::NewId(buffer)).chain([0, 4, 4, 16].map(Arg::Int)).chain([Arg::Uint(0)]);
    rig.request(pool, "create_buffer", args.collect());
    rig.request(pool, "destroy", vec![]);
    assert!(open.upgrade().is_some(), "the buffer may be committed");
    rig.request(buffer, "destroy", vec![]);
    assert!(open.upgrade().is_none(), "and with it goes the descriptor");
    assert_eq!(rig.connection.end(), None);
}

#[test]
fn regression_a_thousand_pools_live() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    let buffers: Vec<u32> = (0..1000).map(|n| rig.buffer(shm, 8, 8, n as u8)).collect();
    for buffer in buffers {
        rig.attach(surface, buffer);
        rig.commit(surface);
    }
    assert_eq!(rig.connection.end(), None);
}

/// A dock whose many buttons take clicks, and a hole in the middle of it.
#[test]
fn regression_a_region_of_5000_rectangles_stays_as_it_is() {
    let mut rig = Rig::new();
    let (surface, _) = rig.window();
    let compositor = rig.bind("wl_compositor");
    let region = rig.id("wl_region");
    rig.request(compositor, "create_region", vec![Arg::NewId(region)]);
    for n in 0..5000 {
        rig.request(region, "add", [n % 100 * 20, n / 100 * 20, 10, 10].map(Arg::Int).into());
    }
    rig.request(region, "subtract", [500, 500, 50, 50].map(Arg::Int).into());
    rig.units();
    rig.request(surface, "set_input_region", vec![Arg::Object(region)]);
    rig.request(surface, "set_opaque_region", vec![Arg::Object(region)]);
    rig.commit(surface);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(rig.connection.end(), None);
    let unit = rig.units().remove(0);
    assert_eq!(unit.state.len(), 2);
    for request in &unit.state {
        let [WireArg::Region(ops)] = &request.args[..] else { panic!("{request:?}") };
        assert_eq!(ops.len(), 5001);
        assert_eq!(ops[5000], crate::value::RegionOp::Subtract(500, 500, 50, 50));
    }
}

#[test]
fn a_region_beyond_the_bound_becomes_smaller_and_never_larger() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let region = rig.id("wl_region");
    rig.request(compositor, "create_region", vec![Arg::NewId(region)]);
    let steps = |rig: &Rig| match &rig.connection.objects.of(region).unwrap().data {
        object::Data::Region(ops) => ops.len(),
        other => panic!("{other:?}"),
    };
    for n in 0..message::MAX_REGION_OPS as i32 + 10 {
        rig.request(region, "add", [n, 0, 1, 1].map(Arg::Int).into());
    }
    assert_eq!(steps(&rig), message::MAX_REGION_OPS);
    rig.request(region, "subtract", [0, 0, 5, 5].map(Arg::Int).into());
    assert_eq!(steps(&rig), 0);
}

#[test]
fn regression_more_frame_callbacks_than_may_wait_are_answered() {
    let mut rig = Rig::new();
    let (surface, _) = rig.window();
    let first = rig.frame(surface);
    for _ in 0..frames::MAX_FRAMES {
        rig.frame(surface);
    }
    assert_eq!(names(&rig.events()), [(first, "done"), (1, "delete_id")]);
    assert_eq!(rig.connection.end(), None);
}

/// A page of it may be one that another program serves, and a read of that waits for the program.
#[test]
fn regression_the_memory_of_a_process_is_taken_for_a_pool() {
    // A size that no pool has does not hide the file. A read of a device may wait, too.
    for (path, size) in [("/proc/self/mem", 4096), ("/proc/self/mem", 0), ("/dev/zero", 4096)] {
        let mut rig = Rig::new();
        let shm = rig.bind("wl_shm");
        let pool = rig.id("wl_shm_pool");
        let file = OwnedFd::from(std::fs::File::open(path).unwrap());
        rig.request(shm, "create_pool", vec![Arg::NewId(pool), Arg::Fd(file), Arg::Int(size)]);
        assert_eq!(rig.error(), Some((shm, 2)), "{path}");
    }
}
