"""Packs the files of a wheel again, tighter than pip does: made once, fetched often. Knows nothing of what is in it.

    python tools/repack.py dist/*.whl
"""

from __future__ import annotations

import struct
import sys
import zipfile
from pathlib import Path

import deflate

LEVEL = 12  # libdeflate's tightest: as small as zopfli, in a tenth of its time
DEFLATED, STORED = 8, 0


def repack(path: Path) -> tuple[int, int]:
    """Bytes before and after; the files, their order, dates and modes stay as they are."""
    before = path.stat().st_size
    made = path.with_suffix(".part")
    with zipfile.ZipFile(path) as old, open(made, "wb") as out:
        directory = b""
        for info in old.infolist():
            data = old.read(info)
            packed = bytes(deflate.deflate_compress(data, LEVEL))
            method = DEFLATED if len(packed) < len(data) else STORED
            packed = packed if method == DEFLATED else data
            y, mo, d, h, mi, s = info.date_time
            name = info.filename.encode()
            # What a local header and the directory say alike: version, flags (names are UTF-8), method, time, date, ...
            alike = struct.pack(
                "<HHHHHIIIHH", 20, 0x800, method, h << 11 | mi << 5 | s // 2, (y - 1980) << 9 | mo << 5 | d,
                info.CRC, len(packed), len(data), len(name), 0,
            )  # fmt: skip
            where = struct.pack("<HHHII", 0, 0, 0, info.external_attr, out.tell())
            directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + alike + where + name
            out.write(b"PK\3\4" + alike + name + packed)
        start, count = out.tell(), len(old.infolist())
        out.write(directory)
        out.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), start, 0))
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made) as new:
        if any(old.read(i) != new.read(i.filename) for i in old.infolist()):
            raise RuntimeError(f"repack: {made} differs from {path}; it was left as it was")
    made.replace(path)
    return before, path.stat().st_size


if __name__ == "__main__":
    for each in sys.argv[1:]:
        was, now = repack(Path(each))
        print(f"{each}: {was / 1e6:.2f} -> {now / 1e6:.2f} MB")
