"""The key of a memory that machines share, and the code by which a machine joins it."""

from __future__ import annotations

import hmac
import secrets
from base64 import b32decode, b32encode
from hashlib import blake2b, sha256
from pathlib import Path
from shlex import quote
from typing import Self

from attrs import evolve, field, frozen

from klaw_core import RecordError, StoreError, read_regular, write_atomically
from klaw_sync.errors import SegmentError

_PREFIX = "klaw1-"
_MEMORY_BYTES = 8
_KEY_BYTES = 32
_CHECK_BYTES = 4
_NONCE_BYTES = 24
_MAC_BYTES = 32
_MAX_KEYS = 100


@frozen
class MemoryKey:
    """The id of a memory, 16 hexadecimal digits, and its keys of 32 bytes each, which are in no folder.

    ``key`` is the first one. It names what was forgotten, for ever. ``newer`` are those that were made when a machine
    was removed: segments are written with the last one, so that machine cannot read them.
    """

    memory: str
    key: bytes = field(repr=False)
    newer: tuple[bytes, ...] = field(default=(), repr=False)

    @classmethod
    def new(cls) -> Self:
        """Make a key for a new memory."""
        return cls(secrets.token_hex(_MEMORY_BYTES), secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def parse(cls, code: str) -> Self:
        """Return the key in a join code. Raise RecordError without quoting the code."""
        text = "".join(code.split()).lower().removeprefix(_PREFIX)
        try:
            data = b32decode(text.upper() + "=" * (-len(text) % 8))
        except ValueError:
            data = b""
        body, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
        first, *newer = _split(body[_MEMORY_BYTES:]) or [b""]
        found = cls(body[:_MEMORY_BYTES].hex(), first, tuple(newer))
        # The last letter may have bits that belong to no byte.
        if not first or sha256(body).digest()[:_CHECK_BYTES] != check or found.code != _PREFIX + text:
            raise RecordError("this is not a join code, or a part of it is missing", hint="klaw sync code")
        return found

    def renewed(self) -> Self:
        """Return these keys and a new one, with which segments are written from now on. Raise RecordError."""
        if len(self.newer) + 1 == _MAX_KEYS:
            raise RecordError(
                f"this memory has {_MAX_KEYS} keys", hint="share it again, in a new folder: klaw sync init"
            )
        return evolve(self, newer=(*self.newer, secrets.token_bytes(_KEY_BYTES)))

    def joined(self, other: Self) -> Self | None:
        """Return the keys of both, so that the last one of ``other`` counts if it is new here; None if they differ."""
        if (self.memory, self.key) != (other.memory, other.key):
            return None
        if {*other.newer} <= {*self.newer}:
            return self
        return evolve(self, newer=(*(key for key in self.newer if key not in other.newer), *other.newer))

    @property
    def code(self) -> str:
        """The join code. Whoever has it can read and change the memory."""
        body = bytes.fromhex(self.memory) + b"".join((self.key, *self.newer))
        return _PREFIX + b32encode(body + sha256(body).digest()[:_CHECK_BYTES]).decode().rstrip("=").lower()

    @property
    def check(self) -> str:
        """A value by which a machine recognises another key before it writes anything."""
        return blake2b(b"check", key=self.key, digest_size=16).hexdigest()

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Return the key in a file; None if there is none. Raise RecordError if it is damaged, StoreError."""
        try:
            memory, key, *newer = read_regular(path).decode("ascii").split()
            return cls(memory, bytes.fromhex(key), tuple(map(bytes.fromhex, newer)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"{path} cannot be read: {error.strerror}", hint=f"make it readable: chmod u+r {quote(str(path))}"
            ) from error
        except ValueError as error:
            raise RecordError(f"{path} is not a key", hint="restore it from another machine: klaw sync code") from error

    def save(self, path: Path) -> None:
        """Write the key to a file that only its owner can read. Raise StoreError."""
        write_atomically(path, " ".join((self.memory, *(key.hex() for key in (self.key, *self.newer)))) + "\n")

    @property
    def name(self) -> str:
        """The name of the key that segments are written with; empty for the first one."""
        return _name_of(self.newer[-1]) if self.newer else ""

    def named(self, name: object) -> bytes:
        """Return a key by its name. Raise SegmentError if it is not here."""
        for key in self.newer:
            if _name_of(key) == name:
                return key
        if name:
            told = (
                "it was written with a newer key: join again, with the code that `klaw sync code` prints on a machine"
            )
            raise SegmentError(f"{told} that has written lately")
        return self.key

    def seal(self, head: bytes, data: bytes) -> bytes:
        """Return encrypted data, which cannot be opened with another head."""
        from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as encrypt

        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed: bytes = encrypt(data, head, nonce, _derived(self.named(self.name), "segments"))
        return nonce + sealed

    def open(self, head: bytes, sealed: bytes, name: object = "") -> bytes:
        """Return the data of :meth:`seal`, with the key of this name.

        Raise SegmentError if anything of it was changed, or the key is another.
        """
        from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt as decrypt
        from nacl.exceptions import CryptoError

        key = _derived(self.named(name), "segments")
        try:
            data: bytes = decrypt(sealed[_NONCE_BYTES:], head, sealed[:_NONCE_BYTES], key)
        except (CryptoError, ValueError, TypeError) as error:
            raise SegmentError("it was changed, or written with another key") from error
        return data

    def sign(self, head: bytes, data: bytes) -> bytes:
        """Return data that is not encrypted, with a code that shows whether it or the head was changed."""
        return _mac(self.named(self.name), head, data) + data

    def verify(self, head: bytes, signed: bytes, name: object = "") -> bytes:
        """Return the data of :meth:`sign`. Raise SegmentError as :meth:`open` does."""
        mac, data = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, _mac(self.named(name), head, data)):
            raise SegmentError("it was changed, or written with another key")
        return data


def _split(keys: bytes) -> list[bytes]:
    """Return the keys that follow each other; none if it is another number of bytes."""
    if len(keys) % _KEY_BYTES or len(keys) > _MAX_KEYS * _KEY_BYTES:
        return []
    return [keys[start : start + _KEY_BYTES] for start in range(0, len(keys), _KEY_BYTES)]


def _name_of(key: bytes) -> str:
    return blake2b(b"name", key=key, digest_size=8).hexdigest()


def _derived(key: bytes, purpose: str) -> bytes:
    return blake2b(purpose.encode(), key=key, digest_size=_KEY_BYTES).digest()


def _mac(key: bytes, head: bytes, data: bytes) -> bytes:
    whole = len(head).to_bytes(8) + head + data
    return blake2b(whole, key=_derived(key, "plain"), digest_size=_MAC_BYTES).digest()
