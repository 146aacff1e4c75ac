// SPDX-License-Identifier: Apache-2.0

// Package release installs a release from its files alone, as docs/install.md says, upgrades it and goes back.
package release
