// SPDX-License-Identifier: Apache-2.0

// Package registries tests private registries end to end, with the manifests in deploy/ on a cluster of the test bed.
// It tests right and wrong credentials and certificate authorities, and their rotation in a running system.
package registries
