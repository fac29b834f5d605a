"""aioquic's events of HTTP/3."""

from .._bridge import needs_aioquic

with needs_aioquic(__name__):
    from aioquic.h3.events import *  # noqa: F403 - all of them, whichever version it is
    from aioquic.h3.events import Headers as Headers
