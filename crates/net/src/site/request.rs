//! The head of a request of HTTP/1.1 (RFC 9112), as far as a site needs it: method, path, host.
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
    let Some(end) = looked_at.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if bytes.len() >= HEAD_MAX { Read::Wrong(Fault::TooLong) } else { Read::Part };
    };
    match parse(&looked_at[..end]) {
        Ok(request) => Read::Whole(request),
        Err(fault) => Read::Wrong(fault),
    }
}

fn parse(head: &[u8]) -> Result<Request, Fault> {
    let text = std::str::from_utf8(head).map_err(|_| Fault::Malformed)?;
    let mut lines = text.split("\r\n");
    let (method, path) = first_line(lines.next().unwrap_or_default())?;
    let mut host = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(Fault::Malformed)?;
        let is_plain = |c: char| c == '\t' || !c.is_control();
        if !is_token(name) || !value.chars().all(is_plain) {
            return Err(Fault::Malformed);
        }
        // RFC 9112 §3.2: exactly one.
        if name.eq_ignore_ascii_case("host") && host.replace(value.trim_matches([' ', '\t'])).is_some() {
            return Err(Fault::Malformed);
        }
    }
    let host = host.ok_or(Fault::Malformed)?.to_owned();
    Ok(Request { method, path: path.to_owned(), host })
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

/// Bytes of a head: browsers send less than 1 KiB here, and cookies of other sites at `localhost` come beside that.
pub(crate) const HEAD_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let expected =
            Request { method: Method::Get, path: "/page.js?a=b".into(), host: "localhost:8000".into() };
        assert_eq!(whole(text), expected);
        assert_eq!(whole(&format!("{text}more\u{0}")), expected);
        (0..text.len()).for_each(|end| assert_eq!(read(&text.as_bytes()[..end]), Read::Part, "{end}"));
        assert_eq!(whole(&text.replace("GET", "HEAD")).method, Method::Head);
        assert_eq!(whole(&text.replace("GET", "get")).method, Method::Other);
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

    proptest! {
        #[test]
        fn any_bytes_are_read_alike_in_any_pieces(
            bytes in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b' '), any::<u8>()], 0..300),
            at in any::<prop::sample::Index>(),
        ) {
            let bytes = [&b"GET / HTTP/1.1\r\nHost: a"[..], &bytes, b"\r\n\r\n"].concat();
            let before = read(&bytes[..at.index(bytes.len())]);
            prop_assert!(before == Read::Part || before == read(&bytes));
        }
    }
}
