#!/usr/bin/env bash
# Renders the examples through a gateway into temporary copies and checks that they
# match their README. Exits non-zero if one does not.
#
#   FNCTL_ADDRESS  the gateway's address, by default localhost:9445
#   FNCTL          the fnctl to use, by default built from this repository
#   SKIPPED        why any-image is not rendered; empty if the gateway has its images
set -euo pipefail

examples=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -z ${FNCTL:-} ]]; then
  FNCTL=$work/fnctl
  (cd "$examples/../fnctl" && GOWORK=off go build -o "$FNCTL" .)
fi

failures=0

# unexpected MESSAGE records a failed check.
unexpected() {
  echo "UNEXPECTED: $1" >&2
  failures=$((failures + 1))
}

# render EXAMPLE EXIT_CODE renders a copy and checks the exit code.
render() {
  local example=$1 want=$2 code=0
  printf '\n=== %s\n' "$example"
  cp -R "$examples/$example" "$work/$example"
  "$FNCTL" render "$work/$example" --diff 2>&1 | tee "$work/$example.log" || code=$?
  [[ $code == "$want" ]] || unexpected "rendering $example ended with exit code $code instead of $want"
}

# contains FILE TEXT checks that a rendered file has a text.
contains() {
  grep -qF -- "$2" "$work/$1" || unexpected "$1 does not contain: $2"
}

render web-application 0
contains web-application/deployment.yaml 'namespace: shop'
contains web-application/deployment.yaml 'image: nginx:1.29 # kpt-set'
contains web-application/service.yaml 'host: shop.example.com'

render blueprint 0
contains blueprint/database/statefulset.yaml 'image: postgres:17'
contains blueprint/frontend/settings.yaml 'database-namespace: shop-production'
contains blueprint/frontend/settings.yaml 'database-port: "5433"'

render policy 1
contains policy.log 'container exporter of Deployment reports has no memory limit'
diff -r --exclude=Kptfile "$examples/policy" "$work/policy" || unexpected "a package whose validator failed was changed"
contains policy/Kptfile 'reason: RenderFailed'
echo "The validator of policy failed, as it should: its Kptfile says so, and no resource was written."

if [[ -z ${SKIPPED="its images are in the registry that make run starts"} ]]; then
  render any-image 0
  contains any-image/deployment.yaml "team: 'shop'"
  contains any-image/deployment.yaml 'replicas: 3'
else
  printf '\n=== any-image\nskipped: %s\n' "$SKIPPED"
fi

printf '\n'
if ((failures > 0)); then
  echo "$failures checks failed." >&2
  exit 1
fi
echo "All examples are as expected${SKIPPED:+, but for any-image, which was skipped}."
