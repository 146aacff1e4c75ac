// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/config"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

func TestComponentsOfTwoClustersShareNoDirectory(t *testing.T) {
	programs := config.Programs{
		Kubernetes: "/cache/kubernetes", Containerd: "/cache/containerd",
		CoreDNS: "/cache/coredns",
	}
	other := layout.Layout{Name: "other"}.Dir()
	names := map[string]bool{}
	for _, spec := range config.Components(layout.Layout{Name: "one"}, programs) {
		if names[spec.Name] {
			t.Errorf("there are two components %s: their logs would be one", spec.Name)
		}
		names[spec.Name] = true
		if line := strings.Join(spec.Command, " "); strings.Contains(line, other) {
			t.Errorf("%s uses another cluster's directory: %s", spec.Name, line)
		}
	}
	for _, name := range []string{"etcd", "kube-apiserver", "containerd", "kubelet", "coredns", "registry-secure"} {
		if !names[name] {
			t.Errorf("component %s is missing", name)
		}
	}
}
