//! What ssh's configuration files say of a host, as `ssh -G` prints it.
//!
//! It knows no file of ssh's: ssh has read them, and the options of its command line. Where it tells nothing, nothing
//! is known, and that is no error. Invariant: the ssh that was asked is reaped.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::args::SshArgs;
use crate::error::SessionError;
use crate::flags::OwnFlags;
use wayferry_host::clock::Clock;
use wayferry_host::edge::signals::Signals;

/// What ssh printed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Configuration(String);

/// A question that ssh is about to answer.
pub(crate) struct Asked(Option<Child>);

/// The command that prints what ssh's configuration files say of a host.
pub(crate) fn question(own: &OwnFlags, options: &[OsString], host: &OsStr) -> Command {
    let mut command = Command::new(own.reach.ssh());
    command.arg("-G").args(options).arg("--").arg(host);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

impl Asked {
    /// Asks.
    pub(crate) fn begin(mut question: Command) -> Self {
        Self(question.spawn().ok())
    }

    /// Hears the answer, which takes as long as commands and name servers do that the files name.
    ///
    /// # Errors
    /// A signal.
    pub(crate) fn hear(mut self, signals: &Signals) -> Result<Configuration, SessionError> {
        let clock = Clock::start();
        let mut heard = Vec::new();
        while let Some(stdout) = self.0.as_mut().and_then(|child| child.stdout.as_mut()) {
            let left = PATIENCE.saturating_sub(clock.now().since_start());
            if left == Duration::ZERO {
                return Ok(Configuration::default());
            }
            if !signals.wait_readable(&[stdout.as_fd()], Some(left))?[0] {
                continue;
            }
            let mut piece = [0; 4096];
            match stdout.read(&mut piece) {
                Ok(count @ 1..) if heard.len() < MAX_ANSWER => heard.extend_from_slice(&piece[..count]),
                _ => break,
            }
        }
        Ok(Configuration(String::from_utf8_lossy(&heard).into_owned()))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Configuration {
    /// Asks, and waits for the answer.
    pub(crate) fn ask(mut question: Command) -> Self {
        let output = question.output().map(|output| output.stdout).unwrap_or_default();
        Self(String::from_utf8_lossy(&output).into_owned())
    }

    /// What ssh prints now, if it has not told anything yet.
    pub(crate) fn or_ask(self, question: Command) -> Self {
        if self.0.is_empty() { Self::ask(question) } else { self }
    }

    fn value(&self, key: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).map(str::trim)
    }

    /// The name that ssh connects to; none when it goes through a jump host or a proxy, whose far end our UDP cannot
    /// use.
    fn host_name(&self) -> Option<&str> {
        let direct = |key: &str| self.value(key).is_none_or(|value| value == "none");
        (direct("proxyjump") && direct("proxycommand")).then(|| self.value("hostname"))?
    }

    /// Where ssh would reach a port of the host; it waits for name servers.
    pub(crate) fn addresses(&self, port: u16) -> Vec<SocketAddr> {
        let Some(name) = self.host_name() else { return Vec::new() };
        (name, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
    }

    /// Whether ssh is to keep its stdin and stdout: the command has a terminal there, or may have one, or ssh itself
    /// does without them. In doubt it is.
    pub(crate) fn keeps_stdio(&self, args: &SshArgs) -> bool {
        let terminal = match self.value("requesttty") {
            Some(value) => ["true", "yes", "force"].contains(&value),
            None => args.force_tty > 0 && !args.no_tty,
        };
        let is = |key, value| self.value(key) == Some(value);
        // Older ones do not print what `-n` means.
        let ssh_has_none = args.no_stdin || self.0.is_empty();
        terminal
            || ssh_has_none
            || wants_terminal(args)
            || is("stdinnull", "yes")
            || is("forkafterauthentication", "yes")
    }
}

/// Whether a shell is to have a terminal that ssh does not give it by itself: for ssh we are a command.
pub(crate) fn wants_terminal(args: &SshArgs) -> bool {
    let shell = args.command.is_empty();
    shell && args.force_tty == 0 && !args.no_tty && std::io::stdin().is_terminal()
}

/// How long ssh may take to read its files.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of its answer.
const MAX_ANSWER: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Configuration {
        Configuration(text.to_owned())
    }

    #[test]
    fn the_host_name_is_ssh_s_unless_there_is_a_proxy() {
        let name = |text: &str| of(text).host_name().map(str::to_owned);
        assert_eq!(name("user u\nhostname h.example\nport 22\n").as_deref(), Some("h.example"));
        assert_eq!(name("hostname h\nproxyjump none\n").as_deref(), Some("h"));
        assert_eq!(name("hostname h\nproxyjump gate\n"), None);
        assert_eq!(name("hostname h\nproxycommand nc %h %p\n"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn ssh_keeps_its_stdio_where_the_command_has_a_terminal_or_ssh_none() {
        let keeps = |line: &str, text: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            of(text).keeps_stdio(&SshArgs::parse(&words).expect("parses"))
        };
        assert!(!keeps("host foot", "requesttty auto\nstdinnull no\nforkafterauthentication no\n"));
        assert!(!keeps("-T host foot", "requesttty false\n"));
        assert!(keeps("host foot", ""), "ssh has told nothing");
        assert!(keeps("-n host foot", "requesttty auto\n") && keeps("-vn host foot", "requesttty auto\n"));
        for value in ["true", "yes", "force"] {
            assert!(keeps("host foot", &format!("requesttty {value}\n")), "{value}");
        }
        assert!(keeps("-t host foot", "port 22\n") && keeps("-tt host foot", "port 22\n"));
        assert!(keeps("host foot", "requesttty auto\nstdinnull yes\n"));
        assert!(keeps("host foot", "forkafterauthentication yes\n"));
    }
}
