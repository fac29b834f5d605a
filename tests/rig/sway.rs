//! sway without a screen: the compositor with a seat, a clipboard and a way to ask what it shows.

use std::fs;

use serde_json::Value;

use super::{Compositor, Home, Launch, Picture, Pointer, Program, until};

/// See the module.
pub(crate) struct Sway {
    // Dropped in this order: clients of the compositor, the compositor, the directory with its sockets.
    keyboard: Option<Program>,
    process: Program,
    home: Home,
    display: String,
    ipc: String,
    size: (u32, u32),
}

/// A window of the compositor's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) id: i64,
    pub(crate) app_id: String,
    pub(crate) title: String,
    pub(crate) place: (i64, i64),
    pub(crate) width: i64,
    pub(crate) height: i64,
    pub(crate) focused: bool,
}

impl Sway {
    /// Starts one with a 1280 × 720 output, a seat with a keyboard, and nothing on it.
    pub(crate) fn start() -> Self {
        Self::with_output(1280, 720)
    }

    /// As [`Self::start`], with an output of this size.
    pub(crate) fn with_output(width: u32, height: u32) -> Self {
        let home = Home::new();
        let output = format!("output HEADLESS-1 resolution {width}x{height} position 0 0\n");
        let config = home.write("sway.conf", output + CONFIG);
        let process = home
            .launch("sway")
            .args(["-c", config.to_str().expect("a plain path")])
            .env("WLR_BACKENDS", "headless")
            .env("WLR_RENDERER", "pixman")
            .env("WLR_LIBINPUT_NO_DEVICES", "1")
            .start();
        let mut sway = Self {
            keyboard: None,
            process,
            home,
            display: String::new(),
            ipc: String::new(),
            size: (width, height),
        };
        sway.ipc = until("sway's command socket", || {
            sway.process.must_run();
            sway.socket(|name| name.starts_with("sway-ipc."))
        });
        sway.display = until("sway's display", || {
            sway.process.must_run();
            sway.socket(|name| name.starts_with("wayland-") && !name.ends_with(".lock"))
        });
        sway.ipc = sway.home.runtime().join(&sway.ipc).display().to_string();
        // It may exist for a moment before sway listens at it.
        until("sway's output", || {
            let outputs = sway.ask(&["-t", "get_outputs"])?;
            (outputs.as_array()?.len() == 1).then_some(())
        });
        sway.hold_keyboard();
        sway
    }

    /// Asks or commands sway; gives its answer.
    pub(crate) fn message(&self, words: &[&str]) -> Value {
        let answer = self.swaymsg(words).run();
        serde_json::from_slice(&answer).unwrap_or(Value::Null)
    }

    /// Ends the compositor as a crash would.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// The windows that are shown.
    pub(crate) fn windows(&self) -> Vec<Window> {
        let mut found = Vec::new();
        collect(&self.message(&["-t", "get_tree"]), &mut found);
        found
    }

    /// Waits until a window fits.
    pub(crate) fn window(&self, what: &str, fits: impl Fn(&Window) -> bool) -> Window {
        until(&format!("a window: {what}"), || self.windows().into_iter().find(&fits))
    }

    /// Waits until no window is left.
    pub(crate) fn empty(&self) {
        until("the last window to go", || self.windows().is_empty().then_some(()));
    }

    /// Gives a floating window this size; returns whether it had it already. To be repeated until it has: when a
    /// program answers late, sway falls back to the size that it drew last.
    pub(crate) fn resize(&self, id: i64, (width, height): (i64, i64)) -> bool {
        let has = |window: &Window| window.id == id && (window.width, window.height) == (width, height);
        let done = self.windows().iter().any(has);
        if !done {
            self.message(&[&format!("[con_id={id}] resize set {width} {height}, move position 50 50")]);
        }
        done
    }

    /// Types a text into the focused window.
    pub(crate) fn type_text(&self, text: &str) {
        self.launch("wtype").arg(text).run();
    }

    /// Presses what `wtype`'s arguments say, as `-k Return` or `-M ctrl v -m ctrl`.
    pub(crate) fn keys(&self, words: &[&str]) {
        self.launch("wtype").args(words.iter().copied()).run();
    }

    /// The width and height of its output.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.size
    }

    /// A pointer that lives as long as the value.
    pub(crate) fn pointer(&self) -> Pointer {
        Pointer::new(self, self.size.0, self.size.1)
    }

    /// wtype makes a keyboard, types and removes it. One that stays makes the seat what it is on a desk: a program
    /// knows the keyboard before the first key, and focus comes when a window is mapped.
    fn hold_keyboard(&mut self) {
        self.keyboard = Some(self.launch("wtype").args(["-s", "3600000"]).start());
        until("a keyboard on the seat", || {
            let seats = self.message(&["-t", "get_seats"]);
            (seats[0]["capabilities"].as_i64()? & KEYBOARD != 0).then_some(())
        });
    }

    fn ask(&self, words: &[&str]) -> Option<Value> {
        serde_json::from_slice(&self.swaymsg(words).text()?).ok()
    }

    fn swaymsg(&self, words: &[&str]) -> Launch {
        self.launch("swaymsg").arg("-r").args(words.iter().copied()).env("SWAYSOCK", &self.ipc)
    }

    fn socket(&self, fits: impl Fn(&str) -> bool) -> Option<String> {
        let entries = fs::read_dir(self.home.runtime()).ok()?;
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).find(|name| fits(name))
    }
}

impl Compositor for Sway {
    fn home(&self) -> &Home {
        &self.home
    }

    fn display(&self) -> &str {
        &self.display
    }

    fn screenshot(&self) -> Picture {
        Picture::from_ppm(&self.launch("grim").args(["-t", "ppm", "-"]).run())
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn collect(node: &Value, found: &mut Vec<Window>) {
    if node["pid"].is_i64() && node["type"] != "output" {
        found.push(Window {
            id: node["id"].as_i64().unwrap_or_default(),
            app_id: node["app_id"].as_str().unwrap_or_default().to_owned(),
            title: node["name"].as_str().unwrap_or_default().to_owned(),
            place: (number(&node["rect"]["x"]), number(&node["rect"]["y"])),
            width: number(&node["rect"]["width"]),
            height: number(&node["rect"]["height"]),
            focused: node["focused"].as_bool().unwrap_or_default(),
        });
    }
    for key in ["nodes", "floating_nodes"] {
        node[key].as_array().into_iter().flatten().for_each(|child| collect(child, found));
    }
}

/// `wl_seat.capability.keyboard`.
const KEYBOARD: i64 = 2;

const CONFIG: &str = "\
output * bg #336699 solid_color
default_border none
default_floating_border none
focus_follows_mouse no
xwayland disable
";
