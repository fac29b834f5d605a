//! Pictures: what a client draws is what a screenshot shows.

mod common;

use common::{checkers, start};
use wayferry_stage::{Config, Format, Frames, Image, Input, Rect, Role, StageEvent};

#[test]
fn a_screenshot_is_what_the_client_drew() {
    let directory = common::Directory::new("drew");
    let socket = directory.path().join("wayland-0");
    let stage =
        wayferry_stage::Stage::start(Config { socket: Some(socket.clone()), ..Config::default() }).unwrap();
    let mut client = wayferry_stage::Client::connect(&socket).unwrap();
    let mut watch = stage.watch();
    let window = client.window("picture", 300, 200).unwrap();
    let mut image = checkers(300, 200);
    client.draw(window, &image).unwrap();
    let commit = watch.commit(|commit| commit.attached).unwrap();
    assert_eq!(commit.checksum, image.checksum());
    assert_eq!(commit.title.as_deref(), Some("picture"));
    assert_eq!(stage.screenshot(commit.surface).unwrap().difference(&image), None);
    assert_eq!(stage.screenshot_window(commit.surface).unwrap().difference(&image), None);
    assert_eq!(stage.screenshot_output().crop(0, 0, 300, 200).difference(&image), None);
    // Small changes alternate between two buffers; each is complete.
    for step in 0..6 {
        let part = Rect::new(step * 40, step * 20, 30, 30);
        image.fill_rect(part.x, part.y, part.width, part.height, 0xffaa_0000 + step as u32);
        client.draw_part(window, &image, &[part]).unwrap();
        let commit = watch.commit(|commit| commit.attached).unwrap();
        assert_eq!((commit.checksum, commit.damage), (image.checksum(), part));
        assert_eq!(stage.screenshot(commit.surface).unwrap().difference(&image), None);
    }
    drop(stage);
    assert!(!socket.exists());
}

#[test]
fn alpha_mixes_with_what_is_below() {
    let (stage, mut client) = start(Config { background: 0xff00_0000, ..Config::default() });
    let window = client.window("alpha", 20, 20).unwrap();
    client.set_alpha(window, true);
    client.draw(window, &Image::new(20, 20, 0x8040_2000)).unwrap();
    let commit = stage.watch().commit(|commit| commit.attached).unwrap();
    assert_eq!(stage.screenshot(commit.surface).unwrap().pixel(3, 3), Some(0x8040_2000));
    assert_eq!(stage.screenshot_output().pixel(3, 3), Some(0xff40_2000));
}

#[test]
fn a_change_without_damage_is_not_seen() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("damage", 64, 64).unwrap();
    let mut image = checkers(64, 64);
    client.draw(window, &image).unwrap();
    let before = watch.commit(|commit| commit.attached).unwrap();
    image.fill_rect(0, 0, 64, 64, 0xff00_ff00);
    client.attach(window, &image, &[Rect::new(0, 0, 64, 64)]).unwrap();
    client.damage(window, &[Rect::new(10, 10, 5, 5)]);
    client.commit(window);
    client.flush().unwrap();
    let after = watch.commit(|commit| commit.attached).unwrap();
    assert_ne!(before.checksum, after.checksum);
    let picture = stage.screenshot(after.surface).unwrap();
    assert_eq!(picture.pixel(12, 12), Some(0xff00_ff00));
    assert_eq!(picture.pixel(30, 30), checkers(64, 64).pixel(30, 30));
}

#[test]
fn frame_callbacks_come_with_the_tick() {
    let (stage, mut client) = start(Config { frames: Frames::Manual, ..Config::default() });
    let mut watch = stage.watch();
    let window = client.window("frames", 32, 32).unwrap();
    client.ask_frame(window);
    client.draw(window, &checkers(32, 32)).unwrap();
    let commit = watch.commit(|commit| commit.attached).unwrap();
    assert_eq!(commit.callbacks, 1);
    client.round_trip().unwrap();
    assert!(client.frame_pending(window));
    stage.set_hidden(commit.surface, true);
    stage.tick();
    client.round_trip().unwrap();
    assert!(client.frame_pending(window));
    stage.set_hidden(commit.surface, false);
    stage.tick();
    client.round_trip().unwrap();
    assert!(!client.frame_pending(window));
    assert_eq!(client.counts().callbacks, 1);
}

#[test]
fn buffers_are_released_at_the_commit() {
    let (stage, mut client) = start(Config { frames: Frames::Manual, ..Config::default() });
    let window = client.window("release", 32, 32).unwrap();
    for _ in 0..20 {
        client.draw(window, &checkers(32, 32)).unwrap();
    }
    client.round_trip().unwrap();
    assert_eq!(client.counts().releases, 20);
    drop(stage);
}

#[test]
fn a_synchronised_child_waits_for_its_parent() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("tree", 100, 100).unwrap();
    let child = client.subsurface(window, 10, 20).unwrap();
    client.draw(child, &Image::new(30, 30, 0xffff_0000)).unwrap();
    let cached = watch.commit(|commit| commit.role == Some(Role::Subsurface)).unwrap();
    assert!(cached.cached);
    assert_eq!(stage.screenshot(cached.surface), None);
    client.draw(window, &Image::new(100, 100, 0xff00_00ff)).unwrap();
    let parent = watch.commit(|commit| commit.role == Some(Role::Toplevel)).unwrap().surface;
    let applied = |event: &StageEvent| matches!(event, StageEvent::Applied { .. });
    watch.until(applied).unwrap();
    let mut expected = Image::new(100, 100, 0xff00_00ff);
    expected.fill_rect(10, 20, 30, 30, 0xffff_0000);
    assert_eq!(stage.screenshot_window(parent).unwrap().difference(&expected), None);
    // Colours that come together with the parent's, or not at all.
    client.draw(child, &Image::new(30, 30, 0xff00_ff00)).unwrap();
    watch.commit(|commit| commit.cached).unwrap();
    assert_eq!(stage.screenshot_window(parent).unwrap().difference(&expected), None);
    client.set_synchronised(child, false);
    client.round_trip().unwrap();
    expected.fill_rect(10, 20, 30, 30, 0xff00_ff00);
    assert_eq!(stage.screenshot_window(parent).unwrap().difference(&expected), None);
    // Now by itself; its position still waits for the parent.
    client.set_position(child, 50, 50);
    client.draw(child, &Image::new(30, 30, 0xffff_ffff)).unwrap();
    watch.commit(|commit| commit.role == Some(Role::Subsurface)).unwrap();
    expected.fill_rect(10, 20, 30, 30, 0xffff_ffff);
    assert_eq!(stage.screenshot_window(parent).unwrap().difference(&expected), None);
    client.place_below(child, window);
    client.commit(window);
    client.round_trip().unwrap();
    assert_eq!(stage.screenshot_window(parent).unwrap().difference(&Image::new(100, 100, 0xff00_00ff)), None);
}

#[test]
fn scale_transform_and_viewport_are_composed() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("turned", 0, 0).unwrap();
    // Left half red, right half blue; turned by a quarter the wire has red below blue.
    let mut turned = Image::new(20, 40, 0xff00_00ff);
    turned.fill_rect(0, 20, 20, 20, 0xffff_0000);
    let mut upright = Image::new(40, 20, 0xff00_00ff);
    upright.fill_rect(0, 0, 20, 20, 0xffff_0000);
    client.set_transform(window, 1);
    client.draw(window, &turned).unwrap();
    let surface = watch.commit(|commit| commit.attached).unwrap().surface;
    assert_eq!(stage.screenshot_window(surface).unwrap().difference(&upright), None);
    client.set_transform(window, 0);
    client.set_scale(window, 2);
    client.draw(window, &upright).unwrap();
    watch.commit(|commit| commit.attached).unwrap();
    let mut half = Image::new(20, 10, 0xff00_00ff);
    half.fill_rect(0, 0, 10, 10, 0xffff_0000);
    assert_eq!(stage.screenshot_window(surface).unwrap().difference(&half), None);
    client.set_scale(window, 1);
    client.set_viewport(window, Some((20.0, 0.0, 10.0, 10.0)), Some((30, 30))).unwrap();
    client.draw(window, &upright).unwrap();
    watch.commit(|commit| commit.attached).unwrap();
    let blue = Image::new(30, 30, 0xff00_00ff);
    assert_eq!(stage.screenshot_window(surface).unwrap().difference(&blue), None);
}

#[test]
fn all_offered_formats_become_the_same_picture() {
    let (stage, mut client) = start(Config { formats: Format::ALL.to_vec(), ..Config::default() });
    let mut watch = stage.watch();
    let window = client.window("formats", 1, 1).unwrap();
    let orange = Image::new(1, 1, 0xffff_8200);
    let codes = client.formats();
    // Code of the format and the bytes of one orange pixel in it.
    let pixels: [(u32, Vec<u8>); 5] = [
        (1, vec![0x00, 0x82, 0xff, 0x00]),
        (0x3432_4241, vec![0xff, 0x82, 0x00, 0xff]),
        (0x3432_4258, vec![0xff, 0x82, 0x00, 0x00]),
        (0x3631_4752, (0xf800u16 | 32 << 5).to_le_bytes().to_vec()),
        (0x3033_5258, (1023u32 << 20 | 0x208 << 10).to_le_bytes().to_vec()),
    ];
    for (code, bytes) in pixels {
        assert!(codes.contains(&code), "{code:#x}");
        let mut row = bytes.clone();
        row.resize(4, 0);
        client.draw_raw(window, code, (1, 1, 4), &row).unwrap();
        let commit = watch.commit(|commit| commit.attached).unwrap();
        let picture = stage.screenshot(commit.surface).unwrap();
        assert_eq!(picture.difference(&orange), None, "{code:#x}");
    }
}

#[test]
fn a_short_file_ends_the_client_and_not_the_stage() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("short", 1, 1).unwrap();
    client.draw_raw(window, 1, (1, 1, 4), &[0; 4]).unwrap();
    watch.commit(|commit| commit.attached).unwrap();
    // A pool larger than its file.
    assert!(client.draw_short(window).is_err() || client.round_trip().is_err());
    let violation = watch
        .find(|it| match &it.event {
            StageEvent::ClientGone { violation, .. } => Some(violation.clone()),
            _ => None,
        })
        .unwrap();
    assert!(violation.unwrap().contains("shorter"));
    let mut other = wayferry_stage::Client::from_stream(stage.connect().unwrap()).unwrap();
    other.round_trip().unwrap();
}

#[test]
fn a_window_can_go_and_come_back() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("again", 16, 16).unwrap();
    client.draw(window, &checkers(16, 16)).unwrap();
    let surface = watch.commit(|commit| commit.attached).unwrap().surface;
    assert_eq!(stage.windows().len(), 1);
    client.attach_none(window);
    client.flush().unwrap();
    watch.until(|event| *event == StageEvent::Unmapped { surface }).unwrap();
    assert!(stage.windows().is_empty());
    assert_eq!(stage.screenshot(surface), None);
    // A configure of the first life may still be on its way.
    client.round_trip().unwrap();
    let before = client.configures(window);
    client.commit(window);
    client.wait_configure(window, before + 1).unwrap();
    client.draw(window, &checkers(16, 16)).unwrap();
    watch.commit(|commit| commit.attached).unwrap();
    assert_eq!(stage.windows().len(), 1);
    client.destroy(window);
    client.flush().unwrap();
    watch.until(|event| *event == StageEvent::Destroyed { surface }).unwrap();
    assert!(stage.windows().is_empty());
}

#[test]
fn a_buffer_before_the_first_configure_is_a_violation() {
    let (stage, mut client) = start(Config::default());
    let window = client.window_unconfigured("early").unwrap();
    client.draw(window, &checkers(16, 16)).unwrap();
    let error = client.round_trip().unwrap_err();
    assert!(error.to_string().contains("before a configure"), "{error}");
    let gone = stage.watch().until(|event| matches!(event, StageEvent::ClientGone { .. })).unwrap();
    assert!(matches!(gone.event, StageEvent::ClientGone { violation: Some(_), .. }));
}

#[test]
fn resize_and_close_reach_the_client() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("resize", 64, 48).unwrap();
    assert_eq!(client.size(window), (64, 48));
    client.draw(window, &checkers(64, 48)).unwrap();
    let surface = watch.commit(|commit| commit.attached).unwrap().surface;
    client.take_inputs();
    let serial = stage.configure(surface, 200, 100).unwrap();
    client.wait_input(|input| *input == Input::Configure { pane: window, size: (200, 100) }).unwrap();
    client.draw(window, &checkers(200, 100)).unwrap();
    watch.until(|event| *event == StageEvent::Ack { surface, serial }).unwrap();
    watch.commit(|commit| commit.size == Some((200, 100))).unwrap();
    assert_eq!(stage.window("resize").unwrap().place, Rect::new(0, 0, 200, 100));
    stage.close(surface);
    client.wait_input(|input| matches!(input, Input::Close { .. })).unwrap();
    assert!(client.closed(window));
}

#[test]
fn a_start_as_glfw_does_it() {
    let (stage, mut client) = start(Config::default());
    let window = client.window_unconfigured("glfw").unwrap();
    client.commit(window);
    client.round_trip().unwrap();
    assert_eq!(client.configures(window), 1);
    client.draw(window, &checkers(64, 64)).unwrap();
    stage.watch().commit(|commit| commit.attached).unwrap();
}
