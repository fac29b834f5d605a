//! Which congestion controller a connection has.

use std::sync::Arc;

use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use wayferry_congestion::{CopaFactory, Shared};

/// A congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// Our own.
    Copa,
    /// noq's BBR3. It seeds itself: two runs with it are not alike.
    Bbr3,
    /// noq's CUBIC.
    Cubic,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Copa, Self::Bbr3, Self::Cubic];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copa => "copa",
            Self::Bbr3 => "bbr3",
            Self::Cubic => "cubic",
        }
    }

    /// Whether the same seed gives the same run.
    pub fn is_deterministic(self) -> bool {
        self != Self::Bbr3
    }
}

/// Makes controllers of this kind. Our own publishes in `shared` what it knows.
pub(crate) fn factory(controller: Controller, shared: &Shared) -> Arc<dyn ControllerFactory + Send + Sync> {
    match controller {
        Controller::Copa => Arc::new(CopaFactory::new(shared.clone())),
        Controller::Bbr3 => Arc::new(Bbr3Config::default()),
        Controller::Cubic => Arc::new(CubicConfig::default()),
    }
}
