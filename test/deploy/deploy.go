// SPDX-License-Identifier: Apache-2.0

// Package deploy tests the manifests in deploy/ without a cluster. The manifests must build, be valid for
// Kubernetes, match each other and the programs, and refer only to existing metrics.
package deploy
