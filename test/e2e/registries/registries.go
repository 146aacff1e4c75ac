// Package registries tests private registries end to end, with the manifests in deploy/
// on a cluster of the test bed: credentials and authorities that are right, that are
// wrong, and that change while everything runs.
package registries
