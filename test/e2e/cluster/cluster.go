// Package cluster tests that a cluster does what the project relies on. Its
// tests run on any cluster.
package cluster
