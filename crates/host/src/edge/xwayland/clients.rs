//! How many programs are connected to an X server, as the kernel tells it.
//!
//! The server does not say it to who does not speak X11. Invariant: the list is read up to a limit, and what does not
//! fit is not counted.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// How many are connected to the server of this display.
pub(super) fn count(number: u32) -> usize {
    let Ok(file) = File::open("/proc/net/unix") else { return 0 };
    let lines = BufReader::new(file.take(MAX_LIST)).split(b'\n').map_while(Result::ok);
    lines.filter(|line| is_connection(line, number)).count()
}

/// Whether a line is about the server's end of a connection (proc_net_unix(5)): it has the name on which the server
/// listens, which has two forms.
fn is_connection(line: &[u8], number: u32) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let mut words = line.split_whitespace().skip(STATE);
    let (state, name) = (words.next(), words.nth(1));
    let name = name.map(|name| name.strip_prefix('@').unwrap_or(name));
    state == Some(CONNECTED) && name.is_some_and(|name| name == format!("/tmp/.X11-unix/X{number}"))
}

/// Which word is a socket's state.
const STATE: usize = 5;
/// `SS_CONNECTED`.
const CONNECTED: &str = "03";
/// Bytes of the list: a hundred thousand sockets.
const MAX_LIST: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connections_of_that_server_count() {
        let is = |line: &str| is_connection(line.as_bytes(), 10);
        let line =
            |state, name| format!("0000000000000000: 00000003 00000000 00000000 0001 {state} 24113 {name}");
        assert!(is(&line("03", "/tmp/.X11-unix/X10")) && is(&line("03", "@/tmp/.X11-unix/X10")));
        let others =
            [("01", "/tmp/.X11-unix/X10"), ("03", "/tmp/.X11-unix/X1"), ("03", "@/tmp/.X11-unix/X100")];
        assert!(!others.iter().any(|(state, name)| is(&line(state, name))));
        assert!(!is("Num       RefCount Protocol Flags    Type St Inode Path") && !is("") && !is("03"));
    }
}
