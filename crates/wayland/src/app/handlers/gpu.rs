//! GPU buffers: `zwp_linux_dmabuf_v1`, its parameters, and what programs are told of formats and devices.
//!
//! Invariant: what is asked of the reader has passed every check that needs no import.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use wayferry_gpu::{Ask, BufferId, Described, Dmabuf, Fourcc, Modifier, Offer, Plane, Wrong};

use crate::wire::Arg;

use super::super::buffer::{self, Buffer};
use super::super::call::Call;
use super::super::connection::Connection;
use super::super::dmabuf::{Collected, Imported, Params};
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::object::{Data, Object};
use super::super::reading::Coming;
use super::super::timelines::Which;

/// `zwp_linux_dmabuf_v1`.
pub(super) struct LinuxDmabuf;

impl Handles for LinuxDmabuf {
    fn greet(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        let Some(offer) = connection.config.gpu.clone() else { return Ok(()) };
        match connection.objects.of(id).map_or(0, |object| object.version) {
            // From 4 on it is asked for.
            4.. => Ok(()),
            3 => offer.pairs().iter().try_for_each(|(fourcc, modifier)| {
                let (high, low) = modifier.halves();
                let args = [fourcc.0, high, low].map(Arg::Uint);
                connection.emit(id, "modifier", args.into())
            }),
            _ => {
                let implicit = offer.pairs().iter().filter(|(_, modifier)| *modifier == Modifier::INVALID);
                let mut formats: Vec<Fourcc> = implicit.map(|(fourcc, _)| *fourcc).collect();
                formats.dedup();
                formats
                    .into_iter()
                    .try_for_each(|fourcc| connection.emit(id, "format", vec![Arg::Uint(fourcc.0)]))
            }
        }
    }

    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("get_default_feedback" | "get_surface_feedback", [Arg::NewId(id), ..]) => {
                give_feedback(connection, *id)
            }
            ("create_params", [Arg::NewId(id)]) => {
                connection.objects.of_mut(*id).and_then(Object::begin_own::<Params>);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The same for every surface: one device reads all buffers.
fn give_feedback(connection: &mut Connection, id: u32) -> Result<(), Fault> {
    let Some(offer) = connection.config.gpu.clone() else { return Ok(()) };
    let (table, length) = offer.table();
    let table = table.try_clone_to_owned().map_err(|_| Fault::TooMuch("open descriptors"))?;
    // Without a device there is no version that has feedback.
    let device = || vec![Arg::Array(offer.device().unwrap_or(0).to_ne_bytes().to_vec())];
    // At most 4096.
    let indices = (0..offer.pairs().len() as u16).flat_map(u16::to_ne_bytes).collect();
    connection.emit(id, "format_table", vec![Arg::Fd(table), Arg::Uint(length)])?;
    connection.emit(id, "main_device", device())?;
    connection.emit(id, "tranche_target_device", device())?;
    connection.emit(id, "tranche_flags", vec![Arg::Uint(0)])?;
    connection.emit(id, "tranche_formats", vec![Arg::Array(indices)])?;
    connection.emit(id, "tranche_done", Vec::new())?;
    connection.emit(id, "done", Vec::new())
}

/// `zwp_linux_buffer_params_v1`.
pub(super) struct DmabufParams;

impl Handles for DmabufParams {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match call.desc.name {
            "add" => match <[Arg; 6]>::try_from(args) {
                Ok(
                    [
                        Arg::Fd(fd),
                        Arg::Uint(index),
                        Arg::Uint(offset),
                        Arg::Uint(stride),
                        Arg::Uint(high),
                        Arg::Uint(low),
                    ],
                ) => {
                    let plane = Plane { fd, offset, stride };
                    add(connection, call, index, plane, Modifier::from_halves(high, low))
                }
                _ => Ok(()),
            },
            "create" => match args[..] {
                [Arg::Int(width), Arg::Int(height), Arg::Uint(format), Arg::Uint(flags)] => {
                    let asked = Asked { size: (width, height), fourcc: Fourcc(format), flags };
                    create(connection, call, &asked, None)
                }
                _ => Ok(()),
            },
            "create_immed" => match args[..] {
                [Arg::NewId(id), Arg::Int(width), Arg::Int(height), Arg::Uint(format), Arg::Uint(flags)] => {
                    let asked = Asked { size: (width, height), fourcc: Fourcc(format), flags };
                    create(connection, call, &asked, Some(id))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// `wp_linux_drm_syncobj_manager_v1`.
pub(super) struct SyncobjManager;

impl Handles for SyncobjManager {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, <[Arg; 2]>::try_from(args)) {
            ("get_surface", Ok([Arg::NewId(id), Arg::Object(surface)])) => {
                connection.add_sync(call, id, surface)
            }
            ("import_timeline", Ok([Arg::NewId(id), Arg::Fd(fd)])) => {
                connection.import_timeline(call, id, fd)
            }
            _ => Ok(()),
        }
    }
}

/// `wp_linux_drm_syncobj_surface_v1`.
pub(super) struct SyncobjSurface;

impl Handles for SyncobjSurface {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        let which = match call.desc.name {
            "set_acquire_point" => Which::Acquire,
            "set_release_point" => Which::Release,
            _ => {
                connection.end_sync(call.id);
                return Ok(());
            }
        };
        match args[..] {
            [Arg::Object(timeline), Arg::Uint(high), Arg::Uint(low)] => {
                connection.set_point(call, which, timeline, u64::from(high) << 32 | u64::from(low))
            }
            _ => Ok(()),
        }
    }
}

/// What a program wants a buffer to be.
struct Asked {
    size: (i32, i32),
    fourcc: Fourcc,
    flags: u32,
}

fn params(connection: &mut Connection, call: Call) -> Result<&mut Params, Fault> {
    let params = connection.objects.of_mut(call.id).and_then(Object::own::<Params>);
    let params = params.filter(|params| !params.used);
    params.ok_or_else(|| Fault::app(call.id, ALREADY_USED, "a buffer has been made of these parameters"))
}

fn add(
    connection: &mut Connection,
    call: Call,
    index: u32,
    plane: Plane,
    modifier: Modifier,
) -> Result<(), Fault> {
    let open = connection.reading.planes.open();
    let params = params(connection, call)?;
    match params.has(index) {
        None => return Err(Fault::app(call.id, PLANE_IDX, format!("a buffer has no plane {index}"))),
        Some(true) => {
            return Err(Fault::app(call.id, PLANE_SET, format!("there is a plane {index} already")));
        }
        Some(false) => {}
    }
    match open {
        Some(open) => params.add(index, Collected { plane, modifier, open }),
        None => params.lacks = true,
    }
    Ok(())
}

/// Makes a buffer, with the id `given` if the program has given it one.
fn create(connection: &mut Connection, call: Call, asked: &Asked, given: Option<u32>) -> Result<(), Fault> {
    let Some(offer) = connection.config.gpu.clone() else { return Ok(()) };
    let params = params(connection, call)?;
    params.used = true;
    let (planes, lacks) = (params.take(), params.lacks);
    if lacks {
        return fail(connection, call.id);
    }
    let planes = planes.ok_or_else(|| Fault::app(call.id, INCOMPLETE, "a plane is missing"))?;
    let Some((dmabuf, open)) = check(&offer, call, asked, planes)? else { return fail(connection, call.id) };
    let name = BufferId(connection.reading.name());
    let imported = Imported::new(name, &connection.reading.gone, open, offer.lacks_fences());
    let Some(buffer) = Buffer::on_gpu(&dmabuf, imported).map(Rc::new) else {
        return fail(connection, call.id);
    };
    if let Some(params) = connection.objects.of_mut(call.id).and_then(Object::own::<Params>) {
        params.awaits = Some(name);
    }
    if let Some(id) = given {
        connection.objects.set_data(id, Data::Buffer(Rc::clone(&buffer)));
    }
    connection.reading.ask(Ask::Import { buffer: name, dmabuf: Rc::new(dmabuf) });
    connection.reading.await_import(name, Coming { params: call.id, buffer, given: given.is_some() });
    Ok(())
}

/// The buffer if it can be one; `None` if it is well-formed and nothing here can read it.
fn check(
    offer: &Offer,
    call: Call,
    asked: &Asked,
    planes: Vec<Collected>,
) -> Result<Option<(Dmabuf, Vec<super::super::dmabuf::Open>)>, Fault> {
    let wrong = |code: u32, what: String| Fault::app(call.id, code, what);
    let (width, height) = asked.size;
    let size = buffer::size(width, height).map_err(|what| wrong(INVALID_DIMENSIONS, what))?;
    let modifier = planes.first().map_or(Modifier::INVALID, |plane| plane.modifier);
    let mixed = planes.iter().any(|plane| plane.modifier != modifier);
    if mixed && call.version >= 5 {
        return Err(wrong(INVALID_FORMAT, "the planes have several modifiers".to_owned()));
    }
    if !offer.has(asked.fourcc, modifier) {
        // Before 4, programs may try what was not offered.
        if call.version >= 4 || !offer.has_format(asked.fourcc) {
            let what = format!("format {} with modifier {modifier} was not offered", asked.fourcc);
            return Err(wrong(INVALID_FORMAT, what));
        }
        return Ok(None);
    }
    let flipped = asked.flags & Y_INVERT != 0;
    // Rows of a film that is upside down may share chroma otherwise.
    if mixed || asked.flags & !Y_INVERT != 0 || flipped && asked.fourcc == Fourcc::NV12 {
        return Ok(None);
    }
    let described = Described { size, fourcc: asked.fourcc, modifier, flipped };
    let (planes, open) = planes.into_iter().map(|collected| (collected.plane, collected.open)).unzip();
    let is_dmabuf = |fd: &OwnedFd| offer.is_dmabuf(fd);
    match Dmabuf::new(described, planes, is_dmabuf) {
        Ok(dmabuf) => Ok(Some((dmabuf, open))),
        Err(error @ Wrong::Format) => Err(wrong(INVALID_FORMAT, error.to_string())),
        Err(error @ Wrong::Planes) => Err(wrong(INCOMPLETE, error.to_string())),
        Err(error @ Wrong::Bounds { .. }) => Err(wrong(OUT_OF_BOUNDS, error.to_string())),
        Err(error @ Wrong::NoDmabuf { .. }) => Err(wrong(INVALID_WL_BUFFER, error.to_string())),
    }
}

/// A buffer cannot be had. What the program was given for it already shows nothing.
fn fail(connection: &mut Connection, params: u32) -> Result<(), Fault> {
    connection.emit(params, "failed", Vec::new())
}

/// `zwp_linux_buffer_params_v1.flags`: the only one that is understood.
const Y_INVERT: u32 = 1;

/// `zwp_linux_buffer_params_v1.error`.
const ALREADY_USED: u32 = 0;
const PLANE_IDX: u32 = 1;
const PLANE_SET: u32 = 2;
const INCOMPLETE: u32 = 3;
const INVALID_FORMAT: u32 = 4;
const INVALID_DIMENSIONS: u32 = 5;
const OUT_OF_BOUNDS: u32 = 6;
const INVALID_WL_BUFFER: u32 = 7;
