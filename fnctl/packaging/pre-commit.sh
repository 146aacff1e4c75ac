#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Renders the packages of the files that pre-commit passes, behind the flags of fnctl render: docs/ci.md.
set -euo pipefail

flags=()
while [[ ${1-} == -* ]]; do
  flags+=("$1")
  shift
done
[ -n "${FNCTL_ADDRESS:-}" ] || flags+=(--local)

# outermost prints the outermost directory around a file that has a Kptfile, as packages inside it are rendered with it.
outermost() {
  local dir found=
  dir=$(dirname "$1")
  while :; do
    [ ! -f "$dir/Kptfile" ] || found=$dir
    [[ $dir != . && $dir != / ]] || break
    dir=$(dirname "$dir")
  done
  echo "$found"
}

code=0
while read -r package; do
  [ -n "$package" ] || continue
  fnctl render "$package" "${flags[@]}" || code=$?
done < <(for file in "$@"; do outermost "$file"; done | sort -u)
exit $code
