//! The head of a request of HTTP/1.1 (RFC 9112), as far as a site needs it: method, path, host, and what
//! is said of a WebSocket.
//!
//! Strict where the standard lets a server be: lines end with CR LF, nothing is folded, the path is plain. All else
//! that a head says is checked for its form and left alone. Invariant: at most [`HEAD_MAX`] bytes are looked at, and
//! what follows a head changes nothing of what is read.

/// What a head asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// How.
    pub(crate) method: Method,
    /// From its first slash on, with its query: visible ASCII.
    pub(crate) path: String,
    /// As the client calls this server.
    pub(crate) host: String,
    /// That it would go on as a WebSocket, if it says so as it is to be said.
    pub(crate) upgrade: Option<Upgrade>,
}

/// A wish for a WebSocket of the version that there is (RFC 6455 §4.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upgrade {
    /// Of the page that wishes it.
    pub(crate) origin: String,
    /// What the answer is made of: 16 bytes in base64.
    pub(crate) key: String,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// To send a file.
    Get,
    /// To say of a file what is said before it.
    Head,
    /// Nothing that is done here.
    Other,
}

/// What the bytes so far are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The beginning of a head.
    Part,
    /// A head, and perhaps more.
    Whole(Request),
    /// None.
    Wrong(Fault),
}

/// Why they are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It breaks the form, or lacks a host.
    Malformed,
    /// It is longer than [`HEAD_MAX`].
    TooLong,
    /// It is of another version.
    Version,
}

/// Reads what a client has sent so far.
pub(crate) fn read(bytes: &[u8]) -> Read {
    let looked_at = &bytes[..bytes.len().min(HEAD_MAX)];
    let Some(end) = looked_at.windows(4).position(|four| four == END) else {
        return if bytes.len() >= HEAD_MAX { Read::Wrong(Fault::TooLong) } else { Read::Part };
    };
    match parse(&looked_at[..end]) {
        Ok(request) => Read::Whole(request),
        Err(fault) => Read::Wrong(fault),
    }
}

/// What came behind a whole head.
pub(crate) fn behind(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(4).position(|four| four == END).map_or(bytes.len(), |at| at + END.len());
    &bytes[end..]
}

fn parse(head: &[u8]) -> Result<Request, Fault> {
    let text = std::str::from_utf8(head).map_err(|_| Fault::Malformed)?;
    let mut lines = text.split("\r\n");
    let (method, path) = first_line(lines.next().unwrap_or_default())?;
    let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
    // RFC 9112 §3.2: exactly one.
    let host = only(&fields, "host").ok_or(Fault::Malformed)?.to_owned();
    Ok(Request { method, path: path.to_owned(), host, upgrade: upgrade(&fields) })
}

/// The name and the value of a field.
fn field(line: &str) -> Result<(&str, &str), Fault> {
    let (name, value) = line.split_once(':').ok_or(Fault::Malformed)?;
    let is_plain = |c: char| c == '\t' || !c.is_control();
    if !is_token(name) || !value.chars().all(is_plain) {
        return Err(Fault::Malformed);
    }
    Ok((name, value.trim_matches(BLANKS)))
}

/// The value of the field with this name, if there is exactly one.
fn only<'a>(fields: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    let mut named = fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
    named.next().filter(|_| named.next().is_none()).map(|(_, value)| *value)
}

fn upgrade(fields: &[(&str, &str)]) -> Option<Upgrade> {
    let says = |name: &str, word: &str| {
        let named = fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut words = named.flat_map(|(_, value)| value.split(','));
        words.any(|other| other.trim_matches(BLANKS).eq_ignore_ascii_case(word))
    };
    let is_wanted = says("connection", "upgrade") && says("upgrade", "websocket");
    let is_known = only(fields, "sec-websocket-version") == Some("13");
    let (origin, key) = (only(fields, "origin")?, only(fields, "sec-websocket-key")?);
    let is_key = key.strip_suffix("==").is_some_and(|digits| {
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
        digits.len() == 22 && digits.bytes().all(is_digit)
    });
    (is_wanted && is_known && is_key).then(|| Upgrade { origin: origin.to_owned(), key: key.to_owned() })
}

fn first_line(line: &str) -> Result<(Method, &str), Fault> {
    let [method, path, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err(Fault::Malformed);
    };
    if !is_token(method) || !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Fault::Malformed);
    }
    if version != "HTTP/1.1" {
        return Err(if version.starts_with("HTTP/") { Fault::Version } else { Fault::Malformed });
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => Method::Other,
    };
    Ok((method, path))
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

const END: &[u8] = b"\r\n\r\n";

const BLANKS: [char; 2] = [' ', '\t'];

/// Bytes of a head: browsers send less than 1 KiB here, and no cookies of others, for no other site has the name.
pub(crate) const HEAD_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Request {
        match read(text.as_bytes()) {
            Read::Whole(request) => request,
            other => panic!("{other:?}: {text:?}"),
        }
    }

    #[test]
    fn a_head_is_read_to_its_end_and_no_further() {
        let text = "GET /page.js?a=b HTTP/1.1\r\nUser-Agent: a browser\r\nhOsT:\tlocalhost:8000 \r\n\r\n";
        let (path, host) = ("/page.js?a=b".into(), "localhost:8000".into());
        let expected = Request { method: Method::Get, path, host, upgrade: None };
        assert_eq!(whole(text), expected);
        assert_eq!(whole(&format!("{text}more\u{0}")), expected);
        (0..text.len()).for_each(|end| assert_eq!(read(&text.as_bytes()[..end]), Read::Part, "{end}"));
        assert_eq!(whole(&text.replace("GET", "HEAD")).method, Method::Head);
        assert_eq!(whole(&text.replace("GET", "get")).method, Method::Other);
    }

    #[test]
    fn a_wish_for_a_websocket_is_whole_or_none() {
        let fields = [
            "Host: a",
            "Origin: http://a",
            "Upgrade: websocket",
            "Connection: keep-alive, Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
        ];
        let upgrade = |fields: &[&str]| {
            whole(&format!("GET /wayferry/1 HTTP/1.1\r\n{}\r\n\r\n", fields.join("\r\n"))).upgrade
        };
        let expected = Upgrade { origin: "http://a".into(), key: "dGhlIHNhbXBsZSBub25jZQ==".into() };
        assert_eq!(upgrade(&fields), Some(expected));
        for missing in 1..fields.len() {
            let rest = fields.iter().enumerate().filter(|(index, _)| *index != missing);
            assert_eq!(upgrade(&rest.map(|(_, field)| *field).collect::<Vec<_>>()), None, "{missing}");
        }
        for (index, other) in [
            (1, "Origin: http://a\r\nOrigin: http://a"),
            (2, "Upgrade: websockets"),
            (3, "Connection: close"),
            (4, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ="),
            (4, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ\u{e4}=="),
            (5, "Sec-WebSocket-Version: 8"),
        ] {
            let mut fields = fields;
            fields[index] = other;
            assert_eq!(upgrade(&fields), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for text in [
            "\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\u{e4} HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\u{0}b\r\n\r\n",
            "GET /\r\nHost: a\r\n\r\n",
            "\u{16}\u{3}\u{1} / HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            assert_eq!(read(text.as_bytes()), Read::Wrong(Fault::Malformed), "{text:?}");
        }
        let old = "GET / HTTP/1.0\r\nHost: a\r\n\r\n";
        assert_eq!(read(old.as_bytes()), Read::Wrong(Fault::Version));
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(HEAD_MAX));
        assert_eq!(read(long.as_bytes()), Read::Wrong(Fault::TooLong));
    }
}
