// SPDX-License-Identifier: Apache-2.0

// Package bed describes a running cluster of the test bed (test/cluster) to tests, with its files and registries.
package bed

import (
	"encoding/json"
	"fmt"
	"os"
)

// InfoVariable is the environment variable with the path of the cluster's description, a JSON file. `cluster exec`
// sets the variable for commands that run in a cluster of the test bed.
const InfoVariable = "FNR_BED"

// Info describes a running cluster.
type Info struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	// Logs is the directory of the components' and pods' logs.
	Logs string `json:"logs"`
	// Components is the path of the status file of the cluster's own programs, such as the kubelet. Holds is a
	// directory where a file with a program's name prevents its start. Use [Info.Component] for both.
	Components string     `json:"components"`
	Holds      string     `json:"holds"`
	Registries []Registry `json:"registries"`
	// RuntimeRegistries is the container runtime's directory of registry configurations. At each pull, the runtime
	// reads HOST/hosts.toml in this directory.
	RuntimeRegistries string `json:"runtimeRegistries"`
}

// Registry is an image registry that the cluster's node can pull from.
type Registry struct {
	Name string `json:"name"`
	// Host is the registry's host and port in image names.
	Host string `json:"host"`
	// Alias is the host and port of the same registry at a second address. The node has neither credentials nor a
	// certificate authority for this address.
	Alias string `json:"alias"`
	URL   string `json:"url"`
	// Username and Password are empty if the registry is open.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// PasswordFile is the path of the file with the registry's users, including Username. All registries that require
	// a password share this file and reload it after each change.
	PasswordFile string `json:"passwordFile,omitempty"`
	// CAFile is the path of the PEM file with the authority of the registry's certificate. It is empty without TLS.
	CAFile string `json:"caFile,omitempty"`
}

// Registry returns the registry with the given name: open, private or secure.
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
