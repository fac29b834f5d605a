//! Datagrams of a connection (RFC 9221).
