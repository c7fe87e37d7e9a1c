#!/usr/bin/env bash
# Checks that programs leave on a simulated drive what they leave in an ordinary directory.
#
#   bench/gallery/content.sh [PROGRAM]
#
# Each program runs twice and is dumped; the dumps must be equal. About two minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=$PWD/bench/gallery
treering=$PWD/${TREERING:-target/release/treering}
kv=$PWD/target/gallery/kv gallery=$PWD/target/release/gallery
work=$(mktemp -d)
chmod 755 "$work" # for the user postgres
trap 'rm -rf "$work"' EXIT
[ -x "$kv" ] || gcc -O2 -o "$kv" "$here/kv.c" -llmdb -lwiredtiger
[ -x "$gallery" ] || cargo build --release -p treering-bench --features peers --bin gallery

# Each function makes and dumps: it runs in an empty directory, and prints what it dumps.
sqlite() { # JOURNAL_MODE
    sqlite3 a.db "PRAGMA journal_mode = $1; PRAGMA cache_size = -1024;
        CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); CREATE INDEX i ON t(v);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        INSERT INTO t SELECT i, hex(i * 7919 % 100003) || printf('%0150d', i) FROM n;"
    for i in $(seq 300); do
        echo "UPDATE t SET v = v || $i WHERE id % 300 = $i;"
        echo "DELETE FROM t WHERE id % 9973 = $i;"
    done | sqlite3 a.db
    sqlite3 a.db "PRAGMA integrity_check; VACUUM;" .dump
}
rocksdb() { # COMPACTION_STYLE
    db_bench --db=db --benchmarks=fillrandom,overwrite --num=300000 --compression_type=none \
        --compaction_style="$1" --write_buffer_size=2097152 --target_file_size_base=2097152 \
        --seed=1 --threads=1 >/dev/null 2>&1
    ldb --db=db scan --hex 2>/dev/null
}
postgres() {
    local bin
    bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    chmod 755 . && mkdir pg && chown postgres pg
    as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
    as "$bin/initdb" -D pg -A trust >/dev/null
    # `postgres --single` needs no socket, and takes a statement a line.
    {
        echo "CREATE TABLE t(id int PRIMARY KEY, v text);"
        echo "INSERT INTO t SELECT i, repeat(md5(i::text), 8) FROM generate_series(1, 50000) i;"
        for i in $(seq 200); do echo "UPDATE t SET v = v || 'x' WHERE id % 500 = $i;"; done
        echo "CHECKPOINT;"
    } | as "$bin/postgres" --single -D pg postgres >/dev/null
    echo "SELECT md5(string_agg(id || v, '' ORDER BY id)), count(*) FROM t;" |
        as "$bin/postgres" --single -D pg postgres | grep ' = "'
}
engine() { # COMMAND…: prints its checksum of all records
    "$@" | grep checksum
}
export -f sqlite rocksdb postgres engine

only=${1:-}
failed=0
same() { # NAME COMMAND…
    local name=$1
    shift
    [ -z "$only" ] || [ "$only" = "$name" ] || return 0
    mkdir "$work/$name"
    (cd "$work/$name" && bash -euo pipefail -c '"$@"' - "$@") >"$work/ordinary"
    "$treering" drive run --no-predict --json "$work/report" -- \
        bash -euo pipefail -c '"$@" >'"$work/drive" - "$@" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2 && failed=1; }
    if cmp -s "$work/ordinary" "$work/drive" && [ -s "$work/drive" ]; then
        echo "$name: equal, $(wc -c <"$work/drive") bytes dumped"
    else
        echo "$name: DIFFERENT" && failed=1
    fi
    rm -rf "${work:?}/$name"
}

same sqlite-rollback sqlite delete
same sqlite-wal sqlite wal
same rocksdb-leveled rocksdb 0
same rocksdb-universal rocksdb 1
same postgres postgres
same lmdb engine "$kv" lmdb 100000 20000 10 2
same wiredtiger engine "$kv" wiredtiger 100000 20000 10 2
for crate in redb sled fjall btree bf bminus; do
    same $crate engine "$gallery" $crate --records 100000 --updates 20000 --cache 2
done
exit $failed
