#!/usr/bin/env python3
"""Prints what programs said they wrote beside what reached the drive, from accounts.sh's runs."""

import json
import re
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
off = False


def read(name):
    report = json.loads((OUT / f"{name}.json").read_text())
    causes = {cause["name"]: cause for cause in report["causes"]}
    return causes, (OUT / f"{name}.log").read_text(errors="replace")


def row(program, what, said, causes, names, allowed):
    """A line of the table; `allowed` is how far the face may be from the program, as a share."""
    global off
    face = sum(causes[name]["bytes"] for name in names if name in causes)
    host = sum(causes[name]["host_bytes"] for name in names if name in causes)
    apart = face / said - 1 if said else 0
    wrong = abs(apart) > allowed
    off |= wrong
    mark = " **off**" if wrong else ""
    print(f"| {program} | {what} | {said:,} | {face:,} | {100 * apart:+.3f} %{mark} | {host:,} |")


def number(text, pattern):
    return int(re.search(pattern, text, re.M).group(1))


def rocksdb():
    causes, log = read("rocksdb")
    counter = lambda name: number(log, rf"^{re.escape(name)} COUNT : (\d+)$")
    batches, wal = counter("rocksdb.write.self"), counter("rocksdb.wal.bytes")
    tables = counter("rocksdb.flush.write.bytes") + counter("rocksdb.compact.write.bytes")
    # A record of the log has a header of 7 bytes, and one more at each border of 32 KiB.
    framed = wal + 7 * batches
    framed += 7 * (framed // 32768)
    row("RocksDB", "WAL: `wal.bytes` and headers", framed, causes, ["wal"], 1e-4)
    levels = [name for name in causes if re.fullmatch(r"L\d+|sst", name)]
    what = "tables: `flush` + `compact.write.bytes`"
    row("RocksDB", what, tables, causes, levels, 1e-3)


def sqlite(name):
    causes, log = read(name)
    pages = number(log, r"^Page cache writes: +(\d+)$")
    if name == "sqlite-wal":
        # Frames have a header of 24 bytes.
        row("SQLite WAL", "WAL: pages written × 4,120", pages * 4120, causes, ["wal"], 1e-4)
    else:
        row("SQLite", "database: pages written × 4,096", pages * 4096, causes, ["database"], 0)


def postgres(name):
    causes, _ = read(name)
    counters = []
    for when in ["before", "after"]:
        lines = (OUT / name / when).read_text().splitlines()
        counters.append({key: int(value) for key, value in map(str.split, lines)})
    before, after = counters
    since = {key: after[key] - before[key] for key in after}
    label = f"PostgreSQL, full_page_writes {name.rsplit('-', 1)[1]}"
    files = ["heap", "index", "free space map"]
    row(label, "data: `buffers_*` × 8,192", since["buffers"] * 8192, causes, files, 0.02)
    # A write of the log begins in the page where the last one ended, and pages are written whole.
    wal = since["wal_bytes"] + 8192 * since["wal_write"]
    row(label, "WAL: `wal_bytes` + 8,192 × `wal_write`", wal, causes, ["wal"], 0.05)


print(
    "| program | what it counts | program's bytes | face's bytes | difference "
    "| blocks on the drive |\n|---|---|--:|--:|--:|--:|"
)
rocksdb()
sqlite("sqlite-rollback")
sqlite("sqlite-wal")
postgres("postgres-fpw-on")
postgres("postgres-fpw-off")
sys.exit(off)
