"""The key of a memory that machines share, and the code by which a machine joins it."""

from __future__ import annotations

import hmac
import secrets
from base64 import b32decode, b32encode
from hashlib import blake2b, sha256
from pathlib import Path
from shlex import quote
from typing import Self

from attrs import field, frozen

from klaw_core import RecordError, StoreError, write_atomically
from klaw_sync.errors import SegmentError

_PREFIX = "klaw1-"
_MEMORY_BYTES = 8
_KEY_BYTES = 32
_CHECK_BYTES = 4
_NONCE_BYTES = 24
_MAC_BYTES = 32


@frozen
class MemoryKey:
    """The id of a memory, 16 hexadecimal digits, and its key of 32 bytes, which is in no folder."""

    memory: str
    key: bytes = field(repr=False)

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
        if len(body) != _MEMORY_BYTES + _KEY_BYTES or sha256(body).digest()[:_CHECK_BYTES] != check:
            raise RecordError("this is not a join code, or a part of it is missing", hint="klaw sync code")
        return cls(body[:_MEMORY_BYTES].hex(), body[_MEMORY_BYTES:])

    @property
    def code(self) -> str:
        """The join code. Whoever has it can read and change the memory."""
        body = bytes.fromhex(self.memory) + self.key
        return _PREFIX + b32encode(body + sha256(body).digest()[:_CHECK_BYTES]).decode().rstrip("=").lower()

    @property
    def check(self) -> str:
        """A value by which a machine recognises another key before it writes anything."""
        return blake2b(b"check", key=self.key, digest_size=16).hexdigest()

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Return the key in a file; None if there is none. Raise RecordError if it is damaged, StoreError."""
        try:
            memory, key = path.read_text("ascii").split()
            return cls(memory, bytes.fromhex(key))
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
        write_atomically(path, f"{self.memory} {self.key.hex()}\n")

    def seal(self, head: bytes, data: bytes) -> bytes:
        """Return encrypted data, which cannot be opened with another head."""
        from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt as encrypt

        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed: bytes = encrypt(data, head, nonce, self._derived("segments"))
        return nonce + sealed

    def open(self, head: bytes, sealed: bytes) -> bytes:
        """Return the data of :meth:`seal`. Raise SegmentError if anything of it was changed, or the key is another."""
        from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt as decrypt
        from nacl.exceptions import CryptoError

        try:
            data: bytes = decrypt(sealed[_NONCE_BYTES:], head, sealed[:_NONCE_BYTES], self._derived("segments"))
        except (CryptoError, ValueError, TypeError) as error:
            raise SegmentError("it was changed, or written with another key") from error
        return data

    def sign(self, head: bytes, data: bytes) -> bytes:
        """Return data that is not encrypted, with a code that shows whether it or the head was changed."""
        return self._mac(head, data) + data

    def verify(self, head: bytes, signed: bytes) -> bytes:
        """Return the data of :meth:`sign`. Raise SegmentError as :meth:`open` does."""
        mac, data = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(head, data)):
            raise SegmentError("it was changed, or written with another key")
        return data

    def _mac(self, head: bytes, data: bytes) -> bytes:
        return blake2b(len(head).to_bytes(8) + head + data, key=self._derived("plain"), digest_size=_MAC_BYTES).digest()

    def _derived(self, purpose: str) -> bytes:
        return blake2b(purpose.encode(), key=self.key, digest_size=_KEY_BYTES).digest()
