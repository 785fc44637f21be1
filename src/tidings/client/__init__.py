"""Clients of a service, with the verbs of the engine; the HTTP library is loaded by the first."""

from tidings.client.asynchronous import AsyncClient
from tidings.client.blocking import Client

__all__ = ["AsyncClient", "Client"]
