// SPDX-License-Identifier: Apache-2.0

// Package release tests the Helm chart: install as in docs/install.md, upgrade, rollback and uninstall.
package release
