//! A virtual pointer that a test moves. It exists as long as this value, so the seat keeps its capability.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::Compositor;
use super::home::{MARK, unprivileged};
use super::program::SYSTEM_PATH;

/// See the module.
pub(crate) struct Pointer {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Pointer {
    /// Makes one on a compositor whose output has this size.
    pub(crate) fn new(compositor: &impl Compositor, width: u32, height: u32) -> Self {
        let mut command = match unprivileged() {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args([&format!("--reuid={user}"), &format!("--regid={user}")]);
                command.args(["--clear-groups", "--pdeathsig=KILL", "--", "python3"]);
                command
            }
            None => Command::new("python3"),
        };
        // Through stdin comes the conversation, so the source goes on the command line: the checkout may be out of
        // reach.
        command.args(["-c", SOURCE, &width.to_string(), &height.to_string()]);
        command
            .env("XDG_RUNTIME_DIR", compositor.home().runtime())
            .env("WAYLAND_DISPLAY", compositor.display());
        command.env("PATH", SYSTEM_PATH).env(MARK, compositor.home().path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 for the pointer");
        let commands = child.stdin.take().expect("its stdin");
        let answers = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut pointer = Self { child, commands, answers };
        pointer.done();
        pointer
    }

    pub(crate) fn move_to(&mut self, x: u32, y: u32) {
        self.act(&format!("move {x} {y}"));
    }

    pub(crate) fn press(&mut self) {
        self.act("press");
    }

    pub(crate) fn release(&mut self) {
        self.act("release");
    }

    pub(crate) fn click(&mut self, x: u32, y: u32) {
        self.move_to(x, y);
        self.press();
        self.release();
    }

    /// Turns the wheel by whole steps.
    pub(crate) fn wheel(&mut self, steps: i32) {
        self.act(&format!("wheel {steps}"));
    }

    /// Scrolls as a touchpad does.
    pub(crate) fn scroll(&mut self, amount: f64) {
        self.act(&format!("axis {amount}"));
    }

    fn act(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("the pointer's attention");
        self.done();
    }

    fn done(&mut self) {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the pointer's answer");
        assert_eq!(answer, "done\n", "the pointer failed");
    }
}

impl Drop for Pointer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SOURCE: &str = include_str!("../tools/virtual-pointer.py");
