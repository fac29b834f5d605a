//! The globals that a program is offered.
//!
//! The list is fixed and ours; the attached compositor decides only whether a global is real or a stub.

use crate::policy::{self, Handler};
use crate::snapshot::Snapshot;
use crate::tables::{self, Access, Global, Missing, Stub};

use super::config::Config;
use super::slots::{Slot, Slots};

/// One line of the registry that the program sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Registry name towards the program.
    pub(crate) name: u32,
    pub(crate) interface: &'static str,
    pub(crate) version: u32,
    /// Registry name at the compositor; `None` for what is answered here.
    pub(crate) global: Option<u32>,
}

/// Registry names of the fixed globals start here, those of outputs and seats are far behind.
const FIRST_FIXED: u32 = 1;

/// A registry name that no compositor gives: the display side is to stand in for it.
const NO_GLOBAL: u32 = 0;

/// The registry for a program, given what the compositor has, and whether the pixels of its surfaces are multiplied
/// here.
pub(crate) fn offers(config: &Config, snapshot: &Snapshot, slots: &Slots, fades: bool) -> Vec<Offer> {
    let mut offers = Vec::new();
    for (global, name) in tables::GLOBALS.iter().zip(FIRST_FIXED..) {
        let interface = global.name();
        let named = |list: &[String]| list.iter().any(|name| name == interface);
        let wanted = match global.access {
            Access::Offered => !named(&config.deny),
            Access::Privileged => named(&config.allow),
            Access::Withheld => false,
        };
        let handler = policy::handler(interface);
        if !wanted || matches!(handler, Handler::Output | Handler::Seat) {
            continue;
        }
        let at_compositor = || snapshot.globals.iter().find(|g| g.interface == interface).map(|g| g.name);
        let real = match global.missing {
            Missing::Local | Missing::Read | Missing::Timed => None,
            Missing::Encoded if fades => None,
            _ if handler == Handler::Shm => None,
            // The display side draws the shapes itself where the compositor cannot.
            Missing::Stub(Stub::ThemedCursor) => at_compositor().or(Some(NO_GLOBAL)),
            _ => at_compositor(),
        };
        let successor = |name| snapshot.version(name).is_some();
        match global.missing {
            Missing::Absent if real.is_none() => continue,
            Missing::Read if config.gpu.is_none() => continue,
            Missing::Timed if config.gpu.as_ref().is_none_or(|gpu| gpu.timelines().is_none()) => continue,
            Missing::Unless(newer) if real.is_none() || successor(newer) => continue,
            _ => {}
        }
        let version = offered(global, snapshot).min(readable(config, global));
        offers.push(Offer { name, interface, version, global: real });
    }
    let named = |interface, slots: &[Slot]| {
        let version = tables::version_cap(interface);
        let offer = move |slot: Slot| Offer { name: slot.name, interface, version, global: slot.global };
        slots.iter().copied().map(offer).collect::<Vec<_>>()
    };
    offers.extend(named("wl_output", slots.outputs()));
    // Programs need a seat; one without a global has no devices.
    offers.extend(named("wl_seat", slots.seats()));
    offers
}

/// Whether a program that begins at the display of this snapshot has its pixels multiplied here.
pub(super) fn fades_at(there: &Snapshot) -> bool {
    there.version("wp_alpha_modifier_v1").is_none()
}

/// The version of a global that a program is offered which begins at the display of this snapshot.
fn offered(global: &Global, there: &Snapshot) -> u32 {
    match there.version(global.name()) {
        Some(there) if there < global.given_from => global.given_from - 1,
        _ => global.version,
    }
}

/// The highest version of a global for which this host has what it takes.
fn readable(config: &Config, global: &Global) -> u32 {
    let has_device = config.gpu.as_ref().is_some_and(|gpu| gpu.device().is_some());
    if global.missing == Missing::Read && !has_device { WITHOUT_DEVICE } else { global.version }
}

/// From version 4 on, `zwp_linux_dmabuf_v1` names a device.
const WITHOUT_DEVICE: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{self, Output};

    fn snapshot(interfaces: &[&str]) -> Snapshot {
        let globals = interfaces.iter().zip(40..).map(|(interface, name)| snapshot::Global {
            name,
            interface: (*interface).to_owned(),
            version: 1,
        });
        Snapshot { globals: globals.collect(), ..Snapshot::default() }
    }

    fn names(s: &Snapshot) -> Vec<(&'static str, u32)> {
        let offers = offers(&Config::default(), s, &Slots::new(s), true);
        offers.into_iter().map(|o| (o.interface, o.version)).collect()
    }

    #[test]
    fn what_is_answered_here_does_not_depend_on_the_compositor() {
        assert_eq!(names(&snapshot(&[])), names(&snapshot(&["wl_compositor", "zwp_tablet_manager_v2"])));
    }

    #[test]
    fn regression_what_would_only_pretend_is_not_offered() {
        for interface in [
            "xdg_toplevel_drag_manager_v1",
            "xdg_system_bell_v1",
            "zwp_text_input_manager_v3",
            "zwp_pointer_constraints_v1",
        ] {
            let has = |s: &Snapshot| names(s).iter().any(|(name, _)| *name == interface);
            assert!(!has(&snapshot(&["wl_compositor"])) && has(&snapshot(&[interface])), "{interface}");
        }
    }

    #[test]
    fn the_old_text_input_is_for_compositors_that_have_nothing_else() {
        let (old, new) = ("zwp_text_input_manager_v1", "zwp_text_input_manager_v3");
        let has = |s: &Snapshot| names(s).iter().any(|(name, _)| *name == old);
        assert!(has(&snapshot(&[old])) && !has(&snapshot(&[old, new])) && !has(&snapshot(&[new])));
    }

    #[test]
    fn privileged_globals_need_both_permission_and_support() {
        let privileged = "zwlr_layer_shell_v1";
        let allow = Config { allow: vec![privileged.to_owned()], ..Config::default() };
        let has = |config: &Config, s: &Snapshot| {
            offers(config, s, &Slots::new(s), true).iter().any(|o| o.interface == privileged)
        };
        assert!(!has(&Config::default(), &snapshot(&[privileged])));
        assert!(!has(&allow, &snapshot(&[])));
        assert!(has(&allow, &snapshot(&[privileged])));
    }

    #[test]
    fn every_output_is_offered_and_a_seat_always() {
        let output = |global| Output { global, ..Output::default() };
        let s = Snapshot { outputs: vec![output(7), output(9)], ..Snapshot::default() };
        let offers = offers(&Config::default(), &s, &Slots::new(&s), true);
        let count = |interface| offers.iter().filter(|o| o.interface == interface).count();
        assert_eq!((count("wl_output"), count("wl_seat")), (2, 1));
    }
}
