//! What waits to be sent, and which of it is content.

use wayferry_proto::Priority;

/// Whether bytes of this priority count as content: held back to about one window, never ahead of the rest.
pub fn is_content(priority: Priority) -> bool {
    priority.class().is_budgeted()
}

/// Bytes that were handed over and not sent yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Of all classes.
    pub total: u64,
    /// Of those that count as content.
    pub content: u64,
}

impl Backlog {
    /// So many bytes of this priority were handed over.
    pub fn add(&mut self, priority: Priority, bytes: usize) {
        self.total += bytes as u64;
        if is_content(priority) {
            self.content += bytes as u64;
        }
    }

    /// So many of them were sent, or given up.
    pub fn sub(&mut self, priority: Priority, bytes: usize) {
        self.total -= bytes as u64;
        if is_content(priority) {
            self.content -= bytes as u64;
        }
    }
}
