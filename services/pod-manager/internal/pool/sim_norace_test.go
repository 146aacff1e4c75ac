// SPDX-License-Identifier: Apache-2.0

//go:build !race

package pool_test

// manySeeds is how many simulations a plain go test runs.
const manySeeds = 2000
