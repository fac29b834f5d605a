"""The modules of `aioquic.quic` that programs import: configuration, connection, events, logger, packet."""
