#!/bin/bash
# Tests that others wrote, on the face `files`, with both page caches. Prints a table of PASS and
# FAIL; exit status 1 if anything failed.
#
#   bench/drive/foreign.sh [WHAT…]      WHAT: pjdfstest fsx stress fio; all by default
#
#   FSX_OPS=1000000   operations of fsx
#   SECONDS_EACH=10   seconds for each stressor
#   WORK=DIR          where logs and tools go; kept. Default: target/foreign
#
# Needs root, cargo, and a Debian or Ubuntu for what is missing (fio, stress-ng).
#
# Not called: `stress-ng --io-uring` fails on ext4 as well (`IORING_OP_STATX` of a removed file).
#
# Expected: `pjdfstest` skips one of 398 cases, `link_count_max`: FUSE has no way to say the limit,
# which is that of ext4. Its 13 `erofs` cases are skipped at first and run afterwards, by themselves:
# other cases leave files open, with which nothing can be remounted (on ext4 neither). `fsx` is kept
# from `posix_fallocate` of zero bytes (it takes `EINVAL` for a missing feature) and runs in pieces
# (it leaks mappings).
set -u
cd "$(dirname "$0")/../.." || exit 1
work=${WORK:-$PWD/target/foreign} fsx_ops=${FSX_OPS:-1000000} seconds=${SECONDS_EACH:-10}
mount=$work/mount
what=${*:-pjdfstest fsx stress fio}
mkdir -p "$mount" "$work/log" "$work/tools"
failed=0

need() { command -v "$1" >/dev/null || apt-get install -y "$2" >/dev/null; }
need_crate() { # NAME VERSION
    [ -x "$work/tools/bin/$1" ] || cargo install -q "$1" --version "$2" --root "$work/tools"
}
cargo build -q --release -p treering-drive --example mount_files || exit 1
server=${CARGO_TARGET_DIR:-target}/release/examples/mount_files
trap 'umount -l "$mount" 2>/dev/null' EXIT

up() { # CACHE
    local flags=()
    [ "$1" = write-through ] && flags=(--write-through)
    "$server" "$mount" 8192 --stay "${flags[@]}" >"$work/log/server" 2>&1 &
    until mountpoint -q "$mount"; do sleep 0.05; done
}
down() { umount "$mount" && wait; }

check() { # LABEL COMMAND…: a line of the table
    local label=$1 start=$SECONDS
    shift
    local log=$work/log/${label//[^a-z0-9-]/_}
    if "$@" >"$log" 2>&1; then
        printf 'PASS  %-52s %4d s\n' "$label" $((SECONDS - start))
    else
        printf 'FAIL  %-52s %4d s   %s\n' "$label" $((SECONDS - start)) "$log"
        failed=1
    fi
}

pjdfstest() { # REMOUNT [CASES]
    cat >"$work/pjdfstest.toml" <<-END
		[features]
		posix_fallocate = {}
		rename_ctime = {}
		utimensat = {}
		utime_now = {}
		[settings]
		naptime = 0.02
		allow_remount = $1
		[dummy_auth]
		entries = [["nobody", "$(id -gn nobody)"], ["daemon", "daemon"]]
	END
    chmod 755 "$mount"
    shift
    # It remounts with mount(8), which asks the helper `mount.fuse` for it, which wants to start the
    # file system itself.
    printf '#!/bin/sh\nexec %s -i "$@"\n' "$(command -v mount)" >"$work/tools/mount"
    chmod 755 "$work/tools/mount"
    PATH=$work/tools:$PATH "$work/tools/bin/pjdfstest" -c "$work/pjdfstest.toml" -p "$mount" \
        -s /dev/shm "$@"
}

fsx() {
    cat >"$work/fsx.toml" <<-END
		flen = 1048576
		[opsize]
		min = 1
		max = 65536
		[weights]
		read = 10
		write = 10
		mapread = 5
		mapwrite = 5
		truncate = 2
		close_open = 1
		invalidate = 1
		fsync = 1
		fdatasync = 1
		punch_hole = 3
		posix_fallocate = 1
		sendfile = 1
		copy_file_range = 2
	END
    # In pieces: it leaks a mapping with each `mapread`, of which a process can have 65,530.
    local left=$fsx_ops seed=7 piece
    while [ "$left" -gt 0 ]; do
        piece=$((left < 250000 ? left : 250000))
        "$work/tools/bin/fsx" -q -f "$work/fsx.toml" -N $piece -S $seed -P "$work" "$mount/fsx" ||
            return 1
        left=$((left - piece)) seed=$((seed + 1))
    done
}

stress() { # STRESSOR…
    stress-ng --temp-path "$mount" "$@" -t "$seconds" --verify --metrics-brief
}

fio_verify() { # ENGINE BS DEPTH
    rm -f "$mount"/verify*
    local direct=1
    [ "$1" = mmap ] && direct=0
    fio --name=verify --directory="$mount" --ioengine="$1" --bs="$2" --iodepth="$3" \
        --direct=$direct --rw=randwrite --size=64m --numjobs=2 --verify=crc32c \
        --verify_fatal=1 --verify_state_save=0 --fsync=64 --group_reporting
}

for cache in write-back write-through; do
    up $cache
    for each in $what; do
        case $each in
        pjdfstest)
            need_crate pjdfstest 0.2.2
            check "pjdfstest, $cache" pjdfstest false
            check "pjdfstest erofs, $cache" pjdfstest true erofs
            ;;
        fsx)
            need_crate fsx 0.3.2
            check "fsx, $fsx_ops operations, $cache" fsx
            ;;
        stress)
            need stress-ng stress-ng
            for stressor in iomix aiol rename link symlink dentry dir dirdeep flock lockf lockofd \
                fallocate seek hdd xattr chmod chown utime copy-file \
                sync-file filename readahead; do
                check "stress-ng --$stressor 2, $cache" stress "--$stressor" 2
            done
            check "stress-ng --mmap 2 --mmap-file, $cache" stress --mmap 2 --mmap-file \
                --mmap-bytes 32m
            ;;
        fio)
            need fio fio
            for engine in psync libaio io_uring mmap; do
                for shape in "4k 1" "4k 32" "512 4" "64k 8" "1m 4"; do
                    [ "$engine $shape" = "mmap 512 4" ] && continue
                    # shellcheck disable=SC2086
                    check "fio verify, $engine $shape, $cache" fio_verify $engine $shape
                done
            done
            ;;
        esac
    done
    check "unmount, $cache" down
done
exit $failed
