# Builds adapters, for `judge` and `cuts`. Sourced in an empty folder, with $here set. `build NAME`
# sets $adapter to the command, or says why there is none and fails.

skip() { echo "SKIPPED $1: $2" >&2; return 1; }

build() {
  case $1 in
  lmdb) adapter=./lmdb
    cc -O2 -o lmdb "$here/c/lmdb.c" -llmdb 2>/dev/null || skip LMDB "expected cc and liblmdb-dev" ;;
  wiredtiger) adapter=./wiredtiger
    cc -O2 -o wiredtiger "$here/c/wiredtiger.c" -lwiredtiger 2>/dev/null ||
      skip WiredTiger "expected cc and libwiredtiger-dev" ;;
  rocksdb) adapter=./rocksdb
    c++ -std=c++20 -O2 -o rocksdb "$here/cpp/rocksdb.cpp" -lrocksdb 2>/dev/null ||
      skip RocksDB "expected c++ and librocksdb-dev" ;;
  leveldb) adapter=./leveldb
    c++ -std=c++17 -O2 -o leveldb "$here/cpp/leveldb.cpp" -lleveldb 2>/dev/null ||
      skip LevelDB "expected c++ and libleveldb-dev" ;;
  bbolt) adapter=./bbolt
    (cd "$here/go" && go build -o "$build/bbolt" .) 2>/dev/null ||
      skip bbolt "expected go and its module proxy" ;;
  mvstore) h2=com.h2database:h2-mvstore:2.3.232 adapter='java -cp h2-mvstore-2.3.232.jar:. MvStore'
    { mvn -q dependency:copy -Dartifact=$h2 -DoutputDirectory=. >/dev/null 2>&1 &&
      javac -cp h2-mvstore-2.3.232.jar -d . "$here/java/MvStore.java" 2>/dev/null; } ||
      skip MVStore "expected mvn, javac 17 and Maven's repository" ;;
  level) adapter='node level.mjs'
    { cp "$here/js/level.mjs" . && npm install --silent classic-level@2 >/dev/null 2>&1; } ||
      skip "LevelDB in node" "expected node, npm and its registry" ;;
  sqlite) adapter="python3 $here/python/sqlite.py"
    python3 -c 'import sqlite3' 2>/dev/null || skip SQLite "expected python3" ;;
  postgres) # Debian's psycopg2 is for Debian's python3, which need not be the first in the path.
    for python in python3 /usr/bin/python3 ''; do
      [ -n "$python" ] && $python -c 'import psycopg2' 2>/dev/null && break
    done
    adapter="$python $here/python/postgres.py"
    { [ -n "$python" ] && ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; } ||
      skip PostgreSQL "expected postgresql and python3-psycopg2" ;;
  gdbm) # README.md says what is wrong with `ndbm` and `dumb`.
    for python in python3 /usr/bin/python3 ''; do
      [ -n "$python" ] && $python -c 'import dbm.gnu' 2>/dev/null && break
    done
    adapter="$python $here/python/dbm_store.py gnu"
    [ -n "$python" ] || skip dbm.gnu "expected python3-gdbm" ;;
  rust) adapter=$here/../../../target/release/treering-adapters-exec
    [ -x "$adapter" ] ||
      skip "engines in Rust" "expected cargo build --release -p treering-adapters --features all" ;;
  esac
}
