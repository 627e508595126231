"""What tools/demo runs under Python: hashing, compressing and counting on two threads."""

import collections
import hashlib
import json
import sys
import threading
import zlib

BLOCK = 1 << 20


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read(8 * BLOCK)
    results = {}

    def pack():
        results["packed"] = len(zlib.compress(data, 3))

    def digest():
        results["sha256"] = hashlib.sha256(data).hexdigest()

    threads = [threading.Thread(target=work) for work in (pack, digest)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results["commonest"] = collections.Counter(data[:BLOCK]).most_common(3)
    results["squares"] = sum(n * n for n in range(300_000))
    print(json.dumps(results, sort_keys=True))


main()
