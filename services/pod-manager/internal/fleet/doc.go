// SPDX-License-Identifier: Apache-2.0

// Package fleet contains tests that simulate several replicas of the pod-manager in virtual time. The replicas run
// the real pools, manager, ownership, probes and adapter to Kubernetes, and share a Kubernetes API in memory.
//
// A script lists events for replicas, links and pods. A referee watches the API and the callers. It checks that all
// callers get a pod by their deadline, that no evaluation is interrupted, and that all pods are deleted in the end.
// If a check fails, the script is shortened until each of its lines is necessary for the failure.
package fleet
