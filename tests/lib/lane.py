"""A lane: the private place where cases run one after another.

It is a process of its own with a private mount namespace and three network namespaces: the
initiator's, the acceptor's, and that of a second acceptor, each of which a veth pair joins to the
initiator's. Everything lives in private namespaces and below one
subreaper, so nothing survives the lane, however it ends, and whatever a case leaves behind can be
counted.
"""

import copy
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import process_tree

NAMESPACES = {"net", "mnt", "pid", "user", "uts", "ipc", "time", "cgroup"}
INITIATOR_IP, ACCEPTOR_IP, PORT = "10.77.0.1", "10.77.0.2", 7711
SECOND_INITIATOR_IP, SECOND_ACCEPTOR_IP = "10.78.0.1", "10.78.0.2"
START_TIMEOUT_S = 10
STOP_S = 20.0  # the daemon gives its sessions five seconds to end
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLONE_NEWNS, _CLONE_NEWUTS = 0x00020000, 0x04000000
_libc = ctypes.CDLL(None, use_errno=True)


class LaneError(Exception):
    """The lane could not be set up; the message says what and why."""


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise LaneError(f"{what}: {os.strerror(ctypes.get_errno())}")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise LaneError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """For a new child: a killed runner must leave nothing running."""
    _libc.prctl(_PR_SET_PDEATHSIG, number)


def have_own_host_name() -> None:
    """For who runs programs that may change it."""
    _checked(_libc.unshare(_CLONE_NEWUTS), "cannot make a namespace of its own for the host name")


class Lane:
    """Call enter() in the process that will run the cases, close() at the end."""

    def __init__(self, gpr: Path | None, user: str = "", workspace_parent: str | None = None,
                 keeps_contents: bool = False):
        self.gpr = gpr
        self.user = user
        self.keeps_contents = keeps_contents  # acceptors; before the first is started
        self.two_hosts = False
        self.root = Path(tempfile.mkdtemp(prefix="gpr-tests-", dir=workspace_parent))
        self.case_dir = self.root / "case"
        self.token_file = self.root / "token"
        self.cache = self.root / "cache"  # of gpr itself, with keeps_contents
        self.acceptor_log = self.root / "acceptor.log"
        self._acceptor: subprocess.Popen | None = None
        self._second: subprocess.Popen | None = None
        self._third: subprocess.Popen | None = None
        self._is_guest = False
        self._mounts_before: set[str] = set()

    # -- set-up and tear-down

    def enter(self) -> None:
        self.become_reaper()
        os.chmod(self.root, 0o755)
        if self.user:
            shutil.chown(self.root, self.user)  # gpr writes its statistics here
        if os.geteuid() == 0:
            self._make_hosts()
        self._mounts_before = self._mounts()

    def _make_hosts(self) -> None:
        _checked(_libc.unshare(_CLONE_NEWNS), "cannot make a mount namespace")
        for command in (["mount", "--make-rprivate", "/"],
                        ["mkdir", "-p", "/run/netns"],
                        ["mount", "-t", "tmpfs", "gpr-tests", "/run/netns"],
                        # Sessions of other lanes are not seen.
                        ["mkdir", "-p", "-m", "700", "/run/gpr"],
                        ["mount", "-t", "tmpfs", "-o", "mode=700", "gpr-tests", "/run/gpr"]):
            subprocess.run(command, check=True)
        for name in ("initiator", "acceptor", "second"):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        self._join("veth0", INITIATOR_IP, "acceptor", ACCEPTOR_IP)
        self._join("veth1", SECOND_INITIATOR_IP, "second", SECOND_ACCEPTOR_IP)
        self.set_link(up=True)
        self.two_hosts = True

    @staticmethod
    def _join(device: str, initiator_ip: str, host: str, ip: str) -> None:
        _ip("-n", "initiator", "link", "add", device, "type", "veth",
            "peer", "name", "veth0", "netns", host)
        for name, end, address in (("initiator", device, initiator_ip), (host, "veth0", ip)):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            _ip("-n", name, "link", "set", end, "up")

    def share(self, name: str) -> "Lane":
        """For a child process: the same hosts and acceptor, and a folder of its own.

        The child calls become_reaper() and sees what is below itself only.
        """
        other = copy.copy(self)
        other.root = self.root / name
        other.root.mkdir()
        os.chmod(other.root, 0o755)
        other.case_dir = other.root / "case"
        other._acceptor, other._second, other._third, other._is_guest = None, None, None, True
        return other

    @staticmethod
    def become_reaper() -> None:
        _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1), "cannot become a subreaper")

    def close(self) -> None:
        process_tree.kill_all(set())
        for daemon in (self._acceptor, self._second, self._third):
            if daemon:
                daemon.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    # -- the link between the hosts

    def set_link(self, up: bool) -> None:
        """Cut or mend the cable."""
        _ip("-n", "acceptor", "link", "set", "veth0", "up" if up else "down")
        deadline = time.monotonic() + START_TIMEOUT_S
        while up and not self._answers():  # the kernel reports the carrier with some delay
            if time.monotonic() > deadline:
                raise LaneError("the link does not come back")

    def _answers(self) -> bool:
        # Nothing listens on port 1, so a refusal says that the other host is there.
        knock = ["nsenter", "--net=/run/netns/initiator", "timeout", "0.5", "bash", "-c",
                 f"exec 3<> /dev/tcp/{ACCEPTOR_IP}/1"]
        return b"refused" in subprocess.run(knock, capture_output=True).stderr

    # -- the acceptor

    @property
    def address(self) -> str:
        return f"{ACCEPTOR_IP}:{PORT}"

    @property
    def second_address(self) -> str:
        return f"{SECOND_ACCEPTOR_IP}:{PORT}"

    @property
    def acceptor_pid(self) -> int:
        return self._acceptor.pid if self._acceptor else 0

    def protected(self) -> set[int]:
        """Processes that belong to the lane and not to a case."""
        return {daemon.pid for daemon in (self._acceptor, self._second, self._third) if daemon}

    def stop_acceptor(self) -> None:
        if self._acceptor and self._acceptor.poll() is None:
            self._acceptor.terminate()
            self._acceptor.wait(STOP_S)
        self._acceptor = None

    def ensure_acceptor(self, *options: str) -> None:
        """Start the daemon on the acceptor's host, with these options, unless it runs."""
        if not self._is_guest and not self._runs(self._acceptor):
            self._acceptor = self._start_daemon("acceptor", self.address, options)

    def ensure_second_acceptor(self, *options: str) -> None:
        """The same on the third host."""
        if not self._is_guest and not self._runs(self._second):
            self._second = self._start_daemon("second", self.second_address, options)

    def ensure_third_acceptor(self) -> str:
        """One more on the third host; its address."""
        address = f"{SECOND_ACCEPTOR_IP}:{PORT + 1}"
        if not self._is_guest and not self._runs(self._third):
            self._third = self._start_daemon("second", address, ())
        return address

    def kill_second_acceptor(self) -> None:
        self._second.kill()
        self._second.wait()
        self._second = None

    @staticmethod
    def _runs(daemon: subprocess.Popen | None) -> bool:
        return daemon is not None and daemon.poll() is None

    def _start_daemon(self, host: str, address: str, options: tuple) -> subprocess.Popen:
        self._make_token()
        cache = str(self.root / f"contents-{host}") if self.keeps_contents else "none"
        command = [str(self.gpr), "acceptor", "--listen", address,
                   "--token-file", str(self.token_file), "--cache", cache, *options]
        with open(self.acceptor_log, "ab") as log:
            daemon = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{host}", *command], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, preexec_fn=die_with_parent, cwd="/")
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._listens(daemon, address):
            if daemon.poll() is not None or time.monotonic() > deadline:
                tail = self.acceptor_log.read_text(errors="replace")[-2000:]
                raise LaneError(f"the acceptor does not listen on {address}:\n{tail}")
            time.sleep(0.01)
        return daemon

    def _make_token(self) -> None:
        if self.token_file.exists():
            return
        done = subprocess.run([str(self.gpr), "token", "new"], capture_output=True, timeout=10)
        if done.returncode != 0:
            raise LaneError(f"gpr token new failed: {done.stderr.decode(errors='replace')}")
        self.token_file.touch(mode=0o600)
        self.token_file.write_bytes(done.stdout)
        if self.user:
            shutil.chown(self.token_file, self.user)

    @staticmethod
    def _listens(daemon: subprocess.Popen, address: str) -> bool:
        try:
            table = Path(f"/proc/{daemon.pid}/net/tcp").read_text()
        except OSError:
            return False
        wanted = f":{int(address.rsplit(':', 1)[1]):04X}"
        return any(line.split()[1].endswith(wanted) and line.split()[3] == "0A"
                   for line in table.splitlines()[1:])

    # -- what a case runs in

    def fresh_case_dir(self) -> Path:
        """The same path in every mode, because programs print it."""
        if self.case_dir.exists():
            subprocess.run(["chmod", "-R", "u+rwX", str(self.case_dir)], check=False)
            shutil.rmtree(self.case_dir)
        (self.case_dir / "tmp").mkdir(parents=True)
        if self.user:
            for path in (self.case_dir, self.case_dir / "tmp"):
                shutil.chown(path, self.user)
        return self.case_dir

    def environment(self) -> dict[str, str]:
        # What gpr itself keeps does not belong to the home folder that programs look at.
        own = {"XDG_CACHE_HOME": str(self.cache)} if self.keeps_contents else {}
        return own | {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8",
                "TZ": "UTC", "HOME": str(self.case_dir), "TMPDIR": str(self.case_dir / "tmp"),
                "TERM": "dumb", "SOURCE_DATE_EPOCH": "1700000000"}

    def on_initiator(self, command: list[str]) -> list[str]:
        """The command as started on the first host, as the chosen user; the pid stays the same."""
        prefix = ["nsenter", "--net=/run/netns/initiator"] if self.two_hosts else []
        if self.user:
            group = pwd.getpwnam(self.user).pw_gid
            prefix += ["setpriv", f"--reuid={self.user}", f"--regid={group}", "--init-groups"]
        return prefix + command

    # -- leaks

    def _mounts(self) -> set[str]:
        return set(Path("/proc/self/mountinfo").read_text().splitlines())

    def _daemon_namespaces(self) -> list[str]:
        """Namespaces and pidfds that the daemon still holds open."""
        held = []
        for fd in Path(f"/proc/{self.acceptor_pid}/fd").glob("*"):
            try:
                target = os.readlink(fd)
            except OSError:
                continue
            if target.split(":")[0] in NAMESPACES:
                held.append(f"acceptor holds {target}")
        return held

    def leaks(self) -> list[str]:
        """What the last case left: processes, mounts, namespaces. Empty is right.

        A namespace lives through a process, a mount or an open fd, so these three cover it.
        """
        found = process_tree.leftovers(self.protected()) + self.mounts_added()
        if self._acceptor and self._acceptor.poll() is None:
            found += self._daemon_namespaces()
        return found

    def mounts_added(self) -> list[str]:
        return [f"mount {line.split()[4]}"
                for line in sorted(self._mounts() - self._mounts_before)]

    def clean_up_leaks(self) -> None:
        process_tree.kill_all(self.protected())
        for line in sorted(self._mounts() - self._mounts_before, reverse=True):
            subprocess.run(["umount", "-l", line.split()[4]], check=False)
