//! `wayferry bench hol`: what head-of-line blocking does to a session, by what carries it.
//!
//! The same live session goes over TCP, over QUIC in one stream, and over QUIC as it ships, through the same link:
//! sound plays, keys are typed, and content that fits the link grows to 100 Mbit/s. Figures are taken where the user
//! is: sound's packets as they arrive, keys and pictures as the compositor sees them.

mod measure;
mod mode;
mod session;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wayferry_host::edge::signals::Signals;
use wayferry_sim::Samples;
use wayferry_stage::{LinkConfig, Loss};

use super::plot::{Panel, draw};
use super::{document, write_text};
use crate::error::{Error, SessionError};
use crate::flags::{HolFlags, LinkName, OwnFlags};
use crate::tunnel::{self, Tunnel};
use measure::{Goals, Measured, Row};
use mode::Mode;
use session::Live;

/// Measures; gives the exit code, which is 1 if a goal is missed.
pub(crate) fn run(own: &OwnFlags, flags: &HolFlags) -> Result<u8, Error> {
    if let Some(code) = tunnel::enter()? {
        return Ok(code);
    }
    let signals = Signals::new()?;
    let all = [LinkName::Cellular, LinkName::Wifi, LinkName::Lan];
    let links = if flags.link.is_empty() { &all[..] } else { &flags.link };
    println!("TCP is the kernel's, with {}", congestion());
    let (mut rows, mut panels, mut met) = (Vec::new(), Vec::new(), true);
    for link in links {
        let measured = match flags.parallel {
            true => measure(own, flags, *link, &Mode::ALL, &signals)?,
            false => {
                let one = |mode| measure(own, flags, *link, &[mode], &signals);
                Mode::ALL.into_iter().map(one).collect::<Result<Vec<_>, Error>>()?.concat()
            }
        };
        for row in Row::all(*link, &measured, flags.parallel) {
            println!("{}", row.line());
            rows.push(row.json());
        }
        if !flags.no_acknowledgements {
            for line in Goals::of(*link, &measured).lines() {
                met &= line.met;
                println!("{line}");
            }
        }
        panels.extend(panels_of(*link, &measured));
    }
    if let Some(path) = &flags.out.json {
        write_text(path, &format!("{:#}\n", document(&rows)))?;
    }
    if let (Some(path), Some(svg)) = (&flags.out.plot, draw(&panels, PANELS)) {
        write_text(path, &svg)?;
    }
    Ok(u8::from(!met))
}

/// Carries these at once over one link.
fn measure(
    own: &OwnFlags,
    flags: &HolFlags,
    link: LinkName,
    modes: &[Mode],
    signals: &Signals,
) -> Result<Vec<Measured>, Error> {
    let (up, down) = configs(link);
    let tunnel = Tunnel::open(up, down)
        .map_err(|source| SessionError::System { doing: "making a TUN device (/dev/net/tun)", source })?;
    let mut live = Vec::new();
    for mode in modes {
        live.push(Live::start(own, *mode, signals)?);
    }
    if let Some(sync) = flags.sync {
        live[0].rig.pass(until_multiple(sync))?;
    }
    session::pass(&live, WARM_UP)?;
    live.iter_mut().for_each(|live| live.begin(&tunnel));
    session::pass(&live, flags.seconds / 2)?;
    for live in &mut live {
        live.step()?;
    }
    tunnel.set_up_down(flags.no_acknowledgements);
    session::pass(&live, flags.seconds / 2)?;
    live.into_iter().map(|live| live.end(&tunnel)).collect()
}

/// The two directions of a link.
fn configs(link: LinkName) -> (LinkConfig, LinkConfig) {
    let config = match link {
        LinkName::Cellular => LinkConfig {
            rate: Some(10_000_000),
            one_way_delay: Duration::from_millis(30),
            // 240 ms of it: some such modems hold far more.
            queue_bytes: 300_000,
            loss: Loss::bursts(0.01, 3.0),
            jitter: Duration::from_millis(4),
            ..LinkConfig::default()
        },
        LinkName::Wifi => LinkConfig {
            rate: Some(50_000_000),
            one_way_delay: Duration::from_millis(5),
            queue_bytes: 250_000,
            loss: Loss::Independent(0.005),
            jitter: Duration::from_millis(5),
            ..LinkConfig::default()
        },
        LinkName::Lan => LinkConfig {
            rate: Some(100_000_000),
            one_way_delay: Duration::from_micros(500),
            queue_bytes: 250_000,
            ..LinkConfig::default()
        },
    };
    (LinkConfig { seed: 2, ..config.clone() }, config)
}

/// How long until the clock is a multiple of this.
fn until_multiple(period: Duration) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let into = now.as_nanos() % period.as_nanos().max(1);
    period.saturating_sub(Duration::from_nanos(u64::try_from(into).unwrap_or(0)))
}

fn panels_of(link: LinkName, measured: &[Measured]) -> [Panel; PANELS] {
    let panel = |what: &str, samples: &dyn Fn(&Measured) -> Samples| Panel {
        title: format!("{}: {what}", link.name()),
        unit: "ms",
        series: measured.iter().map(|one| (one.mode.name().to_owned(), samples(one))).collect(),
    };
    [
        panel("sound's jitter", &|one| one.sound.jitter.iter().map(|jitter| jitter.unsigned_abs()).collect()),
        panel("key to picture", &|one| one.keys.iter().copied().collect()),
        panel("age of pictures", &|one| one.ages.iter().copied().collect()),
    ]
}

/// Of the kernel's TCP.
fn congestion() -> String {
    let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    if name.trim().is_empty() { "unknown congestion control".into() } else { name.trim().to_owned() }
}

impl LinkName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cellular => "cellular",
            Self::Wifi => "wifi",
            Self::Lan => "lan",
        }
    }
}

/// Charts of a link.
const PANELS: usize = 3;

/// Until windows are there, sound flows, and controllers know the link.
const WARM_UP: Duration = Duration::from_secs(4);
