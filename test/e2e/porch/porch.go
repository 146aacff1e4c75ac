// SPDX-License-Identifier: Apache-2.0

// Package porch tests the system with a real Porch: porch-server as an aggregated API server, a Git server, and
// Porch's command line. It changes the API of the whole cluster, so nothing else may use the cluster.
package porch
