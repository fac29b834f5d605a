//! Addresses that may be opened at the desk.
//!
//! What a host sends is parsed once, here. Nothing is resolved or decoded. Invariant: a [`Url`] begins with `http://`,
//! `https://` or `mailto:`, and has neither white space, quotes, control characters nor anything beyond ASCII: it
//! cannot be taken for an option or a file, and is on a terminal what it is.

use wayferry_proto::MAX_URL;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url(String);

impl Url {
    /// Reads an address; `None` if it is none that may be opened.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once(':')?;
        let is_named = match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                rest.strip_prefix("//").is_some_and(|rest| !rest.starts_with(['/', '?', '#']))
            }
            "mailto" => true,
            _ => false,
        };
        let longer = rest.trim_start_matches('/').len();
        let plain = text.bytes().all(is_plain);
        (is_named && longer > 0 && plain && text.len() <= MAX_URL).then(|| Self(text.to_owned()))
    }

    /// Reads what a program names, with everything beyond plain letters in percent signs (RFC 3986 §2.1).
    pub fn quote(word: &[u8]) -> Option<Self> {
        let letter =
            |byte: &u8| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
        Self::parse(&word.iter().map(letter).collect::<String>())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"'`<>\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_schemes_and_plain_letters_are_addresses() {
        for good in [
            "http://example.org",
            "HTTPS://user@example.org:8080/a/b?c=d&e=%C3%A4#f",
            "https://[2001:db8::1]/",
            "mailto:somebody@example.org?subject=x",
        ] {
            assert_eq!(Url::parse(good).map(|url| url.0).as_deref(), Some(good));
        }
    }

    #[test]
    fn what_is_typed_becomes_an_address_or_is_none() {
        let quoted = |text: &str| Url::quote(text.as_bytes()).map(|url| url.0);
        let umlaut = quoted("https://example.org/\u{e4} b\n\"");
        assert_eq!(umlaut.as_deref(), Some("https://example.org/%C3%A4%20b%0A%22"));
        assert_eq!(quoted("report.pdf"), None);
        assert_eq!(quoted("file:///tmp/report.pdf"), None);
    }

    #[test]
    fn everything_else_is_none() {
        let long = format!("https://example.org/{}", "x".repeat(MAX_URL));
        for bad in [
            "",
            "example.org",
            "/etc/passwd",
            "--help",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "ssh://example.org",
            "x-scheme:y",
            "http:",
            "http://",
            "https:///etc/passwd",
            "http:example.org",
            "mailto:",
            "https://example.org/a b",
            "https://example.org/\u{1b}]0;x\u{7}",
            "https://example.org/\n",
            "https://example.org/\u{202e}gpj",
            "https://ex\u{430}mple.org/",
            "https://example.org/\"",
            &long,
        ] {
            assert_eq!(Url::parse(bad), None, "{bad:?}");
        }
    }
}
