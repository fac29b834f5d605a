//! A session's sound server on its socket.
