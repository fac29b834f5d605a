//! What a reader reads buffers with.

use wayferry_pixels::Region;

use super::dmabuf::Dmabuf;
use super::rows::Rows;

/// A buffer cannot be read: in words for the program's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// How the pixels of a buffer are got at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// By the GPU, through its driver.
    Gpu,
    /// By the processor, in memory.
    Mapped,
}

impl Route {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpu => "egl",
            Self::Mapped => "mmap",
        }
    }
}

/// Imports buffers and reads them. A reading has a beginning, after which a GPU may work on it, and an end, at which
/// its pixels are taken: several may have begun, and they end in the order in which they began.
pub trait Importer {
    /// An imported buffer. What it takes is given back with it.
    type Image;
    /// A reading that has begun. What it takes is given back with it.
    type Reading;

    /// Imports a buffer.
    ///
    /// # Errors
    /// It cannot be read here, now or later.
    fn import(&mut self, dmabuf: &Dmabuf) -> Result<Self::Image, Refused>;

    /// How a buffer is read.
    fn route(&self, image: &Self::Image) -> Route;

    /// Begins to read a region of an imported buffer.
    ///
    /// # Errors
    /// It cannot be read this time.
    fn begin(&mut self, image: &Self::Image, region: &Region) -> Result<Self::Reading, Refused>;

    /// Takes the pixels; what is outside of the region stays as it is.
    ///
    /// # Errors
    /// They could not be read.
    fn end(
        &mut self,
        image: &Self::Image,
        reading: Self::Reading,
        rows: &mut Rows<'_>,
    ) -> Result<(), Refused>;
}
