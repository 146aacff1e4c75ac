// SPDX-License-Identifier: Apache-2.0

package layout

import "fmt"

// Registry is an image registry of the cluster.
type Registry struct {
	Name string
	Port int
	// Auth is true if the registry requires the cluster's user name and password.
	Auth bool
	// TLS is true if the registry has a certificate, issued by the cluster's own certificate authority.
	TLS bool
}

// The registries of a cluster: without credentials, with a password, and with a password and a private certificate
// authority.
var (
	Open    = Registry{Name: "open", Port: 5000}
	Private = Registry{Name: "private", Port: 5001, Auth: true}
	Secure  = Registry{Name: "secure", Port: 5002, Auth: true, TLS: true}
)

// Registries lists the registries of a cluster.
func Registries() []Registry { return []Registry{Open, Private, Secure} }

// Host returns the host and port at the beginning of image names in this registry.
func (r Registry) Host() string { return fmt.Sprintf("%s:%d", NodeAddress, r.Port) }

// Alias returns the registry's second host and port, at AliasAddress. For this address, the node has neither
// credentials nor a certificate authority.
func (r Registry) Alias() string { return fmt.Sprintf("%s:%d", AliasAddress, r.Port) }

// Scheme returns http or https.
func (r Registry) Scheme() string {
	if r.TLS {
		return "https"
	}
	return "http"
}

// URL returns the URL of the registry's API.
func (r Registry) URL() string { return r.Scheme() + "://" + r.Host() }
