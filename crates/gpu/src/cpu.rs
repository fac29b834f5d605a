//! Buffers that lie in ordinary memory, which need no GPU to be read.
//!
//! Only those: also a buffer of a driver's that calls itself linear may show something else, or nothing, to a processor
//! that looks at it (seen with virtio-gpu). Invariant: what is read was not being written by a device.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use wayferry_pixels::{Format, Region, Size};

use super::dmabuf::{Dmabuf, Plane};
use super::exporter::exporter;
use super::format::{Fourcc, Modifier};
use super::importer::{Importer, Refused};
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
    access: CpuAccess,
    map: Map,
    offset: u64,
    stride: u64,
    size: Size,
    format: Format,
    flipped: bool,
}

impl Cpu {
    /// What it reads: everything that has a format of ours.
    pub fn pairs() -> impl Iterator<Item = (Fourcc, Modifier)> {
        let formats = Format::ALL.into_iter().map(Fourcc::of);
        formats.flat_map(|fourcc| [(fourcc, Modifier::LINEAR), (fourcc, Modifier::INVALID)])
    }

    /// Whether a buffer lies in ordinary memory.
    #[must_use]
    pub fn reads(dmabuf: &Dmabuf) -> bool {
        let is_linear = matches!(dmabuf.described().modifier, Modifier::LINEAR | Modifier::INVALID);
        let [plane] = dmabuf.planes() else { return false };
        is_linear && exporter(&plane.fd).is_some_and(|name| EXPORTERS.contains(&name.as_str()))
    }
}

impl Importer for Cpu {
    type Image = Mapped;

    fn import(&mut self, dmabuf: &Dmabuf) -> Result<Mapped, Refused> {
        let refused = |errno: Errno| Refused(format!("it cannot be mapped: {errno}"));
        let [Plane { fd, offset, stride }] = dmabuf.planes() else {
            return Err(Refused("it has more than one plane".to_owned()));
        };
        if !Self::reads(dmabuf) {
            let from = exporter(fd).unwrap_or_else(|| "no exporter".to_owned());
            return Err(Refused(format!("it lies in memory of {from}, and no GPU is there to read it")));
        }
        let length = seek(fd, SeekFrom::End(0)).map_err(refused)?;
        let length = usize::try_from(length).map_err(|_| refused(Errno::FBIG))?;
        let map = Map::read_only(fd, length).map_err(refused)?;
        let access = CpuAccess::of(fd).map_err(refused)?;
        let (size, flipped) = (dmabuf.described().size, dmabuf.described().flipped);
        let (offset, stride, format) = (u64::from(*offset), u64::from(*stride), dmabuf.format());
        Ok(Mapped { access, map, offset, stride, size, format, flipped })
    }

    fn read(&mut self, image: &Mapped, region: &Region, rows: &mut Rows<'_>) -> Result<(), Refused> {
        let outside = || Refused("it has become shorter".to_owned());
        let access =
            image.access.begin().map_err(|errno| Refused(format!("it is not given out: {errno}")))?;
        let bytes = image.format.bytes_per_pixel() as u64;
        let mut row = Vec::new();
        for rect in region.clip(image.size).rects() {
            row.resize(rect.width as usize * bytes as usize, 0);
            for y in rect.y..rect.bottom() {
                let from = if image.flipped { image.size.height() - 1 - y } else { y };
                let start = image.offset + u64::from(from) * image.stride + u64::from(rect.x) * bytes;
                let start = usize::try_from(start).map_err(|_| outside())?;
                image.map.copy_out(start, &mut row).ok_or_else(outside)?;
                rows.write(rect.x, y, &row)?;
            }
        }
        drop(access);
        Ok(())
    }
}
