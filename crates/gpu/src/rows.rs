//! Where an importer puts pixels: memory of the session's, rows one behind the other.

use wayferry_pixels::{Format, Size};

use super::importer::Refused;
use super::map::Map;

/// See the module.
#[derive(Debug)]
pub struct Rows<'a> {
    memory: &'a mut Map,
    size: Size,
    bytes: usize,
}

impl<'a> Rows<'a> {
    /// For the pixels of a buffer of that size, read as that format; `None` if the memory is too short for them.
    pub(crate) fn new(memory: &'a mut Map, size: Size, format: Format) -> Option<Self> {
        let bytes = format.bytes_per_pixel();
        let length = size.rect().area() * bytes as u64;
        (length <= memory.length() as u64).then_some(Self { memory, size, bytes })
    }

    /// Puts a piece of a row there, from that pixel on.
    ///
    /// # Errors
    /// It is not inside.
    pub fn write(&mut self, x: u32, y: u32, pixels: &[u8]) -> Result<(), Refused> {
        let outside = || Refused("pixels outside of the buffer".to_owned());
        if y >= self.size.height() || x as usize * self.bytes + pixels.len() > self.stride() {
            return Err(outside());
        }
        let start = y as usize * self.stride() + x as usize * self.bytes;
        self.memory.copy_in(start, pixels).ok_or_else(outside)
    }

    fn stride(&self) -> usize {
        self.size.width() as usize * self.bytes
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    #[test]
    fn only_what_is_inside_is_written() {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&fd, 24).expect("room");
        let mut map = Map::writable(&fd, 24).expect("a mapping");
        let size = Size::new(2, 3).expect("a size");
        let mut rows = Rows::new(&mut map, size, Format::Xrgb8888).expect("it fits");
        assert_eq!(rows.write(1, 2, &[7; 4]), Ok(()));
        assert!(rows.write(1, 2, &[7; 5]).is_err() && rows.write(0, 3, &[7]).is_err());
        let mut bytes = [0; 24];
        assert_eq!(map.copy_out(0, &mut bytes), Some(()));
        assert_eq!((bytes[19], bytes[20..24].to_vec()), (0, vec![7; 4]));
        let taller = Size::new(2, 4).expect("a size");
        assert!(Rows::new(&mut map, taller, Format::Xrgb8888).is_none());
    }
}
