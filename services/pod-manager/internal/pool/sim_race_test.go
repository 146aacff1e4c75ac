// SPDX-License-Identifier: Apache-2.0

//go:build race

package pool_test

// manySeeds are fewer simulations under the race detector, which makes each take ten
// times as long and has little to find: nothing in them runs at a time. make unit runs
// the many without it.
const manySeeds = 20
