//! Waiting for what was finished to arrive.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Completes when everything that was finished before has been acknowledged, or the connection is over.
#[derive(Debug)]
pub struct Drain {}

impl Future for Drain {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        unimplemented!()
    }
}
