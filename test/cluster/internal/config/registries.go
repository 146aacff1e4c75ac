// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/bcrypt"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// registryView contains the data of a registry for the templates registry.yaml and hosts.toml.
type registryView struct {
	layout.Registry
	Storage, Secret                         string
	CAFile, CertFile, KeyFile, PasswordFile string
}

func writeRegistries(l layout.Layout, secrets Secrets) error {
	if err := writePasswords(PasswordFile(l), secrets); err != nil {
		return err
	}
	for _, registry := range layout.Registries() {
		data := registryView{
			Registry:     registry,
			Storage:      l.Storage(registry.Name),
			Secret:       secrets.registrySession(),
			CAFile:       l.PKI("registry-ca.crt"),
			CertFile:     l.PKI("registry.crt"),
			KeyFile:      l.PKI("registry.key"),
			PasswordFile: PasswordFile(l),
		}
		if err := renderFile(RegistryFile(l, registry), "registry.yaml", data, 0o600); err != nil {
			return err
		}
		hosts := filepath.Join(RuntimeRegistries(l), registry.Host(), "hosts.toml")
		if err := renderFile(hosts, "hosts.toml", data, 0o644); err != nil {
			return err
		}
	}
	return writeMirror(l)
}

// catalogHost is the public registry of the function catalog. The cluster's network has no route to this registry.
// Instead, the cluster's registry without credentials acts as its mirror.
const catalogHost = "ghcr.io"

func writeMirror(l layout.Layout) error {
	open := layout.Registries()[0]
	hosts := filepath.Join(RuntimeRegistries(l), catalogHost, "hosts.toml")
	return renderFile(hosts, "hosts.toml", registryView{Registry: open}, 0o644)
}

// RegistryFile returns the path of the configuration file of a registry.
func RegistryFile(l layout.Layout, registry layout.Registry) string {
	return l.Config("registry-" + registry.Name + ".yaml")
}

// RuntimeRegistries returns the directory with the container runtime's configuration for each registry.
func RuntimeRegistries(l layout.Layout) string { return l.Config("certs.d") }

// PasswordFile returns the path of the registries' htpasswd file, which contains a single user.
func PasswordFile(l layout.Layout) string { return l.Config("htpasswd") }

func writePasswords(path string, secrets Secrets) error {
	// The minimum cost of bcrypt suffices, because the password is random. A higher cost would slow down each request.
	hash, err := bcrypt.GenerateFromPassword([]byte(secrets.RegistryPassword()), bcrypt.MinCost)
	if err != nil {
		return fmt.Errorf("hash the registries' password: %w", err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s:%s\n", RegistryUser, hash), 0o600); err != nil {
		return fmt.Errorf("write the registries' passwords: %w", err)
	}
	return nil
}
