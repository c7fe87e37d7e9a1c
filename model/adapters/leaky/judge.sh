#!/bin/sh
# Judges `treering cuts` by planted bugs: each is to be found, and by its cause.
#
#   judge.sh                    all bugs of bugs.tsv
#   judge.sh NAME...            these
#   judge.sh honest N           N states of the engine without a bug: none may be a finding
#
# $TREERING is the command, `treering` of the release build if not set. $STATES is the most states
# of a bug, $SEED the seed of the workload, $KEEP a directory for recordings and reports.
# Exit status 1 if a bug is missed or has another cause, or if the honest engine has a finding.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
treering=${TREERING:-$here/../../../target/release/treering}
states=${STATES:-2000} seed=${SEED:-1}
if [ -n "${KEEP:-}" ]; then
    work=$KEEP
    mkdir -p "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
leaky=$work/leaky
cc -std=c11 -O2 -Wall -Wextra -o "$leaky" "$here/leaky.c"

# Records a workload: file, transactions, seed, flags of `leaky`.
record() {
    file=$1 transactions=$2 of_seed=$3
    shift 3
    "$treering" drive run --page-cache write-through --no-predict --record "$file" -- \
        "$leaky" "$@" run "$transactions" "$of_seed" >"$file.run" 2>&1 ||
        { cat "$file.run" >&2; exit 1; }
}

# Cuts a recording: file, flags of `leaky`, flags of `treering cuts`. It has at most two minutes.
cut() {
    file=$1 bug=$2
    shift 2
    status=0
    # shellcheck disable=SC2086
    timeout 120 "$treering" cuts "$file" --found "$file.cuts" --json "$file.json" "$@" -- \
        "$leaky" $bug check >"$file.txt" 2>&1 || status=$?
    [ "$status" -le 1 ] || { cat "$file.txt" >&2; echo "treering cuts: status $status" >&2; }
    [ "$status" -le 1 ]
}

# What a report says, a finding a line: state, tab, cause.
said='.findings[] | "\([.outcomes[].first] | min + 1)\t\(
    if .in_recovery then "in recovery: " else "" end)\(.cause); missing: \(
    .missing_fsync // "nothing")"'

judge() {
    name=$1 flags=$2 expected=$3
    file=$work/$name.rec
    [ "$flags" != - ] || flags=
    began=$(date +%s)
    record "$file" 60 "$seed" --bug "$name"
    # shellcheck disable=SC2086
    if ! cut "$file" "--bug $name" --states "$states" --budget 60s $flags; then
        printf '%-23s %8s %8s  %s\n' "$name" - - 'NO REPORT'
        return 1
    fi
    seconds=$(($(date +%s) - began))
    jq -r "$said" "$file.json" >"$file.said"
    if ! [ -s "$file.said" ]; then
        printf '%-23s %8s %8s  %s\n' "$name" - "$seconds" 'MISSED'
        return 1
    fi
    verdict=0
    while IFS="$(printf '\t')" read -r first cause; do
        right=$(printf '%s\n' "$cause" | grep -Eq -- "$expected" && echo '' || echo 'WRONG: ')
        [ -z "$right" ] || verdict=1
        printf '%-23s %8s %8s  %s\n' "$name" "$first" "$seconds" "$right$cause"
        name='' seconds=''
    done <"$file.said"
    return "$verdict"
}

honest() {
    wanted=$1 total=0 bad=0
    each=$((wanted / 6 + 1)) of_seed=$seed
    printf '%-15s %10s %10s %8s  %s\n' model states recoveries seconds findings
    for pass in strict ext4-ordered ext4-writeback xfs btrfs 'strict --recovery-cuts'; do
        distinct=0 recoveries=0 findings=0 began=$(date +%s)
        while [ $((distinct + recoveries)) -lt "$each" ]; do
            file=$work/honest-$of_seed.rec
            record "$file" 250 "$of_seed"
            left=$((each - distinct - recoveries))
            [ "$left" -lt 3000 ] || left=3000
            # shellcheck disable=SC2086
            cut "$file" '' --model $pass --states "$left" --budget 60s || return 1
            distinct=$((distinct + $(jq .states.distinct "$file.json")))
            recoveries=$((recoveries + $(jq .states.recoveries "$file.json")))
            found=$(jq '.findings | length' "$file.json")
            findings=$((findings + found)) of_seed=$((of_seed + 1))
            if [ "$found" -gt 0 ]; then cat "$file.txt"; else rm -rf "$file" "$file".*; fi
        done
        [ "$findings" = 0 ] || bad=1
        total=$((total + distinct + recoveries))
        case $pass in *cuts) pass='and recoveries' ;; esac
        printf '%-15s %10s %10s %8s  %s\n' \
            "$pass" "$distinct" "$recoveries" "$(($(date +%s) - began))" "$findings"
    done
    echo "$total states"
    return "$bad"
}

if [ "${1:-}" = honest ]; then
    honest "${2:-50000}"
    exit
fi

bad=0
printf '%-23s %8s %8s  %s\n' bug found seconds cause
while IFS="$(printf '\t')" read -r name _ flags expected; do
    case $name in '#'*) continue ;; esac
    case " $* " in '  ' | *" $name "*) ;; *) continue ;; esac
    judge "$name" "$flags" "$expected" </dev/null || bad=$((bad + 1))
done <"$here/bugs.tsv"
[ "$bad" = 0 ] || echo "$bad bugs missed, or with another cause" >&2
[ "$bad" = 0 ]
