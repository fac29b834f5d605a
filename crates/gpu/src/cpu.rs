//! Buffers that lie in ordinary memory, which need no GPU to be read.
//!
//! Only those: also a buffer of a driver's that calls itself linear may show something else, or nothing, to a processor
//! that looks at it (seen with virtio-gpu). Invariant: what is read was not being written by a device.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use wayferry_pixels::{Format, Region, Size};

use super::dmabuf::{Described, Dmabuf, Plane};
use super::exporter::exporter;
use super::format::{Fourcc, Modifier, Samples, Stored};
use super::importer::{Importer, Refused, Route};
use super::map::Map;
use super::rows::Rows;
use super::sync::CpuAccess;

/// Exporters whose buffers are ordinary memory: `/dev/udmabuf` and the heaps below `/dev/dma_heap`.
const EXPORTERS: [&str; 6] =
    ["udmabuf", "system", "system-uncached", "reserved", "linux,cma", "default_cma_region"];

/// Reads them by mapping them.
#[derive(Debug, Default)]
pub struct Cpu;

/// A buffer that is mapped.
#[derive(Debug)]
pub struct Mapped {
    planes: Vec<MappedPlane>,
    size: Size,
    stored: Stored,
    flipped: bool,
}

#[derive(Debug)]
struct MappedPlane {
    access: CpuAccess,
    map: Map,
    samples: Samples,
    offset: u64,
    stride: u64,
}

impl Cpu {
    /// What it reads: every format that is known here.
    pub fn pairs() -> impl Iterator<Item = (Fourcc, Modifier)> {
        let others = [Fourcc::AB4H, Fourcc::XB4H, Fourcc::NV12];
        let formats = Format::ALL.into_iter().map(Fourcc::of).chain(others);
        formats.flat_map(|fourcc| [(fourcc, Modifier::LINEAR), (fourcc, Modifier::INVALID)])
    }

    /// Whether a buffer lies in ordinary memory.
    #[must_use]
    pub fn reads(dmabuf: &Dmabuf) -> bool {
        let is_linear = matches!(dmabuf.described().modifier, Modifier::LINEAR | Modifier::INVALID);
        let is_memory =
            |plane: &Plane| exporter(&plane.fd).is_some_and(|name| EXPORTERS.contains(&name.as_str()));
        is_linear && dmabuf.planes().iter().all(is_memory)
    }
}

impl Importer for Cpu {
    type Image = Mapped;
    /// Nothing works on it meanwhile.
    type Reading = Region;

    fn import(&mut self, dmabuf: &Dmabuf) -> Result<Mapped, Refused> {
        if !Self::reads(dmabuf) {
            let from = dmabuf.planes().first().and_then(|plane| exporter(&plane.fd));
            let from = from.unwrap_or_else(|| "no exporter".to_owned());
            return Err(Refused(format!("it lies in memory of {from}, and no GPU is there to read it")));
        }
        let planes = dmabuf.planes().iter().zip(dmabuf.stored().planes());
        let planes: Result<Vec<MappedPlane>, Errno> =
            planes.map(|(plane, samples)| MappedPlane::new(plane, samples)).collect();
        let planes = planes.map_err(|errno| Refused(format!("it cannot be mapped: {errno}")))?;
        let Described { size, flipped, .. } = dmabuf.described();
        Ok(Mapped { planes, size, stored: dmabuf.stored(), flipped })
    }

    fn route(&self, _: &Mapped) -> Route {
        Route::Mapped
    }

    fn begin(&mut self, image: &Mapped, region: &Region) -> Result<Region, Refused> {
        Ok(region.clip(image.size))
    }

    fn end(&mut self, image: &Mapped, region: Region, rows: &mut Rows<'_>) -> Result<(), Refused> {
        let looking: Result<Vec<_>, Errno> = image.planes.iter().map(|plane| plane.access.begin()).collect();
        let looking = looking.map_err(|errno| Refused(format!("it is not given out: {errno}")))?;
        let (mut stored, mut pixels) = ([Vec::new(), Vec::new()], Vec::new());
        for rect in region.rects().iter().map(|rect| image.stored.whole(*rect, image.size)) {
            for y in rect.y..rect.bottom() {
                let from = if image.flipped { image.size.height() - 1 - y } else { y };
                for (plane, row) in image.planes.iter().zip(&mut stored) {
                    plane.row(rect.x, from, rect.width, row)?;
                }
                let [first, second] = &stored;
                rows.write(rect.x, y, image.stored.pixels(image.size, [first, second], &mut pixels))?;
            }
        }
        drop(looking);
        Ok(())
    }
}

impl MappedPlane {
    fn new(plane: &Plane, samples: Samples) -> Result<Self, Errno> {
        let length = usize::try_from(seek(&plane.fd, SeekFrom::End(0))?).map_err(|_| Errno::FBIG)?;
        let (map, access) = (Map::read_only(&plane.fd, length)?, CpuAccess::of(&plane.fd)?);
        Ok(Self { access, map, samples, offset: plane.offset.into(), stride: plane.stride.into() })
    }

    /// The samples of so many pixels of a row, from pixel `x` on.
    fn row(&self, x: u32, y: u32, width: u32, into: &mut Vec<u8>) -> Result<(), Refused> {
        let Samples { bytes, step } = self.samples;
        into.resize(self.samples.row(width), 0);
        let start = self.offset + u64::from(y / step) * self.stride + u64::from(x / step * bytes);
        let start = usize::try_from(start).ok();
        start
            .and_then(|start| self.map.copy_out(start, into))
            .ok_or_else(|| Refused("it has become shorter".to_owned()))
    }
}
