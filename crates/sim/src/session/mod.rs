//! The two halves of Wayferry's session as applications of a simulated host, with a workload between them.
//!
//! [`AppSide`] answers requests with updates as the product's app side does: content is handed over only while the
//! session's budget allows. [`DisplaySide`] asks, and notes when every chunk was there. Neither knows pixels: a chunk is
//! a pattern of the right length. Invariant: the display side fails loudly when an update comes twice, out of shape, or
//! with a wrong byte.

mod app_side;
mod display_side;
mod log;
mod plan;
mod port;
mod tap;

pub use app_side::AppSide;
pub use display_side::DisplaySide;
pub use log::{Log, Measures, Order};
pub use plan::{Pace, Plan};

use wayferry_proto::{Config, Kinds, Limits, Side};

/// How updates reach the display side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// Everything on one ordered stream.
    Total,
    /// A stream for each update, and a fence.
    Partial,
}

impl Delivery {
    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Partial => "partial",
        }
    }

    /// In which order chunks may be delivered.
    pub fn order(self) -> Order {
        match self {
            Self::Total => Order::Total,
            Self::Partial => Order::Partial,
        }
    }

    fn config(self, side: Side) -> Config {
        let mut config = Config::new(side);
        if self == Self::Total {
            config.main_only = Kinds::ALL;
            // One stream holds everything that one lost packet holds back: as much as may be on the way.
            config.limits = Limits { buffered_per_channel: 128 << 20, ..Limits::default() };
        }
        config
    }
}
