"""A machine without a network, for a process and all that it starts: two guards that record every attempt.

The Python guard is an audit hook. It refuses and records each connection, datagram and name lookup that is
not of this machine, by whatever module it is made. The kernel's guard is a network namespace in which there
is only the loopback device: it also covers code that is not Python's, and counts packets without a route.
"""

from __future__ import annotations

import errno
import functools
import ipaddress
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
LOG = "SEALEGS_TEST_OUTSIDE"
"""The variable that names the file of attempts."""
CONNECTING = {"socket.connect", "socket.sendto", "socket.sendmsg"}
LOOKING_UP = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
NAMESPACE = ("unshare", "-rn", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Of the network, and of processes: what is left running ends with it."""
ENTER = 'ip link set lo up && "$@"; code=$?; cat /proc/net/snmp /proc/net/snmp6 > "$COUNTERS"; exit $code'


def is_inside(host: Any) -> bool:
    """Whether a host is this machine: nothing leaves it for the loopback address, or for none."""
    name = host.decode("latin-1") if isinstance(host, bytes) else host
    if not isinstance(name, str) or name in ("", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refuse_outside(log: Path) -> None:
    """Install the hook, which stays until the process ends."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in CONNECTING:
            address = arguments[1]  # a path, where the socket is of the file system
            host = address[0] if isinstance(address, tuple) else None
        elif event in LOOKING_UP:
            host = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
        else:
            return
        if not is_inside(host):
            with log.open("a") as opened:
                opened.write(f"{event} {host!r}\n")
            if event in CONNECTING:
                raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    sys.addaudithook(hook)


@functools.cache
def has_namespaces() -> bool:
    """Whether a network namespace can be made here: not in every container, and on Linux alone."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    return subprocess.run([*NAMESPACE, "ip", "link", "set", "lo", "up"], check=False).returncode == 0


class Offline:
    """Runs Python without a network; `folder` takes the guard's files."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "attempts.txt"
        self._counters = folder / "counters.txt"
        site = folder / "site"
        site.mkdir(parents=True)
        code = f"import sys\nsys.path.append({str(TESTS)!r})\nimport os, pathlib, offline\n"
        code += f"offline.refuse_outside(pathlib.Path(os.environ[{LOG!r}]))\n"
        (site / "sitecustomize.py").write_text(code)
        source = TESTS.parent / "src"
        self.environment = {
            "PYTHONPATH": os.pathsep.join(map(str, (site, source, TESTS))),
            LOG: str(self._log),
            "COUNTERS": str(self._counters),
        }

    def python(
        self, *arguments: object, timeout: float = 600, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, *map(str, arguments)]
        if has_namespaces():
            line = [*NAMESPACE, "sh", "-c", ENTER, "sh", *line]
        inherited = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
        return subprocess.run(
            line, env={**inherited, **self.environment, **environment},
            capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip

    def attempts(self) -> list[str]:
        """What Python code tried."""
        return self._log.read_text().splitlines() if self._log.exists() else []

    def packets(self) -> int:
        """What any code tried to send in the last namespace: packets that had no route."""
        lines = self._counters.read_text().splitlines() if self._counters.exists() else []
        names, values = (line.split() for line in lines if line.startswith("Ip:")) if lines else ([], [])
        v4 = dict(zip(names[1:], values[1:], strict=True)).get("OutNoRoutes", "0")
        v6 = [line.split()[1] for line in lines if line.startswith("Ip6OutNoRoutes")]
        return int(v4) + sum(map(int, v6))
