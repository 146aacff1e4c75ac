#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a release of a commit: images, programs, manifests, a chart, checksums and signatures.
#
#   build/release.sh VERSION KEY [PLATFORMS]    such as build/release.sh v0.1.0 key.pem linux/amd64,linux/arm64
#
# The sources are those of the commit, not the files of this directory. KO may name a program of ko, and KUSTOMIZE a
# command that builds a kustomization, such as "kubectl kustomize"; without them, Go builds both.
set -euo pipefail

version=${1:?name the version, such as v0.1.0}
key=$(realpath "${2:?name the file with the key of signatures}")
platforms=${3:-}
root=$(git rev-parse --show-toplevel)
out=$root/.build/release/$version
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
  { echo "$version is no version: name one such as v0.1.0" >&2; exit 1; }
[[ -z $(git -C "$root" status --porcelain --untracked-files=no) ]] ||
  echo "the release has no uncommitted changes: it is made from the commit $(git rev-parse --short HEAD)" >&2

scratch=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$scratch/tree" 2>/dev/null; rm -rf "$scratch"' EXIT
git -C "$root" worktree add --quiet --detach "$scratch/tree" HEAD
rm -rf "$out"
cd "$scratch/tree/build/images"
GOWORK=off go build -trimpath -o "$scratch/release" ./cmd/release
"$scratch/release" -root "$scratch/tree" -version "$version" -revision "$(git rev-parse HEAD)" -key "$key" \
  -time "$(git log -1 --format=%ct)" -platforms "$platforms" -layers "$root/.build/layers" -ko "${KO:-}" \
  ${KUSTOMIZE:+-kustomize "$KUSTOMIZE"} "$out"
cat "$out/SHA256SUMS"
