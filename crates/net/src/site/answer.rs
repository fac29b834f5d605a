//! What is answered, with the fields that every answer has.

use std::borrow::Cow;

use super::File;
use super::request::{Fault, Method};

/// An answer.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    status: &'static str,
    /// Further fields, each with its end.
    fields: String,
    body: Cow<'a, [u8]>,
}

impl<'a> Answer<'a> {
    /// A file.
    pub(super) fn file(file: &'a File) -> Self {
        let packed = if file.packed { "Content-Encoding: gzip\r\n" } else { "" };
        let fields = format!("Content-Type: {}\r\n{packed}", kind(&file.name));
        Self { status: "200 OK", fields, body: Cow::Borrowed(&file.bytes) }
    }

    /// There is no such path.
    pub(super) fn nothing() -> Self {
        Self::text("404 Not Found", "There is nothing here.")
    }

    /// What follows is a WebSocket, made with this (RFC 6455 §4.2.2).
    pub(super) fn switched(accept: &str) -> Vec<u8> {
        let fields =
            format!("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n");
        format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n").into_bytes()
    }

    /// The path leads to `place`, which is on this site.
    pub(super) fn moved(place: &str) -> Self {
        let answer = Self::text("303 See Other", "");
        Self { fields: format!("{}Location: {place}\r\n", answer.fields), ..answer }
    }

    /// Another host was meant. The name of this one is not told: who knows it can have a browser keep cookies for it.
    pub(super) fn elsewhere() -> Self {
        Self::text("421 Misdirected Request", "This page has another name: open its link as it was given.")
    }

    /// Files are sent, and nothing else is done.
    pub(super) fn wrong_method() -> Self {
        let answer = Self::text("405 Method Not Allowed", "This page can only be fetched.");
        Self { fields: format!("{}Allow: GET, HEAD\r\n", answer.fields), ..answer }
    }

    /// It was no request.
    pub(super) fn to(fault: Fault) -> Self {
        Self::text(
            match fault {
                Fault::Malformed => "400 Bad Request",
                Fault::TooLong => "431 Request Header Fields Too Large",
                Fault::Version => "505 HTTP Version Not Supported",
            },
            "This is not understood.",
        )
    }

    fn text(status: &'static str, text: &str) -> Self {
        let fields = "Content-Type: text/plain; charset=utf-8\r\n".to_owned();
        Self { status, fields, body: Cow::Owned(format!("{text}\n").into_bytes()) }
    }

    /// As it is sent.
    pub(super) fn bytes(&self, method: Method) -> Vec<u8> {
        let Self { status, fields, body } = self;
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n{FENCES}\r\n");
        let body = if method == Method::Head { &[][..] } else { body };
        [head.as_bytes(), body].concat()
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, kind)| kind) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}

/// The page may load what is served here and nothing else, run WebAssembly, and connect to hosts of sessions, which are
/// anywhere (WebTransport counts as `connect-src`). No other site may put it into a page, keep a hand on its window,
/// or load its files. Nothing is kept by the browser.
const FENCES: &str = "\
    Connection: close\r\n\
    Cache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; \
    style-src 'self'; img-src 'self' data: blob:; connect-src 'self' https:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n";
