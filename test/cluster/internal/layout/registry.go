// SPDX-License-Identifier: Apache-2.0

package layout

import "fmt"

// Registry is an image registry of the cluster.
type Registry struct {
	Name string
	Port int
	// Auth means that the registry requires the cluster's user and password.
	Auth bool
	// TLS means that the registry has a certificate of the cluster's own authority.
	TLS bool
}

// The registries of every cluster, by their requirements for clients.
var (
	Open    = Registry{Name: "open", Port: 5000}
	Private = Registry{Name: "private", Port: 5001, Auth: true}
	Secure  = Registry{Name: "secure", Port: 5002, Auth: true, TLS: true}
)

// Registries lists the registries of a cluster.
func Registries() []Registry { return []Registry{Open, Private, Secure} }

// Host is the registry's part of an image name.
func (r Registry) Host() string { return fmt.Sprintf("%s:%d", NodeAddress, r.Port) }

// Alias is the same registry at an address without configuration on the node.
func (r Registry) Alias() string { return fmt.Sprintf("%s:%d", AliasAddress, r.Port) }

// Scheme is http or https.
func (r Registry) Scheme() string {
	if r.TLS {
		return "https"
	}
	return "http"
}

// URL is the URL of the registry's API.
func (r Registry) URL() string { return r.Scheme() + "://" + r.Host() }
