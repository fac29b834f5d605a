//! Which session a user means.

use std::fmt;
use std::str::FromStr;

/// Which session is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// One of this machine; without a name the only one.
    Here(Option<String>),
    /// One of another machine.
    There {
        /// As ssh knows it: a name, or a URI with a port.
        host: String,
        /// Without a name the only one.
        session: Option<String>,
    },
    /// That of a ticket.
    Ticket(String),
    /// That of the ticket on stdin.
    Stdin,
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |name: &str| wayferry_host::sessions::check(name).map(|()| name.to_owned());
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let version = text.strip_prefix("wf").and_then(|text| text.split_once(':'));
        if version.is_some_and(|(version, _)| version.parse::<u32>().is_ok()) {
            return Ok(Self::Ticket(text.to_owned()));
        }
        if let Some(rest) = text.strip_prefix(SCHEME) {
            let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
            if authority.is_empty() {
                return Err("expected ssh://HOST:PORT/SESSION".into());
            }
            let session = Some(name).filter(|name| !name.is_empty()).map(named).transpose()?;
            return Ok(Self::There { host: format!("{SCHEME}{authority}"), session });
        }
        // The last colon: an IPv6 address may come before it, in brackets.
        match text.rsplit_once(':') {
            Some(("", name)) => Ok(Self::Here(Some(named(name)?))),
            Some((host, name)) if !name.contains(']') => {
                Ok(Self::There { host: bare(host)?, session: Some(named(name)?) })
            }
            _ => Ok(Self::There { host: bare(text)?, session: None }),
        }
    }
}

impl fmt::Display for Which {
    /// As it is read, but for a ticket, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(name) => write!(f, ":{}", name.as_deref().unwrap_or_default()),
            Self::There { host, session } => {
                let joint = if host.starts_with(SCHEME) { '/' } else { ':' };
                // Without its brackets, the last part of an IPv6 address would be read as a name.
                if joint == ':' && host.contains(':') {
                    write!(f, "[{host}]")?;
                } else {
                    f.write_str(host)?;
                }
                session.iter().try_for_each(|session| write!(f, "{joint}{session}"))
            }
            Self::Ticket(_) => f.write_str("wf1:…"),
            Self::Stdin => f.write_str("-"),
        }
    }
}

/// A host without the brackets of an IPv6 address, as ssh takes it.
fn bare(host: &str) -> Result<String, String> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.starts_with('-') {
        Err("expected HOST, HOST:SESSION or :SESSION".into())
    } else {
        Ok(host.to_owned())
    }
}

/// Of a destination that says its port, as ssh reads it, too.
const SCHEME: &str = "ssh://";

#[cfg(test)]
mod tests {
    use super::*;

    fn which(text: &str) -> Which {
        text.parse::<Which>().expect(text)
    }

    fn there(host: &str, session: Option<&str>) -> Which {
        Which::There { host: host.to_owned(), session: session.map(str::to_owned) }
    }

    #[test]
    fn sessions_are_named_with_colons() {
        assert_eq!(which(":foot"), Which::Here(Some("foot".into())));
        assert_eq!(which("user@host"), there("user@host", None));
        assert_eq!(which("user@host:foot-2"), there("user@host", Some("foot-2")));
        assert_eq!(which("[2001:db8::1]:foot"), there("2001:db8::1", Some("foot")));
        assert_eq!(which("[2001:db8::1]"), there("2001:db8::1", None));
        assert_eq!(which("wf1:AAAA"), Which::Ticket("wf1:AAAA".into()));
        assert_eq!(which("wf:AAAA"), there("wf", Some("AAAA")));
        assert_eq!(which("-"), Which::Stdin);
        for text in ["", ":", "host:", "-oProxyCommand=x", "host:a b", "ssh://", "ssh:///foot", "ssh://h/a b"]
        {
            assert!(text.parse::<Which>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_uri_may_have_a_port() {
        assert_eq!(which("ssh://user@host:2222/foot"), there("ssh://user@host:2222", Some("foot")));
        assert_eq!(which("ssh://host:2222"), there("ssh://host:2222", None));
        assert_eq!(which("ssh://host/"), there("ssh://host", None));
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        for text in
            [":foot", "user@host:foot", "[2001:db8::1]:foot", "ssh://user@host:2222/foot", "host", "-"]
        {
            assert_eq!(which(text).to_string(), text);
        }
    }
}
