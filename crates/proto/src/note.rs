//! A notification of a program, on its way to the desk.
//!
//! What it says was written by programs and by peers: here it gets bounds, and loses what could do harm where it is
//! shown. How it is shown is not decided here. Invariant: a [`Note`] that was decoded, or made by [`Note::fit`], keeps
//! all bounds below; its texts have no control characters but the line feeds of the body, and its icon is a plain name.

use std::time::Duration;

use crate::wire::{Reader, Writer};
use crate::{Error, sanitise};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Names it to both sides. One with the id of another that is shown takes its place.
    pub id: u32,
    /// What the program calls itself; at most [`MAX_APP`] bytes.
    pub app: String,
    /// An icon's name in the desk's theme, or nothing; at most [`MAX_ICON`] bytes.
    pub icon: String,
    /// One line; at most [`MAX_SUMMARY`] bytes.
    pub summary: String,
    /// Plain text without markup; at most [`MAX_BODY`] bytes.
    pub body: String,
    /// How much it matters.
    pub urgency: Urgency,
    /// How long it is shown: the desk decides if there is nothing, and zero is until the user has seen it.
    pub stays: Option<Duration>,
    /// What the user can choose; at most [`MAX_ACTIONS`].
    pub actions: Vec<NoteAction>,
}

/// Something that the user can choose at a notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteAction {
    /// Names it to the program; at most [`MAX_ACTION`] bytes.
    pub key: String,
    /// What the user reads; at most [`MAX_ACTION`] bytes.
    pub label: String,
}

/// How much a notification matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Urgency {
    /// Little.
    Low = 0,
    /// As most do. What later builds know besides is taken for this.
    #[default]
    Normal = 1,
    /// The user should not miss it.
    Critical = 2,
}

/// Why a notification is not shown any more. The numbers are those of the Desktop Notifications Specification 1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NoteEnd {
    /// Its time was over.
    Expired = 1,
    /// The user took it away.
    Dismissed = 2,
    /// The program did.
    Closed = 3,
    /// Anything else: it may never have been shown.
    Undefined = 4,
}

impl Note {
    /// With all that is beyond a bound cut off or left out.
    #[must_use]
    pub fn fit(self) -> Self {
        let actions = self.actions.into_iter().filter_map(NoteAction::fit).take(MAX_ACTIONS).collect();
        Self {
            app: sanitise(&self.app, MAX_APP),
            icon: icon_name(self.icon),
            summary: sanitise(&self.summary, MAX_SUMMARY),
            body: lines(&self.body),
            actions,
            ..self
        }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        let note = self.clone().fit();
        writer.varint(note.id.into()).str(&note.app).str(&note.icon).str(&note.summary).str(&note.body);
        let stays = note.stays.map_or(-1, |time| i32::try_from(time.as_millis()).unwrap_or(i32::MAX));
        writer.u8(note.urgency as u8).i32(stays).varint(note.actions.len() as u64);
        for NoteAction { key, label } in &note.actions {
            writer.str(key).str(label);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let id = reader.varint_u32("the number of a notification")?;
        let app = reader.str(MAX_APP, "a program's name")?.to_owned();
        let icon = reader.str(MAX_ICON, "an icon's name")?.to_owned();
        let summary = reader.str(MAX_SUMMARY, "a notification's summary")?.to_owned();
        let body = reader.str(MAX_BODY, "a notification's body")?.to_owned();
        let urgency = Urgency::from_code(reader.u8("how much a notification matters")?);
        let stays = u64::try_from(reader.i32("how long a notification stays")?).ok();
        let count = reader.count(MAX_ACTIONS, "the number of actions")?;
        let action = |reader: &mut Reader<'_>| {
            let key = reader.str(MAX_ACTION, "an action's key")?.to_owned();
            let label = reader.str(MAX_ACTION, "an action's label")?.to_owned();
            Ok(NoteAction { key, label })
        };
        let actions = (0..count).map(|_| action(reader)).collect::<Result<_, Error>>()?;
        reader.rest(); // fields of later builds
        let stays = stays.map(Duration::from_millis);
        Ok(Self { id, app, icon, summary, body, urgency, stays, actions }.fit())
    }
}

impl NoteAction {
    /// Not one whose key would be another after it: the program would not know it.
    fn fit(self) -> Option<Self> {
        let is_plain = !self.key.is_empty() && sanitise(&self.key, MAX_ACTION) == self.key;
        is_plain.then(|| Self { label: sanitise(&self.label, MAX_ACTION), key: self.key })
    }
}

impl Urgency {
    /// Of a number on a wire.
    pub fn from_code(code: u8) -> Self {
        [Self::Low, Self::Critical].into_iter().find(|urgency| *urgency as u8 == code).unwrap_or_default()
    }
}

impl NoteEnd {
    /// Of a number on a wire.
    pub fn from_code(code: u32) -> Self {
        let known = [Self::Expired, Self::Dismissed, Self::Closed];
        known.into_iter().find(|end| *end as u32 == code).unwrap_or(Self::Undefined)
    }
}

/// The name of a theme's icon, or nothing.
pub(crate) fn icon_name(name: String) -> String {
    if is_icon(&name) { name } else { String::new() }
}

/// Whether it is the name of a theme's icon: no path and no address, at which the desk would look for a file.
fn is_icon(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= MAX_ICON && !name.starts_with('.') && name.bytes().all(plain)
}

/// A text of several lines, made safe and cut.
fn lines(text: &str) -> String {
    let clean: Vec<String> = text.lines().map(|line| sanitise(line, MAX_BODY)).collect();
    let mut clean = clean.join("\n");
    let end = (0..=MAX_BODY.min(clean.len())).rev().find(|end| clean.is_char_boundary(*end));
    clean.truncate(end.unwrap_or(0));
    clean.trim_end_matches('\n').to_owned()
}

/// Longest name of a program, in bytes.
pub const MAX_APP: usize = 64;

/// Longest name of an icon, in bytes.
pub const MAX_ICON: usize = 64;

/// Longest summary of a notification, in bytes.
pub const MAX_SUMMARY: usize = 256;

/// Longest body of a notification, in bytes.
pub const MAX_BODY: usize = 2048;

/// Most actions of a notification; what is beyond is left out.
pub const MAX_ACTIONS: usize = 8;

/// Longest key, and longest label, of an action, in bytes.
pub const MAX_ACTION: usize = 64;

/// Longest activation token, in bytes.
pub const MAX_TOKEN: usize = 256;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn over_the_wire(note: &Note) -> Note {
        let mut writer = Writer::new();
        note.encode(&mut writer);
        let bytes = writer.into_vec();
        Note::decode(&mut Reader::new(&bytes)).expect("what is encoded can be decoded")
    }

    fn action(key: &str, label: &str) -> NoteAction {
        NoteAction { key: key.into(), label: label.into() }
    }

    #[test]
    fn all_of_a_note_crosses() {
        let note = Note {
            id: 7,
            app: "mail".into(),
            icon: "mail-unread".into(),
            summary: "A & B <c>".into(),
            body: "two\nlines".into(),
            urgency: Urgency::Critical,
            stays: Some(Duration::from_millis(1500)),
            actions: vec![action("default", ""), action("reply", "Reply")],
        };
        assert_eq!(over_the_wire(&note), note);
        assert_eq!(over_the_wire(&Note { stays: None, ..note }).stays, None);
    }

    #[test]
    fn what_could_do_harm_is_left_out() {
        let note = Note {
            summary: "a\u{1b}[2J\nb\u{202e}".into(),
            body: "a\r\n\tb\u{7}".into(),
            icon: "/etc/passwd".into(),
            actions: vec![action("", "empty"), action("a\nb", "feed"), action(&"k".repeat(65), "long")],
            ..Note::default()
        };
        let note = over_the_wire(&note);
        assert_eq!((note.summary.as_str(), note.body.as_str()), ("a·[2J·b·", "a\n·b·"));
        assert!(note.icon.is_empty() && note.actions.is_empty());
        for icon in ["file:///x", "..", ".hidden", "a/b", "ü", &"i".repeat(65)] {
            assert!(!is_icon(icon), "{icon}");
        }
    }

    #[test]
    fn a_peer_that_keeps_no_bound_is_wrong() {
        let bytes = |summary: usize, actions: u64| {
            let mut writer = Writer::new();
            writer.varint(1).str("").str("").str(&"s".repeat(summary)).str("").u8(1).i32(-1).varint(actions);
            for _ in 0..actions {
                writer.str("key").str("label");
            }
            writer.into_vec()
        };
        let decode = |bytes: Vec<u8>| Note::decode(&mut Reader::new(&bytes));
        assert!(decode(bytes(MAX_SUMMARY, MAX_ACTIONS as u64)).is_ok());
        assert!(decode(bytes(MAX_SUMMARY + 1, 0)).is_err());
        assert!(decode(bytes(0, MAX_ACTIONS as u64 + 1)).is_err());
    }

    #[test]
    fn numbers_of_later_builds_have_a_meaning() {
        assert_eq!([0, 1, 2, 9].map(Urgency::from_code).map(|urgency| urgency as u8), [0, 1, 2, 1]);
        assert_eq!([1, 2, 3, 4, 99].map(NoteEnd::from_code).map(|end| end as u8), [1, 2, 3, 4, 4]);
    }

    fn is_fit(note: &Note) -> bool {
        let clean = |text: &str, max| text.len() <= max && sanitise(text, max) == text;
        let body = note.body.len() <= MAX_BODY && note.body.split('\n').all(|line| clean(line, MAX_BODY));
        let actions = note.actions.len() <= MAX_ACTIONS
            && note.actions.iter().all(|it| clean(&it.key, MAX_ACTION) && clean(&it.label, MAX_ACTION));
        clean(&note.app, MAX_APP)
            && clean(&note.summary, MAX_SUMMARY)
            && body
            && actions
            && is_icon(&note.icon)
    }

    proptest! {
        #[test]
        fn any_text_fits_and_what_fits_stays(
            texts in proptest::collection::vec("\\PC{0,300}|[a-z\u{0}-\u{20}\u{2066}ü\u{1f600}]{0,3000}", 4),
            actions in proptest::collection::vec(("\\PC{0,90}", "[\u{0}-\u{90}]{0,90}"), 0..12),
        ) {
            let [app, icon, summary, body] = &texts[..] else { unreachable!("four") };
            let actions = actions.iter().map(|(key, label)| action(key, label)).collect();
            let (app, icon, summary, body) = (app.clone(), icon.clone(), summary.clone(), body.clone());
            let fit = Note { app, icon, summary, body, actions, ..Note::default() }.fit();
            prop_assert!(is_fit(&fit), "{fit:?}");
            prop_assert_eq!(&over_the_wire(&fit), &fit);
            prop_assert_eq!(fit.clone().fit(), fit);
        }

        #[test]
        fn any_bytes_are_a_fit_note_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(note) = Note::decode(&mut Reader::new(&bytes)) {
                prop_assert!(is_fit(&note), "{note:?}");
            }
        }
    }
}
