//! One surface as its program knows it: what it has said, and what it must not say.

use crate::strict::size_on_surface;

/// Most pixels of a side.
pub(crate) const MAX_SIDE: i32 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    None,
    /// `xdg_surface` and `xdg_toplevel`.
    Toplevel {
        shell: u32,
        role: u32,
    },
    /// The same of a popup, the place of its parent, and whether it grabs.
    Popup {
        shell: u32,
        role: u32,
        parent: usize,
        grab: bool,
    },
    /// `wl_subsurface`, and the place of its parent while that is there.
    Child {
        role: u32,
        parent: Option<usize>,
    },
    Cursor,
    /// It was a child, and can be nothing else again.
    Orphan,
    /// It had a role, and cannot get it again.
    Spent,
}

/// What a buffer and its surface must agree about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) size: Option<(i32, i32)>,
    pub(crate) scale: i32,
    pub(crate) transform: i32,
    /// In whole pixels.
    pub(crate) source: Option<[i32; 4]>,
    pub(crate) destination: Option<(i32, i32)>,
}

impl Shape {
    pub(crate) fn on_surface(&self) -> (i32, i32) {
        self.size.map_or((0, 0), |size| size_on_surface(size, self.scale, self.transform))
    }

    pub(crate) fn fits_scale(&self) -> bool {
        self.size.is_none_or(|(width, height)| width % self.scale == 0 && height % self.scale == 0)
    }

    pub(crate) fn fits_source(&self) -> bool {
        let (width, height) = self.on_surface();
        let inside = |[x, y, w, h]: [i32; 4]| x + w <= width && y + h <= height;
        self.size.is_none() || self.source.is_none_or(inside)
    }

    /// A rectangle of the buffer in surface coordinates, rounded outwards; only without a source.
    pub(crate) fn to_surface(self, [x, y, w, h]: [i32; 4]) -> [i32; 4] {
        let (width, height) = self.on_surface();
        let scale = f64::from(self.scale);
        let corner = |x: i32, y: i32| {
            let (x, y) = (f64::from(x) / scale, f64::from(y) / scale);
            let (wide, high) = (f64::from(width), f64::from(height));
            // wl_output.transform: how the surface was turned to make the buffer; so this turns back.
            let (x, y) = match self.transform {
                1 => (wide - y, x),
                2 => (wide - x, high - y),
                3 => (y, high - x),
                4 => (wide - x, y),
                5 => (y, x),
                6 => (x, high - y),
                7 => (wide - y, high - x),
                _ => (x, y),
            };
            match self.destination {
                Some((w, h)) => (x * f64::from(w) / wide, y * f64::from(h) / high),
                None => (x, y),
            }
        };
        let (one, other) = (corner(x, y), corner(x + w, y + h));
        let (left, right) = (one.0.min(other.0).floor() as i32, one.0.max(other.0).ceil() as i32);
        let (top, bottom) = (one.1.min(other.1).floor() as i32, one.1.max(other.1).ceil() as i32);
        [left, top, right - left, bottom - top]
    }
}

/// A `wl_buffer` in the program's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawing {
    pub(crate) id: u32,
    pub(crate) size: (i32, i32),
    pub(crate) xrgb: bool,
    /// Commits whose release has not come.
    pub(crate) busy: u32,
}

/// What is attached and not committed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Attached {
    Nothing,
    /// That of the drawings.
    Drawing(usize),
    /// A buffer of one pixel.
    Pixel(u32),
}

#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) id: u32,
    /// Among the surfaces that the program ever made.
    pub(crate) index: usize,
    pub(crate) role: Role,
    pub(crate) viewport: Option<u32>,
    /// With everything that is pending, and without.
    pub(crate) shape: Shape,
    pub(crate) committed: Shape,
    pub(crate) attached: Attached,
    pub(crate) drawings: [Option<Drawing>; 3],
    /// The drawing that was painted last.
    pub(crate) latest: Option<usize>,
    pub(crate) size: (i32, i32),
    pub(crate) xrgb: bool,
    pub(crate) truth: Vec<u8>,
    /// What was painted since the last commit, in buffer coordinates; whether all of it is new.
    pub(crate) damage: Vec<([i32; 4], crate::operation::Damage)>,
    pub(crate) whole: bool,
    /// Of a window or a popup: it has been committed without content; its last configure; and it may have content.
    pub(crate) begun: bool,
    pub(crate) serial: Option<u32>,
    pub(crate) configured: bool,
    pub(crate) mapped: bool,
    pub(crate) sync: bool,
    /// Commits of a synchronised child that no commit of its parent has claimed, or who claimed them.
    pub(crate) unclaimed: bool,
    pub(crate) claimed_by: Option<usize>,
}

impl Place {
    pub(crate) fn new(id: u32, index: usize) -> Self {
        let shape = Shape { size: None, scale: 1, transform: 0, source: None, destination: None };
        Self {
            id,
            index,
            role: Role::None,
            viewport: None,
            shape,
            committed: shape,
            attached: Attached::Nothing,
            drawings: [None; 3],
            latest: None,
            size: (12, 8),
            xrgb: false,
            truth: vec![0; 12 * 8 * 4],
            damage: Vec::new(),
            whole: true,
            begun: false,
            serial: None,
            configured: false,
            mapped: false,
            sync: true,
            unclaimed: false,
            claimed_by: None,
        }
    }

    /// Whether a commit of it is neither shown nor forgotten.
    pub(crate) fn is_waiting(&self) -> bool {
        self.unclaimed || self.claimed_by.is_some()
    }

    /// Whether it has no content, so that it may become a window.
    pub(crate) fn is_bare(&self) -> bool {
        self.shape.size.is_none() && self.committed.size.is_none() && self.attached == Attached::Nothing
    }

    pub(crate) fn is_window(&self) -> bool {
        matches!(self.role, Role::Toplevel { .. } | Role::Popup { .. })
    }

    pub(crate) fn parent(&self) -> Option<usize> {
        match self.role {
            Role::Child { parent, .. } => parent,
            _ => None,
        }
    }
}
