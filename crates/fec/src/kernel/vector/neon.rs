//! Vectors of 64-bit ARM: a product is two table look-ups of four bits each.

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::{Candidate, Vector, group};
use crate::field::NIBBLES;

/// The kernels of this architecture, the fastest first.
pub(in super::super) static CANDIDATES: [Candidate; 1] = [Candidate {
    name: "NEON",
    is_here: || is_aarch64_feature_detected!("neon"),
    // SAFETY: a candidate is run only if it is here.
    run: |sources, coefficients, outputs| unsafe { neon(sources, coefficients, outputs) },
}];

#[target_feature(enable = "neon")]
fn neon(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    // SAFETY: this function is compiled for, and run on, a processor that has the instructions.
    unsafe { group::<Neon>(sources, coefficients, outputs) }
}

#[derive(Clone, Copy)]
struct Neon(uint8x16_t);

impl Vector for Neon {
    const WIDTH: usize = 16;

    /// The low halves of the bytes, and the high halves.
    type Operand = [uint8x16_t; 2];

    /// Products with every low half, and with every high half.
    type Factor = [uint8x16_t; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has checked for the instruction.
        unsafe { Self(vdupq_n_u8(0)) }
    }

    #[inline(always)]
    unsafe fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are read, and the caller has checked for the instruction.
        unsafe { Self(vld1q_u8(bytes.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are written, and the caller has checked for the instruction.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Operand {
        // SAFETY: the caller has checked for the instructions.
        unsafe { [vandq_u8(self.0, vdupq_n_u8(0xF)), vshrq_n_u8::<4>(self.0)] }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> Self::Factor {
        let table = NIBBLES[usize::from(factor)].as_ptr();
        // SAFETY: an entry of the table is two times 16 bytes, and the caller has checked for the instruction.
        unsafe { [vld1q_u8(table), vld1q_u8(table.add(16))] }
    }

    #[inline(always)]
    unsafe fn plus(self, [low, high]: Self::Operand, [lows, highs]: Self::Factor) -> Self {
        // SAFETY: the caller has checked for the instructions.
        unsafe {
            let product = veorq_u8(vqtbl1q_u8(lows, low), vqtbl1q_u8(highs, high));
            Self(veorq_u8(self.0, product))
        }
    }
}
