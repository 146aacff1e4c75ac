// SPDX-License-Identifier: Apache-2.0

// Package porch tests the system with a real Porch, including porch-server, a Git server and Porch's command line.
// porch-server extends the API of the whole cluster, so no other tests may use the cluster at the same time.
package porch
