# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and changes the container of artifacts, as docs/formats.md describes it, without the runtime."""

import ctypes
import struct

#: Where the header has the format, the oldest format whose readers can take the file, the checksum, and the number of
#: sections; and its size.
FORMAT, READER, CHECKSUM, COUNT, HEADER = 8, 12, 24, 32, 40
#: The kind of the section with packed weights.
PACKED = 6
#: Bytes of a section that are checked together.
PART = 4 << 20


def sections(content):
    """(kind, where the checksums of its parts are, offset, size) of each section; behind the last one (0, end of them)."""
    count = struct.unpack_from("<Q", content, COUNT)[0]
    sums = HEADER + 24 * count
    for number in range(count):
        kind, _, offset, size = struct.unpack_from("<IIQQ", content, HEADER + 24 * number)
        yield kind, sums, offset, size
        sums += 8 * -(-size // PART)
    yield 0, sums, 0, 0


def _checksum(content):
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits.argtypes, library.XXH3_64bits.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint64
    return library.XXH3_64bits(content, len(content))


def fit_checksums(content, changed=()):
    """Makes the checksums of a bytearray fit: of sections of the kinds in `changed`, and of the header."""
    for kind, sums, offset, size in sections(content):
        if kind in changed:
            ends = range(offset, offset + size, PART)
            parts = [_checksum(bytes(content[at : min(at + PART, offset + size)])) for at in ends]
            struct.pack_into(f"<{len(parts)}Q", content, sums, *parts)
    end = list(sections(content))[-1][1]
    struct.pack_into("<Q", content, CHECKSUM, 0)
    struct.pack_into("<Q", content, CHECKSUM, _checksum(bytes(content[:end])))
    return content
