//! Names of blobs: contents too large for a message, sent once and named by hash.

use xxhash_rust::xxh3::xxh3_128;

/// The name of a content. Not cryptographic: a peer that makes two contents collide confuses only its own session.
pub fn hash(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}
