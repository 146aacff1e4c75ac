// SPDX-License-Identifier: Apache-2.0

// Package porch tests the system under a real Porch: porch-server as an aggregated API server, with
// a Git server, used by its own command line. It changes the cluster's API as a whole, so nothing
// else may run on the cluster at the same time.
package porch
