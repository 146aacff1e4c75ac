// SPDX-License-Identifier: Apache-2.0

// Package cluster tests that a cluster, of any kind, provides the features that the project relies on.
package cluster
