//! The names of what is played.

/// Something that a program does on the screen, 1920 × 1080 but where another size is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// Typing in an editor: a glyph, the cursor, the column in the status line; sometimes a word changes colour.
    Type,
    /// The same with damage for the whole surface.
    TypeWhole,
    /// Two spinners and six progress bars in a window of widgets.
    Gtk,
    /// A terminal of eight colours that scrolls by 1 to 40 lines.
    Term,
    /// A page with a fixed header and sidebar, scrolled by a wheel with inertia.
    Page,
    /// A video of 1280 × 720 in a window: a pan and a zoom over a picture, with grain of its own in each frame.
    Video,
    /// Ten screens of text, widgets and pictures that take turns.
    Switch,
    /// Two photographs that take turns.
    Photo,
    /// Damage for everything, and nothing changed.
    Same,
    /// The same at 3840 × 2160.
    Same4k,
}

impl Sequence {
    /// All, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Type,
        Self::TypeWhole,
        Self::Gtk,
        Self::Term,
        Self::Page,
        Self::Video,
        Self::Switch,
        Self::Photo,
        Self::Same,
        Self::Same4k,
    ];

    /// As in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::TypeWhole => "type-whole",
            Self::Gtk => "gtk",
            Self::Term => "term",
            Self::Page => "page",
            Self::Video => "video",
            Self::Switch => "switch",
            Self::Photo => "photo",
            Self::Same => "same",
            Self::Same4k => "same-4k",
        }
    }

    /// The sequence of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sequence| sequence.name() == name)
    }

    /// Columns and rows.
    pub fn size(self) -> (u32, u32) {
        if self == Self::Same4k { (3840, 2160) } else { (1920, 1080) }
    }
}
