// Package deploy tests the manifests in deploy/ without a cluster: they build, say what
// Kubernetes understands, fit each other and the programs, and name metrics that exist.
package deploy
