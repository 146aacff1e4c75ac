// SPDX-License-Identifier: Apache-2.0

// Package deploy tests the manifests in deploy/ without a cluster: that they build, are valid for Kubernetes, match
// each other and the programs, and refer only to existing metrics.
package deploy
