// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/pki"
)

// writeCertificates makes one authority for Kubernetes and another for the registry, which only
// configured clients trust. It returns the certificate of the first one.
func writeCertificates(l layout.Layout) ([]byte, error) {
	kubernetes, err := pki.NewAuthority("kubernetes")
	if err != nil {
		return nil, err
	}
	registries, err := pki.NewAuthority("registries")
	if err != nil {
		return nil, err
	}
	pairs := map[string]func() (pki.Pair, error){
		"accounts":  pki.NewKeys,
		"apiserver": func() (pki.Pair, error) { return kubernetes.Server("kube-apiserver", apiHosts()...) },
		"kubelet": func() (pki.Pair,
			error,
		) {
			return kubernetes.Server("kubelet", layout.NodeName, layout.NodeAddress)
		},
		"kubelet-client": func() (pki.Pair, error) { return kubernetes.Client("kube-apiserver") },
		"registry": func() (pki.Pair, error) {
			return registries.Server("registry", layout.NodeAddress, layout.AliasAddress)
		},
	}
	for name, authority := range map[string]*pki.Authority{"ca": kubernetes, "registry-ca": registries} {
		if err := authority.Write(l.Path("pki"), name); err != nil {
			return nil, err
		}
	}
	for name, make := range pairs {
		pair, err := make()
		if err != nil {
			return nil, err
		}
		if err := pair.Write(l.Path("pki"), name); err != nil {
			return nil, err
		}
	}
	return kubernetes.Cert, nil
}

// apiHosts are all the names by which programs reach kube-apiserver.
func apiHosts() []string {
	return []string{
		layout.NodeAddress, layout.ServiceAddress, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc." + layout.Domain,
	}
}
