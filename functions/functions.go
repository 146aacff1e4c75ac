// SPDX-License-Identifier: Apache-2.0

// Package functions bundles functions of the kpt catalog for the exec evaluator: go.mod names their
// sources as tools, config.yaml maps their image names to the binaries built from them.
package functions
