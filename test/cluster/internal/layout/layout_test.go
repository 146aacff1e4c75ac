// SPDX-License-Identifier: Apache-2.0

package layout_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

func TestNames(t *testing.T) {
	for _, test := range []struct {
		reason, name string
		valid        bool
	}{
		{"the default name", "fnr", true},
		{"digits and dashes may follow", "ci-2", true},
		{"a name is needed", "", false},
		{"a path would leave the directory of clusters", "../etc", false},
		{"upper case is no host name", "Fnr", false},
		{"long names make the paths of sockets too long", strings.Repeat("a", 21), false},
	} {
		if _, err := layout.New(test.name); (err == nil) != test.valid {
			t.Errorf("%s: New(%q) gives error %v", test.reason, test.name, err)
		}
	}
}

func TestClustersShareNothing(t *testing.T) {
	one, other := layout.Layout{Name: "one"}, layout.Layout{Name: "other"}
	for _, pair := range [][2]string{{one.Dir(), other.Dir()}, {one.Cgroup(), other.Cgroup()}} {
		if strings.HasPrefix(pair[0]+"/", pair[1]+"/") || strings.HasPrefix(pair[1]+"/", pair[0]+"/") {
			t.Errorf("%s and %s overlap", pair[0], pair[1])
		}
	}
}

func TestRegistryURL(t *testing.T) {
	if got, want := layout.Secure.URL(), "https://172.30.0.1:5002"; got != want {
		t.Errorf("the registry with TLS is at %s, want %s", got, want)
	}
	if got, want := layout.Open.URL(), "http://172.30.0.1:5000"; got != want {
		t.Errorf("the open registry is at %s, want %s", got, want)
	}
}
