//! A real ssh server on the loopback device, with keys made for one test, and the client's side of it.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::geteuid;

use super::home::MARK;
use super::program::SYSTEM_PATH;
use super::{Home, Launch, Program, until};

/// See the module. The server and its callers have the tests' own user: only root may become somebody else. A user that
/// logs in has the server's home, and may find programs of a test's own in `bin` there.
pub(crate) struct Sshd {
    // Dropped in this order: the server, then the directory with its keys.
    process: Program,
    home: Home,
    network: Network,
}

/// What lies between server and client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// The machine's loopback device.
    Plain,
    /// A loopback device of its own.
    Own,
    /// The same, and it loses every UDP packet without a word, as many firewalls do.
    NoUdp,
}

impl Sshd {
    /// Starts a server.
    pub(crate) fn start() -> Self {
        Self::start_with(Network::Plain, "")
    }

    /// Starts a server in a network; these lines are added to its configuration.
    pub(crate) fn start_with(network: Network, extra: &str) -> Self {
        let home = Home::new();
        for key in ["host-key", "user-key"] {
            let path = home.file(key).display().to_string();
            home.launch("ssh-keygen").privileged().args(["-q", "-t", "ed25519", "-N", "", "-f", &path]).run();
        }
        fs::copy(home.file("user-key.pub"), home.file("authorized_keys")).expect("the caller's key");
        if geteuid().is_root() {
            // Where the server puts the part of itself that talks to strangers.
            fs::create_dir_all(EMPTY).expect("the server's empty directory");
            fs::set_permissions(EMPTY, Permissions::from_mode(0o755)).expect("its permissions");
        }
        let port = free_port();
        let config = home.write("sshd_config", server_config(home.path(), port, extra));
        let mut server = home.launch("/usr/sbin/sshd").privileged();
        server = server.args(["-D", "-e", "-f", &config.display().to_string()]);
        if network != Network::Plain {
            let wall = if network == Network::NoUdp { WALL } else { "true" };
            let make = format!("ip link set lo up && {wall} && exec \"$@\"");
            server = server.under(&["unshare", "--net", "sh", "-c", &make, "sh"]);
        }
        let mut sshd = Self { process: server.start(), home, network };
        sshd.write_client_config(port);
        until("the ssh server", || {
            sshd.process.must_run();
            sshd.process.stderr().contains("Server listening").then_some(())
        });
        sshd
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The arguments that lead ssh here: options and destination.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let config = self.home.file("ssh_config").display().to_string();
        vec!["-F".to_owned(), config, "ferry-host".to_owned()]
    }

    /// Prepares `wayferry [OPTIONS] ssh …` towards this server, as the tests' own user.
    pub(crate) fn wayferry(&self, client: &Home, options: &[&str], command: &[&str]) -> Launch {
        let launch = client.wayferry().privileged().args(options.iter().copied()).arg("ssh");
        let arguments = self.arguments();
        self.near(launch.args(arguments.iter().map(String::as_str)).args(command.iter().copied()))
    }

    /// Puts a program into the server's network.
    pub(crate) fn near(&self, launch: Launch) -> Launch {
        match self.network {
            Network::Plain => launch,
            Network::Own | Network::NoUdp => {
                launch.under(&["nsenter", &format!("--net=/proc/{}/ns/net", self.process.pid())])
            }
        }
    }

    /// From now on, every UDP packet of the server's own network is lost, or none.
    pub(crate) fn block_udp(&self, blocked: bool) {
        assert!(self.network != Network::Plain, "that is everybody's network");
        let change = if blocked { WALL } else { "nft delete table inet wall" };
        self.near(self.home.launch("sh").privileged().args(["-c", change])).run();
    }

    /// From now on, of QUIC only what belongs to handshakes passes in the server's own network: short headers are lost
    /// (RFC 9000 §17.3).
    pub(crate) fn pass_handshakes_alone(&self) {
        self.filter(
            "inet wall { chain in { type filter hook input priority 0; udp dport != 53 @th,64,1 0 drop; }; }",
        );
    }

    /// From now on, what goes to one UDP port of the server's own network comes to another.
    pub(crate) fn redirect_udp(&self, from: u16, to: u16) {
        self.filter(&format!(
            "ip bend {{ chain out {{ type nat hook output priority -100; udp dport {from} redirect to :{to}; }}; }}"
        ));
    }

    /// From now on, UDP packets of this kind (nft(8)) are lost in the server's own network.
    pub(crate) fn lose_udp(&self, which: &str) {
        self.filter(&format!(
            "inet wall {{ chain in {{ type filter hook input priority 0; udp {which} drop; }}; }}"
        ));
    }

    fn filter(&self, table: &str) {
        assert!(self.network != Network::Plain, "that is everybody's network");
        let change = format!("nft 'table {table}'");
        self.near(self.home.launch("sh").privileged().args(["-c", &change])).run();
    }

    fn write_client_config(&self, port: u16) {
        let home = self.home.path().display();
        self.home.write(
            "ssh_config",
            format!(
                "Host ferry-host\nHostName 127.0.0.1\nPort {port}\nIdentityFile {home}/user-key\nIdentitiesOnly yes\n\
                 BatchMode yes\nStrictHostKeyChecking no\nUserKnownHostsFile {home}/known_hosts\nLogLevel ERROR\n"
            ),
        );
    }
}

fn server_config(home: &Path, port: u16, extra: &str) -> String {
    let home = home.display();
    format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {home}/host-key\nAuthorizedKeysFile {home}/authorized_keys\n\
         PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nLogLevel INFO\n\
         SetEnv {MARK}={home} TMPDIR={home} HOME={home} PATH={home}/bin:{SYSTEM_PATH}\n{extra}\n"
    )
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its number").port()
}

/// Makes a network lose every UDP packet.
const WALL: &str =
    "nft 'table inet wall { chain in { type filter hook input priority 0; meta l4proto udp drop; }; }'";

const EMPTY: &str = "/run/sshd";
