"""PostgreSQL: a cluster of its own in the folder, one table of bytea. Usage: postgres.py
[SETTING=VALUE]…, such as full_page_writes=off or synchronous_commit=off. As root, the server runs
as nobody, who then owns the folder. Needs psycopg2."""

import atexit
import ctypes
import glob
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

import psycopg2

from adapter import Conflict, Refused, serve

# Small, so that pages are evicted and the log has several files.
SETTINGS = ["shared_buffers=512kB", "max_wal_size=2MB", "min_wal_size=2MB", "lock_timeout=50ms",
            "listen_addresses="] + sys.argv[1:]
UPSERT = "INSERT INTO kv VALUES (%s, %s) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
TABLE = "CREATE TABLE IF NOT EXISTS kv (k bytea PRIMARY KEY, v bytea)"
# Debian does not put them into the path.
BIN = max(glob.glob("/usr/lib/postgresql/*/bin/"), default="")
# Serialization failure, deadlock, no lock in time.
TURNED_BACK = ("40001", "40P01", "55P03")


def dies():
    """The server is killed when this process ends, however that is."""
    ctypes.CDLL(None).prctl(1, 9)


class Postgres:
    def __init__(self):
        self.tx = {}
        # A socket's path is short.
        self.run = tempfile.mkdtemp(prefix="pg", dir="/tmp")
        atexit.register(shutil.rmtree, self.run, True)
        self.user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.run, nobody.pw_uid, nobody.pw_gid)

    def open(self, folder):
        data = os.path.join(folder, "pg")
        quiet = dict(self.user, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/")
        if not os.path.exists(data):
            new = data + ".new"  # made again if initdb does not finish
            shutil.rmtree(new, ignore_errors=True)
            os.mkdir(new, 0o700)
            if self.user:
                os.chown(new, self.user["user"], self.user["group"])
            made = [BIN + "initdb", "-D", new, "-A", "trust", "-U", "me", "--wal-segsize=1"]
            subprocess.run(made, check=True, **quiet)
            os.rename(new, data)
            fd = os.open(folder, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        # "Lock file is empty. Either another server is starting, or the lock file is the remnant of a
        # previous server startup crash": none is starting.
        lock = os.path.join(data, "postmaster.pid")
        if os.path.exists(lock) and not os.path.getsize(lock):
            os.remove(lock)
        command = [BIN + "postgres", "-D", data, "-k", self.run] + ["--" + s for s in SETTINGS]
        for _ in range(50):
            log = open(os.path.join(self.run, "log"), "w")
            self.server = subprocess.Popen(command, stderr=log, preexec_fn=dies, **quiet)
            while self.server.poll() is None:
                try:
                    self.db = self.connect()
                    self.db.autocommit = True
                    self.run_in(None, TABLE)
                    return
                except psycopg2.OperationalError:
                    time.sleep(0.02)
            # A server that was killed, or its backends, may be there a little longer.
            time.sleep(0.2)
        raise Refused(open(os.path.join(self.run, "log")).read()[-300:])

    def connect(self):
        return psycopg2.connect(host=self.run, user="me", dbname="postgres")

    def close(self):
        for tx in list(self.tx):
            self.drop(tx)
        self.db.close()
        self.server.send_signal(2)
        self.server.wait()

    def run_in(self, tx, sql, *values):
        try:
            cursor = (self.db if tx is None else self.tx[tx]).cursor()
            cursor.execute(sql, values)
            return [tuple(map(bytes, row)) for row in cursor] if cursor.description else []
        except psycopg2.Error as e:
            if tx is not None:
                self.drop(tx)
            if e.pgcode in TURNED_BACK:
                raise Conflict(str(e).strip())
            raise

    def get(self, key, tx=None):
        rows = self.run_in(tx, "SELECT v FROM kv WHERE k = %s", key)
        return rows[0][0] if rows else None

    def put(self, key, value, tx=None):
        self.run_in(tx, UPSERT, key, value)

    def delete(self, key, tx=None):
        self.run_in(tx, "DELETE FROM kv WHERE k = %s", key)

    def scan(self, start, n, tx=None):
        return self.run_in(tx, "SELECT * FROM kv WHERE k >= %s ORDER BY k LIMIT %s", start, n)

    def scan_back(self, below, n, tx=None):
        if below is None:
            return self.run_in(tx, "SELECT * FROM kv ORDER BY k DESC LIMIT %s", n)
        return self.run_in(tx, "SELECT * FROM kv WHERE k < %s ORDER BY k DESC LIMIT %s", below, n)

    def batch(self, changes):
        self.run_in(None, "BEGIN")
        for key, value in changes:
            self.delete(key) if value is None else self.put(key, value)
        self.run_in(None, "COMMIT")

    def sync(self):
        self.run_in(None, "CHECKPOINT")

    def begin(self, tx, reads=False):
        self.tx[tx] = self.connect()
        self.tx[tx].set_session(isolation_level="SERIALIZABLE", readonly=reads)
        self.get(b"", tx)  # the snapshot is taken by the first read

    def snapshot(self, tx):
        self.begin(tx, reads=True)

    def commit(self, tx):
        self.run_in(tx, "COMMIT")
        self.drop(tx)

    def abort(self, tx):
        # Only what a transaction has read that commits is serializable.
        if tx in self.tx and self.tx[tx].readonly:
            self.commit(tx)
        else:
            self.drop(tx)

    def drop(self, tx):
        self.tx.pop(tx).close()


serve(Postgres(), {
    "name": "postgres",
    "durable": "sync" if "synchronous_commit=off" in SETTINGS else "return",
    "isolation": "serializable",
    "has": ["scan-back", "batch", "sync", "transactions", "snapshot"],
    "max_key": 1000, "max_record": 16384, "empty_key": True,
})
