"""Ports that stay ours while no server listens on them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port that no other process gets: connections are refused until a server is started.

    A socket that is bound but does not listen holds it. Servers can listen there one after another,
    since both sides let the address be reused.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
