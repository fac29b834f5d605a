//! What a program hears.

use wayferry_wayland::tables;
use wayferry_wayland::wire::{self, Arg, RawMessage};

use super::Program;
use crate::heard::{self, Heard};
use crate::link::World;

impl<W: World> Program<'_, W> {
    pub(super) fn decode(&mut self, raw: &RawMessage) -> Result<(&'static str, Vec<Arg>), String> {
        let Some(interface) = self.interfaces.get(&raw.object).copied() else {
            return Err(format!("an event of {}, which is not there", raw.object));
        };
        let desc = &interface.events[usize::from(raw.opcode)];
        let args =
            wire::decode(desc, interface, raw, self.world.events().fds_mut()).map_err(|e| e.to_string())?;
        Ok((desc.name, args))
    }

    pub(super) fn hear(&mut self, id: u32, event: &'static str, args: &[Arg]) {
        let interface = self.interfaces[&id].name;
        if let Some(skip) = heard::input_event(interface, event) {
            return self.hear_input(interface, event, args, skip);
        }
        if heard::is_setting(interface, event) {
            let numbers = heard::numbers(args, &[]);
            return self.outcome.heard.push(Heard::Setting { of: interface, event, numbers });
        }
        match (interface, event, args) {
            ("wl_display", "error", [_, _, Arg::Str(Some(text))]) => {
                self.accused = Some(String::from_utf8_lossy(text).into_owned());
            }
            ("wl_display", "delete_id", [Arg::Uint(gone)]) => {
                self.interfaces.remove(gone);
                self.callbacks.remove(gone);
                self.free.push(*gone);
            }
            ("wl_callback", "done", _) => drop(self.callbacks.remove(&id)),
            ("wl_buffer", "release", _) => {
                let drawings = self.places.iter_mut().flatten().flat_map(|place| place.drawings.iter_mut());
                for drawing in drawings.flatten().filter(|drawing| drawing.id == id) {
                    drawing.busy = drawing.busy.saturating_sub(1);
                }
            }
            ("xdg_toplevel" | "xdg_popup", "configure", args) => {
                if let Some(surface) = self.owners.get(&id) {
                    let numbers = args.iter().filter_map(|arg| match arg {
                        Arg::Int(number) => Some(i64::from(*number)),
                        _ => None,
                    });
                    self.news.insert(*surface, numbers.collect());
                }
            }
            ("xdg_surface", "configure", [Arg::Uint(serial)]) => {
                let Some(surface) = self.owners.get(&id).copied() else { return };
                let numbers = self.news.remove(&surface).unwrap_or_default();
                self.outcome.heard.push(Heard::Configure { surface, numbers });
                if let Some(place) = self.places.iter_mut().flatten().find(|place| place.index == surface) {
                    place.serial = Some(*serial);
                }
            }
            ("xdg_popup", "popup_done", _) => {
                if let Some(surface) = self.owners.get(&id) {
                    self.outcome.heard.push(Heard::Dismissed { surface: *surface });
                }
            }
            ("xdg_wm_base", "ping", [Arg::Uint(serial)]) => {
                self.request(id, "pong", vec![Arg::Uint(*serial)]);
            }
            ("wl_data_source", "cancelled", _) => self.outcome.heard.push(Heard::Cancelled),
            ("wl_data_device", "data_offer", [Arg::NewId(new)]) => {
                self.interfaces.insert(*new, tables::interface("wl_data_offer").expect("core"));
            }
            ("wl_data_offer", "offer", [Arg::Str(Some(mime))]) => {
                self.mimes.entry(id).or_default().extend(mime);
            }
            ("wl_data_device", "selection", [Arg::Object(offer)]) => {
                let mimes = self.mimes.remove(offer);
                self.outcome.heard.push(Heard::Selection(mimes));
                if let Some(old) = self.offer.replace(*offer).filter(|old| *old != 0) {
                    self.request(old, "destroy", vec![]);
                }
            }
            _ => {}
        }
    }

    pub(super) fn hear_input(
        &mut self,
        device: &'static str,
        event: &'static str,
        args: &[Arg],
        skip: &[usize],
    ) {
        let named = args.iter().find_map(|arg| if let Arg::Object(id) = arg { Some(*id) } else { None });
        let surface = named.and_then(|id| self.places.iter().flatten().find(|place| place.id == id));
        let surface = surface.map(|place| place.index);
        if named.is_some() && surface.is_none() {
            // It is gone: libwayland names no surface then.
            return;
        }
        match (device, event, args) {
            ("wl_pointer", "enter", [Arg::Uint(serial), ..]) => self.entered = Some(*serial),
            ("wl_pointer", "button", [Arg::Uint(serial), .., Arg::Uint(1)]) => self.button = Some(*serial),
            _ => {}
        }
        let numbers = heard::numbers(args, skip);
        self.outcome.heard.push(Heard::Input { device, event, surface, numbers });
    }
}
