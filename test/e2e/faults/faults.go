// SPDX-License-Identifier: Apache-2.0

// Package faults tests failures of pods, nodes, the control plane, registries and the system's own programs. It
// checks the effect on callers, and that no objects or processes stay behind.
package faults
