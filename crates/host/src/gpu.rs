//! What would read GPU buffers of programs on this machine, for its user to be told before there is a session.
//!
//! It reads none. Invariant: a reader that hangs in a driver is waited for no longer than `PATIENCE`.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use wayferry_gpu::wire::FromReader;
use wayferry_gpu::{How, Received};

use crate::edge::reader::Reader;
use crate::edge::wait::poll;

/// What a reader that is started this way reads with; `None` where starting one is not worth trying.
///
/// # Errors
/// Why it can read nothing, in words for the user.
pub fn look(how: &How) -> Option<Result<String, String>> {
    let reader = match Reader::start(&how.command()?) {
        Ok(reader) => reader,
        Err(error) => return Some(Err(format!("what should read GPU buffers cannot be started: {error}"))),
    };
    let answer = hear(&reader, Instant::now() + PATIENCE);
    // One that hangs in a driver is init's.
    let _ = reader.kill().try_wait();
    Some(answer)
}

fn hear(reader: &Reader, deadline: Instant) -> Result<String, String> {
    loop {
        match reader.receive() {
            Received::Packet(packet, _) => {
                return match FromReader::decode(&packet) {
                    Ok(FromReader::Ready(means)) => Ok(means.name),
                    Ok(FromReader::Unable { why }) => Err(why),
                    _ => Err("what should read GPU buffers talks nonsense".into()),
                };
            }
            Received::End => return Err("what should read GPU buffers ended over a driver".into()),
            Received::Nothing => {}
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let mut set = [PollFd::new(reader, PollFlags::IN)];
        let polled = poll(&mut set, Some(left)).map_err(|error| error.to_string());
        if left.is_zero() || polled.is_err() {
            return Err(polled
                .err()
                .unwrap_or_else(|| "what should read GPU buffers does not answer".into()));
        }
    }
}

/// How long a driver may take to start: seconds where it compiles shaders first.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_ends_hangs_or_talks_nonsense_is_told_as_such() {
        for (script, expected) in [
            ("exit 0", "ended over a driver"),
            ("exec tail -f /dev/null", "does not answer"),
            ("printf nonsense >&0; exec tail -f /dev/null", "talks nonsense"),
        ] {
            let reader = Reader::start(&["sh", "-c", script].map(Into::into)).expect("a shell");
            let patience = if expected == "does not answer" { Duration::ZERO } else { PATIENCE };
            let said = hear(&reader, Instant::now() + patience).expect_err(script);
            assert!(said.contains(expected), "{script}: {said}");
            reader.kill().wait().expect("its end");
        }
    }
}
