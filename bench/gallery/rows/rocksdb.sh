#!/usr/bin/env bash
# RocksDB by db_bench: fillrandom, then another benchmark on the same database.
#
#   rocksdb.sh STYLE BENCHMARK RECORDS OPERATIONS [FLAG…]
#
# STYLE is leveled or universal. Records are 16 + 112 bytes. Buffers and files are small, so that
# levels form in a database of this size: the memtable is 1/32 of the data, the cache as well.
set -euo pipefail
style=$1 benchmark=$2 records=$3 operations=$4
shift 4
source "$(dirname "${BASH_SOURCE[0]}")/tell.sh"

# Compactions that are due belong to what made them due. With universal compaction, which always
# has a candidate, db_bench 7.8 would wait for ever.
case $style in
leveled) style=0 wait=,waitforcompaction ;;
universal) style=1 wait= ;;
esac
mib=$((1 << 20))
flags=(--db="$TREERING_DIR/db" --key_size=16 --value_size=112 --compression_type=none
    --compression_ratio=0.5 --compaction_style=$style --write_buffer_size=$((8 * mib))
    --target_file_size_base=$((8 * mib)) --max_bytes_for_level_base=$((32 * mib))
    --cache_size=$((8 * mib)) --max_background_jobs=2 --bloom_bits=10 --seed=1 --statistics
    --progress_reports=0)

bench() { # the benchmark's name, then flags
    local name=$1
    shift
    db_bench --benchmarks="$name$wait" "${flags[@]}" "$@" 2>&1 | tee "$LOG_DIR/$name"
}

counter() { # FILE NAME: a counter of RocksDB's statistics
    awk -v name="$2" '$1 == name { print $4 }' "$1"
}

LOG_DIR=${GALLERY_OUT:-$(mktemp -d)}
bench fillrandom --num="$records"
told=$((records * 128))
tell "user_bytes $told" loaded
# Of readwhilewriting, only reads are counted by operations.
case $benchmark in
readwhilewriting) count=(--reads="$operations" --threads=1) ;;
*) count=(--writes="$operations") ;;
esac
bench "$benchmark" --use_existing_db=1 --num="$records" "${count[@]}" "$@"
written=$(counter "$LOG_DIR/$benchmark" rocksdb.number.keys.written)
tell "user_bytes $((told + written * 128))"
echo "commits $(counter "$LOG_DIR/$benchmark" rocksdb.write.self)"
