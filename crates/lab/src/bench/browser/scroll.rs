//! A terminal that scrolls in a page: how often the canvas changes, and what the tab takes of the processor for it.
//!
//! Invariant: the canvas is not looked at while the processor is measured.

use std::fs;
use std::time::Duration;

use wayferry_stage::now;

use super::desk::Desk;
use super::row::{Row, Target};
use super::{Each, row};
use crate::error::{Error, SessionError};

/// What was measured of one page over one link.
#[derive(Debug, Default)]
pub(super) struct Scrolled {
    /// Frames that show something new, per second; one figure.
    pub(super) rate: Vec<f64>,
    /// Milliseconds from each to the next.
    pub(super) gaps: Vec<f64>,
    /// Bytes of IP packets from the host, per such frame; one figure.
    pub(super) bytes: Vec<f64>,
    /// What the tab takes of one processor, per cent: at rest, and while it scrolls; one figure each.
    pub(super) idle: Vec<f64>,
    pub(super) busy: Vec<f64>,
}

/// Measures each for so long.
pub(super) fn measure(desk: &mut Desk<'_>, time: Duration) -> Result<Scrolled, Error> {
    desk.settle()?;
    desk.look(false)?;
    let idle = vec![share(desk, time)?];
    desk.press('x')?;
    // Until controllers and repair know the link.
    desk.pass(WARM)?;
    let busy = vec![share(desk, time)?];
    desk.look(true)?;
    desk.pass(WARM)?;
    let before = desk.bytes();
    let frames = desk.frames(time)?;
    let bytes = vec![(desk.bytes() - before) as f64 / frames.len().max(1) as f64];
    let gaps = frames.windows(2).map(|pair| pair[1] - pair[0]).collect();
    Ok(Scrolled { rate: vec![frames.len() as f64 / time.as_secs_f64()], gaps, bytes, idle, busy })
}

/// What is told of a link that loses so much.
pub(super) fn told(loss_percent: f64, scrolled: &Each<Scrolled>) -> Vec<Row> {
    let row = |case, unit, part: fn(&Scrolled) -> &Vec<f64>, target| {
        row(case, unit, loss_percent, scrolled.each_ref().map(|of| part(of).clone()), target)
    };
    vec![
        row("scroll-rate", "fps", |of| &of.rate, Some(Target::AtLeast(50.0))),
        row("scroll-gap", "ms", |of| &of.gaps, None),
        row("scroll-bytes", "B", |of| &of.bytes, None),
        row("tab-idle", "%", |of| &of.idle, None),
        row("tab-scroll", "%", |of| &of.busy, None),
    ]
}

/// What the tab takes of one processor, per cent.
fn share(desk: &mut Desk<'_>, time: Duration) -> Result<f64, Error> {
    let renderers = desk.renderers()?;
    let spent = || renderers.iter().map(|pid| spent(*pid)).sum::<Result<Duration, Error>>();
    let (before, start) = (spent()?, now());
    desk.pass(time)?;
    let spent = spent()?.saturating_sub(before);
    Ok(100.0 * spent.as_secs_f64() / (now() - start).as_secs_f64())
}

/// What a process has taken: proc(5), `/proc/pid/stat`.
fn spent(pid: u64) -> Result<Duration, Error> {
    let gone = || SessionError::Lost("a process of the browser's is gone".to_owned());
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|_| gone())?;
    Ok(read(&stat).ok_or_else(gone)?)
}

fn read(stat: &str) -> Option<Duration> {
    // A name may hold anything, blanks and parentheses too.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((next()? + next()?) * TICK_MS))
}

/// The kernel tells programs of times in hundredths of a second.
const TICK_MS: u64 = 10;

const WARM: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added() {
        let stat = "12 (a (b) c) S 1 12 12 0 -1 4194304 95 0 0 0 7 5 0 0 20 0 1 0 31 3223552 449";
        assert_eq!(read(stat), Some(Duration::from_millis(120)));
        assert_eq!(read("12 (a) S 1"), None);
    }
}
