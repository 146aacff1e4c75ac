// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// rendered returns the output of a template.
func rendered(t *testing.T, name string, data any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new directory", name)
	if err := renderFile(path, name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestComponentFilesAreWellFormed(t *testing.T) {
	data := view{Layout: layout.Layout{Name: "one"}}
	for _, test := range []struct {
		file string
		into func([]byte, any) error
		want string
	}{
		{"audit.yaml", unmarshalYAML, "system:serviceaccounts"},
		{"kubelet.yaml", unmarshalYAML, "cgroupRoot: /fnr-one"},
		{"kube-proxy.yaml", unmarshalYAML, "/clusters/one/config/kube-proxy.kubeconfig"},
		{"kube-proxy.yaml", unmarshalYAML, "masqueradeAll: false"},
		{"cni.conflist", json.Unmarshal, layout.PodCIDR},
		{"containerd.toml", nil, "sandbox = '172.30.0.1:5000/pause:latest'"},
		{"Corefile", nil, "kubernetes cluster.local"},
		{"resolv.conf", nil, "nameserver 172.30.0.1\n"},
	} {
		content := rendered(t, test.file, data)
		if !strings.Contains(content, test.want) {
			t.Errorf("%s has no %q:\n%s", test.file, test.want, content)
		}
		if test.into == nil {
			continue
		}
		var parsed map[string]any
		if err := test.into([]byte(content), &parsed); err != nil {
			t.Errorf("%s: %v", test.file, err)
		}
	}
}

func TestRegistryFilesMatchTheirRegistries(t *testing.T) {
	for _, registry := range layout.Registries() {
		content := rendered(t, "registry.yaml", registryView{Registry: registry, Secret: "s", Storage: "/storage"})
		var parsed struct {
			HTTP map[string]any `json:"http"`
			Auth map[string]any `json:"auth"`
		}
		if err := unmarshalYAML([]byte(content), &parsed); err != nil {
			t.Fatalf("registry %s: %v", registry.Name, err)
		}
		if auth := parsed.Auth["htpasswd"] != nil; auth != registry.Auth {
			t.Errorf("registry %s asks for a password: %t, want %t", registry.Name, auth, registry.Auth)
		}
		if tls := parsed.HTTP["tls"] != nil; tls != registry.TLS {
			t.Errorf("registry %s has TLS: %t, want %t", registry.Name, tls, registry.TLS)
		}
	}
}

func TestTokensAreOneLineForEachUser(t *testing.T) {
	secrets := NewSecrets()
	lines, err := csv.NewReader(strings.NewReader(rendered(t, "tokens.csv", listAccounts(secrets)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]bool{}
	for _, line := range lines {
		tokens[line[0]] = true
	}
	if len(tokens) != len(listAccounts(secrets)) {
		t.Errorf("%d different tokens for %d users", len(tokens), len(listAccounts(secrets)))
	}
}

func TestPasswordFileHasTheHashOnly(t *testing.T) {
	secrets := NewSecrets()
	path := filepath.Join(t.TempDir(), "htpasswd")
	if err := writePasswords(path, secrets); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	user, hash, _ := strings.Cut(strings.TrimSpace(string(content)), ":")
	if user != RegistryUser {
		t.Errorf("the user is %q", user)
	}
	if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(secrets.RegistryPassword())); err != nil {
		t.Errorf("the hash is not the password's: %v", err)
	}
}

func TestSecretsOfTwoClustersDiffer(t *testing.T) {
	one, other := NewSecrets(), NewSecrets()
	if one.RegistryPassword() == other.RegistryPassword() {
		t.Error("two clusters have the same password")
	}
}

func unmarshalYAML(content []byte, into any) error { return yaml.Unmarshal(content, into) }
