"""Python's dbm: gnu, ndbm or dumb, through shelve's way of use: unordered files, so a scan sorts
all keys. Usage: dbm_store.py [gnu|ndbm|dumb]"""

import importlib
import os
import sys

from adapter import serve

KIND = (sys.argv[1:] or ["gnu"])[0]
dbm = importlib.import_module("dbm." + KIND)


class Dbm:
    def open(self, folder):
        self.db = dbm.open(os.path.join(folder, "kv"), "c")

    def close(self):
        self.db.close()

    def get(self, key):
        return self.db[key] if key in self.db else None

    def put(self, key, value):
        self.db[key] = value

    def delete(self, key):
        if key in self.db:
            del self.db[key]

    def scan(self, start, limit):
        keys = sorted(key for key in self.db.keys() if key >= start)[:limit]
        return [(key, self.db[key]) for key in keys]

    def sync(self):
        self.db.sync()


serve(Dbm(), {
    "name": "dbm." + KIND,
    "durable": "close" if KIND == "ndbm" else "sync",
    "has": [] if KIND == "ndbm" else ["sync"],
    "max_key": 200, "max_record": 900, "empty_key": KIND == "gnu",
})
