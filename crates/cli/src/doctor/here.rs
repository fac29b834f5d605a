//! What can be looked at on one machine, by that machine's own Wayferry.
//!
//! Invariant: everything that is asked of another process (the compositor, a sound server, a reader of GPU buffers) has
//! a time limit.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::check::Check;
use crate::config;
use crate::error::{self, Error, SessionError};
use crate::flags;
use crate::screen;
use wayferry_host::GpuHow;
use wayferry_host::carriers;
use wayferry_host::clock::Clock;
use wayferry_host::display_side::{Compositor, Watched};
use wayferry_host::edge::path;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::xwayland::{Bridge, How};
use wayferry_host::sound::{Surroundings, find_server};
use wayferry_net::Peers;
use wayferry_net::quic::{Listener, Options, Warning};
use wayferry_wayland::encoder;
use wayferry_wayland::tables::{Access, GLOBALS, Global, Missing};

/// What both sides of a session need. `host` is the machine that the settings are to hold for.
pub(super) fn of_any_side(host: Option<&str>) -> Vec<Check> {
    let version = Check::ok("wayferry", flags::version().replace('\n', "; "));
    let mut checks = vec![version, configuration(host), runtime_directory()];
    checks.extend(udp_buffers());
    checks
}

/// What the side needs that shows windows.
///
/// # Errors
/// A signal.
pub(super) fn of_display(signals: &Signals) -> Result<Vec<Check>, Error> {
    let mut checks = compositor(signals)?;
    checks.extend([sound_server(), browser()]);
    Ok(checks)
}

/// What the side can use that has the programs.
pub(super) fn of_programs() -> Vec<Check> {
    vec![gpu(), video(), screen(), x11(), session_bus(), sound_of_programs()]
}

/// What a `doctor` on another machine asks this one's.
pub(super) fn of_far_side() -> Vec<Value> {
    let mut checks = vec![runtime_directory()];
    checks.extend(udp_buffers());
    checks.extend(of_programs());
    checks.iter().map(Check::document).collect()
}

fn configuration(host: Option<&str>) -> Check {
    const NAME: &str = "configuration";
    let found = config::examine(host.map(AsRef::as_ref));
    match found {
        Err(error) => Check::fail(NAME, error.to_string(), error.hint()),
        Ok(found) if found.notes.is_empty() => {
            let path = found.path.map_or_else(|| "no file".into(), |path| format!("`{}`", path.display()));
            Check::ok(NAME, format!("{path}; {} settings hold", found.held))
        }
        Ok(found) => {
            Check::warn(NAME, found.notes.join("; "), "mend it there; `wayferry config` shows what holds")
        }
    }
}

fn runtime_directory() -> Check {
    const NAME: &str = "XDG_RUNTIME_DIR";
    const MEANS: &str = "`wayferry info` tells nothing of sessions begun so";
    const HINT: &str = "log in through the system's login manager, or see pam_systemd(8)";
    let Some(path) = std::env::var_os(NAME).map(PathBuf::from) else {
        return Check::warn(NAME, format!("is not set: {MEANS}"), HINT);
    };
    let user = rustix::process::geteuid().as_raw();
    let shown = path.display();
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 => {
            Check::ok(NAME, format!("`{shown}`"))
        }
        Ok(_) => Check::warn(NAME, format!("`{shown}` is not your own, private directory: {MEANS}"), HINT),
        Err(error) => Check::warn(NAME, format!("`{shown}` cannot be used ({error}): {MEANS}"), HINT),
    }
}

/// A line for each buffer that is too small, or one for both.
fn udp_buffers() -> Vec<Check> {
    const NAME: &str = "UDP buffers";
    let options = Options::default();
    let listen = || {
        let identity = carriers::identity()?;
        let address = ([127, 0, 0, 1], 0).into();
        Listener::bind(address, None, &identity, Peers::Secret, &options)
            .map_err(|error| SessionError::Tls(error.to_string()))
    };
    match listen().map(|mut listener| listener.take_warnings()) {
        Err(error) => {
            let hint = "see `ulimit -a`, and whether this system lets programs open UDP ports";
            vec![Check::fail(NAME, format!("no UDP port can be opened: {error}"), hint)]
        }
        Ok(warnings) if warnings.is_empty() => {
            vec![Check::ok(NAME, format!("{} kB each way", options.udp_buffer >> 10))]
        }
        Ok(warnings) => warnings.iter().map(|warning| too_small(NAME, warning)).collect(),
    }
}

fn too_small(name: &str, warning: &Warning) -> Check {
    match warning {
        Warning::BufferClamped { buffer, wanted, granted } => {
            let sysctl = buffer.sysctl();
            let text = format!(
                "`{sysctl}` allows {} kB instead of {} kB: bursts may be lost",
                granted >> 10,
                wanted >> 10
            );
            Check::warn(name, text, format!("`sysctl -w {sysctl}={wanted}` as root allows more"))
        }
        other => Check::warn(name, other.to_string(), "see sysctl(8)"),
    }
}

/// The compositor, and what it has of what programs may use.
fn compositor(signals: &Signals) -> Result<Vec<Check>, Error> {
    const NAME: &str = "compositor";
    let found = Compositor::from_environment();
    let socket = match &found {
        Ok(Compositor::At(path)) => Some(path.clone()),
        _ => None,
    };
    match found.and_then(|compositor| Watched::new(compositor, Clock::start(), Some(signals))) {
        Err(error @ SessionError::Signal(_)) => Err(error.into()),
        Err(error) => {
            let hint = match &error {
                SessionError::NoCompositor { .. } => {
                    format!("{}; a machine that only has the programs needs none", error::hint(&error))
                }
                error => error::hint(error).to_owned(),
            };
            Ok(vec![Check::fail(NAME, error.to_string(), hint)])
        }
        Ok(watched) => {
            let socket = socket.unwrap_or_default();
            let who = owner(&socket).map(|name| format!(" ({name})")).unwrap_or_default();
            let mut checks = vec![Check::ok(NAME, format!("`{}`{who}", socket.display()))];
            checks.extend(globals(&watched.globals()));
            Ok(checks)
        }
    }
}

/// What the process calls itself that listens there.
fn owner(socket: &Path) -> Option<String> {
    let stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    let name = fs::read_to_string(format!("/proc/{}/comm", peer.pid.as_raw_nonzero())).ok()?;
    Some(name.trim().to_owned())
}

/// What a compositor's `globals` mean for programs.
fn globals(there: &[(String, u32)]) -> Vec<Check> {
    let version = |name: &str| there.iter().find(|(other, _)| other == name).map(|(_, version)| *version);
    let known = || GLOBALS.iter().filter(|global| global.access != Access::Withheld);
    let used: Vec<String> =
        known().filter_map(|global| Some(format!("{} {}", global.name(), version(global.name())?))).collect();
    let mut checks = vec![Check::ok("globals", used.join(", "))];
    for means in [NOT_OFFERED, NO_EFFECT, MADE_UP] {
        let missing =
            known().filter(|global| version(global.name()).is_none() && what_follows(global) == means);
        let names = missing.map(|global| global.name()).collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            checks.push(Check::ok("it lacks", format!("{means}: {names}")));
        }
    }
    if version("wl_seat").is_none() {
        let hint = "connect a keyboard or a pointer, or choose another compositor";
        checks.push(Check::warn(
            "input",
            "the compositor has no seat: nothing can be typed or clicked",
            hint,
        ));
    }
    checks
}

/// What follows for programs where the compositor lacks a global.
fn what_follows(global: &Global) -> &'static str {
    match global.missing {
        Missing::Absent | Missing::Unless(_) => NOT_OFFERED,
        Missing::Silent => NO_EFFECT,
        Missing::Stub(_) => MADE_UP,
        // It makes no difference to them; or there would be no session.
        Missing::Local | Missing::Read | Missing::Timed | Missing::Encoded | Missing::Fatal { .. } => "",
    }
}

const NOT_OFFERED: &str = "programs are not offered";
const NO_EFFECT: &str = "programs may use without effect";
const MADE_UP: &str = "Wayferry makes up for";

fn sound_server() -> Check {
    match find_server(&Surroundings::current()) {
        Ok(server) => Check::ok("sound", server),
        Err(tried) => Check::warn(
            "sound",
            format!("no sound server, so nothing is heard: {tried}"),
            "start PipeWire with pipewire-pulse, or PulseAudio",
        ),
    }
}

/// What opens addresses here.
fn browser() -> Check {
    let named = std::env::var("BROWSER").unwrap_or_default();
    let browser = named.split(':').find(|name| !name.is_empty()).unwrap_or("xdg-open");
    match path::find(browser, &path::own()) {
        Ok(path) => Check::ok("xdg-open", format!("`{}`", path.display())),
        Err(_) => Check::warn(
            "xdg-open",
            format!("`{browser}` is not installed: what programs want opened is not"),
            "install xdg-utils, or set BROWSER",
        ),
    }
}

fn gpu() -> Check {
    let software = "programs draw in software";
    match wayferry_host::gpu::look(&GpuHow::Auto) {
        Some(Ok(name)) => Check::ok("GPU", name),
        Some(Err(why)) => {
            let hint = "may you open /dev/dri/renderD*? Otherwise install the driver's EGL";
            Check::warn("GPU", format!("{why}: {software}"), hint)
        }
        None if render_nodes().is_empty() => Check::ok("GPU", format!("there is none: {software}")),
        None => Check::warn(
            "GPU",
            format!("this build reads no GPU buffers: {software}"),
            format!("put `{}` beside the program", wayferry_host::GPU_HELPER),
        ),
    }
}

fn render_nodes() -> Vec<PathBuf> {
    let nodes = fs::read_dir("/dev/dri").into_iter().flatten().flatten();
    let is_node = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("renderD");
    nodes.filter(is_node).map(|entry| entry.path()).collect()
}

fn video() -> Check {
    match encoder::in_use() {
        Some((name, true)) => Check::ok("videos", name),
        Some((name, false)) => {
            Check::ok("videos", format!("{name}, which Wayferry was never seen to work with"))
        }
        None if wayferry_wayland::HAS_VIDEO => {
            Check::ok("videos", "the encoder is chosen with the first video")
        }
        None => Check::warn(
            "videos",
            "this build has none: they cross as other pictures do, which takes a faster link",
            "build with the feature `video`",
        ),
    }
}

/// What `wayferry desktop` would show.
fn screen() -> Check {
    const NAME: &str = "desktop";
    match screen::look() {
        Ok(Ok(what)) => Check::ok(NAME, what),
        Ok(Err(why)) => Check::warn(
            NAME,
            format!("`wayferry desktop` has nothing to show: {why}"),
            "install labwc or sway",
        ),
        Err(error) => Check::warn(NAME, error.to_string(), error::hint(&error)),
    }
}

fn x11() -> Check {
    const NAME: &str = "X11";
    match Bridge::find(How::Satellite) {
        Ok(_) => Check::ok(NAME, "xwayland-satellite and Xwayland are there"),
        Err(error) => Check::warn(NAME, error.to_string(), error::hint(&error)),
    }
}

fn session_bus() -> Check {
    const NAME: &str = "D-Bus";
    match path::find("dbus-daemon", &path::own()) {
        Ok(path) => Check::ok(NAME, format!("`{}`", path.display())),
        Err(_) => Check::warn(
            NAME,
            "no bus can be started: what programs notify of is not shown at the desk",
            "install dbus-daemon; dbus-broker alone does not do",
        ),
    }
}

/// Whether programs here can speak to a session's sound server.
fn sound_of_programs() -> Check {
    const NAME: &str = "libpulse";
    let has = |file: &str| libraries().iter().any(|directory| directory.join(file).exists());
    match (has("libpulse.so.0"), has("alsa-lib/libasound_module_pcm_pulse.so")) {
        (true, true) => Check::ok(NAME, "programs are heard that use PulseAudio, PipeWire's pulse or ALSA"),
        (true, false) => {
            Check::ok(NAME, "programs are heard that use PulseAudio; for ALSA's, its pulse plugin is missing")
        }
        (false, _) => Check::warn(
            NAME,
            "libpulse.so.0 is in no usual place: programs may be silent",
            "install libpulse0, and libasound2-plugins for programs that use ALSA",
        ),
    }
}

/// Where libraries are.
fn libraries() -> Vec<PathBuf> {
    let usual = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/run/current-system/sw/lib"].map(PathBuf::from);
    let entries = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let of_kinds = entries.filter(|entry| entry.file_name().to_string_lossy().contains("-linux-"));
    usual.into_iter().chain(of_kinds.map(|entry| entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compositor_lacks_is_told_with_what_that_means() {
        let told = |there: &[(&str, u32)]| {
            let there: Vec<_> = there.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect();
            let place = super::super::check::Place { name: "here".into(), checks: globals(&there) };
            super::super::check::table(&[place])
        };
        let all: Vec<(&str, u32)> = GLOBALS.iter().map(|global| (global.name(), global.version)).collect();
        let text = told(&all);
        assert!(text.contains("wl_seat 9") && !text.contains("it lacks") && !text.contains("warn"), "{text}");
        let text = told(&[("wl_compositor", 4), ("unknown\u{1b}", 1)]);
        for part in ["wl_compositor 4", "warn  input", "Wayferry makes up for: wl_seat", "without effect:"] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
        assert!(!text.contains("unknown"), "{text}");
    }
}
