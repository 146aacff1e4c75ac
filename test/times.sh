#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the table of tiers into test/README.md: each target and package of tests on a cluster, with its time in the
# last run. Usage: times.sh EVIDENCE NAMES LONG_NAMES, where NAMES are those of make test, and LONG_NAMES of make
# test-long.
set -euo pipefail

rows() { # TIER LOG NAME...
  local seconds name
  for name in "${@:3}"; do
    seconds=$(awk -v name="$name" '
      $1 == "==" && $2 == name && $3 == "took" { sum += $4; found = 1 }
      $1 == "ok" && $2 ~ "/test/" substr(name, 3) "$" { sum += $3; found = 1 }
      END { printf found ? "%.0f" : "", sum }' "$2")
    echo "| ${name#./} | $1 | ${seconds:-not measured} |"
  done
}

readme=$(dirname "$0")/README.md
for tier in test test-long; do
  [[ -e $1/$tier.log ]] || { echo "run make $tier first: there is no $1/$tier.log" >&2; exit 1; }
done
read -ra names <<<"$2"
read -ra long_names <<<"$3"
{
  sed '/<!-- times -->/q' "$readme"
  printf '| target or package | tier | seconds |\n| --- | --- | --- |\n'
  rows test "$1/test.log" "${names[@]}" test
  rows test-long "$1/test-long.log" "${long_names[@]}" test-long
  sed -n '/<!-- end of times -->/,$p' "$readme"
} >"$readme.new"
mv "$readme.new" "$readme"
