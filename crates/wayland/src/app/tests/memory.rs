//! Pixels in shared memory: read where they lie if that memory cannot become shorter, else by calls; alike either way.

use rustix::fs::{SealFlags, fcntl_add_seals, ftruncate};
use rustix::io::pwrite;

use super::*;

const SIDE: i32 = 512;
const BYTES: u64 = (SIDE * SIDE * 4) as u64;

/// A window whose buffer is large, and its memory.
struct Canvas {
    rig: Rig,
    surface: u32,
    pool: u32,
    buffer: u32,
    file: OwnedFd,
}

impl Canvas {
    fn new(seals: Option<SealFlags>) -> Self {
        let mut rig = Rig::new();
        let (surface, shm) = rig.window();
        let flags = seals.map_or(MemfdFlags::CLOEXEC, |_| MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        let file = memfd_create("test", flags).unwrap();
        ftruncate(&file, BYTES).unwrap();
        seals.into_iter().for_each(|seals| fcntl_add_seals(&file, seals).unwrap());
        let pool = rig.id("wl_shm_pool");
        let args = vec![Arg::NewId(pool), Arg::Fd(file.try_clone().unwrap()), Arg::Int(BYTES as i32)];
        rig.request(shm, "create_pool", args);
        let mut canvas = Self { rig, surface, pool, buffer: 0, file };
        canvas.buffer = canvas.buffer_at(0);
        canvas
    }

    fn buffer_at(&mut self, offset: i32) -> u32 {
        let buffer = self.rig.id("wl_buffer");
        let numbers = [offset, SIDE, SIDE, SIDE * 4].map(Arg::Int);
        let args = std::iter::once(Arg::NewId(buffer)).chain(numbers).chain([Arg::Uint(0)]);
        self.rig.request(self.pool, "create_buffer", args.collect());
        buffer
    }

    fn show(&mut self, buffer: u32) {
        self.rig.attach(self.surface, buffer);
        self.rig.commit(self.surface);
    }

    /// What has come of the buffer.
    fn content(&self) -> &[u8] {
        self.rig.connection.surfaces.get(&self.surface).unwrap().painter.content().unwrap().pixels()
    }

    /// What is in a buffer that begins there.
    fn drawn(&self, offset: u64) -> Vec<u8> {
        let mut bytes = vec![0; BYTES as usize];
        assert_eq!(rustix::io::pread(&self.file, &mut bytes[..], offset).unwrap(), bytes.len());
        bytes
    }

    /// How many bytes of its pool are mapped.
    fn mapped(&self) -> Option<usize> {
        match &self.rig.connection.objects.of(self.pool).unwrap().data {
            object::Data::Pool(pool) => pool.mapped(0, 0).map(|mapping| mapping.bytes().len()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn sealed_memory_is_mapped_and_other_memory_is_read_and_both_give_the_same() {
    let shrink = SealFlags::SHRINK;
    for (seals, mapped) in [(Some(shrink), true), (Some(SealFlags::GROW), false), (None, false)] {
        let mut canvas = Canvas::new(seals);
        for round in 0..4 {
            pwrite(&canvas.file, &[round; 9000], 300_001 * u64::from(round)).unwrap();
            canvas.show(canvas.buffer);
            assert!(canvas.content() == canvas.drawn(0), "{seals:?}");
        }
        assert_eq!(canvas.mapped(), mapped.then_some(BYTES as usize), "{seals:?}");
        assert_eq!(canvas.rig.connection.end(), None);
    }
}

#[test]
fn a_pool_that_grows_is_mapped_anew() {
    let mut canvas = Canvas::new(Some(SealFlags::SHRINK));
    canvas.show(canvas.buffer);
    ftruncate(&canvas.file, 2 * BYTES).unwrap();
    canvas.rig.request(canvas.pool, "resize", vec![Arg::Int(2 * BYTES as i32)]);
    let second = canvas.buffer_at(BYTES as i32);
    pwrite(&canvas.file, &[7; 1000], BYTES + 5).unwrap();
    assert_eq!(canvas.mapped(), Some(BYTES as usize));
    canvas.show(second);
    assert!(canvas.content() == canvas.drawn(BYTES));
    assert_eq!(canvas.mapped(), Some(2 * BYTES as usize));
}

/// What a pool announces and its file does not have is an error of the program's, sealed or not.
#[test]
fn a_file_that_is_too_short_ends_its_program_alone() {
    let mut canvas = Canvas::new(Some(SealFlags::SHRINK));
    canvas.rig.request(canvas.pool, "resize", vec![Arg::Int(2 * BYTES as i32)]);
    let beyond = canvas.buffer_at(BYTES as i32);
    canvas.show(beyond);
    let error = canvas.rig.events().into_iter().find(|event| event.name == "error").unwrap();
    assert!(matches!(error.args[..], [Arg::Object(id), Arg::Uint(2), ..] if id == beyond), "{error:?}");
}

/// A program may draw while its commit is taken in: what it then shows is its business, and its next commit corrects
/// it.
#[test]
fn a_program_that_draws_while_it_is_read_is_corrected_by_its_next_commit() {
    let mut canvas = Canvas::new(Some(SealFlags::SHRINK));
    let file = canvas.file.try_clone().unwrap();
    std::thread::scope(|scope| {
        let program = scope.spawn(move || {
            for round in 0..200u32 {
                let offset = u64::from(round.wrapping_mul(7919)) * 4 % (BYTES - 65_536);
                pwrite(&file, &[round as u8; 65_536], offset).unwrap();
            }
        });
        while !program.is_finished() {
            canvas.show(canvas.buffer);
        }
    });
    canvas.show(canvas.buffer);
    assert!(canvas.content() == canvas.drawn(0) && canvas.mapped().is_some());
    assert_eq!(canvas.rig.connection.end(), None);
}
