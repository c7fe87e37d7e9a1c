"""The loop of an adapter in Python: docs/EXEC.md. An engine is a class with methods of the
requests' names."""

import json
import os
import sys


class Refused(Exception):
    """Nothing has changed."""


class Conflict(Exception):
    """The transaction is over, and nothing has changed."""


def serve(engine, claims):
    claims = dict(claims, protocol="treering.exec/1")
    rest = b""
    # All requests that have come are answered before anything is written: see "Speed" there.
    while chunk := os.read(0, 1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            request = json.loads(line)
            answer = {"id": request["id"]}
            try:
                answer.update(respond(engine, claims, request) or {})
            except Refused as why:
                answer.update(error="refused", why=str(why))
            except Conflict as why:
                answer.update(error="conflict", why=str(why))
            except Exception as why:
                answer.update(error="unknown", why=repr(why))
            sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def respond(engine, claims, request):
    op, tx = request["op"], request.get("tx")
    within = () if tx is None else (tx,)
    if op == "get":
        value = engine.get(bytes.fromhex(request["key"]), *within)
        return {"value": None if value is None else value.hex()}
    if op == "put":
        engine.put(bytes.fromhex(request["key"]), bytes.fromhex(request["value"]), *within)
    elif op == "delete":
        engine.delete(bytes.fromhex(request["key"]), *within)
    elif op == "scan":
        return rows(engine.scan(bytes.fromhex(request["from"]), request["limit"], *within))
    elif op == "scan-back":
        below = request.get("below")
        below = None if below is None else bytes.fromhex(below)
        return rows(engine.scan_back(below, request["limit"], *within))
    elif op == "batch":
        parts = [None if part is None else bytes.fromhex(part) for part in request["changes"]]
        engine.batch(list(zip(parts[::2], parts[1::2])))
    elif op in ("begin", "snapshot", "commit", "abort"):
        getattr(engine, op)(tx)
    elif op in ("sync", "close"):
        getattr(engine, op)()
    elif op == "open":
        engine.open(request["dir"])
    elif op == "hello":
        return claims
    elif op == "crash":
        os._exit(1)
    else:
        raise Refused("unknown request " + op)


def rows(records):
    return {"rows": [part.hex() for record in records for part in record]}
