"""Connections on which every reply is the reply to its request.

HTTP has no number that ties a reply to a request: on a connection that is used again, a reply that a server
or a proxy sends twice would be taken for the answer to the next question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

MOST_DISCARDED = 64
"""Connections that one try discards."""


class Connector(aiohttp.TCPConnector):
    """Uses a connection again only where nothing has come on it unasked."""

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        for _ in range(MOST_DISCARDED):
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()
        raise aiohttp.ClientConnectionError("the server sends before it is asked")
