//! Erasure code over byte columns: repair rows made from a block of bytes, and the bytes of the block found again.
//!
//! A block is laid out in rows ([`Layout`]); [`encode`] makes repair rows, any of them at any time, and a [`Decoder`]
//! takes any byte ranges of source and repair that arrive, in any order, and gives back every byte that they determine.
//! A [`RepairController`] says how many repair rows a block should have.
//!
//! # The code
//!
//! Systematic Cauchy Reed–Solomon over GF(2⁸) = GF(2)\[x\] / (x⁸ + x⁴ + x³ + x + 1), the field 0x11B that GFNI
//! instructions multiply in. Bit n of a byte is the coefficient of xⁿ. With source rows i = 0 … k − 1 and repair rows
//! j = 0 … r − 1, k + r ≤ 255, byte by byte down each column:
//!
//! ```text
//! repair[j] = Σ m(j, i) · source[i]      m(j, i) = (255 − i) / ((255 − i) ⊕ j)
//! ```
//!
//! `⊕` is exclusive or of the two numbers, `/` the division of the field. This is the Cauchy matrix 1 / (x_j + y_i)
//! with x_j = j and y_i = 255 − i, its columns scaled so that row 0 is all ones: a plain exclusive or. The x and y are
//! all different, so every square submatrix has an inverse, and a column is found from any k of its k + r bytes. An
//! entry depends on j and i alone: a row made later, alone, fits those made before.
//!
//! References: J. Blömer et al., *An XOR-Based Erasure-Resilient Coding Scheme*, ICSI TR-95-048 (1995); J. Plank and L.
//! Xu, *Optimizing Cauchy Reed–Solomon Codes for Fault-Tolerant Network Storage Applications*, NCA 2006 (the scaling);
//! J. Plank, K. Greenan and E. Miller, *Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions*, FAST
//! 2013 (products by two look-ups of four bits, which the vector kernels use).
//!
//! There is no I/O, no clock and no randomness here, and nothing knows streams or packets.
//!
//! The one invariant: a byte that a [`Decoder`] gives is the byte that was encoded, provided that all it was fed was.

mod columns;
mod controller;
mod decode;
mod encode;
mod error;
mod estimate;
mod field;
mod kernel;
mod layout;
mod predict;
mod runs;
pub mod sliding;

pub use controller::{Block, Mode, Plan, Queue, RepairController, Report};
pub use decode::{Decoder, MAX_RUNS};
pub use encode::encode;
pub use error::Error;
pub use estimate::LossPrior;
pub use layout::{Layout, MAX_ROWS};
