#!/usr/bin/env bash
# Runs the rows of the gallery on a simulated drive, and prints the table of docs/DRIVES.md.
#
#   bench/gallery/run.sh [ROW…]           all rows, about 25 minutes on two quiet cores
#   bench/gallery/run.sh --list           each row and its command
#   bench/gallery/run.sh --table          the table of what has been run
#
# Needs root (PostgreSQL has a user of its own) and /dev/fuse. Reports are kept in
# target/gallery/ROW.json, what the programs print in target/gallery/ROW.log. Recordings, up to
# 3 GiB each, are removed; KEEP=1 keeps them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=$PWD/bench/gallery
out=$PWD/target/gallery
treering=${TREERING:-target/release/treering}
mkdir -p "$out"

# Row, then the command that runs in the drive's directory.
rows() {
    local kv="1000000 250000 10 8" crate="--cache 8 --updates"
    cat <<ROWS
rocksdb-leveled     $here/rows/rocksdb.sh leveled overwrite 2000000 3000000
rocksdb-universal   $here/rows/rocksdb.sh universal overwrite 2000000 3000000
rocksdb-reads       $here/rows/rocksdb.sh leveled readwhilewriting 2000000 1000000
rocksdb-sync        $here/rows/rocksdb.sh leveled overwrite 2000000 1000000 --sync --batch_size=10
sqlite-rollback     $here/rows/sqlite.sh delete full 1000000 20000
sqlite-wal          $here/rows/sqlite.sh wal normal 1000000 40000
sqlite-wal-full     $here/rows/sqlite.sh wal full 1000000 40000
postgres-fpw-on     $here/rows/postgres.sh on 15 100000
postgres-fpw-off    $here/rows/postgres.sh off 15 100000
lmdb                $out/kv lmdb $kv
wiredtiger          $out/kv wiredtiger $kv
redb                $PWD/target/release/gallery redb $crate 150000
sled                $PWD/target/release/gallery sled $crate 250000
fjall               $PWD/target/release/gallery fjall $crate 2000000
btree               $PWD/target/release/gallery btree $crate 250000
bf                  $PWD/target/release/gallery bf $crate 1000000
bminus              $PWD/target/release/gallery bminus $crate 250000
ROWS
}

# need COMMAND PACKAGE: installs a package of the distribution if a command or file is missing.
need() {
    if ! command -v "$1" >/dev/null && [ ! -e "$1" ]; then
        echo "gallery: $1 is missing; installing $2" >&2
        apt-get install -y "$2" >&2
    fi
}

prepare() { # ROW
    [ -x "$treering" ] || cargo build --release -p treering
    case $1 in
    rocksdb-*) need db_bench rocksdb-tools ;;
    sqlite-*) need sqlite3 sqlite3 ;;
    postgres-*) need /usr/lib/postgresql postgresql ;;
    lmdb | wiredtiger)
        need /usr/include/lmdb.h liblmdb-dev
        need /usr/include/wiredtiger.h libwiredtiger-dev
        gcc -O2 -Wall -Wextra -o "$out/kv" "$here/kv.c" -llmdb -lwiredtiger
        ;;
    *)
        [ -x target/release/gallery ] ||
            cargo build --release -p treering-bench --features peers --bin gallery
        ;;
    esac
}

run() { # ROW COMMAND…
    local row=$1 kept=
    shift
    prepare "$row"
    mkdir -p "$out/$row"
    echo "gallery: $row" >&2
    GALLERY_OUT=$out/$row "$treering" drive run \
        --record "$out/$row.rec" --from-mark loaded --device ssd,csd --op 7%,28% \
        --json "$out/$row.json" -- "$@" >"$out/$row.log" 2>&1 ||
        { echo "gallery: $row failed:" >&2 && tail -5 "$out/$row.log" >&2 && return 1; }
    [ -n "${KEEP:-}" ] || rm -f "$out/$row.rec"
}

case ${1:-} in
--list) rows | sed "s|$PWD/||g" && exit ;;
--table) exec python3 "$here/table.py" "$out" ;;
esac
failed=0
while read -r row command; do
    if [ $# -eq 0 ] || [[ " $* " == *" $row "* ]]; then
        # shellcheck disable=SC2086
        run "$row" $command </dev/null || failed=1
    fi
done < <(rows)
python3 "$here/table.py" "$out"
exit $failed
