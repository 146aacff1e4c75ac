// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/internal/pki"
)

// writeCertificates creates all certificates and keys of a cluster, and writes them to the directory pki. It returns
// the certificate of the authority for Kubernetes itself.
func writeCertificates(l layout.Layout) ([]byte, error) {
	signed, err := newAuthorities()
	if err != nil {
		return nil, err
	}
	for name, authority := range map[string]*pki.Authority{
		"ca": signed.kubernetes, "registry-ca": signed.registries, "front-proxy-ca": signed.aggregation,
	} {
		if err := authority.Write(l.Path("pki"), name); err != nil {
			return nil, err
		}
	}
	for name, make := range signed.pairs() {
		pair, err := make()
		if err != nil {
			return nil, err
		}
		if err := pair.Write(l.Path("pki"), name); err != nil {
			return nil, err
		}
	}
	return signed.kubernetes.Cert, nil
}

// authorities are a cluster's certificate authorities. Registries have a separate authority, because only clients that
// are configured to trust it should trust it. API aggregation also has a separate authority. This is because aggregated
// API servers believe the user name in any request from a client with a certificate of this authority.
type authorities struct {
	kubernetes, registries, aggregation *pki.Authority
}

func newAuthorities() (made authorities, err error) {
	if made.kubernetes, err = pki.NewAuthority("kubernetes"); err != nil {
		return made, err
	}
	if made.registries, err = pki.NewAuthority("registries"); err != nil {
		return made, err
	}
	made.aggregation, err = pki.NewAuthority("front-proxy")
	return made, err
}

// pairs returns functions that create the cluster's certificates and keys. The keys of the map are file names without
// an extension.
func (a authorities) pairs() map[string]func() (pki.Pair, error) {
	return map[string]func() (pki.Pair, error){
		"accounts":  pki.NewKeys,
		"apiserver": func() (pki.Pair, error) { return a.kubernetes.Server("kube-apiserver", apiHosts()...) },
		"kubelet": func() (pki.Pair, error) {
			return a.kubernetes.Server("kubelet", layout.NodeName, layout.NodeAddress)
		},
		"kubelet-client": func() (pki.Pair, error) { return a.kubernetes.Client("kube-apiserver") },
		"front-proxy":    func() (pki.Pair, error) { return a.aggregation.Client(aggregator) },
		"registry": func() (pki.Pair, error) {
			return a.registries.Server("registry", layout.NodeAddress, layout.AliasAddress)
		},
	}
}

// aggregator is the user name in the client certificate with which kube-apiserver calls aggregated API servers.
const aggregator = "front-proxy-client"

// apiHosts returns all host names and addresses at which programs reach kube-apiserver.
func apiHosts() []string {
	return []string{
		layout.NodeAddress, layout.ServiceAddress, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc." + layout.Domain,
	}
}
