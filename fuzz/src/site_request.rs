//! The head of a request of HTTP/1.1, as the site of a shared session reads it.
//!
//! Input: how many lines are given before, 0 to 3 in one byte, the size of the pieces that it comes in, and then what
//! the client sends.

use crate::Input;
use crate::site_request_parser::{HEAD_MAX, Method, Read, behind, read};

/// A head is the same in any pieces, no matter what follows; what is read of it fits into a head, and is read again
/// from one that says nothing else.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let given = usize::from(input.u8() % 4);
    let size = usize::from(input.u8()) + 1;
    let bytes = [LINES[..given].concat().as_bytes(), input.0].concat();
    let whole = read(&bytes);
    for end in (0..bytes.len()).step_by(size) {
        let part = read(&bytes[..end]);
        assert!(part == Read::Part || part == whole, "{end} of {} bytes: {part:?}", bytes.len());
    }
    let followed = read(&[&bytes[..], b"\0"].concat());
    match &whole {
        Read::Part => assert!(bytes.len() < HEAD_MAX, "it waits for more of {} bytes", bytes.len()),
        Read::Whole(_) | Read::Wrong(_) => assert_eq!(followed, whole, "what follows changes it"),
    }
    let Read::Whole(request) = whole else { return };
    assert_eq!(behind(&[&bytes[..], b"\0"].concat()), [behind(&bytes), b"\0"].concat());
    assert!(request.path.starts_with('/') && request.path.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(!request.host.contains(['\r', '\n']) && request.host.len() + request.path.len() < HEAD_MAX);
    let method = match request.method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Other => "PUT",
    };
    let upgrade = request.upgrade.as_ref().map(|upgrade| {
        assert!(upgrade.key.len() == 24 && upgrade.key.is_ascii());
        let (origin, key) = (&upgrade.origin, &upgrade.key);
        format!(
            "Origin:{origin}\r\nUpgrade:websocket\r\nConnection:Upgrade\r\nSec-WebSocket-Key:{key}\r\n\
             Sec-WebSocket-Version:13\r\n"
        )
    });
    let upgrade = upgrade.unwrap_or_default();
    let again = format!("{method} {} HTTP/1.1\r\nHost:{}\r\n{upgrade}\r\n", request.path, request.host);
    if again.len() <= HEAD_MAX {
        assert_eq!(read(again.as_bytes()), Read::Whole(request), "not what was read");
    }
}

/// What may be given before.
const LINES: [&str; 3] = ["GET /page.js HTTP/1.1\r\n", "Host: localhost:8000\r\n", "Accept: */*\r\n"];
