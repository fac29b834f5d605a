//! weston without a screen: the reference compositor. It has no seat, so it is for pixels only.

use std::fs;

use super::{Compositor, Home, Picture, Program, until};

/// See the module.
pub(crate) struct Weston {
    // Dropped in this order: the compositor, then the directory with its socket.
    process: Program,
    home: Home,
}

impl Weston {
    /// Starts one with a 1280 × 720 output and neither panel nor clock on it.
    pub(crate) fn start() -> Self {
        let home = Home::new();
        let config = home.write("weston.ini", CONFIG);
        let process = home
            .launch("weston")
            .args([
                "--backend=headless-backend.so",
                "--use-pixman",
                "--width=1280",
                "--height=720",
                "--idle-time=0",
            ])
            .args(["--debug", &format!("--socket={DISPLAY}"), &format!("--config={}", config.display())])
            .start();
        let mut weston = Self { process, home };
        until("weston's display", || {
            weston.process.must_run();
            weston.home.runtime().join(DISPLAY).exists().then_some(())
        });
        weston
    }
}

impl Compositor for Weston {
    fn home(&self) -> &Home {
        &self.home
    }

    fn display(&self) -> &str {
        DISPLAY
    }

    fn screenshot(&self) -> Picture {
        self.launch("weston-screenshooter").run();
        let home = fs::read_dir(self.home.path()).expect("the home");
        let name = |name: &str| name.starts_with("wayland-screenshot-");
        let shot = home
            .filter_map(Result::ok)
            .find(|entry| entry.file_name().to_str().is_some_and(name))
            .expect("weston's screenshot");
        let picture = Picture::from_png(&shot.path()).expect("a readable screenshot");
        fs::remove_file(shot.path()).expect("the screenshot's removal");
        picture
    }
}

const DISPLAY: &str = "w0";

const CONFIG: &str = "\
[core]
idle-time=0
[shell]
panel-position=none
background-color=0xff336699
locking=false
startup-animation=none
close-animation=none
animation=none
";
