//! What a program is told, in words that do not depend on ids, serials and times.
//!
//! Surfaces are named by the order in which the program made them.

use wayferry_wayland::wire::Arg;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// Of an input device: interface, event, surface if it names one, numbers.
    Input {
        device: &'static str,
        event: &'static str,
        surface: Option<usize>,
        numbers: Vec<i64>,
    },
    /// A window's or a popup's new place and size.
    Configure {
        surface: usize,
        numbers: Vec<i64>,
    },
    Dismissed {
        surface: usize,
    },
    /// What an output or a keyboard is set to: the last one counts.
    Setting {
        of: &'static str,
        event: &'static str,
        numbers: Vec<i64>,
    },
    /// What another program copied, or nothing.
    Selection(Option<Vec<u8>>),
    /// The program's own selection is over.
    Cancelled,
}

impl Heard {
    /// What all events of the same kind are compared as: complete, or the last one only.
    pub(crate) fn is_input(&self) -> bool {
        matches!(self, Self::Input { .. } | Self::Dismissed { .. } | Self::Cancelled)
    }

    /// Kinds whose values replace each other.
    pub(crate) fn track(&self) -> Option<(&'static str, &'static str, usize)> {
        match self {
            Self::Configure { surface, .. } => Some(("xdg_surface", "configure", *surface)),
            Self::Setting { of, event, .. } => Some((of, event, 0)),
            Self::Selection(_) => Some(("wl_data_device", "selection", 0)),
            _ => None,
        }
    }
}

/// The numbers among arguments, but for those at the places of serials and times.
pub(crate) fn numbers(args: &[Arg], skip: &[usize]) -> Vec<i64> {
    let plain = |(index, arg): (usize, &Arg)| {
        if skip.contains(&index) {
            return None;
        }
        match arg {
            Arg::Int(value) | Arg::Fixed(value) => Some(i64::from(*value)),
            Arg::Uint(value) => Some(i64::from(*value)),
            _ => None,
        }
    };
    let mut numbers: Vec<i64> = args.iter().enumerate().filter_map(plain).collect();
    for arg in args {
        if let Arg::Array(bytes) = arg {
            numbers.extend(bytes.iter().map(|byte| i64::from(*byte)));
        }
    }
    numbers
}

/// Places of serials and times among the arguments of an event of an input device; `None` for other events.
pub(crate) fn input_event(interface: &str, event: &str) -> Option<&'static [usize]> {
    Some(match (interface, event) {
        ("wl_pointer", "enter" | "leave") | ("wl_keyboard", "enter" | "leave" | "modifiers") => &[0],
        ("wl_pointer", "motion" | "axis") => &[0],
        ("wl_pointer", "button") | ("wl_keyboard", "key") | ("wl_touch", "down" | "up") => &[0, 1],
        ("wl_touch", "motion") => &[0],
        ("wl_pointer" | "wl_touch", "frame") => &[],
        _ => return None,
    })
}

/// Events that say how something is set.
pub(crate) fn is_setting(interface: &str, event: &str) -> bool {
    matches!((interface, event), ("wl_output", "mode" | "scale") | ("wl_keyboard", "repeat_info"))
}
