//! What a surface is used for, and how far it is with that at the attached display.
//!
//! Knows neither content nor commits.

/// What a surface is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    #[default]
    None,
    /// A window, popup or layer: the compositor answers its first commit with a configure.
    Configured,
    Subsurface,
    /// Pointer or tablet cursor, drag icon.
    Cursor,
}

/// How far a surface is at the attached display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// As far as the program has brought it.
    #[default]
    Shown,
    /// A window that another display has not configured yet: its content waits.
    Awaited,
    /// A window whose size this display decides: its content waits for what the program makes of that.
    Decided,
    /// It has no role; its content waits until it gets one.
    Idle,
    /// A popup that is over: its commits go nowhere.
    Over,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Standing {
    role: Role,
    /// Its `xdg_surface` or layer, by the id that it had: it may be gone.
    role_object: Option<u32>,
    stage: Stage,
    /// A window that was committed without content since it is one, or since it had content.
    initial: bool,
    /// The configure that was acknowledged here, as the program knows it.
    acknowledged: Option<u32>,
}

impl Standing {
    pub(super) fn role(&self) -> Role {
        self.role
    }

    pub(super) fn set_role(&mut self, role: Role) {
        self.role = role;
    }

    /// Its `xdg_surface` or layer, by the id that it had: it may be gone.
    pub(super) fn role_object(&self) -> Option<u32> {
        self.role_object
    }

    pub(super) fn set_role_object(&mut self, object: u32) {
        self.role_object = Some(object);
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    pub(super) fn set_stage(&mut self, stage: Stage) {
        self.stage = stage;
    }

    /// Whether it waits for a display's configure, or for what the program makes of that.
    pub(super) fn waits(&self) -> bool {
        matches!(self.stage, Stage::Awaited | Stage::Decided)
    }

    /// Another one of a role's objects is made for it; `over` if no display will ever show it.
    pub(super) fn begin(&mut self, over: bool) {
        self.initial = false;
        if over {
            self.stage = Stage::Over;
        }
    }

    /// Whether it is a window that was committed without content since it is one, or since it had content.
    pub(super) fn has_begun(&self) -> bool {
        self.initial
    }

    /// It was committed, and has content or not. Returns whether that is the initial commit of a window.
    pub(super) fn on_commit(&mut self, was_mapped: bool, is_mapped: bool) -> bool {
        let window = self.role == Role::Configured;
        let initial = !was_mapped && !is_mapped && window;
        self.initial = window && (initial || is_mapped);
        initial
    }

    /// The configure that was acknowledged here, as the program knows it.
    pub(super) fn acknowledged(&self) -> Option<u32> {
        self.acknowledged
    }

    pub(super) fn acknowledge(&mut self, serial: u32) {
        self.acknowledged = Some(serial);
    }

    /// The display is gone.
    pub(super) fn part(&mut self) {
        (self.stage, self.acknowledged) = (Stage::Shown, None);
    }
}
