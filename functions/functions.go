// SPDX-License-Identifier: Apache-2.0

// Package functions bundles functions of the kpt catalog for the exec evaluator. Its go.mod lists the functions as
// tools. Its config.yaml maps the functions' image names to their programs.
package functions
