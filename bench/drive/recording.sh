#!/bin/sh
# What recording costs: the faces `files` and `ext4`, recorded and not, beside the least that FUSE
# can do (`memory_fs`), in turns in one sitting.
#
#   bench/drive/recording.sh [ROUNDS] [SECONDS]
#
# Needs root, fio, and release builds:
#   cargo build --release -p treering -p treering-drive --examples
# Prints 4-KiB direct writes a second at queue depth 1 and MiB/s of direct 1-MiB writes: the medians,
# and their ratios to those of `memory_fs`. The recorder has a thread of its own, so all may run on
# all processors; figures scatter with where the scheduler wakes whom. If other programs run, they
# change the ratios too, as a recorded face needs two processors at once: `chrt -r 1` before the
# script keeps them off. FIO has more options of fio, for example --refill_buffers, without which it
# writes nearly the same bytes again. The log is in $TMPDIR, so its disk is measured as well.
#
# Also prints the peak of each server's resident memory, for a file of 256 MiB.
set -eu
rounds=${1:-5} seconds=${2:-3}
release=${RELEASE:-target/release}
work=$(mktemp -d)
mkdir "$work/mount"
trap 'umount -l "$work/mount" 2>/dev/null || true; rm -rf "$work"' EXIT

serve() { # NAME: mounts it
    rm -f "$work/log"
    case $1 in
    memory) "$release/examples/memory_fs" "$work/mount" 1024 & ;;
    files) "$release/examples/mount_files" "$work/mount" 1024 --stay --threads 1 >/dev/null & ;;
    ext4)
        rm -f "$work/open"
        mkfifo "$work/open"
        "$release/examples/mount_disk" "$work/mount" ext4 1024 <"$work/open" >/dev/null 2>&1 &
        exec 9>"$work/open"
        ;;
    *-recorded)
        "$release/treering" drive mount "$work/mount" --fs "${1%-recorded}" --capacity 1GiB \
            --record "$work/log" --no-predict >/dev/null 2>&1 &
        ;;
    esac
    server=$!
    until mountpoint -q "$work/mount"; do sleep 0.05; done
}

measure() { # RW BS FIELD: one figure
    fio --name=t --filename="$work/mount/file" --rw="$1" --bs="$2" --size=256m --direct=1 \
        --ioengine=psync --runtime="$seconds" --time_based --output-format=terse ${FIO:-} | cut -d';' -f"$3"
}

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

names="memory files files-recorded ext4 ext4-recorded"
for round in $(seq "$rounds"); do
    for name in $names; do
        serve "$name"
        truncate -s 256m "$work/mount/file"
        # The first pass gives the file its blocks.
        fio --name=t --filename="$work/mount/file" --rw=write --bs=1m --size=256m --direct=1 \
            --output-format=terse >/dev/null
        small=$(measure randwrite 4k 49)
        large=$(($(measure write 1m 48) / 1024))
        peak=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$server/status")
        echo "round $round $name: $small writes/s of 4 KiB, $large MiB/s; peak $peak MiB"
        echo "$small" >>"$work/$name.small"
        echo "$large" >>"$work/$name.large"
        # It unmounts itself when its input ends.
        [ "$name" = ext4 ] && exec 9>&- || umount "$work/mount"
        wait
    done
done
for what in small large; do
    memory=$(median "$work/memory.$what")
    for name in $names; do
        found=$(median "$work/$name.$what")
        echo "$what $name: $found, ratio $(awk "BEGIN { printf \"%.2f\", $found / $memory }")"
    done
done
