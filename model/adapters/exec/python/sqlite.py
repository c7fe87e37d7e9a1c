"""SQLite (Python's own sqlite3), one table of blobs. Usage: sqlite.py [journal=MODE] [sync=MODE],
as of PRAGMA journal_mode and synchronous; without, wal and normal."""

import os
import sqlite3
import sys

from adapter import Conflict, serve

GIVEN = dict(word.split("=") for word in sys.argv[1:])
JOURNAL, SYNC = GIVEN.get("journal", "wal"), GIVEN.get("sync", "normal")
UPSERT = "INSERT INTO kv VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"


class Sqlite:
    def __init__(self):
        self.tx = {}

    def connect(self):
        db = sqlite3.connect(self.file, isolation_level=None, timeout=0)
        db.execute("PRAGMA busy_timeout=%d" % (0 if self.tx else 5000))
        db.execute("PRAGMA journal_mode=" + JOURNAL)
        db.execute("PRAGMA synchronous=" + SYNC)
        return db

    def open(self, folder):
        self.file = os.path.join(folder, "kv.sqlite")
        self.db = self.connect()
        self.db.execute("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")

    def close(self):
        for tx in list(self.tx):
            self.abort(tx)
        self.db.close()

    def on(self, tx):
        return self.db if tx is None else self.tx[tx]

    def run(self, tx, sql, *values):
        try:
            return self.on(tx).execute(sql, values)
        except sqlite3.OperationalError as e:
            if tx is not None:
                self.abort(tx)
            raise Conflict(str(e))

    def get(self, key, tx=None):
        row = self.run(tx, "SELECT v FROM kv WHERE k = ?", key).fetchone()
        return row and row[0]

    def put(self, key, value, tx=None):
        self.run(tx, UPSERT, key, value)

    def delete(self, key, tx=None):
        self.run(tx, "DELETE FROM kv WHERE k = ?", key)

    def scan(self, start, limit, tx=None):
        return self.run(tx, "SELECT k, v FROM kv WHERE k >= ? ORDER BY k LIMIT ?", start, limit)

    def scan_back(self, below, limit, tx=None):
        if below is None:
            return self.run(tx, "SELECT k, v FROM kv ORDER BY k DESC LIMIT ?", limit)
        return self.run(tx, "SELECT k, v FROM kv WHERE k < ? ORDER BY k DESC LIMIT ?", below, limit)

    def batch(self, changes):
        self.db.execute("BEGIN IMMEDIATE")
        for key, value in changes:
            self.delete(key) if value is None else self.put(key, value)
        self.db.execute("COMMIT")

    def sync(self):
        # With synchronous=NORMAL, a commit is durable once the log is checkpointed or synced.
        self.db.execute("PRAGMA wal_checkpoint(FULL)")

    def begin(self, tx):
        self.tx[tx] = self.connect()
        self.run(tx, "BEGIN DEFERRED")
        self.get(b"", tx)  # the snapshot is taken by the first read

    snapshot = begin

    def commit(self, tx):
        self.run(tx, "COMMIT")
        self.tx.pop(tx).close()

    def abort(self, tx):
        self.tx.pop(tx).close()


ISOLATION = {"isolation": "serializable"} if JOURNAL != "off" else {}
serve(Sqlite(), dict(ISOLATION, **{
    "name": "sqlite",
    # In WAL mode, NORMAL leaves commits to the next checkpoint.
    "durable": "sync" if SYNC == "off" or (JOURNAL, SYNC) == ("wal", "normal") else "return",
    # Without a write-ahead log readers keep writers out, and without a journal nothing is undone.
    "has": ["scan-back", "batch", "sync", "processes"]
    + ["transactions"] * (JOURNAL != "off") + ["snapshot"] * (JOURNAL == "wal"),
    "max_key": 1000, "max_record": 16384, "empty_key": True,
}))
