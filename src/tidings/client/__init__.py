"""Clients of a service with the methods of the engine; the HTTP library is loaded on first use."""

from tidings.client.asynchronous import AsyncClient
from tidings.client.blocking import Client

__all__ = ["AsyncClient", "Client"]
