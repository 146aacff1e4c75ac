// SPDX-License-Identifier: Apache-2.0

// Package layout defines the file paths, addresses and registries of a cluster. All clusters use the same
// addresses, because each has its own network namespace.
package layout

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// Addresses in a cluster, which are the same in all clusters.
const (
	NodeName    = "node"
	NodeAddress = "172.30.0.1"
	// AliasAddress is a second address of the node, for tests of pulls without credentials. The registries also listen at
	// this address. The container runtime has neither credentials nor a certificate authority for it.
	AliasAddress   = "172.30.0.2"
	NodePrefix     = 24
	Bridge         = "node0"
	PodCIDR        = "10.244.0.0/16"
	ServiceCIDR    = "10.96.0.0/16"
	ServiceAddress = "10.96.0.1"
	DNSAddress     = "10.96.0.10"
	Domain         = "cluster.local"
	APIAddress     = NodeAddress + ":6443"
	EtcdAddress    = NodeAddress + ":2379"
)

// ContainerdSocket is the path of containerd's socket in a cluster's mount namespace.
const ContainerdSocket = "/run/containerd/containerd.sock"

// root is the directory that contains the directories of all clusters.
const root = "/var/lib/function-runner/clusters"

// validName matches cluster names that are also valid in names of files, control groups and hosts. The length is
// limited because paths of Unix sockets contain the name.
var validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// Layout provides the paths of a cluster's files.
type Layout struct {
	Name string
}

// New returns the paths for the named cluster.
func New(name string) (Layout, error) {
	if !validName.MatchString(name) {
		return Layout{}, fmt.Errorf("cluster name %q: want a lower-case letter, then at most 19 letters, digits or dashes",
			name)
	}
	return Layout{Name: name}, nil
}

// Root returns the directory that contains the directories of all clusters.
func Root() string { return root }

// Dir returns the directory with all files of the cluster.
func (l Layout) Dir() string { return filepath.Join(root, l.Name) }

// Path returns a path below the cluster's directory.
func (l Layout) Path(elements ...string) string {
	return filepath.Join(append([]string{l.Dir()}, elements...)...)
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (l Layout) Kubeconfig() string { return l.Path("kubeconfig") }

// Logs returns the directory with the logs of the cluster's components.
func (l Layout) Logs() string { return l.Path("logs") }

// LogFile returns the path of a component's log.
func (l Layout) LogFile(component string) string {
	return filepath.Join(l.Logs(), component+".log")
}

// PKI returns the path of a file with a certificate or key of the cluster.
func (l Layout) PKI(file string) string { return l.Path("pki", file) }

// Config returns the path of a configuration file of a component.
func (l Layout) Config(file string) string { return l.Path("config", file) }

// Storage returns the directory in which a registry stores images.
func (l Layout) Storage(registry string) string { return l.Path("registries", registry) }

// Cgroup returns the parent of all the cluster's control groups, as a path relative to each hierarchy's root.
func (l Layout) Cgroup() string { return "fnr-" + l.Name }
