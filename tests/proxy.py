"""A TCP proxy in front of a server, which cuts connections at a chosen moment, or keeps back everything."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any, Literal, Self

CHUNK_BYTES = 1 << 16

When = Literal["before", "after"]


class Proxy:
    """Listens on a port of its own; what comes there goes to the server, and back.

    What one side sends without waiting for the other comes in one piece, as long as it is small: each piece from a
    client is a request.
    """

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests = 0
        """How many pieces have come from clients."""
        self._cut_at: int | None = None
        self._when: When = "before"
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: set[socket.socket] = set()
        self._mutex = threading.Lock()
        self._closed = False
        self._start(self._accept)

    def cut(self, request: int, when: When) -> None:
        """Cut the connection of this request, counted from now: before it reaches the server, or before its answer."""
        self._cut_at, self._when = self.requests + request, when

    @property
    def has_cut(self) -> bool:
        """The request that was to be cut has come."""
        return self._cut_at is not None and self.requests >= self._cut_at

    def hang(self) -> None:
        """From here on nothing comes through, and nobody is told."""
        self._flows.clear()

    def go_on(self) -> None:
        """Everything comes through again, and what was kept back as well."""
        self._flows.set()

    def close(self) -> None:
        """Cut everything."""
        self._closed = True
        self._flows.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._mutex:
            for one in self._sockets:
                _end(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:  # the server is away
                client.close()
                continue
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._mutex:
                self._sockets |= {client, server}
            answers_pass = threading.Event()
            answers_pass.set()
            self._start(self._to_server, client, server, answers_pass)
            self._start(self._to_client, client, server, answers_pass)

    def _to_server(self, client: socket.socket, server: socket.socket, answers_pass: threading.Event) -> None:
        while data := _received(client):
            with self._mutex:
                self.requests += 1
                strikes = self.requests == self._cut_at
            self._flows.wait()
            if strikes and self._when == "after":
                answers_pass.clear()  # the first answer cuts the connection
            elif strikes:
                break
            if not _sent(server, data):
                break
        _end(client)
        _end(server)

    def _to_client(self, client: socket.socket, server: socket.socket, answers_pass: threading.Event) -> None:
        while (data := _received(server)) and answers_pass.is_set():
            self._flows.wait()
            if not _sent(client, data):
                break
        _end(client)
        _end(server)

    def _start(self, work: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=work, args=args, daemon=True).start()


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(CHUNK_BYTES)
    except OSError:
        return b""


def _sent(one: socket.socket, data: bytes) -> bool:
    try:
        one.sendall(data)
    except OSError:
        return False
    return True


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
