//! What the demo shows: the pictures of its stages beside each other, a line of text under each, one under all.
//!
//! It is the same in the window on the user's desktop and in the picture at the end. Keys that the user types into the
//! window go to every stage. Invariant: what is shown has come through the sessions; the board adds text alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wayferry_stage::{Client, ClientError, Demo, Font, Image, Input, Stage};

/// See the module.
pub(super) struct Board {
    stages: Vec<Arc<Stage>>,
    lines: Mutex<Lines>,
    font: Font,
    /// Whether the user has typed.
    typed: AtomicBool,
}

#[derive(Default)]
struct Lines {
    under_each: Vec<String>,
    under_all: String,
}

impl Board {
    pub(super) fn new(stages: Vec<Arc<Stage>>) -> Self {
        Self { stages, lines: Mutex::default(), font: Font::new(2.0), typed: AtomicBool::new(false) }
    }

    /// What is told of each stage.
    pub(super) fn tell_each(&self, lines: Vec<String>) {
        self.lines().under_each = lines;
    }

    /// What is told of all.
    pub(super) fn tell_all(&self, line: &str) {
        line.clone_into(&mut self.lines().under_all);
    }

    /// Whether the user has typed into the window.
    pub(super) fn was_typed_into(&self) -> bool {
        self.typed.load(Ordering::Relaxed)
    }

    /// As it is now; `None` before there is a window on a stage.
    pub(super) fn picture(&self) -> Option<Image> {
        let shown = |stage: &Arc<Stage>| stage.screenshot_window(stage.windows().first()?.surface);
        let pictures: Vec<_> = self.stages.iter().map(shown).collect();
        pictures.iter().any(Option::is_some).then(|| self.compose(&pictures))
    }

    fn compose(&self, pictures: &[Option<Image>]) -> Image {
        let (width, height) = self.size();
        let mut board = Image::new(width, height, BACKGROUND);
        let lines = self.lines();
        for (index, picture) in pictures.iter().enumerate() {
            let left = index as i32 * (PANEL + GAP);
            if let Some(picture) = picture {
                copy(&mut board, picture, left as usize);
            }
            if let Some(line) = lines.under_each.get(index) {
                self.font.draw(&mut board, (left + MARGIN, Demo::HEIGHT as i32 + 9), BRIGHT, line);
            }
        }
        let below = (MARGIN, Demo::HEIGHT as i32 + LINE + 9);
        self.font.draw(&mut board, below, GOLD, &lines.under_all);
        board
    }

    /// Width and height in pixels.
    fn size(&self) -> (u32, u32) {
        let count = self.stages.len() as i32;
        ((count * (PANEL + GAP) - GAP) as u32, Demo::HEIGHT + 2 * LINE as u32)
    }

    /// Shows it on a compositor until its window is closed: a script for [`wayferry_stage::Program`].
    ///
    /// # Errors
    /// As [`Client::draw`].
    pub(super) fn show(&self, client: &mut Client) -> Result<(), ClientError> {
        let window = client.window_unconfigured(TITLE)?;
        let (width, height) = self.size();
        client.set_fixed_size(window, width as i32, height as i32);
        client.commit(window);
        client.wait_configure(window, 1)?;
        while !client.closed(window) {
            for input in client.take_inputs() {
                self.pass(&input);
            }
            // A window that the user cannot see gets no frames, and draws none.
            if client.frame_pending(window) {
                client.dispatch(PATIENCE)?;
                continue;
            }
            let picture = self.picture().unwrap_or_else(|| self.compose(&[]));
            client.ask_frame(window);
            client.draw(window, &picture)?;
        }
        Ok(())
    }

    fn pass(&self, input: &Input) {
        if let Input::Key { code, pressed, .. } = input {
            self.typed.store(true, Ordering::Relaxed);
            for stage in &self.stages {
                stage.key(*code, *pressed);
            }
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies an opaque picture to the top of another, cut to its width.
fn copy(board: &mut Image, picture: &Image, left: usize) {
    for y in 0..picture.height().min(Demo::HEIGHT) {
        let row = &mut board.row_mut(y)[left..];
        let width = row.len().min(picture.width() as usize);
        row[..width].copy_from_slice(&picture.row(y)[..width]);
    }
}

/// Title of the window.
const TITLE: &str = "Wayferry demo";

/// Width of a stage, and what is between two, in pixels.
const PANEL: i32 = Demo::WIDTH as i32;
const GAP: i32 = 8;
/// Height of a line of text with what is around it; from the edge to its begin.
const LINE: i32 = 34;
const MARGIN: i32 = 24;

const BACKGROUND: u32 = 0xff08_0d16;
const BRIGHT: u32 = 0xfff4_f7fa;
const GOLD: u32 = 0xffff_c857;

/// How long to wait for a frame before the order to stop is looked at again.
const PATIENCE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use wayferry_stage::{Config, Endpoint, Program, StageEvent};

    use super::*;

    #[test]
    fn pictures_stand_side_by_side_above_their_lines() {
        let stages: Vec<_> = [(); 2].map(|()| Arc::new(Stage::start(Config::default()).unwrap())).into();
        let board = Board::new(stages.clone());
        assert_eq!(board.picture(), None, "nothing is shown yet");
        let programs: Vec<_> = ["One", "Two"]
            .into_iter()
            .zip(&stages)
            .map(|(name, stage)| {
                let demo =
                    Demo { name: name.into(), frames: Some(1), types_itself: false, ..Demo::default() };
                let endpoint = Endpoint::Stream(stage.connect().unwrap());
                let mut watch = stage.watch();
                let program = Program::start(endpoint, move |client| {
                    demo.run(client)?;
                    // Its window stays until it is stopped.
                    loop {
                        client.next_input()?;
                    }
                });
                watch.commit(|commit| commit.attached).unwrap();
                program.unwrap()
            })
            .collect();
        let bare = board.picture().unwrap();
        assert_eq!((bare.width(), bare.height()), (1288, 668));
        let part = |image: &Image, x, y, width, height| image.crop(x, y, width, height);
        assert_ne!(part(&bare, 24, 24, 300, 30), part(&bare, 672, 24, 300, 30), "each has its name");
        board.tell_each(vec!["left".into(), "right".into()]);
        board.tell_all("below");
        let told = board.picture().unwrap();
        assert_eq!(part(&bare, 0, 0, 1288, 600), part(&told, 0, 0, 1288, 600), "the text hides nothing");
        for (x, y) in [(0, 600), (648, 600), (0, 634)] {
            assert_ne!(part(&bare, x, y, 640, 34), part(&told, x, y, 640, 34), "a line at {x}, {y}");
        }
        drop(programs);
    }

    #[test]
    fn keys_of_the_window_reach_every_stage() {
        let stages: Vec<_> = [(); 2].map(|()| Arc::new(Stage::start(Config::default()).unwrap())).into();
        let mut watches: Vec<_> = stages.iter().map(|stage| stage.watch()).collect();
        let board = Arc::new(Board::new(stages));
        let desktop = Stage::start(Config::default()).unwrap();
        let mut watch = desktop.watch();
        let shown = Arc::clone(&board);
        let window =
            Program::start(Endpoint::Stream(desktop.connect().unwrap()), move |client| shown.show(client));
        let surface = watch.commit(|commit| commit.attached).unwrap().surface;
        assert!(!board.was_typed_into());
        desktop.type_text("a");
        for watch in &mut watches {
            watch.until(|event| matches!(event, StageEvent::Key { pressed: true, .. })).unwrap();
        }
        assert!(board.was_typed_into());
        desktop.close(surface);
        window.unwrap().join().unwrap();
    }
}
