// SPDX-License-Identifier: Apache-2.0

// Package functions bundles functions of the kpt catalog for the exec evaluator. The file go.mod lists the functions as
// tools. The file config.yaml maps the functions' image names to their programs.
package functions
