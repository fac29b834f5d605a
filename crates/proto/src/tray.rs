//! The icon of a program in the tray, and its menu, on their way to the desk.
//!
//! What they say was written by programs and by peers: here it gets bounds, and loses what could do harm where it is
//! shown. How it is shown is not decided here. Invariant: a [`TrayItem`] or [`TrayMenu`] that was decoded, or made by
//! `fit`, keeps all bounds below; its texts have no control characters, its icons are plain names or whole pictures,
//! and its entries are a tree in which each has a number of its own.

use std::collections::HashSet;

use bytes::Bytes;

use crate::note::icon_name;
use crate::wire::{Reader, Writer};
use crate::{Error, sanitise};

/// All that an icon in the tray is; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrayItem {
    /// Names it to both sides. One with the id of another that is shown takes its place.
    pub id: u32,
    /// What the program calls it; at most [`MAX_TRAY_TEXT`] bytes.
    pub name: String,
    /// What it is called to the user; at most [`MAX_TRAY_TEXT`] bytes.
    pub title: String,
    /// What it is about.
    pub category: TrayCategory,
    /// How much it matters now.
    pub status: TrayStatus,
    /// Usually shown.
    pub icon: TrayIcon,
    /// Put over the icon.
    pub overlay: TrayIcon,
    /// Shown instead while the program needs attention.
    pub attention: TrayIcon,
    /// The first line of what the user reads while the pointer is on it; at most [`MAX_TRAY_TEXT`] bytes.
    pub tip: String,
    /// The rest of that, on one line and without markup; at most [`MAX_TRAY_TEXT`] bytes.
    pub tip_text: String,
    /// A click is to show the menu.
    pub is_menu: bool,
    /// It has a menu, which comes as a [`TrayMenu`].
    pub has_menu: bool,
}

/// The name of an icon, a picture, both or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrayIcon {
    /// In the desk's theme; at most [`MAX_ICON`](crate::note::MAX_ICON) bytes.
    pub name: String,
    /// What to show if the theme has no such icon.
    pub picture: Option<TrayPicture>,
}

/// A picture. Made by [`TrayPicture::new`] it has as many bytes as its size says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrayPicture {
    width: u8,
    height: u8,
    argb: Bytes,
}

/// What an icon is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum TrayCategory {
    /// A program. What later builds know besides is taken for this.
    #[default]
    Program = 0,
    /// Messages of people.
    Communications = 1,
    /// A service of the system.
    System = 2,
    /// A device.
    Hardware = 3,
}

/// How much an icon matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum TrayStatus {
    /// It need not be shown.
    Passive = 0,
    /// It is shown. What later builds know besides is taken for this.
    #[default]
    Active = 1,
    /// The user should not miss it.
    Attention = 2,
}

/// The menu of an icon: its entries, each in front of those below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrayMenu {
    /// Of [`TrayItem::id`].
    pub item: u32,
    /// At most [`MAX_ENTRIES`].
    pub entries: Vec<TrayEntry>,
}

/// An entry of a menu.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrayEntry {
    /// Names it to the program; from 1 to [`MAX_ENTRY`].
    pub id: u32,
    /// How many entries it is below; less than [`MAX_DEPTH`], and at most one more than the entry in front of it.
    pub depth: u8,
    /// What the user reads, with `_` in front of a letter that may choose it; at most [`MAX_LABEL`] bytes.
    pub label: String,
    /// In the desk's theme; at most [`MAX_ICON`](crate::note::MAX_ICON) bytes.
    pub icon: String,
    /// A line between entries.
    pub is_separator: bool,
    /// It can be chosen.
    pub is_enabled: bool,
    /// It is there for the user.
    pub is_visible: bool,
    /// It shows other entries when it is chosen, also if there are none yet.
    pub is_submenu: bool,
    /// What is in front of the label.
    pub toggle: TrayToggle,
}

/// What an entry of a menu has in front of its label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum TrayToggle {
    /// Nothing. What later builds know besides is taken for this.
    #[default]
    None = 0,
    /// A box.
    Off = 1,
    /// A box with a mark.
    On = 2,
    /// One of several, and not it.
    RadioOff = 3,
    /// The one of several.
    RadioOn = 4,
}

/// What the user does with an icon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrayAct {
    /// Clicks it.
    Activate,
    /// Clicks it with the middle button.
    Secondary,
    /// Asks for a menu that the program shows by itself.
    Menu,
    /// Turns the wheel by so much, as the desk counts it.
    Scroll {
        /// Downwards or to the right.
        delta: i32,
        /// Sideways.
        is_sideways: bool,
    },
    /// Chooses an entry of the menu.
    Choose(u32),
    /// Will see what is below an entry of the menu, or the menu if that is 0.
    Open(u32),
    /// Lets the program come to the front with this token of the desk's, at what comes next; of at most
    /// [`MAX_TOKEN`](crate::note::MAX_TOKEN) bytes.
    Token(String),
}

impl TrayItem {
    /// With all that is beyond a bound cut off or left out.
    #[must_use]
    pub fn fit(self) -> Self {
        let text = |text: &str| sanitise(text, MAX_TRAY_TEXT);
        Self {
            name: text(&self.name),
            title: text(&self.title),
            icon: self.icon.fit(),
            overlay: self.overlay.fit(),
            attention: self.attention.fit(),
            tip: text(&self.tip),
            tip_text: text(&self.tip_text),
            ..self
        }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        let item = self.clone().fit();
        writer.varint(item.id.into()).str(&item.name).str(&item.title);
        writer.u8(item.category as u8).u8(item.status as u8);
        [&item.icon, &item.overlay, &item.attention].into_iter().for_each(|icon| icon.encode(writer));
        writer.str(&item.tip).str(&item.tip_text).bool(item.is_menu).bool(item.has_menu);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let item = Self {
            id: item_id(reader)?,
            name: text(reader, "an icon's own name")?,
            title: text(reader, "an icon's title")?,
            category: TrayCategory::from_code(reader.u8("what an icon is about")?),
            status: TrayStatus::from_code(reader.u8("how much an icon matters")?),
            icon: TrayIcon::decode(reader)?,
            overlay: TrayIcon::decode(reader)?,
            attention: TrayIcon::decode(reader)?,
            tip: text(reader, "an icon's tip")?,
            tip_text: text(reader, "an icon's tip")?,
            is_menu: reader.bool("whether an icon is a menu")?,
            has_menu: reader.bool("whether an icon has a menu")?,
        };
        reader.rest(); // fields of later builds
        Ok(item.fit())
    }
}

impl TrayIcon {
    fn fit(self) -> Self {
        Self { name: icon_name(self.name), ..self }
    }

    fn encode(&self, writer: &mut Writer) {
        writer.str(&self.name);
        let (width, height, argb) =
            self.picture.as_ref().map_or((0, 0, &[][..]), |it| (it.width, it.height, &it.argb[..]));
        writer.u8(width).u8(height).raw(argb);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let name = reader.str(crate::note::MAX_ICON, "an icon's name")?.to_owned();
        let (width, height) = (reader.u8("a picture's width")?, reader.u8("a picture's height")?);
        for side in [width, height] {
            if usize::from(side) > MAX_SIDE {
                let (max, got) = (MAX_SIDE as u64, side.into());
                return Err(Error::OutOfRange { expected: "a picture's side", max, got });
            }
        }
        let argb = reader.raw(usize::from(width) * usize::from(height) * 4, "a picture")?;
        Ok(Self { name, picture: TrayPicture::new(width, height, argb.to_vec()) })
    }
}

impl TrayPicture {
    /// Of rows of pixels, each of four bytes: alpha, red, green, blue. `None` if it is none, is more than [`MAX_SIDE`]
    /// wide or high, or has other bytes than its size says.
    pub fn new(width: u8, height: u8, argb: Vec<u8>) -> Option<Self> {
        let sides = [width, height].map(usize::from);
        let fits = sides.into_iter().all(|side| (1..=MAX_SIDE).contains(&side));
        let is_whole = argb.len() == sides[0] * sides[1] * 4;
        (fits && is_whole).then(|| Self { width, height, argb: argb.into() })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u8, u8) {
        (self.width, self.height)
    }

    /// Its pixels, as [`TrayPicture::new`] takes them.
    pub fn argb(&self) -> &[u8] {
        &self.argb
    }
}

impl TrayMenu {
    /// With all that is beyond a bound cut off or left out.
    #[must_use]
    pub fn fit(self) -> Self {
        let mut ids = HashSet::new();
        let (mut entries, mut gone): (Vec<TrayEntry>, Option<u8>) = (Vec::new(), None);
        for entry in self.entries {
            // What is below one that is left out goes with it.
            if gone.is_some_and(|depth| entry.depth > depth) {
                continue;
            }
            let deepest = entries.last().map_or(0, |last: &TrayEntry| last.depth + 1).min(MAX_DEPTH - 1);
            let fits = (1..=MAX_ENTRY).contains(&entry.id) && entry.depth <= deepest && ids.insert(entry.id);
            gone = (!fits).then_some(entry.depth);
            if fits && entries.len() < MAX_ENTRIES {
                entries.push(entry.fit());
            }
        }
        Self { entries, ..self }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        let menu = self.clone().fit();
        writer.varint(menu.item.into()).varint(menu.entries.len() as u64);
        for entry in &menu.entries {
            let flags = [entry.is_separator, entry.is_enabled, entry.is_visible, entry.is_submenu];
            let flags = flags.iter().enumerate().map(|(bit, set)| u8::from(*set) << bit).sum();
            writer.varint(entry.id.into()).u8(entry.depth).str(&entry.label).str(&entry.icon);
            writer.u8(flags).u8(entry.toggle as u8);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let item = item_id(reader)?;
        let count = reader.count(MAX_ENTRIES, "the number of a menu's entries")?;
        let entries = (0..count).map(|_| TrayEntry::decode(reader)).collect::<Result<_, Error>>()?;
        reader.rest(); // fields of later builds
        Ok(Self { item, entries }.fit())
    }
}

impl TrayEntry {
    /// With its texts cut, and made plain.
    #[must_use]
    pub fn fit(self) -> Self {
        Self { label: sanitise(&self.label, MAX_LABEL), icon: icon_name(self.icon), ..self }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let id = reader.varint_u32("the number of an entry")?;
        let depth = reader.u8("the depth of an entry")?;
        let label = reader.str(MAX_LABEL, "an entry's label")?.to_owned();
        let icon = reader.str(crate::note::MAX_ICON, "an icon's name")?.to_owned();
        let flags = reader.u8("an entry's flags")?;
        let has = |bit: u8| flags & 1 << bit != 0;
        Ok(Self {
            id,
            depth,
            label,
            icon,
            is_separator: has(0),
            is_enabled: has(1),
            is_visible: has(2),
            is_submenu: has(3),
            toggle: TrayToggle::from_code(reader.u8("an entry's toggle")?),
        })
    }
}

impl TrayCategory {
    fn from_code(code: u8) -> Self {
        let known = [Self::Communications, Self::System, Self::Hardware];
        known.into_iter().find(|category| *category as u8 == code).unwrap_or_default()
    }
}

impl TrayStatus {
    fn from_code(code: u8) -> Self {
        [Self::Passive, Self::Attention].into_iter().find(|status| *status as u8 == code).unwrap_or_default()
    }
}

impl TrayToggle {
    fn from_code(code: u8) -> Self {
        let known = [Self::Off, Self::On, Self::RadioOff, Self::RadioOn];
        known.into_iter().find(|toggle| *toggle as u8 == code).unwrap_or_default()
    }
}

impl TrayAct {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self {
            Self::Activate => writer.u8(0),
            Self::Secondary => writer.u8(1),
            Self::Menu => writer.u8(2),
            Self::Scroll { delta, is_sideways } => writer.u8(3).i32(*delta).bool(*is_sideways),
            Self::Choose(entry) => writer.u8(4).varint((*entry).into()),
            Self::Open(entry) => writer.u8(5).varint((*entry).into()),
            // One that was cut would be no token.
            Self::Token(token) if token.len() > crate::note::MAX_TOKEN => writer.u8(6).str(""),
            Self::Token(token) => writer.u8(6).str(token),
        };
    }

    /// `None` is something of a later build's.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Option<Self>, Error> {
        let act = match reader.u8("what the user does with an icon")? {
            0 => Self::Activate,
            1 => Self::Secondary,
            2 => Self::Menu,
            3 => {
                let delta = reader.i32("how far a wheel was turned")?;
                Self::Scroll { delta, is_sideways: reader.bool("whether a wheel goes sideways")? }
            }
            4 => Self::Choose(reader.varint_u32("the number of an entry")?),
            5 => Self::Open(reader.varint_u32("the number of an entry")?),
            6 => {
                let token = reader.str(crate::note::MAX_TOKEN, "an activation token")?;
                Self::Token(sanitise(token, crate::note::MAX_TOKEN))
            }
            _ => {
                reader.rest();
                return Ok(None);
            }
        };
        Ok(Some(act))
    }
}

pub(crate) fn item_id(reader: &mut Reader<'_>) -> Result<u32, Error> {
    reader.varint_u32("the number of an icon")
}

fn text(reader: &mut Reader<'_>, expected: &'static str) -> Result<String, Error> {
    Ok(reader.str(MAX_TRAY_TEXT, expected)?.to_owned())
}

/// Longest text of an icon, in bytes.
pub const MAX_TRAY_TEXT: usize = 128;

/// Widest and highest picture of an icon, in pixels.
pub const MAX_SIDE: usize = 64;

/// Most entries of a menu; what is beyond is left out.
pub const MAX_ENTRIES: usize = 200;

/// How many entries may be below each other.
pub const MAX_DEPTH: u8 = 6;

/// Longest label of an entry, in bytes.
pub const MAX_LABEL: usize = 128;

/// Highest number of an entry: the desk has numbers of its own beyond it.
pub const MAX_ENTRY: u32 = (1 << 31) - 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::note::MAX_ICON;

    fn item_over_the_wire(item: &TrayItem) -> TrayItem {
        let mut writer = Writer::new();
        item.encode(&mut writer);
        let bytes = writer.into_vec();
        TrayItem::decode(&mut Reader::new(&bytes)).expect("what is encoded can be decoded")
    }

    fn menu_over_the_wire(menu: &TrayMenu) -> TrayMenu {
        let mut writer = Writer::new();
        menu.encode(&mut writer);
        let bytes = writer.into_vec();
        TrayMenu::decode(&mut Reader::new(&bytes)).expect("what is encoded can be decoded")
    }

    fn picture(width: u8, height: u8) -> TrayPicture {
        let bytes = usize::from(width) * usize::from(height) * 4;
        TrayPicture::new(width, height, vec![7; bytes]).expect("it fits")
    }

    fn entry(id: u32, depth: u8) -> TrayEntry {
        TrayEntry { id, depth, ..TrayEntry::default() }
    }

    fn numbers(menu: &TrayMenu) -> Vec<(u32, u8)> {
        menu.entries.iter().map(|entry| (entry.id, entry.depth)).collect()
    }

    #[test]
    fn all_of_an_icon_crosses() {
        let item = TrayItem {
            id: 7,
            name: "mail".into(),
            title: "Mail & more".into(),
            category: TrayCategory::Hardware,
            status: TrayStatus::Attention,
            icon: TrayIcon { name: "mail-unread".into(), picture: Some(picture(64, 64)) },
            overlay: TrayIcon { name: String::new(), picture: Some(picture(1, 9)) },
            attention: TrayIcon { name: "mail-new".into(), picture: None },
            tip: "Two".into(),
            tip_text: "new mails".into(),
            is_menu: true,
            has_menu: true,
        };
        assert_eq!(item_over_the_wire(&item), item);
        assert_eq!(item_over_the_wire(&TrayItem::default()), TrayItem::default());
    }

    #[test]
    fn all_of_a_menu_crosses() {
        let toggles =
            [TrayToggle::None, TrayToggle::Off, TrayToggle::On, TrayToggle::RadioOff, TrayToggle::RadioOn];
        let toggles = toggles.into_iter().zip(10..).map(|(toggle, id)| TrayEntry { toggle, ..entry(id, 1) });
        let flags = [
            TrayEntry { is_separator: true, ..entry(20, 0) },
            TrayEntry { is_enabled: true, label: "_Open".into(), icon: "go".into(), ..entry(21, 0) },
            TrayEntry { is_visible: true, ..entry(22, 0) },
            TrayEntry { is_submenu: true, ..entry(MAX_ENTRY, 0) },
        ];
        let entries = [entry(1, 0)].into_iter().chain(toggles).chain(flags).collect();
        let menu = TrayMenu { item: 7, entries };
        assert_eq!(menu_over_the_wire(&menu), menu);
    }

    #[test]
    fn what_could_do_harm_at_a_tray_is_left_out() {
        let icon = TrayIcon { name: "/etc/passwd".into(), picture: None };
        let item = TrayItem { title: "a\u{1b}[2J\nb\u{202e}".into(), icon, ..TrayItem::default() };
        let item = item_over_the_wire(&item);
        assert_eq!((item.title.as_str(), item.icon.name.as_str()), ("a·[2J·b·", ""));
        let entry = TrayEntry { label: "a\nb".into(), icon: "../x".into(), ..entry(1, 0) };
        let menu = menu_over_the_wire(&TrayMenu { item: 1, entries: vec![entry] });
        assert_eq!((menu.entries[0].label.as_str(), menu.entries[0].icon.as_str()), ("a·b", ""));
    }

    #[test]
    fn a_picture_is_whole_and_small_or_none() {
        assert!(TrayPicture::new(2, 2, vec![0; 16]).is_some());
        for (width, height, bytes) in
            [(2, 2, 15), (2, 2, 17), (0, 0, 0), (0, 5, 0), (65, 1, 260), (1, 65, 260)]
        {
            assert_eq!(TrayPicture::new(width, height, vec![0; bytes]), None, "{width} × {height}");
        }
        let decode = |bytes: &[u8]| TrayIcon::decode(&mut Reader::new(bytes));
        assert_eq!(decode(&[0, 0, 0]), Ok(TrayIcon::default()));
        assert!(decode(&[0, 65, 1]).is_err() && decode(&[0, 1, 65]).is_err());
        assert!(decode(&[0, 1, 1, 9, 9, 9]).is_err(), "it is cut off");
    }

    #[test]
    fn entries_are_a_tree_with_numbers_of_their_own() {
        let fit = |entries: &[(u32, u8)]| {
            let entries = entries.iter().map(|(id, depth)| entry(*id, *depth)).collect();
            numbers(&TrayMenu { item: 1, entries }.fit())
        };
        assert_eq!(fit(&[(1, 0), (2, 1), (3, 1), (4, 0)]), [(1, 0), (2, 1), (3, 1), (4, 0)]);
        assert_eq!(fit(&[(1, 1), (2, 0), (3, 2), (4, 1)]), [(2, 0), (4, 1)], "no step is left out");
        assert_eq!(fit(&[(1, 0), (1, 0), (2, 1), (0, 0), (3, 0), (MAX_ENTRY + 1, 1)]), [(1, 0), (3, 0)]);
        let deep: Vec<_> = (0..9).map(|depth| (u32::from(depth) + 1, depth)).collect();
        assert_eq!(fit(&deep), deep[..6]);
        let many: Vec<_> = (1..=300).map(|id| (id, 0)).collect();
        assert_eq!(fit(&many), many[..MAX_ENTRIES]);
    }

    #[test]
    fn a_peer_that_keeps_no_bound_of_trays_is_wrong() {
        let item = |title: usize, icon: usize| {
            let mut writer = Writer::new();
            writer.varint(1).str("").str(&"t".repeat(title)).u8(0).u8(0).str(&"i".repeat(icon)).u8(0).u8(0);
            writer.str("").u8(0).u8(0).str("").u8(0).u8(0).str("").str("").bool(false).bool(false);
            writer.into_vec()
        };
        let decode = |bytes: Vec<u8>| TrayItem::decode(&mut Reader::new(&bytes));
        assert!(decode(item(MAX_TRAY_TEXT, MAX_ICON)).is_ok());
        assert!(decode(item(MAX_TRAY_TEXT + 1, 0)).is_err());
        assert!(decode(item(0, MAX_ICON + 1)).is_err());
        let menu = |count: usize, label: usize| {
            let mut writer = Writer::new();
            writer.varint(1).varint(count as u64);
            for id in 0..count {
                writer.varint(id as u64 + 1).u8(0).str(&"l".repeat(label)).str("").u8(0).u8(0);
            }
            writer.into_vec()
        };
        let decode = |bytes: Vec<u8>| TrayMenu::decode(&mut Reader::new(&bytes));
        assert!(decode(menu(MAX_ENTRIES, MAX_LABEL)).is_ok());
        assert!(decode(menu(MAX_ENTRIES + 1, 0)).is_err());
        assert!(decode(menu(1, MAX_LABEL + 1)).is_err());
    }

    #[test]
    fn the_largest_of_each_is_a_frame() {
        let icon = || TrayIcon { name: "i".repeat(MAX_ICON), picture: Some(picture(64, 64)) };
        let text = || "t".repeat(MAX_TRAY_TEXT);
        let (icon, overlay, attention) = (icon(), icon(), icon());
        let (name, title, tip, tip_text) = (text(), text(), text(), text());
        let item = TrayItem {
            id: u32::MAX,
            name,
            title,
            icon,
            overlay,
            attention,
            tip,
            tip_text,
            ..TrayItem::default()
        };
        let entry = |id: usize| TrayEntry {
            label: "l".repeat(MAX_LABEL),
            icon: "i".repeat(MAX_ICON),
            ..entry(MAX_ENTRY - id as u32, 0)
        };
        let menu = TrayMenu { item: u32::MAX, entries: (0..MAX_ENTRIES).map(entry).collect() };
        for message in [crate::Control::TrayItem(item), crate::Control::TrayMenu(menu)] {
            let mut writer = Writer::new();
            message.encode(&mut writer);
            assert!(writer.len() <= crate::MAX_CONTROL, "{} bytes", writer.len());
        }
    }

    #[test]
    fn numbers_of_later_builds_have_a_meaning_in_trays() {
        let categories = [0, 1, 2, 3, 9].map(TrayCategory::from_code).map(|it| it as u8);
        let statuses = [0, 1, 2, 9].map(TrayStatus::from_code).map(|it| it as u8);
        let toggles = [0, 1, 2, 3, 4, 9].map(TrayToggle::from_code).map(|it| it as u8);
        assert_eq!((categories, statuses), ([0, 1, 2, 3, 0], [0, 1, 2, 1]));
        assert_eq!(toggles, [0, 1, 2, 3, 4, 0]);
        assert_eq!(TrayAct::decode(&mut Reader::new(&[99, 1, 2])), Ok(None));
    }

    fn is_plain(text: &str, max: usize) -> bool {
        text.len() <= max && sanitise(text, max) == text
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_fit_icon_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(item) = TrayItem::decode(&mut Reader::new(&bytes)) {
                prop_assert!(is_plain(&item.title, MAX_TRAY_TEXT) && is_plain(&item.tip, MAX_TRAY_TEXT));
                prop_assert_eq!(&item_over_the_wire(&item), &item);
            }
            let _ = TrayAct::decode(&mut Reader::new(&bytes));
        }

        #[test]
        fn any_entries_become_a_menu_that_fits(
            entries in proptest::collection::vec((0..40u32, 0..9u8, "\\PC{0,90}|[\u{0}-\u{90}]{0,300}"), 0..300),
        ) {
            let entry = |(id, depth, label)| TrayEntry { id, depth, label, ..TrayEntry::default() };
            let menu = TrayMenu { item: 1, entries: entries.into_iter().map(entry).collect() }.fit();
            let mut depth = None;
            for entry in &menu.entries {
                prop_assert!(entry.depth <= depth.map_or(0, |depth: u8| depth + 1) && entry.depth < MAX_DEPTH);
                prop_assert!(is_plain(&entry.label, MAX_LABEL));
                depth = Some(entry.depth);
            }
            prop_assert_eq!(&menu_over_the_wire(&menu), &menu);
            prop_assert_eq!(menu.clone().fit(), menu);
        }
    }
}
