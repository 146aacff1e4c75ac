// SPDX-License-Identifier: Apache-2.0

// Package release installs the Helm chart as docs/install.md says, upgrades it, goes back and uninstalls it.
package release
