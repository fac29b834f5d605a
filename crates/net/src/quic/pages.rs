//! Which pages may come as displays, and the certificate that they are shown.
//!
//! A listener speaks HTTP/3 only while pages of some origin may come. Which of them is let in is decided by what it
//! shows to the session; an origin alone opens nothing. A browser pins a certificate only if that is valid for at most
//! two weeks, so pages are shown one of their own. Invariant: before the first certificate, nothing of this answers
//! anybody.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use url::Url;

use super::error::SetupError;
use crate::identity::{Fingerprint, Identity, page_config};

/// Where a page is from: scheme, host and port, as its browser says it (RFC 6454 §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOrigin(String);

impl FromStr for PageOrigin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let url = Url::parse(text).map_err(|_| NotAnOrigin)?;
        let spelt = url.origin().ascii_serialization();
        let fits = matches!(url.scheme(), "http" | "https") && spelt == text && text.len() <= ORIGIN_MAX;
        if fits { Ok(Self(spelt)) } else { Err(NotAnOrigin) }
    }
}

impl PageOrigin {
    /// As a browser says it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is no origin of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnOrigin;

impl fmt::Display for NotAnOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an origin as a browser writes it, such as `http://localhost:8000`")
    }
}

impl std::error::Error for NotAnOrigin {}

/// A listener's.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    origins: Vec<PageOrigin>,
    shown: Option<Shown>,
}

/// What pages are shown.
#[derive(Debug)]
struct Shown {
    fingerprint: Fingerprint,
    tls: ServerConfig,
    /// By the clock that browsers go by.
    since: SystemTime,
}

impl Pages {
    /// The certificate that pages have to pin that come to what has TLS like `listener`. It will be good for a week at
    /// least.
    pub(super) fn certificate(&self, listener: &ServerConfig) -> Result<Fingerprint, SetupError> {
        let mut state = self.lock();
        let now = SystemTime::now();
        let shown = match state.shown.take().filter(|shown| shown.is_good(now)) {
            Some(shown) => shown,
            None => Shown::new(listener, now)?,
        };
        let fingerprint = shown.fingerprint;
        state.shown = Some(shown);
        Ok(fingerprint)
    }

    /// Pages of these origins may come from now on, and no others.
    pub(super) fn admit(&self, origins: Vec<PageOrigin>) {
        self.lock().origins = origins;
    }

    /// Whether those of this origin may come.
    pub(super) fn contains(&self, origin: &str) -> bool {
        self.lock().origins.iter().any(|listed| listed.0 == origin)
    }

    /// TLS for those that may come, if any may.
    pub(super) fn tls(&self) -> Option<ServerConfig> {
        let now = SystemTime::now();
        self.lock().shown.as_ref().filter(|shown| shown.age(now) <= LIFE).map(|shown| shown.tls.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    fn new(listener: &ServerConfig, since: SystemTime) -> Result<Self, SetupError> {
        let identity = Identity::valid_for(LIFE).map_err(|error| SetupError::Tls(error.to_string()))?;
        let tls = page_config(listener, &identity)?;
        Ok(Self { fingerprint: identity.fingerprint(), tls, since })
    }

    /// Whether it will be valid for as long as is promised.
    fn is_good(&self, now: SystemTime) -> bool {
        self.age(now) <= LIFE - PROMISED
    }

    /// A clock that was set back a little makes it no older.
    fn age(&self, now: SystemTime) -> Duration {
        match now.duration_since(self.since) {
            Ok(age) => age,
            Err(ahead) if ahead.duration() <= SET_BACK => Duration::ZERO,
            Err(_) => Duration::MAX,
        }
    }
}

/// Bytes of an origin.
const ORIGIN_MAX: usize = 300;

/// How long a page's certificate is valid. Browsers pin none that is valid for more than 14 days.
// https://www.w3.org/TR/webtransport/#web-transport-configuration, "custom certificate requirements".
const LIFE: Duration = Duration::from_secs(13 * 24 * 3600);

/// By how much a clock may be set back.
const SET_BACK: Duration = Duration::from_secs(24 * 3600);

/// For how long at least it is good for who is told of it.
const PROMISED: Duration = Duration::from_secs(7 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::server_config;
    use crate::peers::Peers;

    #[test]
    fn origins_are_what_browsers_write() {
        for text in ["http://localhost:8000", "https://host.example", "http://[::1]:8080"] {
            assert_eq!(text.parse::<PageOrigin>().map(|origin| origin.to_string()), Ok(text.to_owned()));
        }
        let long = format!("https://{}.example", "a".repeat(400));
        for text in [
            "",
            "null",
            "localhost:8000",
            "http://localhost:8000/",
            "http://localhost:80",
            "HTTP://localhost:8000",
            "https://user@host.example",
            "file:///page.html",
            "wayferry://host",
            &long,
        ] {
            assert_eq!(text.parse::<PageOrigin>(), Err(NotAnOrigin), "{text}");
        }
    }

    #[test]
    fn nothing_is_shown_while_no_page_may_come() {
        let identity = Identity::ephemeral().unwrap();
        let listener = server_config(&identity, Peers::Secret, false).unwrap();
        let origin =
            |number: usize| format!("http://localhost:{}", 1024 + number).parse::<PageOrigin>().unwrap();
        let pages = Pages::default();
        assert!(pages.tls().is_none());
        let first = pages.certificate(&listener).unwrap();
        assert_ne!(first, identity.fingerprint());
        assert_eq!(pages.certificate(&listener).unwrap(), first, "it is not half over");
        let listed = |number: usize| pages.contains(&origin(number).to_string());
        assert!(!listed(1) && pages.tls().is_some());
        pages.admit(vec![origin(1), origin(2)]);
        assert!(!listed(0) && listed(1) && listed(2));
        pages.admit(vec![origin(2)]);
        assert!(!listed(1) && listed(2));
    }
}
