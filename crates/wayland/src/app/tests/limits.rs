//! Honest programs that have much of something: a limit holds them back, it does not end them.

use super::*;

/// A window of foot announces half a gibibyte that it hardly touches: what is announced costs nothing.
#[test]
fn regression_forty_pools_of_half_a_gibibyte_each_end_nobody() {
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
    assert!(rig.pipes.is_empty(), "nobody asked for {:?}", rig.pipes);
    // Another display may take them; one that is too large for an icon no display does.
    let large = rig.buffer(shm, 2000, 2, 9);
    iconic(&mut rig, manager, large);
    rig.connection.detach(rig.now);
    rig.connection.attach(rig.now, &desk_with_icons(), Compression::default());
    rig.collect();
    assert_eq!(rig.pipes.len(), 1);
    assert_eq!(rig.connection.end(), None);
}
