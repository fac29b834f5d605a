//! Vectors of x86-64: AVX2, where a product is two shuffles of four bits each, and GFNI, which multiplies in our field.

use std::arch::x86_64::*;

use super::{Candidate, Vector, group};
use crate::field::NIBBLES;

/// The kernels of this architecture, the fastest first.
pub(in super::super) static CANDIDATES: [Candidate; 3] = [
    Candidate {
        name: "GFNI, AVX-512",
        is_here: || is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx512f"),
        // SAFETY: a candidate is run only if it is here.
        run: |sources, coefficients, outputs| unsafe { gfni_512(sources, coefficients, outputs) },
    },
    Candidate {
        name: "GFNI, AVX2",
        is_here: || is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2"),
        // SAFETY: a candidate is run only if it is here.
        run: |sources, coefficients, outputs| unsafe { gfni_256(sources, coefficients, outputs) },
    },
    Candidate {
        name: "AVX2",
        is_here: || is_x86_feature_detected!("avx2"),
        // SAFETY: a candidate is run only if it is here.
        run: |sources, coefficients, outputs| unsafe { avx2(sources, coefficients, outputs) },
    },
];

#[target_feature(enable = "gfni,avx512f")]
fn gfni_512(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    // SAFETY: this function is compiled for, and run on, a processor that has the instructions.
    unsafe { group::<Gfni512>(sources, coefficients, outputs) }
}

#[target_feature(enable = "gfni,avx2")]
fn gfni_256(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    // SAFETY: this function is compiled for, and run on, a processor that has the instructions.
    unsafe { group::<Gfni256>(sources, coefficients, outputs) }
}

#[target_feature(enable = "avx2")]
fn avx2(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    // SAFETY: this function is compiled for, and run on, a processor that has the instructions.
    unsafe { group::<Avx2>(sources, coefficients, outputs) }
}

#[derive(Clone, Copy)]
struct Avx2(__m256i);

impl Vector for Avx2 {
    const WIDTH: usize = 32;

    /// The low halves of the bytes, and the high halves.
    type Operand = [__m256i; 2];

    /// Products with every low half, and with every high half, each in both lanes.
    type Factor = [__m256i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has checked for the instruction.
        unsafe { Self(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are read, and the caller has checked for the instruction.
        unsafe { Self(_mm256_loadu_si256(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are written, and the caller has checked for the instruction.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Operand {
        // SAFETY: the caller has checked for the instructions.
        unsafe {
            let half = _mm256_set1_epi8(0xF);
            [_mm256_and_si256(self.0, half), _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), half)]
        }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> Self::Factor {
        let table: *const __m128i = NIBBLES[usize::from(factor)].as_ptr().cast();
        // SAFETY: an entry of the table is two times 16 bytes, and the caller has checked for the instructions.
        unsafe {
            let (low, high) = (_mm_loadu_si128(table), _mm_loadu_si128(table.add(1)));
            [_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high)]
        }
    }

    #[inline(always)]
    unsafe fn plus(self, [low, high]: Self::Operand, [lows, highs]: Self::Factor) -> Self {
        // SAFETY: the caller has checked for the instructions.
        unsafe {
            let product = _mm256_xor_si256(_mm256_shuffle_epi8(lows, low), _mm256_shuffle_epi8(highs, high));
            Self(_mm256_xor_si256(self.0, product))
        }
    }
}

#[derive(Clone, Copy)]
struct Gfni256(__m256i);

impl Vector for Gfni256 {
    const WIDTH: usize = 32;
    type Operand = __m256i;
    type Factor = __m256i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has checked for the instruction.
        unsafe { Self(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are read, and the caller has checked for the instruction.
        unsafe { Self(_mm256_loadu_si256(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are written, and the caller has checked for the instruction.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Operand {
        self.0
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> Self::Factor {
        // SAFETY: the caller has checked for the instruction.
        unsafe { _mm256_set1_epi8(factor.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn plus(self, operand: Self::Operand, factor: Self::Factor) -> Self {
        // SAFETY: the caller has checked for the instructions.
        unsafe { Self(_mm256_xor_si256(self.0, _mm256_gf2p8mul_epi8(operand, factor))) }
    }
}

#[derive(Clone, Copy)]
struct Gfni512(__m512i);

impl Vector for Gfni512 {
    const WIDTH: usize = 64;
    type Operand = __m512i;
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has checked for the instruction.
        unsafe { Self(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn load(bytes: &[u8]) -> Self {
        let bytes = &bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are read, and the caller has checked for the instruction.
        unsafe { Self(_mm512_loadu_si512(bytes.as_ptr().cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..Self::WIDTH];
        // SAFETY: the slice has as many bytes as are written, and the caller has checked for the instruction.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn prepare(self) -> Self::Operand {
        self.0
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> Self::Factor {
        // SAFETY: the caller has checked for the instruction.
        unsafe { _mm512_set1_epi8(factor.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn plus(self, operand: Self::Operand, factor: Self::Factor) -> Self {
        // SAFETY: the caller has checked for the instructions.
        unsafe { Self(_mm512_xor_si512(self.0, _mm512_gf2p8mul_epi8(operand, factor))) }
    }
}
