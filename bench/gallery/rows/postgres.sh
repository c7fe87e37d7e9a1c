#!/usr/bin/env bash
# PostgreSQL: pgbench's TPC-B-like transactions, two clients.
#
#   postgres.sh FULL_PAGE_WRITES SCALE TRANSACTIONS
#
# shared_buffers is a tenth of the data or less. The user's bytes are those of the columns of the
# rows that a transaction writes: 96 (account) + 12 (teller) + 8 (branch) + 24 (history).
# Run as root: the server runs as the user postgres.
set -euo pipefail
full_page_writes=$1 scale=$2 transactions=$3
source "$(dirname "${BASH_SOURCE[0]}")/tell.sh"

bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
data=$TREERING_DIR/pg
log=${GALLERY_OUT:-$(mktemp -d)}
socket=$(mktemp -d)
chown postgres "$socket"
mkdir "$data"
chown postgres "$data"
as_postgres() { (cd / && setpriv --reuid=postgres --regid=postgres --clear-groups "$@"); }

as_postgres "$bin/initdb" -D "$data" --locale=C -E UTF8 -A trust >/dev/null
cat >>"$data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$socket'
shared_buffers = $((scale * 3 / 2))MB
full_page_writes = $full_page_writes
checkpoint_timeout = 30s
max_wal_size = 256MB
track_wal_io_timing = off
CONF
as_postgres "$bin/pg_ctl" -D "$data" -l "$socket/log" -w start >/dev/null
trap 'as_postgres "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$socket"' EXIT

sql() { as_postgres "$bin/psql" -h "$socket" -d postgres -XAtc "$1"; }
# What the server says it wrote so far.
counters() {
    sql "SELECT 'wal_bytes ' || wal_bytes || E'\nwal_write ' || wal_write || E'\nwal_fpi ' ||
        wal_fpi || E'\nwal_sync ' || wal_sync FROM pg_stat_wal"
    sql "SELECT 'buffers ' || buffers_checkpoint + buffers_clean + buffers_backend
        FROM pg_stat_bgwriter"
}

as_postgres "$bin/pgbench" -h "$socket" -i -q -s "$scale" postgres >/dev/null 2>&1
sql CHECKPOINT >/dev/null
loaded=$((scale * 100000 * 96))
tell "user_bytes $loaded" loaded
counters >"$log/before"
as_postgres "$bin/pgbench" -h "$socket" -n -c 2 -t $((transactions / 2)) --random-seed=1 postgres
sql CHECKPOINT >/dev/null
counters >"$log/after"
tell "user_bytes $((loaded + transactions * 140))" measured
as_postgres "$bin/pg_ctl" -D "$data" -m fast stop >/dev/null
echo "commits $transactions"
