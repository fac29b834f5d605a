//! Buffers read through OpenGL ES on the GPU that they are in.
//!
//! libEGL is opened at run time, and no window system is needed: the display is that of an EGL device. All calls of the
//! driver's are in this folder. Invariant: the context is current on the one thread that has it; what is made in it
//! does not outlive it.

mod device;
mod image;
mod pick;
mod plane;
mod proof;
mod read;

use std::path::Path;
use std::rc::Rc;

use wayferry_pixels::Region;

use self::device::Device;
use self::image::Image;
use self::read::Reading;
use super::confine::confine;
use super::cpu::{Cpu, Mapped};
use super::dmabuf::Dmabuf;
use super::importer::{Importer, Refused, Route};
use super::node::nodes;
use super::rows::Rows;
use super::wire::Means;

/// Reads buffers of one GPU, and those that lie in ordinary memory.
#[derive(Debug)]
pub(crate) struct Gpu {
    device: Rc<Device>,
    cpu: Cpu,
}

/// A buffer that one of the two has imported.
#[derive(Debug)]
pub(crate) enum Either {
    /// It is read by the GPU.
    Gpu(Image),
    /// It is mapped.
    Memory(Mapped),
}

/// A reading that one of the two has begun.
#[derive(Debug)]
pub(crate) enum Begun {
    Gpu(Option<Reading>),
    Memory(Region),
}

impl Gpu {
    /// The GPU of this render node, or of the first that can be used; and what it can do.
    ///
    /// # Errors
    /// Why there is none, in words for the user.
    pub(crate) fn open(node: Option<&Path>) -> Result<(Self, Means), String> {
        let nodes = match node {
            Some(node) => vec![node.to_owned()],
            None => nodes(),
        };
        if nodes.is_empty() {
            return Err("there is no render node in /dev/dri".to_owned());
        }
        let mut reasons = Vec::new();
        for node in nodes {
            match Device::open(&node) {
                Ok(device) => {
                    // Before a buffer is touched, even its own: what a driver cannot do without shows at once.
                    confine();
                    let device = Rc::new(device);
                    match proof::prove(&device) {
                        Ok(formats) => {
                            let means = device.means(&formats);
                            return Ok((Self { device, cpu: Cpu }, means));
                        }
                        Err(Refused(why)) => reasons.push(format!("{}: {why}", node.display())),
                    }
                }
                Err(why) => reasons.push(format!("{}: {why}", node.display())),
            }
        }
        Err(reasons.join("; "))
    }
}

impl Importer for Gpu {
    type Image = Either;
    type Reading = Begun;

    fn import(&mut self, dmabuf: &Dmabuf) -> Result<Either, Refused> {
        if Cpu::reads(dmabuf) {
            return self.cpu.import(dmabuf).map(Either::Memory);
        }
        Image::new(&self.device, dmabuf).map(Either::Gpu)
    }

    fn route(&self, image: &Either) -> Route {
        match image {
            Either::Gpu(_) => Route::Gpu,
            Either::Memory(_) => Route::Mapped,
        }
    }

    fn begin(&mut self, image: &Either, region: &Region) -> Result<Begun, Refused> {
        match image {
            Either::Gpu(image) => read::begin(image, region).map(Begun::Gpu),
            Either::Memory(mapped) => self.cpu.begin(mapped, region).map(Begun::Memory),
        }
    }

    fn end(&mut self, image: &Either, reading: Begun, rows: &mut Rows<'_>) -> Result<(), Refused> {
        match (image, reading) {
            (Either::Gpu(image), Begun::Gpu(Some(reading))) => read::end(image, &reading, rows),
            (Either::Memory(mapped), Begun::Memory(region)) => self.cpu.end(mapped, region, rows),
            // Nothing of it was to be read.
            _ => Ok(()),
        }
    }
}
