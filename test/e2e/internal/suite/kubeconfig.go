// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig for this cluster with the given token.
func (s *Suite) Kubeconfig(t testing.TB, token string) []byte {
	t.Helper()
	const name = "tests"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{
		Server: s.config.Host, CertificateAuthority: s.config.CAFile, CertificateAuthorityData: s.config.CAData,
	}
	config.AuthInfos[name] = &api.AuthInfo{Token: token}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
