//! What does not fit the link is shown lossily, and exactly when it rests.

use wayferry_stage::{Image, LinkConfig, StageEvent, Watch};

use crate::rig::{Far, from_now, rough};

/// A picture of slow changes and some grain, as cameras make them.
fn photo(seed: u64) -> Image {
    scene(seed, 0)
}

/// A moment of a video of such pictures.
fn scene(seed: u64, time: u32) -> Image {
    let mut image = Image::new(640, 480, 0);
    let mut state = seed;
    for y in 0..480 {
        for (x, pixel) in (0..).zip(image.row_mut(y)) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let grain = (state >> 62) as u32;
            let [red, green, blue] =
                [(x + y) / 5, x / 3, 255 - y / 2].map(|level: u32| (level + grain + 2 * time) & 0xff);
            *pixel = 0xff00_0000 | red << 16 | green << 8 | blue;
        }
    }
    image
}

/// Waits until the stage shows the image exactly; gives how many commits of its size that took.
fn until_exact(watch: &mut Watch, image: &Image) -> u32 {
    let size = Some((image.width(), image.height()));
    let mut commits = 0;
    let exact = watch.find(|stamped| match &stamped.event {
        StageEvent::Commit(commit) if commit.attached && commit.size == size => {
            commits += 1;
            (commit.checksum == image.checksum()).then_some(())
        }
        _ => None,
    });
    exact.unwrap();
    commits
}

#[test]
fn a_photograph_is_lossy_at_first_and_exact_when_it_rests() {
    let far = Far::start_lossy(LinkConfig { rate: Some(5_000_000), queue_bytes: 1 << 16, ..rough(9) });
    let mut shown = far.window("photograph");
    let mut watch = from_now(&far.stage);
    for seed in 1..3 {
        let image = photo(seed);
        shown.client.draw(shown.pane, &image).unwrap();
        let commits = until_exact(&mut watch, &image);
        assert!(commits > 2, "{commits} commits: nothing was lossy");
        assert!(far.stage.screenshot(shown.surface).is_some_and(|screen| screen == image));
    }
    drop(shown);
    far.end();
}

#[test]
fn a_video_is_shown_while_it_moves_and_exact_when_it_rests() {
    let far = Far::start_lossy(LinkConfig { rate: Some(5_000_000), queue_bytes: 1 << 16, ..rough(9) });
    let mut shown = far.window("video");
    let mut watch = from_now(&far.stage);
    for part in 0..2 {
        let mut image = scene(0, 0);
        for time in 0..60 {
            image = scene(time.into(), 60 * part + time);
            shown.client.ask_frame(shown.pane);
            shown.client.draw(shown.pane, &image).unwrap();
            shown.client.wait_frame(shown.pane).unwrap();
        }
        let info = far.info();
        assert!(info.contains("\"videos\": 1"), "{info}");
        let commits = until_exact(&mut watch, &image);
        assert!(commits > 20, "{commits} commits: it did not move");
        assert!(far.stage.screenshot(shown.surface).is_some_and(|screen| screen == image));
    }
    drop(shown);
    far.end();
}
