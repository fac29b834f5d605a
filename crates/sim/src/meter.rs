//! What one host knows of its sending side: as in the product, only that it is asked instead of being told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use noq_proto::congestion::ControllerFactory;
use wayferry_congestion::{self as congestion, Figures, metered};

use crate::controller::{Controller, factory};

/// Hears the controllers of one connection. Clones are the same meter.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<congestion::Meter>>);

impl Meter {
    /// What is known now.
    pub fn figures(&self) -> Figures {
        self.lock().figures()
    }

    /// `bytes` were written to a stream.
    pub fn on_written(&self, bytes: usize, content: bool) {
        self.lock().on_written(bytes, content);
    }

    /// Makes controllers of this kind, which report here.
    pub(crate) fn controllers(&self, kind: Controller) -> Arc<dyn ControllerFactory + Send + Sync> {
        let inner = factory(kind, self.lock().shared());
        metered(inner, self.0.clone())
    }

    fn lock(&self) -> MutexGuard<'_, congestion::Meter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
