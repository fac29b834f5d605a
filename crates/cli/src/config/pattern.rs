//! Which hosts a block of the configuration file is about.
//!
//! A pattern is a host's name as the user types it, in which `*` stands for any characters and `?` for one. With an `@`
//! in it, it is about the user, too. It resolves no names.

use std::ffi::OsStr;

/// A destination of ssh's in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    user: Option<String>,
    name: String,
}

impl Target {
    /// Takes `[user@]host` or `ssh://[user@]host[:port]` apart.
    pub(super) fn new(destination: &OsStr) -> Self {
        let text = destination.to_string_lossy();
        let (text, uri) = match text.strip_prefix("ssh://") {
            Some(rest) => (rest.split('/').next().unwrap_or_default(), true),
            None => (&*text, false),
        };
        let (user, host) = text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
        let host = if uri { without_port(host) } else { host };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self { user: user.map(str::to_owned), name: host.to_lowercase() }
    }

    /// Whether a block with this pattern is about it.
    pub(super) fn fits(&self, pattern: &str) -> bool {
        match pattern.rsplit_once('@') {
            Some((user, host)) => {
                self.user.as_deref().is_some_and(|name| matches(user.as_bytes(), name.as_bytes()))
                    && matches(host.to_lowercase().as_bytes(), self.name.as_bytes())
            }
            None => matches(pattern.to_lowercase().as_bytes(), self.name.as_bytes()),
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    }
}

/// Whether a text is of a pattern's form, in time of their product.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut here) = (0, 0);
    // Where the last star was, and up to where it reaches.
    let mut star: Option<(usize, usize)> = None;
    while here < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == text[here] => {
                at += 1;
                here += 1;
            }
            _ => {
                let Some((after, reach)) = star else { return false };
                star = Some((after, reach + 1));
                (at, here) = (after + 1, reach + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_about_hosts_as_they_are_typed() {
        let fits = |destination: &str, pattern: &str| Target::new(OsStr::new(destination)).fits(pattern);
        for (destination, pattern) in [
            ("host", "host"),
            ("user@Host", "host"),
            ("host", "HOST"),
            ("a.example.org", "*.example.org"),
            ("user@host", "user@host"),
            ("user@host", "*@h?st"),
            ("ssh://user@host:2222", "host"),
            ("ssh://user@[2001:db8::1]:22/x", "2001:db8::*"),
            ("anything", "*"),
            ("", "*"),
            ("abcabd", "*ab?"),
        ] {
            assert!(fits(destination, pattern), "{destination} {pattern}");
        }
        for (destination, pattern) in [
            ("host", "hos"),
            ("host", "user@host"),
            ("example.org", "*.example.org"),
            ("host", ""),
            ("ab", "*ab?"),
        ] {
            assert!(!fits(destination, pattern), "{destination} {pattern}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!Target::new(OsStr::new(&"a".repeat(5000))).fits(&pattern));
    }
}
