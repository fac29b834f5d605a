//! The two halves of Wayferry's session as applications of a simulated host, with a workload between them.
//!
//! [`AppSide`] answers requests with updates as the product's app side does: content is handed over only while the
//! session's budget allows. [`DisplaySide`] asks, and notes when every chunk was there. Neither knows pixels: a chunk
//! is a pattern of the right length. Invariant: the display side fails loudly when an update comes twice, out of shape,
//! or with a wrong byte.

mod app_side;
mod display_side;
mod log;
mod plan;
mod port;
mod tap;

pub use app_side::AppSide;
pub use display_side::DisplaySide;
pub(crate) use display_side::REQUEST;
pub use log::{Answer, Log, Measures, Order};
pub(crate) use plan::FRAME;
pub use plan::{Pace, Plan};
use port::Carriage;
pub(crate) use port::Port;

use wayferry_proto::{Capabilities, Config, Kinds, Limits, Repair, Side};

use crate::transport::Windows;

/// How updates reach the display side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// Everything on one ordered stream.
    Total,
    /// A stream for each update, and a fence.
    Partial,
    /// The same, with repair.
    Repaired(Amount),
    /// A stream for each update, to a page that reads each in order; with repair in datagrams, or without.
    Page {
        /// Whether there is repair.
        repaired: bool,
    },
}

/// How much repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Amount {
    /// All rows are 1.03 times those of the source.
    Fixed103,
    /// 1.05 times.
    Fixed105,
    /// 1.10 times.
    Fixed110,
    /// As much as the losses ask for.
    Adaptive,
}

impl Amount {
    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed103 => "fixed-1.03",
            Self::Fixed105 => "fixed-1.05",
            Self::Fixed110 => "fixed-1.10",
            Self::Adaptive => "adaptive",
        }
    }

    fn repair(self) -> Repair {
        match self {
            Self::Fixed103 => Repair::Fixed(1.03),
            Self::Fixed105 => Repair::Fixed(1.05),
            Self::Fixed110 => Repair::Fixed(1.10),
            Self::Adaptive => Repair::default(),
        }
    }
}

impl Delivery {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Total,
        Self::Partial,
        Self::Repaired(Amount::Fixed103),
        Self::Repaired(Amount::Fixed105),
        Self::Repaired(Amount::Fixed110),
        Self::Repaired(Amount::Adaptive),
        Self::Page { repaired: false },
        Self::Page { repaired: true },
    ];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Partial => "partial",
            Self::Repaired(_) => "partial+repair",
            Self::Page { repaired: false } => "page",
            Self::Page { repaired: true } => "page+repair",
        }
    }

    /// How much repair there is, as in tables and files.
    pub fn repair_name(self) -> &'static str {
        match self {
            Self::Total | Self::Partial | Self::Page { repaired: false } => "none",
            Self::Repaired(amount) => amount.name(),
            Self::Page { repaired: true } => Amount::Adaptive.name(),
        }
    }

    /// In which order chunks may be delivered.
    pub fn order(self) -> Order {
        match self {
            Self::Total => Order::Total,
            Self::Partial | Self::Repaired(_) | Self::Page { .. } => Order::Partial,
        }
    }

    /// How much must be allowed on the way for that.
    pub fn windows(self) -> Windows {
        match self {
            Self::Total => Windows::Wide,
            Self::Partial | Self::Repaired(_) | Self::Page { .. } => Windows::Product,
        }
    }

    /// How a side reads the other's streams, and what it knows of the link.
    fn carriage(self, side: Side) -> Carriage {
        match (self, side) {
            (Self::Page { .. }, Side::Display) => Carriage::Page,
            (Self::Page { .. }, Side::App) => Carriage::ToPage,
            _ => Carriage::Native,
        }
    }

    fn config(self, side: Side) -> Config {
        // As in the product, whose sessions outlive their carriers.
        let resume = (side == Side::Display).then(|| [0x5a; 32].into());
        let capabilities = Capabilities::RESUME;
        let config = Config { repair: Repair::Off, resume, capabilities, ..Config::new(side) };
        match self {
            Self::Total => Config {
                main_only: Kinds::ALL,
                // One stream holds everything that one lost packet holds back: as much as may be on the way.
                limits: Limits { buffered_per_channel: 128 << 20, ..Limits::default() },
                ..config
            },
            Self::Partial => config,
            Self::Repaired(amount) => Config { repair: amount.repair(), ..config },
            // A page does not come again, and is kept nothing for.
            Self::Page { repaired } => Config {
                repair: if repaired { Repair::default() } else { Repair::Off },
                resume: None,
                capabilities: Capabilities::DATAGRAM_REPAIR,
                ..config
            },
        }
    }
}
