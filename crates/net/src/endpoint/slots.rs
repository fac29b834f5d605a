//! What a poll leaves behind until the next one.
