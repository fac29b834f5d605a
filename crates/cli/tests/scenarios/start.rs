//! The first round trips of a program, and those of each frame.

use crate::rig::{Far, picture};

#[test]
fn a_start_as_glfw_does_it_is_configured_inside_the_round_trip() {
    let far = Far::start(1);
    let mut client = far.client();
    let window = client.window_unconfigured("glfw").unwrap();
    client.commit(window);
    client.round_trip().unwrap();
    assert_eq!(client.configures(window), 1, "a program that draws now would violate the protocol");
    client.draw(window, &picture(3)).unwrap();
    let shown = far.stage.watch().commit(|commit| commit.attached).unwrap();
    assert_eq!(shown.checksum, picture(3).checksum());
    drop(client);
    far.end();
}

#[test]
fn a_sync_for_every_swap_needs_no_link() {
    let far = Far::start(2);
    let mut shown = far.window("swapping");
    let mut watch = far.stage.watch();
    // The sync after the first commit had to wait for its configure.
    shown.client.round_trip().unwrap();
    // What the link does not carry cannot be waited for.
    far.link.set_down(true);
    for swap in 1..=SWAPS {
        shown.client.draw(shown.pane, &picture(swap)).unwrap();
        shown.client.round_trip().unwrap();
    }
    far.link.set_down(false);
    let last = picture(SWAPS).checksum();
    watch.commit(|commit| commit.checksum == last).unwrap();
    // And with the link, as many syncs as would last a minute if each crossed it.
    for swap in 1..=SWAPS {
        shown.client.draw(shown.pane, &picture(SWAPS - swap)).unwrap();
        shown.client.round_trip().unwrap();
    }
    let last = picture(0).checksum();
    watch.commit(|commit| commit.checksum == last).unwrap();
    drop(shown);
    far.end();
}

const SWAPS: u64 = 300;
