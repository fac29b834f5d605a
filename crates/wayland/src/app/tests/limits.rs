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
