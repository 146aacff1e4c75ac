// SPDX-License-Identifier: Apache-2.0

// Package cluster tests that a cluster of any kind provides the features on which the project relies.
package cluster
