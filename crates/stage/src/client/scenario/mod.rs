//! The programs of benches and of the demo.

mod big;
mod busy;
mod cells;
mod demo;
mod ferry;
mod typing;

use std::time::Duration;

pub use big::BigCommit;
pub use busy::Busy;
pub use cells::Cells;
pub use demo::Demo;
pub use typing::Typing;

use super::connection::Client;
use super::error::ClientError;
use super::inner::Pane;

/// When the next frame is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// When the frame callback of the last one has come.
    Callbacks,
    /// At once, when a buffer is free.
    FreeRunning,
    /// By a timer of the program's own, frame callbacks or not.
    Every(Duration),
}

impl Pace {
    /// Called before a frame is committed.
    fn prepare(self, client: &mut Client, pane: Pane) {
        if self == Pace::Callbacks {
            client.ask_frame(pane);
        }
    }

    /// Waits until the next frame is due; the last one was started at `began`.
    fn wait(self, client: &mut Client, pane: Pane, began: Duration) -> Result<(), ClientError> {
        match self {
            Pace::Callbacks => client.wait_frame(pane),
            Pace::FreeRunning => client.dispatch(Duration::ZERO).map(|_| ()),
            Pace::Every(period) => {
                let due = began + period;
                while crate::now() < due {
                    client.dispatch(due.saturating_sub(crate::now()))?;
                }
                Ok(())
            }
        }
    }
}
