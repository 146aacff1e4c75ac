// SPDX-License-Identifier: Apache-2.0

// Package release tests the Helm chart: it installs the chart as docs/install.md describes, upgrades it, rolls it
// back and uninstalls it.
package release
