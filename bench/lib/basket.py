"""The programs of bench/regret: what each is, and what it needs to run.

Every command runs in a folder of its own, made by `setup`, and must do the same work each time.
"""

import dataclasses
import shutil
from pathlib import Path

PROJECT_FILES = 12  # of the small C project
TEXT_LINES = 400_000


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    command: str          # for sh -c
    setup: str = ""       # for sh -c, once, in the folder
    computes: bool = False  # an acceptor with faster processors would do it sooner
    library: str = ""     # GLOB for a lib: rule, where splitting off a library makes sense
    needs: tuple = ()     # programs
    module: str = ""      # a Python module

    def missing(self, python: str) -> str:
        """What it needs and this machine lacks; empty: nothing."""
        for program in self.needs:
            if not shutil.which(program):
                return program
        if self.module and not _has_module(python, self.module):
            return f"Python's {self.module}"
        return ""


def _has_module(python: str, name: str) -> bool:
    import subprocess
    return subprocess.run([python, "-c", f"import importlib.util as u, sys; "
                           f"sys.exit(u.find_spec('{name}') is None)"]).returncode == 0


C_PROJECT = f"""
for i in $(seq {PROJECT_FILES}); do
  echo "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>
  int part$i(int n) {{ char b[64]; snprintf(b, sizeof b, \\"%d\\", n); return (int)strlen(b); }}" \
    > part$i.c
done
echo 'int main(void) {{ return 0; }}' > main.c
printf 'all: main\\nmain: %s main.o\\n\\tcc -o $@ $^\\nclean:\\n\\trm -f *.o main\\n' \
  "$(seq -f part%g.o -s ' ' {PROJECT_FILES})" > Makefile
"""
REPOSITORY = """
git init -q . && git config user.email a@b && git config user.name a
for d in $(seq 40); do mkdir d$d; for f in $(seq 25); do echo "$d $f" > d$d/f$f; done; done
git add . && git commit -qm all
"""
TEXT = f"seq {TEXT_LINES} | awk '{{print $1 * 7919 % 1000003, \"line\", $1}}' > text"
NGINX = """
chmod 755 .. && chmod 777 . && mkdir temp && chmod 777 temp && seq 4000 > page
cat > conf <<X
daemon off; worker_processes 1; pid $PWD/pid; error_log stderr; user nobody nogroup;
events { worker_connections 64; }
http { access_log off; client_body_temp_path $PWD/temp;
       server { listen unix:$PWD/socket; root $PWD; } }
X
"""
# It refuses to be root: it and its folders are another user's, who has to reach them, and have what
# `gpr setup` grants. (The mount is in the bench's own namespace.)
POSTGRES = """
chmod 755 .. && mkdir server && chown postgres server && cd server
setpriv --reuid=postgres --regid=postgres --clear-groups initdb -D data -A trust --no-sync
mknod -m 666 ../device c $(stat -c '0x%t 0x%T' /dev/userfaultfd)
mount --bind ../device /dev/userfaultfd
"""
GO = """
cat > work.go <<X
package main
import "fmt"
func main() {
  sums := make(chan int)
  for part := 0; part < 4; part++ {
    go func(x, s int) {
      for i := 0; i < 200000000; i++ { x ^= x << 13; x ^= x >> 7; x ^= x << 17; s += x & 7 }
      sums <- s
    }(part+1, 0)
  }
  fmt.Println(<-sums + <-sums + <-sums + <-sums)
}
X
GOCACHE=$PWD/cache CGO_ENABLED=0 go build -o work work.go
"""
WAIT_FOR = "for i in $(seq 100); do %s >/dev/null 2>&1 && break; sleep 0.05; done"
BYTES = "head -c 24000000 /dev/urandom | xxd -p -c 61 > data"

BASKET = [
    Row("true", "true"),
    Row("ls -l /usr/bin", "ls -l /usr/bin"),
    Row("find /usr/share", "find /usr/share/doc /usr/share/man -newer /etc/passwd"),
    Row("git status", "git status", REPOSITORY, needs=("git",)),
    Row("git log -p", "git log -p | wc -c", REPOSITORY, needs=("git",)),
    Row("grep -r", "grep -rc include /usr/include | wc -l"),
    Row("tar", "tar cf - /usr/share/doc 2>/dev/null | wc -c"),
    Row("cp -r, rm -r", "cp -r /usr/share/perl5 copy && rm -r copy"),
    # Its programs lock themselves in with seccomp filters.
    Row("man", "man -P cat ls | wc -l", needs=("man",)),
    Row("shell loop with programs", "for i in $(seq 40); do expr $i + 1; done"),
    Row("gcc -O2", "gcc -O2 -c part1.c -o /dev/null", C_PROJECT, needs=("gcc",)),
    Row("make -j2", "make -s clean && make -s -j2", C_PROJECT, needs=("make", "gcc")),
    Row("python3 -c 1", "python3 -c 1"),
    Row("python3 imports", "python3 -c 'import json, asyncio, email, http.client, unittest, "
        "xml.dom.minidom, decimal, ctypes, logging.config'"),
    Row("python3 unittest", "python3 -m unittest -q test.test_json 2>&1 | grep -c OK"),
    Row("perl", "perl -e '$s += $_ ** 0.5 for 1 .. 6e6; print $s'", computes=True),
    Row("python3 loop", "python3 -c 'print(sum(i * i % 7 for i in range(12_000_000)))'",
        computes=True),
    Row("import numpy", "{python} -c 'import numpy'", module="numpy"),
    Row("numpy", "{python} -c 'import numpy as n; a = n.random.rand(700, 700); "
        "print(sum((a @ a).trace() > 0 for _ in range(30)))'", computes=True, module="numpy",
        library="*numpy*"),
    Row("scipy", "{python} -c 'import numpy as n, scipy.linalg as l; "
        "a = n.random.rand(900, 900); print(sum(abs(l.svdvals(a)[0]) > 0 for _ in range(4)))'",
        computes=True, module="scipy"),
    Row("scikit-learn", "{python} -c 'from sklearn.ensemble import RandomForestClassifier as R; "
        "from sklearn.datasets import make_classification as m; "
        "x, y = m(3000, 30, random_state=1); print(R(60, random_state=1).fit(x, y).score(x, y))'",
        computes=True, module="sklearn"),
    Row("sort", "sort -n text | md5sum", TEXT),
    Row("awk", "awk '{s[$1 % 1000] += $3} END {for (k in s) t += s[k]; print t}' text", TEXT),
    Row("xz -6", "xz -6 -T1 -c data | wc -c", BYTES.replace("24000000", "4000000"), computes=True,
        library="*liblzma*", needs=("xz",)),
    Row("gzip -9", "gzip -9 -c data | wc -c", BYTES, computes=True),
    Row("sha256sum", "sha256sum data", BYTES),
    # Not a key: how long one takes to be found is chance, 0.4 to 1.5 s in eight runs.
    Row("openssl pbkdf2", "openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt pass:x -kdfopt "
        "salt:y -kdfopt iter:1200000 PBKDF2 | wc -l", needs=("openssl",)),
    Row("sqlite3", "sqlite3 db 'create table t(a integer primary key, b text); with recursive "
        "n(i) as (select 1 union all select i + 1 from n where i < 300000) insert into t select i, "
        "hex(i * 7919) from n; select count(distinct substr(b, 1, 5)) from t; drop table t;'",
        needs=("sqlite3",)),
    Row("node", "node -e 'let s = 0; for (let i = 0; i < 3e8; i++) s += i % 7; console.log(s)'",
        computes=True, needs=("node",)),
    Row("java", "java T.java", "cat > T.java <<'X'\npublic class T { public static void "
        "main(String[] a) { long s = 0; for (long i = 0; i < 2000000000L; i++) s += i ^ (i >> 3); "
        "System.out.println(s); } }\nX", computes=True, needs=("java",)),
    Row("python processes", "{python} work.py", """cat > work.py <<'X'
import ctypes, multiprocessing as mp
def work(counts, lock, n):
    s = 0
    for i in range(15000000):
        s += i * i % 7
        if i % 20000 == 0:
            with lock: counts[0] += 1
    counts[n] = s
if __name__ == "__main__":
    counts, lock = mp.Array(ctypes.c_long, 4), mp.Lock()
    all = [mp.Process(target=work, args=(counts, lock, n)) for n in (1, 2, 3)]
    for one in all: one.start()
    for one in all: one.join()
    print(list(counts))
X""", computes=True),
    Row("redis", "redis-server --port 0 --unixsocket socket --save '' >log & "
        + WAIT_FOR % "redis-cli -e -s socket ping" + "; redis-benchmark -s socket -q -t set,get "
        "-n 20000 -c 10 >/dev/null; redis-cli -s socket shutdown nosave; wait",
        needs=("redis-server", "redis-benchmark")),
    Row("nginx", "nginx -p $PWD -c $PWD/conf & " + WAIT_FOR
        % "curl -sf --unix-socket socket http://x/page" + "; curl -sf --unix-socket socket -o "
        "/dev/null 'http://x/page?[1-3000]'; kill -QUIT $!; wait", NGINX, needs=("nginx", "curl")),
    Row("postgres", "export PGHOST=$PWD/server PGPORT=7791 PGUSER=postgres; cd server; "
        "setpriv --reuid=postgres --regid=postgres --clear-groups postgres -D data -k $PWD -h '' "
        "-p 7791 >log 2>&1 & " + WAIT_FOR % "psql -c 'select 1'" + "; "
        "pgbench -i -q -s 1 >log 2>&1 && pgbench -n -c 2 -t 300 >log 2>&1; kill -INT $!; wait",
        POSTGRES, needs=("postgres", "initdb", "pgbench", "psql")),
    Row("pip install", "rm -rf t && {python} -m pip install -q --no-index --no-deps --target t "
        "$({python} -c 'import ensurepip as e; print(e.__path__[0])')/_bundled/pip-*.whl",
        module="pip"),
    Row("ffmpeg", "ffmpeg -v error -f lavfi -i testsrc=size=640x360:rate=25:duration=4 -c:v "
        "libx264 -threads 2 -f h264 - </dev/null | wc -c", computes=True, needs=("ffmpeg",)),
    Row("go", "./work", GO, computes=True, needs=("go",)),
    Row("import tensorflow", "{python} -c 'import tensorflow' 2>/dev/null", module="tensorflow",
        library="*tensorflow*"),
    Row("tensorflow training", "{python} train.py 2>/dev/null", """cat > train.py <<'X'
import tensorflow as tf
tf.random.set_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Conv2D(32, 3, activation="relu"),
                             tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = tf.random.normal((640, 32, 32, 3)), tf.random.uniform((640,), 0, 10, tf.int32)
model.fit(x, y, batch_size=64, epochs=4, verbose=0)
X""", computes=True, module="tensorflow", library="*tensorflow*"),
    Row("import torch", "{python} -c 'import torch'", module="torch", library="*libtorch*"),
    Row("torch training", "{python} train.py", """cat > train.py <<'X'
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(32 * 30 * 30, 10))
step = torch.optim.SGD(model.parameters(), 0.01)
x, y = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
for _ in range(60):
    step.zero_grad(); loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward(); step.step()
X""", computes=True, module="torch", library="*libtorch*"),
]


def prepare(row: Row, folder: Path, python: str) -> None:
    """Makes the folder in which the row's command runs."""
    import subprocess
    folder.mkdir(parents=True)
    if row.setup:
        subprocess.run(["sh", "-ec", row.setup.replace("{python}", python)], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
