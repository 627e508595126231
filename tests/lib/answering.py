"""A server for programs that talk over sockets: lines and datagrams are answered, bulk comes back,
and who wants it is called back. Runs in a network namespace: answering.py ADDRESS PORT."""

import socket
import subprocess
import sys
import threading
import time

from lane import die_with_parent

START_S = 10.0


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _call_back(peer: str, port: int) -> None:
    with socket.create_connection((peer, port)) as back:
        back.sendall(b"it is me\n")


def _serve_connection(connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as lines:
        for line in lines:
            word, *rest = line.decode().split()
            if word == "echo":
                connection.sendall(" ".join(rest).encode() + b"\n")
            elif word == "call":
                _call_back(connection.getpeername()[0], int(rest[0]))
            elif word == "bulk":
                left = int(rest[0])
                while left:
                    part = lines.read1(min(left, 1 << 16))
                    left -= len(part)
                    connection.sendall(part)


def _serve_datagrams(address: str, port: int) -> None:
    with socket.socket(_family(address), socket.SOCK_DGRAM) as server:
        server.bind((address, port))
        while True:
            text, peer = server.recvfrom(1500)
            server.sendto(text.upper(), peer)


def serve(address: str, port: int) -> None:
    threading.Thread(target=_serve_datagrams, args=(address, port), daemon=True).start()
    with socket.create_server((address, port), family=_family(address)) as server:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_serve_connection, args=(connection,), daemon=True).start()


def start(namespace: str, address: str, port: int) -> subprocess.Popen:
    """It listens."""
    there = ["nsenter", f"--net=/run/netns/{namespace}"]
    server = subprocess.Popen([*there, sys.executable, __file__, address, str(port)],
                              preexec_fn=die_with_parent)
    knock = [*there, "bash", "-c", f"exec 3<> /dev/tcp/{address}/{port}"]
    deadline = time.monotonic() + START_S
    while subprocess.run(knock, capture_output=True).returncode != 0:
        if time.monotonic() > deadline:
            raise TimeoutError("the server does not listen")
        time.sleep(0.05)
    return server


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
