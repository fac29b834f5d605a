//! Vectors of WebAssembly: a product is two swizzles of four bits each. There is no detection at run time; the module
//! is compiled for them or not.

use std::arch::wasm32::*;

use super::{Candidate, Vector, group};
use crate::field::NIBBLES;

/// The kernels of this architecture, the fastest first.
pub(in super::super) static CANDIDATES: [Candidate; 1] = [Candidate {
    name: "simd128",
    is_here: || true,
    // SAFETY: this module exists only where the whole crate is compiled for the instructions.
    run: |sources, coefficients, outputs| unsafe { group::<Simd128>(sources, coefficients, outputs) },
}];

#[derive(Clone, Copy)]
struct Simd128(v128);

impl Vector for Simd128 {
    const WIDTH: usize = 16;

    /// The low halves of the bytes, and the high halves.
    type Operand = [v128; 2];

    /// Products with every low half, and with every high half.
    type Factor = [v128; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(u8x16_splat(0))
    }

    #[inline(always)]
    unsafe fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are read.
        unsafe { Self(v128_load(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are written.
        unsafe { v128_store(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Operand {
        [v128_and(self.0, u8x16_splat(0xF)), u8x16_shr(self.0, 4)]
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> Self::Factor {
        let table: *const v128 = NIBBLES[usize::from(factor)].as_ptr().cast();
        // SAFETY: an entry of the table is two times 16 bytes.
        unsafe { [v128_load(table), v128_load(table.add(1))] }
    }

    #[inline(always)]
    unsafe fn plus(self, [low, high]: Self::Operand, [lows, highs]: Self::Factor) -> Self {
        let product = v128_xor(u8x16_swizzle(lows, low), u8x16_swizzle(highs, high));
        Self(v128_xor(self.0, product))
    }
}
