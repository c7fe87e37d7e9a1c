#!/usr/bin/env bash
# Compares what programs say they wrote with what reached the drive; see docs/DRIVES.md.
#
#   bench/gallery/accounts.sh
#
# Small runs, about two minutes. Exits with 1 if an account is off by more than the table allows.
# PostgreSQL's needs root. The kernel's page cache writes through: else it merges writes of a page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=$PWD/bench/gallery
treering=${TREERING:-target/release/treering}
out=$PWD/target/gallery/accounts
mkdir -p "$out"

account() { # NAME COMMAND…: a report and what the program printed
    local name=$1
    shift
    mkdir -p "$out/$name"
    echo "accounts: $name" >&2
    GALLERY_OUT=$out/$name "$treering" drive run --record "$out/$name.rec" --no-predict \
        --page-cache write-through ${mark:-} --json "$out/$name.json" -- "$@" \
        >"$out/$name.log" 2>&1 || { tail -5 "$out/$name.log" >&2 && exit 1; }
    rm -f "$out/$name.rec"
}

# One process, so that no memtable is recovered from the log, which no counter counts.
account rocksdb bash -c 'db_bench --db=$TREERING_DIR/db --benchmarks=fillrandom,waitforcompaction \
    --num=2000000 --key_size=16 --value_size=112 --compression_type=none \
    --write_buffer_size=4194304 --target_file_size_base=4194304 --max_bytes_for_level_base=16777216 \
    --statistics --progress_reports=0 --seed=1'
mark="--from-mark loaded"
STATS=1 account sqlite-rollback "$here/rows/sqlite.sh" delete full 200000 2000
STATS=1 account sqlite-wal "$here/rows/sqlite.sh" wal full 200000 2000
account postgres-fpw-on "$here/rows/postgres.sh" on 3 6000
account postgres-fpw-off "$here/rows/postgres.sh" off 3 6000
python3 "$here/accounts.py" "$out"
