"""The client of NATS, with two fixes: for addresses with `tls://`, and for TLS that fails.

To the library, `tls://` means what `nats://` does: it encrypts if the server demands that, and
otherwise sends the login as it is. And it waits forever for the end of a connection whose
encryption has failed, for example because nobody trusts the certificate.
"""

from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from nats.errors import Error


class NoEncryptionError(Error):
    """A server whose address begins with `tls://` does not encrypt."""

    def __str__(self) -> str:
        return "the server does not use TLS, which tls:// demands"


class NatsClient(Client):
    """A client that sends nothing to `tls://` without TLS, and gives up connections that fail."""

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except OSError:  # among them those of TLS, and timeouts
            if isinstance(self._transport, TcpTransport):
                self._transport.close()  # type: ignore[no-untyped-call]
                self._transport = None  # or the library waits until it is closed
            raise

    def _connect_command(self) -> bytes:
        server = self._current_server
        is_encrypted = self._server_info.get("tls_required")
        if server is not None and server.uri.scheme == "tls" and not is_encrypted:
            raise NoEncryptionError
        return super()._connect_command()
