//! What a reader reads buffers with.

use wayferry_pixels::Region;

use super::dmabuf::Dmabuf;
use super::rows::Rows;

/// A buffer cannot be read: in words for the program's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// Imports buffers and reads them.
pub trait Importer {
    /// An imported buffer. What it takes is given back with it.
    type Image;

    /// Imports a buffer.
    ///
    /// # Errors
    /// It cannot be read here, now or later.
    fn import(&mut self, dmabuf: &Dmabuf) -> Result<Self::Image, Refused>;

    /// Reads a region of an imported buffer; what is outside of the region stays as it is.
    ///
    /// # Errors
    /// It could not be read this time.
    fn read(&mut self, image: &Self::Image, region: &Region, rows: &mut Rows<'_>) -> Result<(), Refused>;
}
