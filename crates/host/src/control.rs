//! What is said on a session's control socket, line by line.
//!
//! A caller sends one [`Request`]; the session answers `info` with a JSON document, and an order with an
//! [`Answer`]. After `attach` or `view`, the lines of [`crate::bootstrap`] follow. The launcher keeps a connection of
//! its own, the *owner's*, on which the session sends it [`Notice`]s. Nothing here reads or writes.
//! Invariant: a line has less than [`MAX_LINE`] bytes.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wayferry_net::quic::PageOrigin;
use wayferry_proto::admission::LinkId;

/// What a caller wants of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Its figures.
    Info,
    /// To show it: the meeting of the two sides follows. Tells the address at which this machine was reached.
    Attach(Option<IpAddr>),
    /// To view it, as [`Self::Attach`].
    View(Option<IpAddr>),
    /// To let a page in that has a link and comes by what was asked on: [`Answer::Done`], then the carrier's bytes in
    /// both directions. Tells where its browser is.
    Page(SocketAddr),
    /// A ticket for a display that comes by itself.
    Ticket {
        /// It is view-only.
        view: bool,
        /// For how long the ticket is good; the session's default without.
        good_for: Option<Duration>,
        /// It is for a page of this origin.
        page: Option<PageOrigin>,
    },
    /// Makes tickets that were printed and not used invalid.
    Revoke,
    /// A link for pages of an origin.
    Share(Share),
    /// The links that are good, and who came by which.
    Links,
    /// Makes that link, or every one, invalid, and sends those away who came by it.
    RevokeLinks(Option<LinkId>),
    /// Lets no display in any more by that link; who came by it may stay.
    CloseLink(LinkId),
    /// Sends its display away.
    Detach,
    /// Sends all viewers away.
    DetachViews,
    /// Sends the viewer with this number away.
    DetachView(u32),
    /// Ends the session.
    Stop,
    /// To have this address opened beside the display. It has no white space.
    OpenUrl(String),
    /// To have a file kept at the other side: its bytes follow the line, and then the end.
    Send {
        /// Bytes that follow.
        size: u64,
        /// What it is called.
        name: String,
    },
    /// To have a file of the other side kept here. It may be said to a display only.
    Fetch(String),
}

/// What a link is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Who comes by it is the display.
    pub control: bool,
    /// For how long it is good; the session's default without.
    pub good_for: Option<Duration>,
    /// Where its pages are from.
    pub page: PageOrigin,
    /// The address at which this machine was reached, if it is another than the user's.
    pub reached: Option<IpAddr>,
}

/// A link that was made.
#[derive(Clone, PartialEq, Eq)]
pub struct NewLink {
    /// What it is called.
    pub id: LinkId,
    /// Who comes by it is the display.
    pub control: bool,
    /// For how long it is good.
    pub seconds: u64,
    /// How many may come by it.
    pub uses: u8,
    /// The secret part.
    pub ticket: String,
}

/// Without the ticket.
impl fmt::Debug for NewLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, control, seconds, uses, .. } = self;
        let mut fields = f.debug_struct("NewLink");
        fields.field("id", id).field("control", control).field("seconds", seconds).field("uses", uses);
        fields.finish_non_exhaustive()
    }
}

/// A link as the user sees it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkInfo {
    /// What it is called.
    pub id: u32,
    /// `view` or `control`.
    pub role: LinkRole,
    /// For how long it is still good; 0 if it is not, and somebody is there who came by it.
    pub seconds: u64,
    /// How many may still come by it.
    pub uses: u8,
    /// Who is there by it: addresses, where they are known.
    pub there: Vec<Option<String>>,
}

/// What a link is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkRole {
    /// To view, and nothing else.
    View,
    /// To be the display.
    Control,
}

/// The answer to an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It has been done, or will be as soon as can be.
    Done,
    /// It waits until others are done. Another answer follows.
    Waits,
    /// A ticket that works once.
    Ticket(String),
    /// A link.
    Link(NewLink),
    /// The links that are good, or by which somebody is there.
    Links(Vec<LinkInfo>),
    /// The file is there.
    Kept(String),
    /// No display would do it: the caller may do it here.
    Elsewhere,
    /// It cannot be done, and why.
    Not(String),
}

/// What the session sends to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Programs find this variable with this value in their environment.
    Set(String, String),
    /// Programs do not find this variable there.
    Unset(String),
    /// The session is there, with this name.
    Ready(String),
    /// A display is there for the first time.
    Shown,
    /// It is over, with this code.
    Exit(u8),
    /// Its display left: the owner need not stay.
    Detached,
    /// Nothing is heard of the display on the carrier that it has: the owner may know another way to it.
    Silent,
}

/// What the owner tells the session: the program that the owner ran has ended, with this code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended(pub u8);

/// Something that is said on a line of its own.
pub trait Word: Sized {
    /// The line's text, without its end.
    fn encode(&self) -> String;
    /// Reads that.
    fn decode(text: &str) -> Option<Self>;
}

impl Word for Request {
    fn encode(&self) -> String {
        match self {
            Self::Info => "info".into(),
            Self::Attach(None) => "attach".into(),
            Self::Attach(Some(reached)) => format!("attach {reached}"),
            Self::View(None) => "view".into(),
            Self::View(Some(reached)) => format!("view {reached}"),
            Self::Page(from) => format!("page {from}"),
            Self::Ticket { view, good_for, page } => {
                let view = if *view { " --view" } else { "" };
                let good_for = good_for.map(|time| format!(" --for {}", time.as_secs_f64()));
                let page = page.as_ref().map(|origin| format!(" --page {origin}"));
                format!("ticket{view}{}{}", good_for.unwrap_or_default(), page.unwrap_or_default())
            }
            Self::Revoke => "ticket --revoke".into(),
            Self::Share(Share { control, good_for, page, reached }) => {
                let control = if *control { " --control" } else { "" };
                let good_for = good_for.map(|time| format!(" --for {}", time.as_secs_f64()));
                let reached = reached.map(|address| format!(" --reached {address}"));
                let (good_for, reached) = (good_for.unwrap_or_default(), reached.unwrap_or_default());
                format!("share --origin {page}{control}{good_for}{reached}")
            }
            Self::Links => "share --list --json".into(),
            Self::RevokeLinks(None) => "share --revoke all".into(),
            Self::RevokeLinks(Some(id)) => format!("share --revoke {id}"),
            Self::CloseLink(id) => format!("share --close {id}"),
            Self::Detach => "detach".into(),
            Self::DetachViews => "detach --views".into(),
            Self::DetachView(number) => format!("detach --viewer {number}"),
            Self::Stop => "stop".into(),
            Self::OpenUrl(url) => format!("open {url}"),
            Self::Send { size, name } => format!("send {size} {}", one_word(name)),
            Self::Fetch(path) => format!("fetch {}", one_word(path)),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["info"] => Some(Self::Info),
            ["attach"] => Some(Self::Attach(None)),
            ["attach", reached] => Some(Self::Attach(Some(reached.parse().ok()?))),
            ["view"] => Some(Self::View(None)),
            ["view", reached] => Some(Self::View(Some(reached.parse().ok()?))),
            ["page", from] => Some(Self::Page(from.parse().ok()?)),
            ["ticket", "--revoke"] => Some(Self::Revoke),
            ["ticket", ref options @ ..] => ticket(options),
            ["share", "--list", "--json"] => Some(Self::Links),
            ["share", "--revoke", "all"] => Some(Self::RevokeLinks(None)),
            ["share", "--revoke", id] => Some(Self::RevokeLinks(Some(id.parse().ok()?))),
            ["share", "--close", id] => Some(Self::CloseLink(id.parse().ok()?)),
            ["share", ref options @ ..] => share(options),
            ["detach"] => Some(Self::Detach),
            ["detach", "--views"] => Some(Self::DetachViews),
            ["detach", "--viewer", number] => Some(Self::DetachView(number.parse().ok()?)),
            ["stop"] => Some(Self::Stop),
            ["open", url] if !url.is_empty() => Some(Self::OpenUrl(url.to_owned())),
            ["send", size, name] => Some(Self::Send { size: size.parse().ok()?, name: words_of(name)? }),
            ["fetch", path] => Some(Self::Fetch(words_of(path)?)),
            _ => None,
        }
    }
}

impl Word for Answer {
    fn encode(&self) -> String {
        match self {
            Self::Done => "done".into(),
            Self::Elsewhere => "elsewhere".into(),
            Self::Waits => "waits".into(),
            Self::Ticket(ticket) => format!("ticket {ticket}"),
            Self::Link(NewLink { id, control, seconds, uses, ticket }) => {
                let role = if *control { "control" } else { "view" };
                format!("link {id} {role} {seconds} {uses} {ticket}")
            }
            Self::Links(links) => format!("links {}", serde_json::json!(links)),
            Self::Kept(path) => format!("kept {}", one_word(path)),
            Self::Not(why) => format!("not {}", why.replace('\n', " ")),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            None if text == "done" => Some(Self::Done),
            None if text == "elsewhere" => Some(Self::Elsewhere),
            None if text == "waits" => Some(Self::Waits),
            Some(("ticket", ticket)) => Some(Self::Ticket(ticket.to_owned())),
            Some(("link", words)) => new_link(words).map(Self::Link),
            Some(("links", text)) => serde_json::from_str(text).ok().map(Self::Links),
            Some(("kept", path)) => Some(Self::Kept(words_of(path)?)),
            Some(("not", why)) => Some(Self::Not(why.to_owned())),
            _ => None,
        }
    }
}

impl Word for Notice {
    fn encode(&self) -> String {
        match self {
            Self::Set(name, value) => format!("set {name} {value}"),
            Self::Unset(name) => format!("unset {name}"),
            Self::Ready(name) => format!("ready {name}"),
            Self::Shown => "shown".into(),
            Self::Exit(code) => format!("exit {code}"),
            Self::Detached => "detached".into(),
            Self::Silent => "silent".into(),
        }
    }

    fn decode(text: &str) -> Option<Self> {
        let mut words = text.splitn(3, ' ');
        match (words.next()?, words.next(), words.next()) {
            ("set", Some(name), Some(value)) => Some(Self::Set(name.into(), value.into())),
            ("unset", Some(name), None) => Some(Self::Unset(name.into())),
            ("ready", Some(name), None) => Some(Self::Ready(name.into())),
            ("shown", None, None) => Some(Self::Shown),
            ("exit", Some(code), None) => Some(Self::Exit(code.parse().ok()?)),
            ("detached", None, None) => Some(Self::Detached),
            ("silent", None, None) => Some(Self::Silent),
            _ => None,
        }
    }
}

impl Word for Ended {
    fn encode(&self) -> String {
        format!("ended {}", self.0)
    }

    fn decode(text: &str) -> Option<Self> {
        Some(Self(text.strip_prefix("ended ")?.parse().ok()?))
    }
}

/// A text as one word without white space or control characters.
fn one_word(text: &str) -> impl fmt::Display + '_ {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
}

/// The text of such a word.
fn words_of(word: &str) -> Option<String> {
    let text = percent_encoding::percent_decode_str(word).decode_utf8().ok()?;
    Some(text.into_owned()).filter(|text| !text.is_empty())
}

/// What is asked of a ticket; each once.
fn ticket(options: &[&str]) -> Option<Request> {
    let (mut view, mut good_for, mut page) = (false, None, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--view" if !view => view = true,
            "--for" if good_for.is_none() => good_for = Some(seconds(options.next()?)?),
            "--page" if page.is_none() => page = Some(options.next()?.parse().ok()?),
            _ => return None,
        }
    }
    Some(Request::Ticket { view, good_for, page })
}

/// What is asked of a link; each once.
fn share(options: &[&str]) -> Option<Request> {
    let (mut control, mut good_for, mut page, mut reached) = (false, None, None, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--control" if !control => control = true,
            "--for" if good_for.is_none() => good_for = Some(seconds(options.next()?)?),
            "--origin" if page.is_none() => page = Some(options.next()?.parse().ok()?),
            "--reached" if reached.is_none() => reached = Some(options.next()?.parse().ok()?),
            _ => return None,
        }
    }
    Some(Request::Share(Share { control, good_for, page: page?, reached }))
}

fn new_link(words: &str) -> Option<NewLink> {
    let [id, role, seconds, uses, ticket] = words.split(' ').collect::<Vec<_>>()[..] else { return None };
    let control = match role {
        "view" => false,
        "control" => true,
        _ => return None,
    };
    let (id, seconds, uses) = (id.parse().ok()?, seconds.parse().ok()?, uses.parse().ok()?);
    Some(NewLink { id, control, seconds, uses, ticket: ticket.to_owned() })
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=1e9).contains(seconds))?;
    Some(Duration::from_secs_f64(seconds))
}

/// A line with its end.
pub fn line(word: &impl Word) -> Vec<u8> {
    let mut text = word.encode().into_bytes();
    text.push(b'\n');
    text
}

/// Takes the first whole line off `bytes`; `None` while there is none.
///
/// # Errors
/// It is too long, is not text, or says something else.
pub fn take<W: Word>(bytes: &mut Vec<u8>) -> Result<Option<W>, String> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return if bytes.len() >= MAX_LINE { Err("a line without end".into()) } else { Ok(None) };
    };
    let line: Vec<u8> = bytes.drain(..=end).collect();
    let text = std::str::from_utf8(&line[..end]).map_err(|_| "a line is not text".to_owned())?;
    W::decode(text).map(Some).ok_or_else(|| format!("unexpected line `{text}`"))
}

/// Bytes of a line: far more than a path needs.
pub const MAX_LINE: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn survives<W: Word + PartialEq + fmt::Debug>(words: &[W]) {
        let mut bytes: Vec<u8> = words.iter().flat_map(line).collect();
        for word in words {
            assert_eq!(take(&mut bytes).as_ref(), Ok(&Some(W::decode(&word.encode()).expect("a word"))));
            assert_eq!(W::decode(&word.encode()).as_ref(), Some(word));
        }
        assert!(bytes.is_empty());
    }

    fn origin() -> PageOrigin {
        "http://localhost:8000".parse().expect("an origin")
    }

    #[test]
    fn what_is_said_is_understood() {
        let reached = Some("2001:db8::1".parse().expect("an address"));
        survives(&[
            Request::Info,
            Request::Attach(None),
            Request::Attach(reached),
            Request::View(None),
            Request::View(reached),
            Request::Ticket { view: false, good_for: None, page: None },
            Request::Ticket { view: true, good_for: None, page: "http://localhost:8000".parse().ok() },
            Request::Ticket { view: false, good_for: Some(Duration::from_millis(90_500)), page: None },
            Request::Ticket { view: true, good_for: Some(Duration::from_secs(86_400)), page: None },
            Request::Revoke,
            Request::Share(Share { control: false, good_for: None, page: origin(), reached: None }),
            Request::Share(Share {
                control: true,
                good_for: Some(Duration::from_secs(90)),
                page: origin(),
                reached,
            }),
            Request::Links,
            Request::RevokeLinks(None),
            Request::RevokeLinks("3".parse().ok()),
            Request::CloseLink("3".parse().expect("an id")),
            Request::Detach,
            Request::DetachViews,
            Request::DetachView(4),
            Request::Stop,
            Request::OpenUrl("https://example.org/?a=b".into()),
            Request::Send { size: u64::MAX, name: "a b\n\u{202e}.pdf".into() },
            Request::Fetch("../x y".into()),
        ]);
        survives(&[
            Answer::Done,
            Answer::Elsewhere,
            Answer::Waits,
            Answer::Ticket("wf1:x".into()),
            Answer::Link(NewLink {
                id: "3".parse().expect("an id"),
                control: true,
                seconds: 600,
                uses: 1,
                ticket: "wf1:x".into(),
            }),
            Answer::Links(vec![LinkInfo {
                id: 3,
                role: LinkRole::View,
                seconds: 60,
                uses: 7,
                there: vec![None, Some("192.0.2.7:5".into())],
            }]),
            Answer::Kept("/home/a b/c".into()),
            Answer::Not("no display is there".into()),
        ]);
        survives(&[Ended(0), Ended(255)]);
        survives(&[
            Notice::Set("WAYLAND_DISPLAY".into(), "/tmp/a b".into()),
            Notice::Unset("DISPLAY".into()),
            Notice::Ready("foot-2".into()),
            Notice::Shown,
            Notice::Exit(7),
            Notice::Detached,
        ]);
    }

    #[test]
    fn a_part_of_a_line_waits_for_its_rest() {
        let mut bytes = b"sto".to_vec();
        assert_eq!(take::<Request>(&mut bytes), Ok(None));
        bytes.extend_from_slice(b"p\ninf");
        assert_eq!(take(&mut bytes), Ok(Some(Request::Stop)));
        assert_eq!(bytes, b"inf");
    }

    #[test]
    fn nonsense_and_lines_without_end_are_refused() {
        for text in [
            &b"fly\n"[..],
            b"attach here\n",
            b"ticket --for nan\n",
            b"ticket --view --view\n",
            b"ticket --page\n",
            b"ticket --page file:///page.html\n",
            b"share\n",
            b"share --control\n",
            b"share --revoke\n",
            b"share --origin http://localhost:8000 --origin http://localhost:8000\n",
            b"detach --all\n",
            b"detach --viewer\n",
            b"detach --viewer -1\n",
            b"open \n",
            b"open a b\n",
            b"send 1\n",
            b"send -1 a\n",
            b"fetch %ff\n",
            b"\n",
            b"\xff\n",
            &[b'x'; MAX_LINE],
        ] {
            assert!(take::<Request>(&mut text.to_vec()).is_err(), "{text:?}");
        }
        for text in ["link 1 view 60 8", "link 0 view 60 8 x", "link 1 all 60 8 x", "links {}", "links [1]"] {
            assert_eq!(Answer::decode(text), None, "{text}");
        }
        assert!(take::<Ended>(&mut b"ended 256\n".to_vec()).is_err());
    }
}
