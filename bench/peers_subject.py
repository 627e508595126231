"""Calls of libraries from Python: natively or under gpr, which splits the libraries off, or through
RPyC, which has the modules elsewhere: `peers_subject.py [ADDRESS PORT]`. Prints a line for each
measure, `NAME VALUE UNIT`, and for each result that must be the same everywhere `= NAME VALUE`."""

import sys
import time

import numpy

SIZE = 1000
SMALL = bytes(range(64))
LARGE = b"".join(number.to_bytes(4, "little") for number in range(2 << 20))
SECONDS = 1.0


def tell(name: str, value: float, unit: str) -> None:
    print(name.replace(" ", "_"), f"{value:.6g}", unit, flush=True)


def same(name: str, value: object) -> None:
    print("=", name.replace(" ", "_"), value, flush=True)


def rate(work) -> float:
    """How many a second, after a few that do not count."""
    for _ in range(3):
        work()
    start, count = time.monotonic(), 0
    while time.monotonic() < start + SECONDS:
        work()
        count += 1
    return count / (time.monotonic() - start)


class Here:
    """Natively and under gpr the program is the same."""

    def __init__(self) -> None:
        import zlib
        self.crc32, self.compress = zlib.crc32, zlib.compress

    @staticmethod
    def send(array):
        return array

    @staticmethod
    def product(a, b):
        return a @ b


class There:
    """The modules are on a server of RPyC's; what is large goes there and back as a copy."""

    def __init__(self, address: str, port: int) -> None:
        from rpyc.utils import classic
        self._classic = classic
        self._server = classic.connect(address, port)
        zlib = self._server.modules.zlib
        self.crc32, self.compress = zlib.crc32, zlib.compress
        self._matmul = self._server.modules.numpy.matmul

    def send(self, array):
        return self._classic.deliver(self._server, array)

    def product(self, a, b):
        return self._classic.obtain(self._matmul(a, b))


def main() -> None:
    way = There(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 1 else Here()
    same("checksum", way.crc32(SMALL))
    tell("checksum of 64 B", rate(lambda: way.crc32(SMALL)), "/s")
    same("compressed", len(way.compress(LARGE)))
    tell("compress 8 MiB", rate(lambda: way.compress(LARGE, 1)), "/s")
    a = numpy.arange(SIZE * SIZE, dtype=numpy.float64).reshape(SIZE, SIZE) % 17
    sent = way.send(a)
    same("product", way.product(sent, sent).sum())
    tell("product of 1000 x 1000, the same again", rate(lambda: way.product(sent, sent)), "/s")

    def fresh() -> None:
        a[:] += 1  # all of it is new
        new = way.send(a)
        way.product(new, new)

    tell("product of 1000 x 1000, new each time", rate(fresh), "/s")


if __name__ == "__main__":
    main()
