"""Read ZIP archives from untrusted sources within limits."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from xml.etree import ElementTree as ET

from klaw_core import ConversionError

_MAX_MEMBERS = 20_000
_MAX_BYTES = 256 * 2**20  # the unpacked size of all members
_MAX_MEMBER_BYTES = 64 * 2**20  # the unpacked size of one member
# An office document with a password is an OLE file that contains this stream.
_OLE, _ENCRYPTED_PACKAGE = b"\xd0\xcf\x11\xe0", "EncryptedPackage".encode("utf-16-le")
# Declared entities can expand to huge texts, and neither office programs nor e-books need them.
_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)


def open_archive(data: bytes, what: str) -> zipfile.ZipFile:
    """Open an archive, and check that it is not a ZIP bomb. Raise ConversionError."""
    if data.startswith(_OLE) and _ENCRYPTED_PACKAGE in data:
        raise ConversionError("is encrypted: save a copy without its password")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, OSError):
        raise ConversionError(f"is not a valid {what}") from None
    if len(members) > _MAX_MEMBERS:
        raise ConversionError(f"has more than {_MAX_MEMBERS:,} files in it")
    unpacked = sum(member.file_size for member in members)
    if unpacked > _MAX_BYTES:
        raise ConversionError(f"unpacks to more than {_MAX_BYTES:,} bytes ({unpacked:,})")
    if any(member.flag_bits & 1 for member in members):
        raise ConversionError("is encrypted: save a copy without its password")
    return archive


def read_member(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """Return a member, or None if it is missing. Raise ConversionError, also if it is too large or damaged."""
    try:
        with archive.open(name) as member:
            data = member.read(_MAX_MEMBER_BYTES + 1)
    except KeyError:
        return None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError):
        raise ConversionError(f"is damaged: {name[:80]!r} in it cannot be unpacked") from None
    if len(data) > _MAX_MEMBER_BYTES:
        raise ConversionError(f"has {name[:80]!r} in it, which is larger than {_MAX_MEMBER_BYTES:,} bytes")
    return data


def refuse_entities(data: bytes) -> None:
    """Raise ConversionError for XML that declares entities."""
    if _ENTITY.search(data) or b"<\x00!\x00E\x00N\x00T" in data or b"\x00<\x00!\x00E\x00N\x00T" in data:
        raise ConversionError("declares XML entities: they could multiply its text")


def xml_of(data: bytes | None) -> ET.Element | None:
    """Return the root of XML; None if it is missing or not well-formed. Raise ConversionError for entities."""
    if data is None:
        return None
    refuse_entities(data)
    try:
        return ET.fromstring(data)  # noqa: S314  # entities were refused
    except (ET.ParseError, ValueError, LookupError):
        return None


def property_of(root: ET.Element | None, name: str) -> str:
    """Return the text of the first element with this local name, or an empty string."""
    if root is None:
        return ""
    found = next((item for item in root.iter() if str(item.tag).rpartition("}")[2] == name), None)
    return "" if found is None else found.text or ""
