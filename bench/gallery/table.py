#!/usr/bin/env python3
"""Prints the gallery's table from the reports in a folder, in the order of run.sh's rows."""

import json
import re
import subprocess
import sys
from pathlib import Path

HEAD = (
    "| row | user | file/user | host/user | drive | NAND/user | predicted | error | α "
    "| flushes/commit |\n"
    "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|"
)


def size(n):
    return f"{n / 2**20:.0f} MiB"


def figure(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def said(value):
    """A prediction with half the width of its interval, relative to it."""
    v = value["value"]
    half = max(value["high"] - v, v - value["low"]) / v
    return f"{figure(v)} ±{100 * half:.1f} %"


def drives(report):
    """Of each drive: name, NAND bytes, prediction, error."""
    for device, op in zip(report["devices"], 2 * ["7 %", "28 %"]):
        wa = device["wa"]
        error = (wa["error"] or {}).get("device") or {}
        predicted = (wa["predicted"] or {}).get("device")
        mark = " !" if "device.total" in device["outside"] else ""
        off = f"{100 * error['total']:+.1f} %{mark}" if error.get("total") is not None else "–"
        yield (
            f"{device['device']['profile']} {op}",
            figure(wa["device"]["total"]),
            said(predicted["total"]) if predicted else "–",
            off,
        )


def alpha(report):
    stored = [(c["alpha"], c["host_bytes"]) for c in report["causes"] if c["alpha"] is not None]
    bytes_ = sum(host for _, host in stored)
    return sum(a * host for a, host in stored) / bytes_ if bytes_ else None


def rows(name, report, log):
    user = report["measured"]["over_bytes"]
    chain = report["chain"]
    commits = re.findall(r"^commits (\d+)$", log, re.M)
    flushes = report["recording"]["flushes"]
    per_commit = figure(flushes / int(commits[-1])) if commits else "–"
    first = [
        name,
        size(user),
        figure(chain["file_bytes"] / user),
        figure(chain["host_bytes"] / user),
    ]
    last = [f"{alpha(report):.2f}", per_commit]
    for at, (drive, nand, predicted, error) in enumerate(drives(report)):
        left = first if at == 0 else 4 * [""]
        right = last if at == 0 else 2 * [""]
        cells = left + [drive, nand, predicted, error] + right
        yield "| " + " | ".join(cells) + " |"


def main():
    out = Path(sys.argv[1])
    listed = subprocess.run(
        [Path(__file__).parent / "run.sh", "--list"], capture_output=True, text=True, check=True
    )
    print(HEAD)
    for line in listed.stdout.splitlines():
        name = line.split()[0]
        report, log = out / f"{name}.json", out / f"{name}.log"
        if report.exists():
            text = log.read_text(errors="replace")
            for row in rows(name, json.loads(report.read_text()), text):
                print(row)


main()
