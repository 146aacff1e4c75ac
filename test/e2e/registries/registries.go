// SPDX-License-Identifier: Apache-2.0

// Package registries tests private registries with the manifests in deploy/ on the test bed (test/cluster). It
// tests right and wrong credentials and certificate authorities, and their rotation in a running system.
package registries
