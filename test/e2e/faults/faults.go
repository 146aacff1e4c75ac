// Package faults tests what becomes of callers, and what is left, when something breaks:
// pods, nodes, the control plane, registries, and the system's own programs.
package faults
