#!/bin/sh
# The speed of the face `files` beside the least that FUSE can do, in pairs in one sitting.
#
#   bench/drive/throughput.sh [PAIRS] [SECONDS]
#
# Needs root, fio, and the release builds of the examples `mount_files` and `memory_fs`:
#   cargo build --release -p treering-drive --examples
# All runs on one processor and with one thread: what a request costs is measured, not where the
# scheduler happens to wake whom, which changes the figures by a factor of five.
# Prints, for each pair, 4-KiB direct writes a second at queue depth 1 and MiB/s of direct 1-MiB
# writes, of both; and the medians and their ratio.
set -eu
pairs=${1:-5} seconds=${2:-4}
examples=${EXAMPLES:-target/release/examples}
work=$(mktemp -d)
mkdir "$work/mount"
trap 'umount -l "$work/mount" 2>/dev/null || true; rm -rf "$work"' EXIT

serve() { # NAME: mounts it
    case $1 in
    files)
        taskset -c 0 "$examples/mount_files" "$work/mount" 1024 --stay --threads 1 \
            >/dev/null &
        ;;
    memory) taskset -c 0 "$examples/memory_fs" "$work/mount" 1024 & ;;
    esac
    until mountpoint -q "$work/mount"; do sleep 0.05; done
}

measure() { # RW BS FIELD: one figure
    taskset -c 0 fio --name=t --filename="$work/mount/file" --rw="$1" --bs="$2" --size=512m \
        --direct=1 --ioengine=psync --iodepth=1 --runtime="$seconds" --time_based \
        --output-format=terse | cut -d';' -f"$3"
}

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

for pair in $(seq "$pairs"); do
    for name in files memory; do
        serve $name
        truncate -s 512m "$work/mount/file"
        # The first pass gives the file its blocks.
        fio --name=t --filename="$work/mount/file" --rw=write --bs=1m --size=512m --direct=1 \
            --output-format=terse >/dev/null
        small=$(measure randwrite 4k 49)
        large=$(($(measure write 1m 48) / 1024))
        echo "pair $pair $name: $small writes/s of 4 KiB, $large MiB/s"
        echo "$small" >>"$work/$name.small"
        echo "$large" >>"$work/$name.large"
        umount "$work/mount"
        wait
    done
done
for what in small large; do
    files=$(median "$work/files.$what") memory=$(median "$work/memory.$what")
    ratio=$(awk "BEGIN { printf \"%.2f\", $files / $memory }")
    echo "$what: files $files, memory $memory, ratio $ratio"
done
