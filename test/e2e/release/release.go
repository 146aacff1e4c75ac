// SPDX-License-Identifier: Apache-2.0

// Package release tests the Helm chart: installation as in docs/install.md, upgrade, rollback and uninstallation.
package release
