// SPDX-License-Identifier: Apache-2.0

// Package bed provides tests with a description of the running test bed, a cluster that test/cluster starts.
package bed

import (
	"encoding/json"
	"fmt"
	"os"
)

// InfoVariable is the environment variable that contains the path of the cluster's description, a JSON file.
// `cluster exec` sets it for commands that run in a cluster of the test bed.
const InfoVariable = "FNR_BED"

// Info describes a running cluster.
type Info struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	// Logs is the directory of the components' and pods' logs.
	Logs string `json:"logs"`
	// Components is the path of a file with the status of the cluster's own programs, such as the kubelet. While the
	// directory Holds contains a file with a program's name, this program does not start. [Info.Component] uses both.
	Components string     `json:"components"`
	Holds      string     `json:"holds"`
	Registries []Registry `json:"registries"`
	// RuntimeRegistries is the directory with the container runtime's registry configurations. The runtime reads the file
	// HOST/hosts.toml before each pull.
	RuntimeRegistries string `json:"runtimeRegistries"`
}

// Registry is an image registry from which the cluster can pull.
type Registry struct {
	Name string `json:"name"`
	// Host is the host and port at the beginning of image names in this registry.
	Host string `json:"host"`
	// Alias is a second host and port of the registry, for tests of pulls without credentials. For this address, the node
	// has neither credentials nor a certificate authority.
	Alias string `json:"alias"`
	URL   string `json:"url"`
	// Username and Password are empty if the registry requires no credentials.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// PasswordFile is the path of the file with the users of all registries that require a password. The registries
	// reload it after each change.
	PasswordFile string `json:"passwordFile,omitempty"`
	// CAFile is the path of the certificate authority's certificate, as PEM. It is empty for a registry without TLS.
	CAFile string `json:"caFile,omitempty"`
}

// Registry returns a registry by its name: open, private or secure.
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
