// SPDX-License-Identifier: Apache-2.0

// Package cluster tests that a cluster provides the Kubernetes features on which the project relies. It runs on any
// cluster.
package cluster
