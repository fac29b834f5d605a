//! Kernels for processors with vectors of bytes: one loop, and a few lines for each kind of vector.
//!
//! The crate's only `unsafe` is here: instructions that a processor may not have, and loads and stores by pointer.
//! The one invariant: a kernel is run only where its [`Candidate::is_here`] says that the instructions exist.
#![allow(unsafe_code)]
#![cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    )),
    allow(dead_code, reason = "there are no vectors, so the loop over them has no user")
)]

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::array;

use super::Kernel;
use super::scalar;

#[cfg(target_arch = "aarch64")]
pub(super) use neon::CANDIDATES;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) use wasm::CANDIDATES;
#[cfg(target_arch = "x86_64")]
pub(super) use x86::CANDIDATES;

/// The kernels of this architecture, the fastest first.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
pub(super) static CANDIDATES: [Candidate; 0] = [];

/// A kernel that this processor may or may not be able to run.
pub(super) struct Candidate {
    /// The instructions it is made of.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests say which kernels they compared"))]
    pub(super) name: &'static str,
    /// Whether this processor has them.
    pub(super) is_here: fn() -> bool,
    /// To be called only if it has.
    pub(super) run: Kernel,
}

/// A processor's vector of bytes.
trait Vector: Copy {
    /// Bytes in it.
    const WIDTH: usize;

    /// A vector of source bytes, prepared once for products with several factors.
    type Operand: Copy;

    /// A factor, prepared.
    type Factor: Copy;

    /// A vector of zeros.
    ///
    /// # Safety
    /// Here and below: the processor has the instructions.
    unsafe fn zero() -> Self;

    /// The first [`WIDTH`](Self::WIDTH) bytes; panics if there are fewer.
    unsafe fn load(bytes: &[u8]) -> Self;

    /// Overwrites the first [`WIDTH`](Self::WIDTH) bytes; panics if there are fewer.
    unsafe fn store(self, bytes: &mut [u8]);

    /// See [`Operand`](Self::Operand).
    unsafe fn prepare(self) -> Self::Operand;

    /// See [`Factor`](Self::Factor).
    unsafe fn factor(factor: u8) -> Self::Factor;

    /// This vector plus `operand · factor`, byte by byte.
    unsafe fn plus(self, operand: Self::Operand, factor: Self::Factor) -> Self;
}

/// The loop of every kernel here, for up to four outputs. Rows shorter than a vector take the scalar kernel.
///
/// # Safety
/// The processor has the vector's instructions, and the caller is compiled for them: all is inlined into it.
#[inline(always)]
unsafe fn group<V: Vector>(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    if outputs.first().is_none_or(|output| output.len() < V::WIDTH) {
        return scalar::group(sources, coefficients, outputs);
    }
    // SAFETY: as this function's.
    unsafe {
        match outputs {
            [a] => rows::<V, 1>(sources, coefficients, [a]),
            [a, b] => rows::<V, 2>(sources, coefficients, [a, b]),
            [a, b, c] => rows::<V, 3>(sources, coefficients, [a, b, c]),
            [a, b, c, d] => rows::<V, 4>(sources, coefficients, [a, b, c, d]),
            _ => scalar::group(sources, coefficients, outputs),
        }
    }
}

/// # Safety
/// As [`group`].
#[inline(always)]
unsafe fn rows<V: Vector, const R: usize>(
    sources: &[&[u8]],
    coefficients: &[u8],
    mut outputs: [&mut [u8]; R],
) {
    let length = outputs[0].len();
    let matrix = array::from_fn(|r| &coefficients[r * sources.len()..][..sources.len()]);
    let mut at = 0;
    // SAFETY: as this function's.
    unsafe {
        while at + 2 * V::WIDTH <= length {
            strip::<V, R, 2>(sources, &matrix, &mut outputs, at);
            at += 2 * V::WIDTH;
        }
        while at < length {
            // The last vector may overlap its neighbour, and then makes the same bytes again.
            strip::<V, R, 1>(sources, &matrix, &mut outputs, at.min(length - V::WIDTH));
            at += V::WIDTH;
        }
    }
}

/// Makes `R` outputs of `N` vectors at `at`, with all sums in registers.
///
/// # Safety
/// As [`group`].
#[inline(always)]
unsafe fn strip<V: Vector, const R: usize, const N: usize>(
    sources: &[&[u8]],
    matrix: &[&[u8]; R],
    outputs: &mut [&mut [u8]; R],
    at: usize,
) {
    // SAFETY: as this function's.
    unsafe {
        let mut sums = [[V::zero(); N]; R];
        for (index, source) in sources.iter().enumerate() {
            let source = &source[at..at + N * V::WIDTH];
            let mut operands = [V::zero().prepare(); N];
            for (n, operand) in operands.iter_mut().enumerate() {
                *operand = V::load(&source[n * V::WIDTH..]).prepare();
            }
            for (sums, row) in sums.iter_mut().zip(matrix) {
                let factor = V::factor(row[index]);
                for (sum, operand) in sums.iter_mut().zip(operands) {
                    *sum = sum.plus(operand, factor);
                }
            }
        }
        for (output, sums) in outputs.iter_mut().zip(sums) {
            let output = &mut output[at..at + N * V::WIDTH];
            for (n, sum) in sums.into_iter().enumerate() {
                sum.store(&mut output[n * V::WIDTH..]);
            }
        }
    }
}
