// SPDX-License-Identifier: Apache-2.0

// Package faults tests the effect on callers, and the leftovers, when something breaks: pods,
// nodes, the control plane, registries, and the system's own programs.
package faults
