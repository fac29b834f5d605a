//! An input device that a test plays, by a small program that talks to the compositor.
//!
//! Knows no device. It exists as long as this value, so the seat keeps its capability.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::Compositor;
use super::home::{MARK, unprivileged};
use super::program::SYSTEM_PATH;

/// See the module.
pub(crate) struct Device {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Device {
    /// Makes one on a compositor, of this source.
    pub(crate) fn new(compositor: &impl Compositor, source: &str, arguments: &[String]) -> Self {
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
        command.args(["-c", &format!("{WIRE}{source}")]).args(arguments);
        command
            .env("XDG_RUNTIME_DIR", compositor.home().runtime())
            .env("WAYLAND_DISPLAY", compositor.display());
        command.env("PATH", SYSTEM_PATH).env(MARK, compositor.home().path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 for the device");
        let commands = child.stdin.take().expect("its stdin");
        let answers = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut device = Self { child, commands, answers };
        device.done();
        device
    }

    /// Has it do something, and waits until the compositor knows.
    pub(crate) fn act(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("the device's attention");
        self.done();
    }

    fn done(&mut self) {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the device's answer");
        assert_eq!(answer, "done\n", "the device failed");
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const WIRE: &str = include_str!("../tools/wire.py");
