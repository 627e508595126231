"""What the scenarios of `gpr view` have in common: a program to look at, and a view that runs."""

import contextlib
import ctypes
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lane import Lane, die_with_parent
from observing import Observing

URL = re.compile(r"http://(127\.0\.0\.1|\[::1\]):(\d+)/([0-9a-f]{64})/\n")
MARKUP = "<img src=x onerror=alert(1)>"  # in the names of the program, and of a file of its
THREAD = "<img src=x>"  # the name of one that goes to and fro
CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def network_of(lane: Lane, host: str):
    """What this thread connects to meanwhile is of that host."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open(f"/run/netns/{host}", os.O_RDONLY)
    try:
        if libc.setns(other, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(own, CLONE_NEWNET)
        os.close(own)
        os.close(other)


@contextlib.contextmanager
def false_session(folder: Path, answer: Callable[[int, dict], object], user: int = 0):
    """A process of that user that answers for a session; the answer may depend on its own pid, and
    on the question."""
    child = os.fork()
    if child == 0:
        die_with_parent()
        os.setresuid(user, user, user)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{folder}/{os.getpid()}-00000000.session")
        listener.listen(16)
        while True:
            client = listener.accept()[0]
            with contextlib.suppress(OSError):
                if question := client.recv(4096):
                    client.sendall(json.dumps(answer(os.getpid(), json.loads(question))).encode())
            client.close()
    path = folder / f"{child}-00000000.session"
    try:
        until = time.monotonic() + 10
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.01)
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        path.unlink()


class Served:
    """A gpr view that runs."""

    def __init__(self, lane: Lane, process: subprocess.Popen, url: re.Match):
        self.lane = lane
        self.process = process
        self.host, self.port, self.token = url[1], int(url[2]), url[3]
        self.url = url[0].strip()

    def connected(self, host: str = "initiator") -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=20)
        with network_of(self.lane, host):
            connection.connect()
        return connection

    def ask(self, path: str, method: str = "GET",
            host: str | None = None) -> tuple[int, http.client.HTTPMessage, bytes]:
        """path: behind the token, or from the root if it begins with a slash."""
        path = path if path.startswith("/") else f"/{self.token}/{path}"
        connection = self.connected()
        try:
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", host or f"{self.host}:{self.port}")
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def raw(self, text: bytes) -> bytes:
        connection = self.connected()
        connection.sock.sendall(text)
        answer = b""
        with contextlib.suppress(OSError):
            while part := connection.sock.recv(4096):
                answer += part
        connection.close()
        return answer

    def data(self, words: str = "") -> dict:
        return json.loads(self.ask(f"data?{words}")[2])

    def data_with(self, key: str, words: str = "") -> dict:
        """The first answer that has this."""
        until = time.monotonic() + 15
        while (told := self.data(words))[key] is None and time.monotonic() < until:
            time.sleep(0.1)
        return told


class Viewing(Observing):
    @contextlib.contextmanager
    def viewed(self, name: str = MARKUP, thread: str = THREAD):
        """tests/guests/viewed.c, split, by these names."""
        folder = self.lane.root / "names"
        folder.mkdir()
        program = folder / name
        shutil.copy(self.guests / "viewed", program)
        shutil.copy(self.guests / "libgprguest.so", folder)
        data = folder / f"data {name}"
        data.write_bytes(bytes(4096))
        command = self.begin("exec", "--split", "lib:libgprguest*", "--split", f"home:{folder}/*",
                             "--", str(program), str(data), thread)
        with self.running(command) as (process, _):
            yield process

    @contextlib.contextmanager
    def view(self, pid: int, *options: str):
        process = subprocess.Popen(
            self.lane.on_initiator([str(self.lane.gpr), "view", str(pid), *options]),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
            env=self.lane.environment(), text=True, preexec_fn=die_with_parent)
        try:
            is_there = select.select([process.stdout], [], [], 20)[0]
            line = process.stdout.readline() if is_there else ""
            url = URL.fullmatch(line)
            self.expect("view: its address", url is not None, line or process.poll())
            if url is None:
                raise RuntimeError(f"gpr view says {line!r}")
            yield Served(self.lane, process, url)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
