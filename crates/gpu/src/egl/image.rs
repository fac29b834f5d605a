//! A buffer that a GPU has imported: as one picture or, of a film, as two.

use std::rc::Rc;

use wayferry_pixels::{Rect, Size};

use super::super::dmabuf::{Described, Dmabuf};
use super::super::format::{Fourcc, Samples, Stored};
use super::super::importer::Refused;
use super::device::Device;
use super::plane::{Plane, Said};

/// See the module.
#[derive(Debug)]
pub(crate) struct Image {
    pub(super) device: Rc<Device>,
    /// With what each holds.
    pub(super) planes: Vec<(Plane, Samples)>,
    pub(super) size: Size,
    pub(super) stored: Stored,
    pub(super) flipped: bool,
}

impl Image {
    /// Imports a buffer.
    pub(super) fn new(device: &Rc<Device>, dmabuf: &Dmabuf) -> Result<Self, Refused> {
        let Described { size, fourcc, modifier, flipped } = dmabuf.described();
        let (stored, memory) = (dmabuf.stored(), dmabuf.planes());
        let samples = stored.planes();
        let import = |samples: Samples, fourcc, memory| {
            let (width, height) = (size.width().div_ceil(samples.step), size.height().div_ceil(samples.step));
            Plane::new(device, Said { width, height, fourcc, modifier, memory }).map(|plane| (plane, samples))
        };
        let planes = match (stored, &samples[..], memory) {
            // Each by itself: as one, drivers let it be drawn with, but not read.
            (Stored::Nv12, [luma, chroma], [first, second]) => vec![
                import(*luma, Fourcc::R8, std::slice::from_ref(first))?,
                import(*chroma, Fourcc::GR88, std::slice::from_ref(second))?,
            ],
            (Stored::Plain(_) | Stored::Halves(_), [all], _) => vec![import(*all, fourcc, memory)?],
            _ => return Err(Refused("its modifier adds planes to those of a film".to_owned())),
        };
        Ok(Self { device: Rc::clone(device), planes, size, stored, flipped })
    }

    /// Where a rectangle of pixels lies in a plane: x, y, width, height.
    pub(super) fn place(&self, rect: Rect, samples: Samples) -> [i32; 4] {
        let y = if self.flipped { self.size.height() - rect.bottom() } else { rect.y };
        let Samples { step, .. } = samples;
        let place = [rect.x / step, y / step, rect.width.div_ceil(step), rect.height.div_ceil(step)];
        // Sides are at most 2¹⁴.
        place.map(u32::cast_signed)
    }
}
