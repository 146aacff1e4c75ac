#!/usr/bin/env bash
# Deploys the system to a test bed's cluster, renders the examples in pods, and shows
# the pods. It runs inside of the cluster's namespaces, see `make cluster-demo`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bin=$here/../.build/bin
system=porch-system

kubectl apply --server-side -k "$here/../test/demo"
kubectl -n "$system" rollout restart deployment gateway pod-manager image-resolver # images may be newer
for name in image-resolver pod-manager gateway; do
  kubectl -n "$system" rollout status "deployment/$name" --timeout=2m
done
address=$(kubectl -n "$system" get service function-runner -o 'jsonpath={.spec.clusterIP}'):9445

FNCTL="$bin/fnctl" FNR_ADDRESS="$address" "$here/demo.sh"

printf '\n=== fnctl pods\n'
"$bin/fnctl" pods --address="$address"
