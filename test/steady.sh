#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of packages that use processes, networks or real time again and again, every second round on a busy
# machine. It prints the tests that failed, each with the file of its output, and fails if there are any.
# Usage: steady.sh ROUNDS EVIDENCE COMMAND, where COMMAND is how tests are built, such as "go test -race".
set -euo pipefail

export rounds=$1 evidence=$2
command=$3
cd "$(dirname "$0")/.."
rm -rf "$evidence"
mkdir -p "$evidence"
bin=$(mktemp -d)
export bin
busy=()
trap '((${#busy[@]} == 0)) || kill "${busy[@]}"; rm -rf "$bin"' EXIT

# Files whose time is virtual do not count, nor does the simulation, which has a virtual clock in other files. The
# modules functions and test/kptcompare have workspaces of their own; test/e2e needs a cluster. Packages whose tests
# all need a build tag are left out: other targets run them.
mapfile -t dirs < <({
  git grep -lE '\b(exec\.Command|gobuild\.|net\.Listen|httptest\.)' -- '*_test.go'
  git grep -lE '\btime\.(After|Now|Sleep|New)' -- '*_test.go' | xargs grep -L '\bsynctest\.'
} | grep -vE '^(functions|test/(e2e|kptcompare|collector)|services/pod-manager/internal/fleet)/|/testdata/' |
  xargs -n 1 dirname | sort -u)
PACKAGES=${PACKAGES:-.}
tested=()
for dir in "${dirs[@]}"; do
  [[ $dir =~ $PACKAGES ]] || continue
  files=$(cd "$dir" && GOWORK=$OLDPWD/go.work go list -e -f '{{.GoFiles}}{{.TestGoFiles}}{{.XTestGoFiles}}' .)
  [[ $files != '[][][]' ]] || continue
  (cd "$dir" && GOWORK=$OLDPWD/go.work bash -c "$command -c -o '$bin/${dir//\//-}.test' .")
  [[ ! -e $bin/${dir//\//-}.test ]] || tested+=("$dir")
done
echo "${#tested[@]} packages, $rounds rounds"
((${#tested[@]})) || {
  echo "no package that matches $PACKAGES has tests of processes, networks or real time"
  exit 2
}

run() { # DIRECTORY ROUND
  local output="$evidence/round-$2-${1//\//-}.log"
  cd "$1" && "$bin/${1//\//-}.test" -test.timeout 20m >"$output" 2>&1 && rm "$output" || true
}
export -f run
for ((round = 1; round <= rounds; round++)); do
  begin=$SECONDS load=
  if ((round % 2 == 0)); then
    load=", beside other work"
    for ((n = $(nproc); n > 0; n--)); do
      while :; do :; done &
      busy+=($!)
    done
  fi
  printf '%s\n' "${tested[@]}" | xargs -P "$(nproc)" -I DIR bash -c "run DIR $round"
  if ((${#busy[@]})); then
    kill "${busy[@]}"
    busy=()
  fi
  echo "round $round took $((SECONDS - begin)) s$load"
done

if compgen -G "$evidence/*.log" >/dev/null; then
  grep -HE '^ *--- FAIL|^panic:|^WARNING: DATA RACE' "$evidence"/*.log || ls "$evidence"
  echo "evidence: $evidence"
  exit 1
fi
