// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/config"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// infoFile returns the path of the file with the cluster's description for tests, a [bed.Info].
func infoFile(l layout.Layout) string { return l.Path("bed.json") }

// describeCluster returns a description of a running cluster for tests.
func describeCluster(l layout.Layout, running state.State) bed.Info {
	info := bed.Info{
		Name: l.Name, Kubeconfig: l.Kubeconfig(), Logs: l.Logs(), RuntimeRegistries: config.RuntimeRegistries(l),
		Components: statusFile(l), Holds: holdDirectory(l),
	}
	for _, registry := range layout.Registries() {
		described := bed.Registry{Name: registry.Name, Host: registry.Host(), Alias: registry.Alias(), URL: registry.URL()}
		if registry.Auth {
			described.Username = config.RegistryUser
			described.Password = running.RegistryPassword
			described.PasswordFile = config.PasswordFile(l)
		}
		if registry.TLS {
			described.CAFile = l.PKI("registry-ca.crt")
		}
		info.Registries = append(info.Registries, described)
	}
	return info
}
