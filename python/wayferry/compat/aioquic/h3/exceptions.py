"""aioquic's exceptions of HTTP/3."""

from .._bridge import needs_aioquic

with needs_aioquic(__name__):
    from aioquic.h3.exceptions import *  # noqa: F403 - all of them, whichever version it is
