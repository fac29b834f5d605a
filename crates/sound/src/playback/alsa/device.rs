//! The default card, through cpal: its callbacks take from the ring.
//!
//! What the card cannot do, ALSA's `default` converts: the rate, the format, the channels. Invariant: no callback takes
//! more than a card could have played, so that one that plays nothing, ALSA's `null`, neither spins nor drives the
//! player ahead of time.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use alsa::pcm::{Access, Format, Frames, HwParams};
use alsa::{Direction, Output, PCM, ValueOr};
use cpal::traits::{DeviceTrait, HostTrait, StreamTrait};
use cpal::{BufferSize, Device, Error, ErrorKind, HostId, SampleFormat, SizedSample, Stream, StreamConfig};
use wayferry_audio::{CHANNELS, RATE, from_i16};

use crate::playback::ring::{Ring, time_of};
use crate::source::{STEP, STEP_FRAMES};

/// Opens the card, and begins to play.
pub(super) fn open(ring: &Arc<Ring>) -> Result<Stream, String> {
    // Where there is none, libasound says so in many lines, the cause first; not to stderr, at each try.
    let said = Output::local_error_handler();
    begin(ring).map_err(|error| {
        let said = said.map(|said| said.borrow().to_string()).unwrap_or_default();
        said.lines().next().map_or_else(|| error.to_string(), str::to_owned)
    })
}

fn begin(ring: &Arc<Ring>) -> Result<Stream, Error> {
    let host = cpal::host_from_id(HostId::Alsa)?;
    let device = host.default_output_device().ok_or(ErrorKind::DeviceNotAvailable)?;
    let (config, format) = choose()?;
    let stream = match format {
        SampleFormat::I16 => build(&device, config, ring, |sample| sample)?,
        _ => build(&device, config, ring, from_i16)?,
    };
    ring.open(stream.buffer_size()? as usize);
    stream.play()?;
    Ok(stream)
}

/// 48 kHz stereo, in 16 bits if the card takes them, 10 ms at a time or as near to it as can be.
///
/// cpal tells which periods there are at any rate, and then refuses those that the card does not have at this one:
/// ALSA's mixer, `dmix`, has one period alone.
fn choose() -> Result<(StreamConfig, SampleFormat), Error> {
    let card = PCM::new("default", Direction::Playback, true)?;
    let params = HwParams::any(&card)?;
    let format = narrow(&params).map_err(|_| {
        Error::with_message(
            ErrorKind::UnsupportedConfig,
            "it does not take 48 kHz stereo of 16 bits or floats",
        )
    })?;
    let min = params.get_period_size_min()?;
    // cpal makes the card's queue two periods long.
    let max = params.get_period_size_max()?.min(params.get_buffer_size_max()? / 2);
    let buffer_size = match min <= max {
        true => BufferSize::Fixed((STEP_FRAMES as Frames).clamp(min, max) as u32),
        false => BufferSize::Default,
    };
    let config = StreamConfig { channels: CHANNELS as u16, sample_rate: RATE, buffer_size };
    Ok((config, format))
}

/// Leaves only what is played; its format.
fn narrow(params: &HwParams) -> alsa::Result<SampleFormat> {
    params.set_access(Access::RWInterleaved)?;
    params.set_channels(CHANNELS as u32)?;
    params.set_rate(RATE, ValueOr::Nearest)?;
    if params.set_format(Format::s16()).is_ok() {
        return Ok(SampleFormat::I16);
    }
    params.set_format(Format::float())?;
    Ok(SampleFormat::F32)
}

fn build<T: SizedSample + Send + 'static>(
    device: &Device,
    config: StreamConfig,
    ring: &Arc<Ring>,
    convert: impl Fn(i16) -> T + Copy + Send + 'static,
) -> Result<Stream, Error> {
    let (taken, failed) = (Arc::clone(ring), Arc::clone(ring));
    let mut pace = Pace { due: Instant::now() };
    device.build_output_stream(
        config,
        move |out: &mut [T], info| {
            sleep(pace.wait(Instant::now(), out.len() / CHANNELS));
            let times = info.timestamp();
            taken.take(out, times.playback.saturating_duration_since(times.callback), convert);
        },
        move |error| match error.kind() {
            ErrorKind::DeviceNotAvailable => failed.fail(&error.to_string()),
            // The card ran dry, and goes on.
            ErrorKind::Xrun => failed.stumble(&error.to_string()),
            _ => {
                failed.stumble(&error.to_string());
                // cpal tries again at once. ALSA's client of PulseAudio errs for the first few milliseconds.
                sleep(STEP);
            }
        },
        Some(LOOKED_AT_EVERY),
    )
}

/// Holds back a card that takes samples faster than any could play them.
struct Pace {
    /// When what was taken so far has been played, at the earliest.
    due: Instant,
}

impl Pace {
    /// How long to wait before so many frames are taken. It is nothing for a real card: that is at most its queue, two
    /// of these, ahead.
    fn wait(&mut self, now: Instant, frames: usize) -> Duration {
        let span = time_of(frames);
        self.due = self.due.max(now) + span * 100 / FASTEST_PERCENT;
        self.due.saturating_duration_since(now + 3 * span)
    }
}

/// How fast a card's clock may be, in hundredths of ours; that of a real one is off by less than a thousandth.
const FASTEST_PERCENT: u32 = 101;

/// How often cpal asks whether a card that takes nothing is still there.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_asks_without_end_gets_no_more_than_one_could_play() {
        let began = Instant::now();
        let (mut pace, mut now) = (Pace { due: began }, began);
        for _ in 0..1000 {
            now += pace.wait(now, STEP_FRAMES);
        }
        let took = now - began;
        assert!(took > Duration::from_millis(9850) && took < Duration::from_millis(9950), "10 s: {took:?}");
    }

    #[test]
    fn a_card_with_a_fast_clock_does_not_wait_nor_one_that_catches_up() {
        let began = Instant::now();
        let (mut pace, mut now) = (Pace { due: began }, began);
        for period in 0..100_000 {
            // Its queue is filled at first, and again after it ran dry.
            let is_full = period % 1000 > 1;
            now += if is_full { Duration::from_micros(9990) } else { Duration::ZERO };
            now += if period % 1000 == 999 { Duration::from_millis(50) } else { Duration::ZERO };
            assert_eq!(pace.wait(now, STEP_FRAMES), Duration::ZERO, "{period}");
        }
    }
}
