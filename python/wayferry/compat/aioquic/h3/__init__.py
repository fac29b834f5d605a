"""aioquic's HTTP/3, on this layer's connections; needs aioquic itself (`pip install wayferry[h3]`)."""
