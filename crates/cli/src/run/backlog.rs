//! How much of what programs asked for waits for the link.
//!
//! Content is held back by its own budget, but requests are not: a program that sends them without end would fill the
//! carrier's queue and end everybody's session. So the run loop counts what it hands over against what the link sends,
//! like water in a leaking bucket, and while the bucket is full it does not read those programs that filled it. Requests
//! go before all content, so the bucket leaks only half of what the link sends: the other half stays for pixels.
//! Invariant: a program that sends little is always read.

/// The bucket.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: u64,
    sent: u64,
}

impl Backlog {
    /// So many bytes were handed over.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.waiting += bytes;
    }

    /// The link has sent so many bytes since its beginning. Says whether the bucket is empty, so that everybody starts
    /// afresh.
    pub(crate) fn drain(&mut self, sent: u64) -> bool {
        self.waiting = self.waiting.saturating_sub(sent.saturating_sub(self.sent) / SHARE);
        self.sent = sent;
        self.waiting == 0
    }

    /// Whether a program that handed over `bytes` since the bucket was last empty is to wait.
    pub(crate) fn must_wait(&self, bytes: u64) -> bool {
        self.waiting > FULL && bytes > FAIR
    }
}

/// Bytes that may wait before those who sent them are held back.
const FULL: u64 = 512 << 10;
/// Bytes that every program may send all the same: a large program sends less when it starts.
const FAIR: u64 = 128 << 10;
/// One in so many bytes of the link is for requests when there are too many of them.
const SHARE: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_fills_the_bucket_waits_and_only_while_it_is_full() {
        let mut backlog = Backlog::default();
        assert!(backlog.drain(1000));
        backlog.add(FULL + 1);
        assert!(!backlog.drain(1000));
        assert!(backlog.must_wait(FULL) && !backlog.must_wait(FAIR));
        backlog.drain(1000 + SHARE);
        assert!(!backlog.must_wait(FULL));
        assert!(backlog.drain(1000 + 4 * SHARE * FULL));
        backlog.add(10);
        assert!(!backlog.drain(1000 + 4 * SHARE * FULL), "what was sent too much is no credit for later");
    }
}
