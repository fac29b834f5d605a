//! Memory: `wl_shm`, pools, buffers, buffers of one pixel.
//!
//! What a pool announces costs nothing here: pixels are read as they are committed, and what a program may pin of its
//! own memory is its host's business. Invariant: a pool never becomes smaller than it was announced.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::FileType;

use crate::fuse;
use crate::wire::Arg;

use super::super::buffer;
use super::super::call::Call;
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::object::Data;
use super::super::shm::{INVALID_FD, Pool};

/// `wl_shm.error`: the numbers of a buffer.
const INVALID_STRIDE: u32 = 1;

/// `wl_shm`.
pub(super) struct Shm;

impl Handles for Shm {
    fn greet(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        connection.tell_formats(id)
    }

    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match <[Arg; 3]>::try_from(args) {
            Ok([Arg::NewId(id), Arg::Fd(fd), Arg::Int(size)]) => create_pool(connection, call, id, fd, size),
            _ => Ok(()),
        }
    }
}

fn create_pool(
    connection: &mut Connection,
    call: Call,
    id: u32,
    fd: OwnedFd,
    size: i32,
) -> Result<(), Fault> {
    if fuse::file_type(&fd) != Ok(FileType::RegularFile) {
        return Err(Fault::app(call.id, INVALID_FD, "no memory: a device, a directory or a pipe"));
    }
    let size = pool_size(call.id, size)?;
    let pool = connection.pools.open(fd, size).ok_or(Fault::TooMuch("open pools of shared memory"))?;
    connection.objects.set_data(id, Data::Pool(pool));
    Ok(())
}

/// `wl_shm_pool`.
pub(super) struct ShmPool;

impl Handles for ShmPool {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        let Some(pool) = pool(connection, call.id) else { return Ok(()) };
        match (call.desc.name, &args[..]) {
            ("resize", [Arg::Int(size)]) => {
                let size = pool_size(call.id, *size)?;
                pool.resize(size).map_err(|what| Fault::app(call.id, INVALID_FD, what))
            }
            (
                "create_buffer",
                &[
                    Arg::NewId(id),
                    Arg::Int(offset),
                    Arg::Int(width),
                    Arg::Int(height),
                    Arg::Int(stride),
                    Arg::Uint(format),
                ],
            ) => {
                let buffer = buffer::Buffer::in_pool(&pool, [offset, width, height, stride], format)
                    .map_err(|what| Fault::app(call.id, INVALID_STRIDE, what))?;
                connection.objects.set_data(id, Data::Buffer(Rc::new(buffer)));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn pool(connection: &Connection, id: u32) -> Option<Rc<Pool>> {
    match &connection.objects.of(id)?.data {
        Data::Pool(pool) => Some(Rc::clone(pool)),
        _ => None,
    }
}

/// A pool's size as announced.
fn pool_size(id: u32, size: i32) -> Result<u64, Fault> {
    let size = u64::try_from(size).ok().filter(|size| *size > 0);
    size.ok_or_else(|| Fault::app(id, INVALID_STRIDE, "a pool has at least one byte"))
}

/// `wl_buffer`.
pub(super) struct Buffer;

impl Handles for Buffer {
    fn local(&self, connection: &mut Connection, call: Call, _: Vec<Arg>) -> Result<(), Fault> {
        connection.surfaces.forget_buffer(call.id);
        connection.reading.forget_buffer(call.id);
        Ok(())
    }
}

/// `wp_single_pixel_buffer_manager_v1`.
pub(super) struct SinglePixel;

impl Handles for SinglePixel {
    fn local(&self, connection: &mut Connection, _: Call, args: Vec<Arg>) -> Result<(), Fault> {
        let &[Arg::NewId(id), Arg::Uint(red), Arg::Uint(green), Arg::Uint(blue), Arg::Uint(alpha)] =
            &args[..]
        else {
            return Ok(());
        };
        if let Some(buffer) = buffer::Buffer::solid([red, green, blue, alpha]) {
            connection.objects.set_data(id, Data::Buffer(Rc::new(buffer)));
        }
        Ok(())
    }
}
