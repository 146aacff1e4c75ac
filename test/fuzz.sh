#!/usr/bin/env bash
# Runs each fuzz target of the modules that are given for FUZZTIME (default 1m), and fails
# if one of them found something.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# targets lists a module's fuzz targets, each with its package in front.
targets() {
  (cd "$1" && grep -roE '^func Fuzz\w+' --include='*_test.go' . | sed -E 's|/[^/]*:func | |' | sort)
}

# fuzz runs one target. Making each input that is of interest smaller may take a minute by
# default, which is all that a target has.
fuzz() {
  echo "fuzz $1 $2 $3"
  (cd "$1" && go test -run '^$' -fuzz "^$3\$" -fuzztime "${FUZZTIME:-1m}" -fuzzminimizetime 100x "$2") 2>&1 | tee "$log" || spurious
}

# spurious says whether a target failed for no other reason than that its time was over,
# as happens before Go 1.27 (golang/go#75804). What it finds it writes down.
spurious() {
  grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log"
}

failed=
for module in "$@"; do
  while read -r package target; do
    fuzz "$module" "$package" "$target" </dev/null || failed+=" $target"
  done < <(targets "$module")
done
[ -z "$failed" ] || { echo "something was found by:$failed"; exit 1; }
