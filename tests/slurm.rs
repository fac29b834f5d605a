//! A Slurm of one node, as real as Debian's: what docs/cluster/sessions.md says of it.

use std::fs;
use std::net::TcpListener;

use crate::rig::{Compositor, Home, Launch, Program, Sway, until};

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn a_step_brings_a_program_and_a_job_keeps_one() {
    let (sway, home) = (Sway::start(), Home::new());
    let slurm = Slurm::start(&home);
    let wayferry = |words: &[&str]| {
        let launch = slurm.inside(home.wayferry()).env("WAYLAND_DISPLAY", socket(&sway));
        launch.args(words.iter().copied())
    };
    let remote = home.wayferry().words()[0].clone();
    let step =
        ["--remote-bin", &remote, "through", "srun", "--partition=viz", "--time=8:00:00", "--", "foot"];
    let mut ferry = wayferry(&step).start();
    sway.window("the step's window", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    type_line(&sway, "exit 9");
    assert_eq!(ferry.ended().code(), Some(9), "{}", ferry.stderr());
    sway.empty();

    // A step ends with its `srun`, and what it runs ends with it.
    let mut ferry = wayferry(&step).start();
    sway.window("the step's window", |window| window.app_id == "foot");
    let list = || String::from_utf8(wayferry(&["list"]).run()).expect("text");
    assert!(list().contains("foot"), "{}", list());
    ferry.terminate();
    ferry.ended();
    until("the session to end", || list().contains("no sessions").then_some(()));

    let (file, output) = (home.file("viz.ticket"), home.file("job.out").display().to_string());
    let file = file.display();
    let wrapped = format!("{remote} --linger 3600 host --listen 0.0.0.0:0 --ticket-file {file} -- foot");
    slurm
        .inside(home.launch("sbatch"))
        .args(["--partition=viz", "--output", &output, "--wrap", &wrapped])
        .run();
    home.read_when("viz.ticket", |text| text.starts_with(b"wf1:"));
    let log = fs::read_to_string(home.file("job.out")).unwrap_or_default();
    assert!(!log.contains("wf1:"), "a secret in a log: {log}");
    let mut attach = wayferry(&["attach", "--ticket-file", &file.to_string()]).start();
    sway.window("the job's window", |window| window.app_id == "foot" && window.focused);
    let running = || slurm.inside(home.launch("squeue")).args(["--noheader"]).run();
    attach.kill();
    sway.empty();
    assert!(!running().is_empty(), "the job went with its display");
    let mut again = wayferry(&["attach", ":foot"]).start();
    sway.window("the same again", |window| window.app_id == "foot" && window.focused);
    sway.settled();
    type_line(&sway, "exit 0");
    assert_eq!(again.ended().code(), Some(0), "{}", again.stderr());
    until("the job to end", || running().is_empty().then_some(()));
}

/// The daemons of a cluster of one node.
struct Slurm {
    _daemons: [Program; 3],
    config: String,
}

impl Slurm {
    fn start(home: &Home) -> Self {
        let at = home.path().display().to_string();
        let key = home.write("munge.key", [7; 128]);
        home.launch("chmod").privileged().args(["600", &key.display().to_string()]).run();
        let munge = home.launch("/usr/sbin/munged").privileged().args(["--foreground", "--force"]).args([
            &*format!("--key-file={}", key.display()),
            &format!("--socket={at}/munge.sock"),
            &format!("--pid-file={at}/munge.pid"),
            &format!("--log-file={at}/munge.log"),
            &format!("--seed-file={at}/munge.seed"),
        ]);
        let munge = munge.start();
        until("munge", || home.file("munge.sock").exists().then_some(()));
        let name = String::from_utf8(home.launch("uname").arg("-n").run()).expect("a name");
        let (name, [first, second]) = (name.trim(), [free_port(), free_port()]);
        for directory in ["state", "spool"] {
            fs::create_dir_all(home.file(directory)).expect("a directory");
        }
        let config = home.write("slurm.conf", config(&at, name, first, second)).display().to_string();
        let daemon = |program: &str| {
            home.launch(program).privileged().env("SLURM_CONF", config.clone()).arg("-D").start()
        };
        let daemons = [munge, daemon("/usr/sbin/slurmctld"), daemon("/usr/sbin/slurmd")];
        let slurm = Self { _daemons: daemons, config };
        until("the node to be idle", || {
            let states = slurm.inside(home.launch("sinfo")).args(["--noheader", "--format=%t"]).text()?;
            (states == b"idle\n").then_some(())
        });
        slurm
    }

    /// A program that finds this cluster. Its users are the daemons' own: only that may become somebody else.
    fn inside(&self, launch: Launch) -> Launch {
        launch.privileged().env("SLURM_CONF", self.config.clone())
    }
}

fn config(at: &str, name: &str, first: u16, second: u16) -> String {
    format!(
        "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={first}\nSlurmdPort={second}\n\
         AuthType=auth/munge\nAuthInfo=socket={at}/munge.sock\nCredType=cred/munge\nSlurmUser=root\nSlurmdUser=root\n\
         StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool\nSlurmctldPidFile={at}/slurmctld.pid\n\
         SlurmdPidFile={at}/slurmd.pid\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\nMpiDefault=none\n\
         NodeName={name} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\n\
         PartitionName=viz Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    )
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its number").port()
}

fn type_line(sway: &Sway, text: &str) {
    sway.type_text(text);
    sway.keys(&["-k", "Return"]);
}

fn socket(sway: &Sway) -> String {
    sway.home().runtime().join(sway.display()).to_str().expect("a path").to_owned()
}
