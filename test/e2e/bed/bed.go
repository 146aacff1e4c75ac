// SPDX-License-Identifier: Apache-2.0

// Package bed tests features that need a test bed (test/cluster). These are registries that require credentials or
// a certificate authority, and the images in these registries.
package bed
