//! `wayferry doctor`: what a session needs, looked at piece by piece, on this machine and on another.
//!
//! It changes nothing on either. With HOST, ssh leads there once: it answers what can be asked without Wayferry, then
//! starts a session that ends before any program begins, and on the way everything is tried that `wayferry ssh` needs.
//! Invariant: for any behaviour of the other machine it ends, after a bounded time and a bounded number of bytes.

mod answers;
mod check;
mod here;
mod meeting;
mod there;

use serde_json::Value;

use self::check::Place;
use crate::error::Error;
use crate::flags::{DoctorFlags, OwnFlags};
use crate::tell::print;
use wayferry_host::edge::signals::Signals;

/// Looks, and prints what it found; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &DoctorFlags) -> Result<u8, Error> {
    if flags.there {
        return print(format!("{}\n", serde_json::json!(here::of_far_side())).as_bytes());
    }
    let signals = Signals::new()?;
    let mut checks = here::of_any_side(flags.host.as_deref());
    checks.extend(here::of_display(&signals)?);
    let mut places = Vec::new();
    match &flags.host {
        None => {
            checks.extend(here::of_programs());
            places.push(Place { name: "here".into(), checks });
        }
        Some(host) => {
            places.push(Place { name: "here".into(), checks });
            let checks = there::ask(own, host, flags.port.as_ref(), &signals)?;
            places.push(Place { name: host.clone(), checks });
        }
    }
    print(if flags.json { document(&places) } else { check::table(&places) }.as_bytes())?;
    let all = places.iter().flat_map(|place| &place.checks);
    match all.filter(|check| check.is_failed()).count() {
        0 => Ok(0),
        failed => Err(Error::Unwell { failed }),
    }
}

fn document(places: &[Place]) -> String {
    let all = places.iter().flat_map(Place::documents).collect::<Vec<Value>>();
    wayferry_host::sanitize::json(&Value::Array(all), true)
}
