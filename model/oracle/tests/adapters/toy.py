"""A map in memory with a log in a file, for the oracle's own tests. Its arguments are the bugs that
it has: each place where `BUGS` is used has one. With `fsync` it survives power cuts, too; with
`sync-only`, what was synced does, and a close promises nothing. With `fsync-again`, it calls fsync
once more if that fails, and believes it. With `keeps`, a store begins with what the one before it
held. $TOY_STARTS names a file that gets a byte at each start."""

import json
import os
import sys
import time

BUGS = set(sys.argv[1:])
OUT = sys.stdout
seen = 0
map_, older, log, tx = {}, {}, None, {}


def write(record):
    log.write(json.dumps(record) + "\n")
    if not ({"lost-put"} & BUGS and seen % 5 == 0):
        log.flush()
    if "fsync" in BUGS:
        try:
            os.fsync(log.fileno())
        except OSError:
            if "fsync-again" not in BUGS:
                raise
            os.fsync(log.fileno())


def put(key, value):
    older[key] = map_.get(key)
    if value is None:
        map_.pop(key, None)
    else:
        map_[key] = value


def apply(changes):
    for key, value in changes:
        if value is None and "lost-delete" in BUGS and len(key) % 4 == 2:
            continue
        put(key, value)
    write(changes)


def open_(folder):
    global log
    if "keeps" not in BUGS:
        map_.clear()
    file = os.path.join(folder, "log")
    recover(file)
    log = open(file, "a")
    if BUGS & {"fsync", "sync-only"}:
        directory = os.open(folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


def recover(file):
    """Reads records up to the first that is torn, and cuts the log there."""
    good = 0
    with open(file, "ab+") as log_file:
        log_file.seek(0)
        for line in log_file:
            try:
                changes = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                changes = None
            if changes is None:
                break
            for key, value in changes:
                put(key, value)
            good += len(line)
        if good < os.fstat(log_file.fileno()).st_size:
            log_file.truncate(good)
            os.fsync(log_file.fileno())


def view(number):
    return map_ if number is None else tx[number][0]


def change(number, key, value):
    if number is None:
        apply([(key, value)])
    else:
        copy, reads, changes = tx[number]
        changes.append((key, value))
        copy.pop(key, None) if value is None else copy.__setitem__(key, value)


def commit(number):
    copy, start, changes = tx.pop(number)
    if "lost-update" not in BUGS and any(map_.get(k) != start.get(k) for k, _ in changes):
        return {"error": "conflict", "why": "another transaction has written it"}
    apply(changes)
    return {}


def rows(keys, limit, of):
    if "scan-order" in BUGS and len(keys) > 2:
        keys[1], keys[2] = keys[2], keys[1]
    if "scan-limit" in BUGS:
        limit += 1
    if "scan-short" in BUGS and len(keys) > 5:
        keys = keys[:-1]
    return {"rows": [part for key in keys[:limit] for part in (key, of[key])]}


def answer(r):
    op, number = r["op"], r.get("tx")
    if op == "hello":
        return CLAIMS
    if op == "open":
        open_(r["dir"])
    elif op == "get":
        if "stale-get" in BUGS and seen % 7 == 0 and r["key"] in older:
            return {"value": older[r["key"]]}
        if "empty-get" in BUGS:
            return {}
        of = map_ if "dirty-read" in BUGS and number is not None else view(number)
        return {"value": of.get(r["key"])}
    elif op == "put":
        change(number, r["key"], r["value"])
    elif op == "delete":
        change(number, r["key"], None)
    elif op == "scan":
        of = view(number)
        return rows(sorted(k for k in of if k >= r["from"]), r["limit"], of)
    elif op == "scan-back":
        of = view(number)
        below = r.get("below")
        keys = sorted((k for k in of if below is None or k < below), reverse=True)
        return rows(keys, r["limit"], of)
    elif op == "batch":
        parts = r["changes"]
        apply(list(zip(parts[::2], parts[1::2])))
    elif op in ("begin", "snapshot"):
        tx[number] = (dict(map_), dict(map_), [])
    elif op == "commit":
        return commit(number)
    elif op == "abort":
        changes = tx.pop(number)[2]
        if "kept-abort" in BUGS and changes:
            apply(changes)
    elif op == "sync":
        log.flush()
        if "sync-only" in BUGS:
            os.fsync(log.fileno())
    elif op == "close":
        tx.clear()
        log.close()
    elif op == "crash":
        if "survivor" not in BUGS:
            os._exit(1)
    else:
        return {"error": "refused", "why": "unknown request " + op}
    return {}


CLAIMS = {
    "protocol": "treering.exec/1", "name": "toy", "durable": "return",
    "isolation": "snapshot",
    "has": ["scan-back", "batch", "sync", "transactions", "snapshot"],
    "max_key": 100, "max_record": 2000, "empty_key": True,
}
if "sync-only" in BUGS:
    CLAIMS["durable"] = "sync"
if "concurrent" in BUGS:
    CLAIMS["has"].append("concurrent")
if "false-claim" in BUGS:
    CLAIMS["has"] = ["transactions"]
    del CLAIMS["isolation"]
if "wrong-version" in BUGS:
    CLAIMS["protocol"] = "treering.exec/0"


def respond(line):
    """The lines to write for a request."""
    global seen
    request = json.loads(line)
    seen += 1
    if seen > 40 and "dies" in BUGS:
        print("toy: assertion failed", file=sys.stderr, flush=True)
        os._exit(3)
    if seen > 40 and "hangs" in BUGS or "mute" in BUGS:
        time.sleep(60)
    reply = json.dumps(dict({"id": request["id"]}, **answer(request)))
    if seen > 40 and "garbage" in BUGS:
        reply = "Segmentation fault"
    return reply


if "TOY_STARTS" in os.environ:
    with open(os.environ["TOY_STARTS"], "a") as starts:
        starts.write(".")

rest = b""
while chunk := os.read(0, 1 << 16):
    *lines, rest = (rest + chunk).split(b"\n")
    replies = [respond(line) for line in lines]
    if "reorders" in BUGS or "concurrent" in BUGS:
        replies.reverse()
    OUT.write("".join(reply + "\n" for reply in replies))
    OUT.flush()
