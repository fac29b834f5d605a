"""aioquic's HTTP/0.9, for interoperability tests; needs aioquic itself (`pip install wayferry[h3]`)."""
