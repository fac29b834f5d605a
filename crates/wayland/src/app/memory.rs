//! Requests on the program's memory: `wl_shm`, pools, buffers, buffers of one pixel.
//!
//! What a pool announces costs nothing here: pixels are read as they are committed, and what a program may pin of its own
//! memory is its host's business. Invariant: a pool never becomes smaller than it was announced.

use std::rc::Rc;

use rustix::fs::FileType;

use crate::served;
use crate::wire::Arg;

use super::call::Call;
use super::connection::Connection;
use super::fault::Fault;
use super::object::Data;
use super::shm::{Buffer, INVALID_FD, Pool};

/// `wl_shm.error`: the numbers of a buffer.
const INVALID_STRIDE: u32 = 1;

impl Connection {
    pub(super) fn memory(&mut self, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        let [arg0, arg1, arg2, arg3, arg4, arg5] = six(args);
        match (call.name(), (arg0, arg1, arg2, arg3, arg4, arg5)) {
            (
                ("wl_shm", "create_pool"),
                (Some(Arg::NewId(id)), Some(Arg::Fd(fd)), Some(Arg::Int(size)), ..),
            ) => {
                if served::file_type(&fd) != Ok(FileType::RegularFile) {
                    return Err(Fault::app(
                        call.id,
                        INVALID_FD,
                        "no memory: a device, a directory or a pipe",
                    ));
                }
                let size = pool_size(call.id, size)?;
                let pool = self.pools.open(fd, size).ok_or(Fault::TooMuch("open pools of shared memory"))?;
                self.objects.set_data(id, Data::Pool(pool));
            }
            (("wl_shm_pool", "resize"), (Some(Arg::Int(size)), ..)) => {
                let Some(pool) = self.pool(call.id) else { return Ok(()) };
                let size = pool_size(call.id, size)?;
                pool.resize(size).map_err(|what| Fault::app(call.id, INVALID_FD, what))?;
            }
            (
                ("wl_shm_pool", "create_buffer"),
                (
                    Some(Arg::NewId(id)),
                    Some(Arg::Int(offset)),
                    Some(Arg::Int(width)),
                    Some(Arg::Int(height)),
                    Some(Arg::Int(stride)),
                    Some(Arg::Uint(format)),
                ),
            ) => {
                let Some(pool) = self.pool(call.id) else { return Ok(()) };
                let buffer = Buffer::in_pool(&pool, [offset, width, height, stride], format)
                    .map_err(|what| Fault::app(call.id, INVALID_STRIDE, what))?;
                self.objects.set_data(id, Data::Buffer(Rc::new(buffer)));
            }
            (
                ("wp_single_pixel_buffer_manager_v1", "create_u32_rgba_buffer"),
                (
                    Some(Arg::NewId(id)),
                    Some(Arg::Uint(red)),
                    Some(Arg::Uint(green)),
                    Some(Arg::Uint(blue)),
                    Some(Arg::Uint(alpha)),
                    _,
                ),
            ) => {
                if let Some(buffer) = Buffer::solid([red, green, blue, alpha]) {
                    self.objects.set_data(id, Data::Buffer(Rc::new(buffer)));
                }
            }
            (("wl_buffer", "destroy"), _) => self.surfaces.forget_buffer(call.id),
            _ => {}
        }
        Ok(())
    }

    fn pool(&self, id: u32) -> Option<Rc<Pool>> {
        match &self.objects.of(id)?.data {
            Data::Pool(pool) => Some(Rc::clone(pool)),
            _ => None,
        }
    }
}

/// A pool's size as announced.
fn pool_size(id: u32, size: i32) -> Result<u64, Fault> {
    let size = u64::try_from(size).ok().filter(|size| *size > 0);
    size.ok_or_else(|| Fault::app(id, INVALID_STRIDE, "a pool has at least one byte"))
}

/// The first six arguments, by value.
fn six(args: Vec<Arg>) -> [Option<Arg>; 6] {
    let mut args = args.into_iter();
    std::array::from_fn(|_| args.next())
}
