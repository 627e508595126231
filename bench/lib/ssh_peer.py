"""What people use today to run a program elsewhere with their files here: ssh, and sshfs back."""

import os
import shlex
import subprocess
import time
from pathlib import Path

from hosts import ACCEPTOR, ADDRESSES, INITIATOR, Hosts, LaneError

PORT = 2222
START_S = 10
PRIVILEGE_SEPARATION = Path("/run/sshd")  # Debian's sshd insists on it
NEEDS = ("ssh", "sshd", "ssh-keygen", "sshfs", "fusermount3")


class SshPeer:
    """sshd on both hosts, a connection that is kept open, and a folder of the initiator's that the
    acceptor has mounted. Leave it before the hosts."""

    def __init__(self, hosts: Hosts, folder: Path):
        self._hosts = hosts
        self._folder = folder
        self._root = hosts.lane.root / "ssh"
        self._mount = self._root / "mount"
        self._config = self._root / "config"
        self._servers: list[subprocess.Popen] = []
        self._made_folder = False

    def __enter__(self) -> "SshPeer":
        self._mount.mkdir(parents=True)
        self._root.chmod(0o700)
        self._made_folder = not PRIVILEGE_SEPARATION.exists()
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._root / key],
                           check=True)
        self._config.write_text(
            "".join(f"Host {name}\n HostName {address}\n" for name, address in ADDRESSES.items())
            + f"Host *\n Port {PORT}\n User root\n IdentityFile {self._root}/user_key\n"
            " IdentitiesOnly yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n"
            f" LogLevel ERROR\n ControlMaster auto\n ControlPath {self._root}/%h\n"
            " ControlPersist yes\n")
        for name, address in ADDRESSES.items():
            self._start_server(name, address)
        self._run(INITIATOR, ["ssh", "-F", str(self._config), ACCEPTOR, "true"])
        self._run(ACCEPTOR, ["sshfs", "-F", str(self._config), f"{INITIATOR}:{self._folder}",
                             str(self._mount)])
        return self

    def __exit__(self, *_) -> None:
        subprocess.run(["fusermount3", "-u", "-z", self._mount], capture_output=True)
        for name in ADDRESSES:
            subprocess.run(["ssh", "-F", self._config, "-O", "exit", name], capture_output=True)
        for server in self._servers:
            server.terminate()
            server.wait()
        if self._made_folder:
            PRIVILEGE_SEPARATION.rmdir()

    def command(self, shell: str, folder: Path) -> list[str]:
        """Runs on the acceptor, in the folder that it has from the initiator."""
        there = self._mount / folder.relative_to(self._folder)
        line = f"cd {shlex.quote(str(there))} && {shell}"
        return self._hosts.command(INITIATOR, ["ssh", "-F", str(self._config), ACCEPTOR, line])

    def _start_server(self, name: str, address: str) -> None:
        config = self._root / f"{name}.sshd"
        config.write_text(
            f"Port {PORT}\nListenAddress {address}\nHostKey {self._root}/host_key\n"
            f"AuthorizedKeysFile {self._root}/user_key.pub\nPidFile none\nStrictModes no\n"
            "UsePAM no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n")
        sshd = "/usr/sbin/sshd"  # which wants its whole path
        self._servers.append(self._hosts.start(
            self._hosts.command(name, [sshd, "-D", "-f", str(config)])))
        until = time.monotonic() + START_S
        probe = self._hosts.command(name, ["sh", "-c", f"ss -Htln | grep -q {address}:{PORT}"])
        while subprocess.run(probe).returncode != 0:
            if time.monotonic() > until or self._servers[-1].poll() is not None:
                raise LaneError(f"sshd does not listen on {address}:{PORT}")
            time.sleep(0.05)

    def _run(self, host: str, command: list[str]) -> None:
        done = subprocess.run(self._hosts.command(host, command), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=START_S,
                              env=os.environ)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            raise LaneError(f"{command[0]} on {host} ends with {done.returncode}: {said}")
