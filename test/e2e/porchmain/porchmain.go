// SPDX-License-Identifier: Apache-2.0

// Package porchmain tests function-runner with the custom resources of Porch's main branch, on a
// cluster of the test bed. Their definitions are for the whole cluster: nothing else may run there.
package porchmain
