//! Looks: what is seen of a part of a window, and when.

mod common;

use common::{checkers, start};
use wayferry_stage::{Config, Image, Look, Rect, Seen};

/// Pictures that have been seen, once there are so many.
fn pictures(look: &Look, count: usize) -> Vec<Image> {
    let mut seen: Vec<Seen> = Vec::new();
    while seen.len() < count {
        seen.extend(look.take());
        std::thread::yield_now();
    }
    assert!(seen.is_sorted_by_key(|seen| seen.time));
    seen.into_iter().map(|seen| seen.picture).collect()
}

#[test]
fn a_look_sees_what_lies_over_the_window_and_only_changes_of_its_part() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("looked at", 60, 40).unwrap();
    let mut image = checkers(60, 40);
    client.draw(window, &image).unwrap();
    let surface = watch.commit(|commit| commit.attached).unwrap().surface;
    let part = Rect::new(10, 20, 30, 8);
    let look = stage.look(surface, part);
    let cut = |image: &Image| image.crop(10, 20, 30, 8);
    assert_eq!(pictures(&look, 1), [cut(&image)]);
    // Beside it, then inside of it.
    image.fill_rect(0, 0, 60, 10, 0xff00_00ff);
    client.draw(window, &image).unwrap();
    image.fill_rect(12, 22, 4, 4, 0xff00_ff00);
    client.draw(window, &image).unwrap();
    assert_eq!(pictures(&look, 1), [cut(&image)]);
    let above = client.subsurface(window, 20, 20).unwrap();
    client.set_synchronised(above, false);
    client.commit(window);
    client.draw(above, &Image::new(8, 8, 0xffff_0000)).unwrap();
    let mut covered = image.clone();
    covered.fill_rect(20, 20, 8, 8, 0xffff_0000);
    assert_eq!(pictures(&look, 1), [cut(&covered)]);
    client.destroy(above);
    client.round_trip().unwrap();
    assert_eq!(pictures(&look, 1), [cut(&image)]);
}

#[test]
fn a_reader_that_falls_behind_sees_the_first_pictures_and_no_more() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let window = client.window("looked at", 8, 8).unwrap();
    let draw = |client: &mut wayferry_stage::Client, colour: u32| {
        client.draw(window, &Image::new(8, 8, 0xff00_0000 | colour)).unwrap();
    };
    draw(&mut client, 0);
    let surface = watch.commit(|commit| commit.attached).unwrap().surface;
    let look = stage.look(surface, Rect::new(0, 0, 8, 8));
    for colour in 1..1100 {
        draw(&mut client, colour);
        watch.commit(|commit| commit.attached).unwrap();
        // A turn of its own for each.
        stage.windows();
    }
    let seen = look.take();
    assert!(seen.len() <= 1024, "{}", seen.len());
    draw(&mut client, 5000);
    watch.commit(|commit| commit.attached).unwrap();
    stage.windows();
    assert_eq!(look.take(), []);
}
