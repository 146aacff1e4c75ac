// SPDX-License-Identifier: Apache-2.0

// Package cluster tests that any cluster provides the Kubernetes features on which the project relies.
package cluster
