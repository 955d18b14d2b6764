"""A bucket of an object store as a remote: S3, and everything that speaks its protocol."""

from __future__ import annotations

import os
import re
from typing import Any

from attrs import define, field

from klaw_core import ConfigError, PluginError, StoreError, install_extras
from klaw_sync.errors import SegmentError
from klaw_sync.remotes import MACHINE, Remote
from klaw_sync.segments import MAX_FILE_BYTES, SUFFIX

# The library ends with a panic, which is no Exception, for another address of a server.
_SERVER = re.compile(r"https?://[^\s/?#]+[!-~]*")


@define(eq=False)
class Bucket(Remote):
    """The objects below an address, ``s3://BUCKET/PREFIX``. ``store`` is one of obstore; the environment has its keys.

    A bucket with versions keeps what was deleted.
    """

    address: str
    store: Any = field(repr=False)

    @property
    def location(self) -> str:  # type: ignore[override]  # an attribute of the base
        """The address."""
        return self.address

    def names(self) -> list[str]:
        """Return the objects that may be segments; one request for a thousand of them."""
        found = []
        for batch in self._ask(lambda: list(self.store.list())):
            for item in batch:
                machine, _, name = str(item["path"]).partition("/")
                if MACHINE.fullmatch(machine) and SUFFIX in name and "/" not in name:
                    found.append(f"{machine}/{name}")
        return sorted(found)

    def get(self, name: str) -> bytes:
        """Return an object."""
        try:
            result = self.store.get(name)
            data = bytes(result.bytes()) if result.meta["size"] <= MAX_FILE_BYTES else None
        except FileNotFoundError as error:
            raise SegmentError(f"{name} does not exist") from error
        except Exception as error:  # obstore has no common base of its errors
            raise _failed(self.address, error) from error
        if data is None:
            raise SegmentError(f"{name} has over {MAX_FILE_BYTES >> 20} MiB")
        return data

    def put(self, name: str, data: bytes) -> None:
        """Write an object, unless it exists."""
        from obstore.exceptions import AlreadyExistsError

        try:
            self.store.put(name, data, mode="create")
        except AlreadyExistsError:
            return
        except Exception as error:
            raise _failed(self.address, error) from error

    def delete(self, name: str) -> None:
        """Delete an object."""
        try:
            self.store.delete(name)
        except FileNotFoundError:
            return
        except Exception as error:
            raise _failed(self.address, error) from error

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except Exception as error:
            raise _failed(self.address, error) from error


def open_bucket(address: str) -> Bucket:
    """Return the bucket at an address. Raise PluginError without obstore, StoreError or ConfigError if it is wrong."""
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise PluginError("an object store needs obstore", hint=install_extras(["s3"])) from error
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        if not _SERVER.fullmatch(server := os.environ.get(name, "http://unset")):
            raise ConfigError([f"{name} is not the address of a server: {server[:80]!r}"], hint="https://HOST:PORT")
    try:
        return Bucket(address.rstrip("/"), from_url(address))
    except Exception as error:
        raise _failed(address, error) from error


def _failed(address: str, error: Exception) -> StoreError:
    what = str(error).strip().splitlines() or [type(error).__name__]
    return StoreError(
        f"{address}: {what[0][:300]}", hint="check the address, and the keys in AWS_ACCESS_KEY_ID and so on"
    )
