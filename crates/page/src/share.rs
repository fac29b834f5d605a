//! What all programs of a page may take together of one kind of memory.
//!
//! What is kept has a [`Lease`] beside it, so what is dropped is given back by itself. Invariant:
//! the leases of a share never exceed what it has.

use std::cell::Cell;
use std::rc::Rc;

use crate::end::End;

/// See the module.
#[derive(Debug)]
pub(crate) struct Share {
    name: &'static str,
    most: usize,
    taken: Cell<usize>,
}

impl Share {
    pub(crate) fn new(name: &'static str, most: usize) -> Rc<Self> {
        Rc::new(Self { name, most, taken: Cell::new(0) })
    }

    /// Room for so many bytes.
    ///
    /// # Errors
    /// There is not as much.
    pub(crate) fn lease(self: &Rc<Self>, bytes: usize) -> Result<Lease, End> {
        let taken = self.taken.get().checked_add(bytes).filter(|taken| *taken <= self.most);
        self.taken.set(taken.ok_or(End::TooMuch(self.name))?);
        Ok(Lease { share: Rc::clone(self), bytes })
    }

    /// Bytes that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.get()
    }
}

/// Room that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    share: Rc<Share>,
    bytes: usize,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.share.taken.set(self.share.taken.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_had_again() {
        let share = Share::new("bytes of tests", 10);
        let all = share.lease(7).unwrap();
        assert_eq!(share.lease(4).unwrap_err(), End::TooMuch("bytes of tests"));
        assert_eq!(share.lease(usize::MAX).unwrap_err(), End::TooMuch("bytes of tests"));
        drop(all);
        assert!(share.lease(10).is_ok());
        assert_eq!(share.taken(), 0);
    }
}
