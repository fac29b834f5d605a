//! Files that another program serves (FUSE): such a program may stop, and then nothing that is asked of them is
//! answered.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Home, Program, Session, Sway, until};

#[test]
#[ignore = "needs the right to mount: `make test-full` runs it"]
fn a_file_that_a_stopped_program_serves_never_stops_the_session() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    // Ended after the file system, which it waits for otherwise.
    let mut program;
    let mount = Mount::start(session.home());
    let home = session.home();
    let script = home.write("fuse-memory.py", include_str!("tools/fuse-memory.py"));
    let [script, memory, stopped] =
        [script, mount.at.join("memory"), home.file("stopped")].map(|path| path.display().to_string());
    program = session.launch("python3").privileged().args([&*script, &memory, &stopped]).start();
    program.first_line();
    kill_process(mount.process, Signal::STOP).expect("of our own");
    home.write("stopped", "");
    let said = until("an answer", || Some(program.stdout()).filter(|said| said.lines().count() > 1));
    // wl_shm's own error `invalid_fd`.
    assert!(said.contains("\n3 2 ") && said.contains("a file that a program serves"), "{said}");
    let mut foot = session.launch("foot").arg("cat").start();
    sway.window("foot", |_| true);
    foot.must_run();
    session.must_run();
}

/// A file system and the program that serves it, which may be stopped.
struct Mount {
    process: Pid,
    at: PathBuf,
    _program: Program,
}

impl Mount {
    /// One with a file `memory` of a page.
    fn start(home: &Home) -> Self {
        let (source, at) = (home.file("source"), home.file("mounted"));
        for directory in [&source, &at] {
            std::fs::create_dir(directory).expect("a directory");
        }
        home.write("source/memory", [0; 4096]);
        let [from, to] = [&source, &at].map(|path| path.display().to_string());
        // Open to the session's user, too: who is refused does not wait.
        let program =
            home.launch("bindfs").privileged().args(["-f", "-o", "allow_other", &*from, &to]).start();
        let mount = Self { process: program.pid(), at, _program: program };
        until("the file system", || mount.at.join("memory").exists().then_some(()));
        mount
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // While it is stopped, even umount(8) would wait for it.
        let _ = kill_process(self.process, Signal::KILL);
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.at).status();
    }
}
