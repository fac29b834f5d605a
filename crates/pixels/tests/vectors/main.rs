//! What is to be the same everywhere, here; `scripts/test-wasm` runs the same checks as WebAssembly.

mod checks;

#[test]
fn everything_is_as_it_was_written_down() {
    checks::CHECKS.iter().for_each(|(name, check)| {
        println!("{name}");
        check();
    });
}

/// The files that `checks` reads. To be run after a change of the layout of chunks, and only then.
#[cfg(feature = "encode")]
#[test]
#[ignore = "writes tests/vectors/*.bin"]
fn write_anew() {
    use std::convert::Infallible;
    use std::time::Duration;

    use wayferry_pixels::{Allowance, Compression, Draft, Encoder, Layout, Region, Size};

    for vector in checks::EXACT.iter().chain(&checks::LOSSY) {
        let compression = match vector.name {
            name if name.starts_with("lz4") => Compression::Lz4,
            name if name.starts_with("zstd") => Compression::Zstd(1),
            _ => Compression::None,
        };
        let size = Size::new(vector.side, vector.side).unwrap();
        let stride = u64::from(vector.side) * vector.format.bytes_per_pixel() as u64;
        let layout = Layout::new(0, stride, size, vector.format).unwrap();
        let (mut draft, mut encoder) = (Draft::new(size, vector.format), Encoder::new(compression));
        let mut file = Vec::new();
        for moved in checks::MOVED {
            let picture = checks::picture(vector, moved);
            let read = |offset: u64, target: &mut [u8]| {
                target.copy_from_slice(&picture[offset as usize..][..target.len()]);
                Ok::<(), Infallible>(())
            };
            draft.absorb(&layout, &Region::full(size), read).unwrap();
            let chunks = match vector.lossy {
                Some(bytes) => {
                    let allowance = Allowance { bytes, quality: 80, now: Duration::ZERO };
                    encoder.encode_within(&mut draft, &allowance, None, None)
                }
                None => encoder.encode(&mut draft),
            };
            file.push(chunks.len() as u8);
            for chunk in chunks {
                file.extend((chunk.len() as u32).to_le_bytes());
                file.extend(chunk);
            }
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
        std::fs::write(format!("{folder}/{}.bin", vector.name), file).unwrap();
    }
}
