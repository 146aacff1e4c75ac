// SPDX-License-Identifier: Apache-2.0

// Package fleet simulates several replicas of the pod-manager in virtual time: the real pools, manager, ownership,
// probes and adapter to Kubernetes, on one Kubernetes API in memory. It has tests only.
//
// A script says what happens to replicas, links and pods. A referee watches the API and the callers: all callers get
// a pod by their deadline, no evaluation is cut, and everything is collected in the end. A script that breaks a
// promise is shortened until each line of it is needed.
package fleet
