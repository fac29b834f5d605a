//! Frames of videos as they come: shown with their update, or refused with it.

use std::time::Duration;

use wayferry_pixels::video::Frame;
use wayferry_pixels::{Content, Format, Rect, Video};

use crate::codec::{Encoder, Maker};
use crate::message::{ToApp, ToDisplay, UnitContent, WireId};

use super::rig::{Rig, size};

const HERE: Rect = Rect::new(20, 10, 150, 140);

/// A window of 200 × 160 pixels that shows grey.
struct Window {
    rig: Rig,
    surface: WireId,
    encoder: Encoder,
}

impl Window {
    fn new() -> Self {
        let mut rig = Rig::new();
        let surface = rig.surface();
        rig.paint(surface, size(200, 160), [90, 90, 90, 255]);
        rig.take_reported();
        Self { rig, surface, encoder: Encoder::new(HERE, 75).unwrap() }
    }

    /// The next frame of a video: all of one colour.
    fn frame(&mut self, level: u8, key: bool) -> Frame {
        let mut content = Content::new(size(200, 160), Format::Argb8888);
        content.fill(&[level, level, level, 255]);
        let (mut maker, interval) = (Maker::new(false), Duration::from_millis(33));
        let coming = self.encoder.frame(&mut maker, &content, HERE, 1_000_000, interval);
        let data = coming.unwrap().wait().unwrap();
        Frame { video: Video { stream: 1, rect: HERE, key }, fourth: 255, data }
    }

    /// An update that changes the corner, and brings these frames. Whether it was refused.
    fn show(&mut self, corner: u8, frames: &[Frame], fresh: bool) -> bool {
        let mut content = Content::new(size(200, 160), Format::Argb8888);
        content.fill(&[90, 90, 90, 255]);
        content.write_row(0, 0, &[corner; 4]);
        let (header, mut chunks) = self.rig.update(self.surface, content, fresh);
        frames.iter().for_each(|frame| frame.write(&mut chunks));
        let seq = header.seq;
        self.rig.deliver((header, chunks));
        let unit = self.rig.unit(self.surface, UnitContent::Update(seq));
        self.rig.say(&ToDisplay::Unit(unit));
        self.rig.assert_alive();
        for buffer in self.rig.busy.clone() {
            self.rig.release(buffer);
        }
        self.rig.turn();
        self.rig.take_reported().contains(&ToApp::Refresh { surface: self.surface })
    }

    /// What the compositor shows in the corner, in the middle of the video, and beside it.
    fn shown(&self) -> [u8; 3] {
        let pixels = &self.rig.shown.last().unwrap().pixels;
        [(0, 0), (80, 80), (190, 80)].map(|(x, y)| pixels[(y * 200 + x) * 4])
    }
}

fn near(level: u8, wanted: u8) -> bool {
    level.abs_diff(wanted) <= 2
}

#[test]
fn a_video_is_shown_frame_by_frame_beside_what_is_exact() {
    let mut window = Window::new();
    for (index, level) in (100..130).step_by(5).enumerate() {
        let frame = window.frame(level, index == 0);
        assert!(!window.show(level, &[frame], false));
        let [corner, video, beside] = window.shown();
        assert!((corner, beside) == (level, 90) && near(video, level), "{video} for {level}");
        let damage = &window.rig.shown.last().unwrap().damage;
        assert!(damage.contains(&[20, 10, 150, 140]), "{damage:?}");
    }
    assert!(!window.show(7, &[], false));
    let [corner, video, _] = window.shown();
    assert!(corner == 7 && near(video, 125), "it stays without a frame");
}

#[test]
fn wrong_frames_are_refused_with_their_update_and_a_fresh_one_heals_it() {
    type Change = fn(&mut Frame);
    let wrong: [Change; 6] = [
        |frame| frame.data = vec![1; 40],
        |frame| drop(frame.data.split_off(30)),
        |frame| frame.video.key = false,
        |frame| frame.video.rect.width -= 20,
        |frame| frame.video.rect.x += 100,
        |frame| frame.video.stream = 4,
    ];
    for (index, change) in wrong.into_iter().enumerate() {
        let mut window = Window::new();
        let mut frame = window.frame(120, true);
        change(&mut frame);
        assert!(window.show(1, &[frame], false), "fault {index}");
        assert_eq!(window.shown(), [90; 3], "nothing has changed");
        let next = window.frame(130, false);
        assert!(!window.show(2, &[next], false), "it waits for a fresh one");
        assert_eq!(window.shown(), [90; 3]);
        window.encoder = Encoder::new(HERE, 75).unwrap();
        let first = window.frame(140, true);
        assert!(!window.show(3, &[first], true));
        let [corner, video, _] = window.shown();
        assert!(corner == 3 && near(video, 140));
    }
}

#[test]
fn a_fresh_content_and_64_updates_without_a_frame_end_videos() {
    for (fresh, silence, over) in [(true, 0, true), (false, 63, false), (false, 64, true)] {
        let mut window = Window::new();
        let frame = window.frame(120, true);
        assert!(!window.show(1, &[frame], false));
        if fresh {
            assert!(!window.show(2, &[], true));
        }
        (0..silence).for_each(|count| assert!(!window.show(count, &[], false)));
        let next = window.frame(130, false);
        assert_eq!(window.show(99, &[next], false), over, "{silence}");
    }
}

#[test]
fn a_video_that_begins_ends_those_that_are_in_its_way() {
    let mut window = Window::new();
    let first = window.frame(120, true);
    assert!(!window.show(1, &[first], false));
    let mut other = Window::new();
    let mut in_the_way = other.frame(60, true);
    in_the_way.video.stream = 2;
    assert!(!window.show(2, &[in_the_way], false));
    assert!(near(window.shown()[1], 60));
    let next = window.frame(130, false);
    assert!(window.show(3, &[next], false));
}
