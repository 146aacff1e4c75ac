// SPDX-License-Identifier: Apache-2.0

// Package bed tests features that only the test bed's clusters (test/cluster) provide: registries that require
// credentials or a certificate authority, and the images in these registries.
package bed
