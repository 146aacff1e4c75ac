// SPDX-License-Identifier: Apache-2.0

// Package cluster tests that a cluster provides the features that the project relies on. Its tests run
// on any cluster.
package cluster
