//! A player, and what it is heard through.
