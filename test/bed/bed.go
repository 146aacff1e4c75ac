// SPDX-License-Identifier: Apache-2.0

// Package bed describes a running cluster of the test bed to tests and tools: the paths of its
// files and the access to its registries.
package bed

import (
	"encoding/json"
	"fmt"
	"os"
)

// InfoVariable is the environment variable with the path of Info's file. It is set for commands
// that run in a cluster of the test bed.
const InfoVariable = "FNR_BED"

// Info describes a cluster.
type Info struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	// Logs is the directory of the components' and pods' logs.
	Logs string `json:"logs"`
	// Components is the file with the status of the cluster's own programs, and Holds the directory
	// with which they are kept from running; see [Info.Component].
	Components string     `json:"components"`
	Holds      string     `json:"holds"`
	Registries []Registry `json:"registries"`
	// RuntimeRegistries is the directory in which the container runtime looks up, at each pull, the
	// configuration of a registry: HOST/hosts.toml.
	RuntimeRegistries string `json:"runtimeRegistries"`
}

// Registry is an image registry that the cluster's node can pull from.
type Registry struct {
	Name string `json:"name"`
	// Host is the registry's part of an image's name.
	Host string `json:"host"`
	// Alias is the same registry at an address for which the node lacks a certificate authority.
	Alias string `json:"alias"`
	URL   string `json:"url"`
	// Username and Password are empty if the registry is open.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// PasswordFile contains the users of the registry, among them Username, and is read again after each change. All
	// registries with passwords share it.
	PasswordFile string `json:"passwordFile,omitempty"`
	// CAFile is the authority of the registry's certificate, as PEM; empty
	// without TLS.
	CAFile string `json:"caFile,omitempty"`
}

// Registry returns the registry of that name: open, private or secure.
func (i Info) Registry(name string) (Registry, error) {
	for _, registry := range i.Registries {
		if registry.Name == name {
			return registry, nil
		}
	}
	return Registry{}, fmt.Errorf("cluster %s has no registry %q", i.Name, name)
}

// Load reads the file that describes a cluster.
func Load(path string) (Info, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Info{}, fmt.Errorf("read the description of the test bed: %w", err)
	}
	var info Info
	if err := json.Unmarshal(content, &info); err != nil {
		return Info{}, fmt.Errorf("read the description of the test bed in %s: %w", path, err)
	}
	return info, nil
}
