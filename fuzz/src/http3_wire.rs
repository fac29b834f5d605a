//! HTTP/3 of the Python package's native half, which is pure: bytes in, frames out.

#[path = "../../python/src/http3/fault.rs"]
pub(crate) mod fault;
#[path = "../../python/src/http3/fields.rs"]
pub(crate) mod fields;
#[path = "../../python/src/http3/frames.rs"]
pub(crate) mod frames;
#[path = "../../python/src/http3/huffman.rs"]
pub(crate) mod huffman;
#[path = "../../python/src/http3/table.rs"]
pub(crate) mod table;
