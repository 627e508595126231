"""What tests/scenarios/functions does with real libraries, by ctypes, which calls them from other
libraries, and by modules of Python. Prints what natively is the same in every run."""

import ctypes
import ctypes.util
import math
import sqlite3
import sys
import zlib

DATA = b"".join(b"%d squared is %d\n" % (i, i * i) for i in range(20000))


class Stream(ctypes.Structure):
    """zlib's z_stream."""
    _fields_ = [("next_in", ctypes.c_char_p), ("avail_in", ctypes.c_uint),
                ("total_in", ctypes.c_ulong), ("next_out", ctypes.c_void_p),
                ("avail_out", ctypes.c_uint), ("total_out", ctypes.c_ulong),
                ("msg", ctypes.c_char_p), ("state", ctypes.c_void_p),
                ("zalloc", ctypes.c_void_p), ("zfree", ctypes.c_void_p),
                ("opaque", ctypes.c_void_p), ("data_type", ctypes.c_int),
                ("adler", ctypes.c_ulong), ("reserved", ctypes.c_ulong)]


def show(*values: object) -> None:
    print(*values, flush=True)


def with_zlib() -> None:
    library = ctypes.CDLL("libz.so.1")
    library.zlibVersion.restype = ctypes.c_char_p
    stream, room = Stream(), ctypes.create_string_buffer(len(DATA))
    size = ctypes.sizeof(stream)
    show(library.deflateInit_(ctypes.byref(stream), 6, library.zlibVersion(), size))
    stream.next_out, stream.avail_out = ctypes.addressof(room), len(room)
    step = len(DATA) // 5
    for i in range(5):
        part = DATA[i * step:] if i == 4 else DATA[i * step:(i + 1) * step]
        stream.next_in, stream.avail_in = part, len(part)
        show(library.deflate(ctypes.byref(stream), 4 if i == 4 else 0), stream.avail_in)
    packed = room.raw[:stream.total_out]
    show(library.deflateEnd(ctypes.byref(stream)), len(packed), zlib.crc32(packed))
    show(zlib.decompress(packed) == DATA)


def with_zlib_module() -> None:
    packed = zlib.compress(DATA, 9)
    show(len(packed), zlib.crc32(packed), zlib.decompress(packed) == DATA)


def with_digests() -> None:
    library = ctypes.CDLL("libcrypto.so.3")
    context, digest = ctypes.create_string_buffer(512), ctypes.create_string_buffer(64)
    for _ in range(2):
        library.SHA256_Init(context)
        for i in range(20):
            library.SHA256_Update(context, DATA[i * 1000:], 1000)
        library.SHA256_Final(digest, context)
        show(digest.raw[:32].hex())
    for name in ("EVP_sha512", "EVP_sha3_256", "EVP_blake2b512"):
        kind = getattr(library, name)
        kind.restype = ctypes.c_void_p
        show(library.EVP_Digest(DATA, ctypes.c_size_t(len(DATA)), digest, None,
                                ctypes.c_void_p(kind()), None), digest.raw.hex())


def with_digests_module() -> None:
    import hashlib  # which tries every digest
    for name in ("sha256", "sha3_256", "md5"):
        digest = hashlib.new(name)
        for i in range(0, len(DATA), 50000):
            digest.update(DATA[i:i + 50000])
        show(name, digest.hexdigest())


def with_sqlite() -> None:
    library = ctypes.CDLL("libsqlite3.so.0")
    database, statement = ctypes.c_void_p(), ctypes.c_void_p()
    show(library.sqlite3_open(b":memory:", ctypes.byref(database)))

    def run(text: bytes) -> None:
        show(library.sqlite3_prepare_v2(database, text, -1, ctypes.byref(statement), None))
        steps = 1
        while library.sqlite3_step(statement) == 100:
            steps += 1
            show(library.sqlite3_column_int(statement, 0))
        show(steps, library.sqlite3_finalize(statement))

    run(b"create table t(a)")
    run(b"with recursive n(i) as (select 1 union all select i + 1 from n where i < 200)"
        b" insert into t select i * i from n")
    run(b"select a from t order by -a")
    run(b"drop table t")
    run(b"vacuum")
    show(library.sqlite3_close(database))


def with_sqlite_module() -> None:
    with sqlite3.connect(":memory:") as database:
        database.create_function("cube", 1, lambda value: value ** 3)
        database.execute("create table t(a, b)")
        database.executemany("insert into t values(?, ?)", [(i, i * i % 97) for i in range(300)])
        for row in database.execute("select b, sum(cube(a)) from t group by b order by 2"):
            show(row)


def with_gemm() -> None:
    library = ctypes.CDLL("libblas.so.3")
    size = 40
    matrix = (ctypes.c_double * (size * size))
    one, number = ctypes.c_double(1), ctypes.byref(ctypes.c_int(size))
    a = matrix(*[i % 7 - 3.5 for i in range(size * size)])
    b = matrix(*[i % 11 / 8 for i in range(size * size)])
    for _ in range(3):
        c = matrix()
        library.cblas_dgemm(101, 111, 111, size, size, size, one, a, size, b, size,
                            ctypes.c_double(0), c, size)
        show(sum(c), c[17])
        flat = matrix()
        library.dgemm_(b"N", b"N", number, number, number, ctypes.byref(one), b, number, a, number,
                       ctypes.byref(ctypes.c_double(0)), flat, number)
        show(list(c) == list(flat))
        a, b = c, a


def with_gemm_module() -> None:
    import numpy
    a = numpy.arange(90000, dtype=float).reshape(300, 300) % 13
    b = a + numpy.eye(300)
    for _ in range(3):
        a, b = a @ b % 17, a
        show(a.sum(), a[3, 4])


def with_sines() -> None:
    library = ctypes.CDLL("libm.so.6")
    library.sin.restype = ctypes.c_double
    show(sum(library.sin(ctypes.c_double(i / 10)) for i in range(100)))
    show([math.sin(i) for i in range(10)])


if __name__ == "__main__":
    globals()[f"with_{sys.argv[1]}"]()
