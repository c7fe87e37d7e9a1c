#!/usr/bin/env bash
# SQLite: loads a table of rows of 200 bytes, then updates rows in transactions of ten.
#
#   sqlite.sh JOURNAL_MODE SYNCHRONOUS ROWS TRANSACTIONS
#
# The cache is 2 % of the data.
set -euo pipefail
journal=$1 synchronous=$2 rows=$3 transactions=$4
source "$(dirname "${BASH_SOURCE[0]}")/tell.sh"

sqlite3 app.db "
    PRAGMA synchronous = OFF;
    CREATE TABLE t(id INTEGER PRIMARY KEY, a BLOB, b BLOB);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $rows)
    INSERT INTO t SELECT i, randomblob(96), zeroblob(96) FROM n;"
sqlite3 app.db "PRAGMA journal_mode = $journal" >/dev/null
sync -f .
tell "user_bytes $((rows * 200))" loaded

# The page cache of SQLite in KiB.
cache=$((rows * 200 / 50 / 1024))
{
    echo "PRAGMA synchronous = $synchronous; PRAGMA cache_size = -$cache;"
    awk -v rows="$rows" -v transactions="$transactions" 'BEGIN {
        srand(1)
        for (t = 0; t < transactions; t++) {
            print "BEGIN;"
            for (i = 0; i < 10; i++)
                print "UPDATE t SET a = randomblob(96), b = zeroblob(96) WHERE id = " \
                    1 + int(rand() * rows) ";"
            print "COMMIT;"
        }
    }'
    # What SQLite counted, for accounts.sh.
    [ -z "${STATS:-}" ] || printf '.stats on\nSELECT 1;\n'
} | sqlite3 app.db
tell "user_bytes $(((rows + 10 * transactions) * 200))"
echo "commits $transactions"
