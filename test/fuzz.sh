#!/usr/bin/env bash
# Runs each fuzz target of the given modules for FUZZTIME (default 1m), and fails
# if one of them finds an error.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# targets lists a module's fuzz targets, each with its package in front.
targets() {
  (cd "$1" && grep -roE '^func Fuzz\w+' --include='*_test.go' . | sed -E 's|/[^/]*:func | |' | sort)
}

# fuzz runs one target. Minimizing each interesting input may take a minute by default,
# which is the whole time of a target.
fuzz() {
  echo "fuzz $1 $2 $3"
  (cd "$1" && go test -run '^$' -fuzz "^$3\$" -fuzztime "${FUZZTIME:-1m}" -fuzzminimizetime 100x "$2") 2>&1 | tee "$log" || spurious
}

# spurious reports whether a target failed only because its time was over, as happens
# before Go 1.27 (golang/go#75804). A target writes a failing input to a file.
spurious() {
  grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log"
}

failed=
for module in "$@"; do
  while read -r package target; do
    fuzz "$module" "$package" "$target" </dev/null || failed+=" $target"
  done < <(targets "$module")
done
[ -z "$failed" ] || { echo "targets that found an error:$failed"; exit 1; }
