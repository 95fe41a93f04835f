"""Ranks that reduce one number together: a star of sockets around rank 0."""

from __future__ import annotations

import os
import socket
import struct
import time

PORT_SHIFT = 50


class Group:
    """`reduce` returns the same number on all ranks, and waits until all have called it."""

    def __init__(self, rank: int, size: int) -> None:
        self._peers: list[socket.socket] = []
        self._rank = rank
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) - PORT_SHIFT)
        if rank == 0 and size > 1:
            with socket.create_server(address) as server:
                self._peers = [server.accept()[0] for _ in range(size - 1)]
        elif size > 1:
            self._peers = [self._connect(address)]

    def _connect(self, address: tuple[str, int]) -> socket.socket:
        while True:
            try:
                return socket.create_connection(address)
            except ConnectionRefusedError:
                time.sleep(0.01)  # rank 0 is still starting

    def reduce(self, value: int, operation: str) -> int:
        """Return the maximum or minimum of every rank's value."""
        if not self._peers:
            return value
        if self._rank:
            self._peers[0].sendall(struct.pack("!i", value))
            return _receive(self._peers[0])
        values = [value, *(_receive(peer) for peer in self._peers)]
        result = max(values) if operation == "max" else min(values)
        for peer in self._peers:
            peer.sendall(struct.pack("!i", result))
        return result


def _receive(peer: socket.socket) -> int:
    data = b""
    while len(data) < 4:
        part = peer.recv(4 - len(data))
        if not part:
            # As gloo does when a socket breaks; a rank that only hangs is waited for.
            raise RuntimeError("Connection closed by peer")
        data += part
    number: int = struct.unpack("!i", data)[0]
    return number
