#!/usr/bin/env bash
# Deploys the system to a test bed's cluster, renders the examples in pods, and shows
# the pods. It runs inside of the cluster's namespaces, see `make cluster-demo`.
#
#   SYSTEM     the namespace of the services, by default that of the manifests
#   FUNCTIONS  the namespace of function pods, by default that of the manifests
#   FNCTL      the fnctl to use, by default the one that `make build` built
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
export FNCTL=${FNCTL:-$here/../.build/bin/fnctl}
system=${SYSTEM:-porch-system}
functions=${FUNCTIONS:-porch-fn-system}

kubectl kustomize "$here/../test/demo" |
  sed -e "s/porch-system/$system/g" -e "s/porch-fn-system/$functions/g" |
  kubectl apply --server-side -f -
kubectl -n "$system" rollout restart deployment gateway pod-manager image-resolver # images may be newer
for name in image-resolver pod-manager gateway; do
  kubectl -n "$system" rollout status "deployment/$name" --timeout=2m
done
address=$(kubectl -n "$system" get service function-runner -o 'jsonpath={.spec.clusterIP}'):9445
# Deployments are rolled out before nodes have the Services' rules.
for _ in {1..60}; do
  "$FNCTL" pods --address="$address" > /dev/null 2>&1 && break
  sleep 1
done

FNCTL_ADDRESS="$address" "$here/demo.sh"

printf '\n=== fnctl pods\n'
"$FNCTL" pods --address="$address"
