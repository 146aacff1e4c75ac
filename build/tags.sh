#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tags a release, here and without pushing: VERSION, and for `go install` of fnctl DIRECTORY/VERSION of
# fnctl and of each module that it needs.
#
# `go install` refuses modules with replace directives, which our modules need: each builds by itself, with the
# siblings of the same commit. So such a module gets its tag at a later commit, in which the directives are
# requirements of the siblings' tags; only tags lead to these commits. A released version is never tagged again,
# because Go's checksum database keeps its hashes.
#
#   build/tags.sh VERSION [COMMIT]    such as build/tags.sh v0.1.0; COMMIT is HEAD by default
set -euo pipefail

repository=github.com/krm-function-runner/function-runner
version=${1:?name the version, such as v0.1.0}
commit=$(git rev-parse --verify "${2:-HEAD}^{commit}")
root=$(git rev-parse --show-toplevel)
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
  { echo "$version is no version: name one such as v0.1.0" >&2; exit 1; }
[[ -z $(git tag --list "$version" "*/$version") ]] ||
  { echo "$version has tags already: choose another version, or delete them" >&2; exit 1; }

scratch=$(mktemp -d)
tags=()
finish() {
  code=$?
  git worktree remove --force "$scratch/tree" 2>/dev/null || true
  rm -rf "$scratch"
  ((code == 0)) || ((${#tags[@]} == 0)) || git tag --delete "${tags[@]}" >/dev/null
}
trap finish EXIT
git worktree add --quiet --detach "$scratch/tree" "$commit"

# The commits that are made below get the author and the time of the release's.
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
{ read -r GIT_AUTHOR_NAME; read -r GIT_AUTHOR_EMAIL; read -r GIT_AUTHOR_DATE; } < <(git show -s --format='%cn%n%ce%n%cI' "$commit")
GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE

# Go takes our modules from this clone, and keeps them apart from published ones.
n=${GIT_CONFIG_COUNT:-0}
export GIT_CONFIG_COUNT=$((n + 1)) "GIT_CONFIG_KEY_$n=url.file://$root.insteadOf" "GIT_CONFIG_VALUE_$n=https://$repository"
proxy=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
export GOPRIVATE=$repository GOWORK=off GOPROXY=$proxy GOMODCACHE=$scratch/modules GOFLAGS=-modcacherw

# siblings DIRECTORY prints the directories of the modules that replace directives name.
siblings() {
  sed -nE "s|^(replace )?[[:space:]]*$repository/([^ ]+) => \.\./.*|\2|p" "$scratch/tree/$1/go.mod"
}

# tag DIRECTORY tags a module, and before it the modules that it needs.
declare -A tagged
tag() {
  local dir=$1 sibling needs
  [[ -z ${tagged[$dir]:-} ]] || return 0
  tagged[$dir]=yes
  needs=$(siblings "$dir")
  for sibling in $needs; do tag "$sibling"; done
  if [[ -n $needs ]]; then
    (
      cd "$scratch/tree/$dir"
      for sibling in $needs; do
        go mod edit "-dropreplace=$repository/$sibling" "-require=$repository/$sibling@$version"
      done
      for sibling in $needs; do go mod download "$repository/$sibling"; done # adds its hashes to go.sum
      git commit --quiet --all --message "$dir: require the modules of $version"
    )
  fi
  git tag "$dir/$version" "$(git -C "$scratch/tree" rev-parse HEAD)"
  tags+=("$dir/$version")
}

tag fnctl
git tag "$version" "$commit"
tags+=("$version")
printf '%s\n' "${tags[@]}"
