// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// TestPrivateRegistriesMustBeListed has registries at private addresses, where only public ones are permitted: open and
// closed ports of unlisted ones cannot be told apart.
func TestPrivateRegistriesMustBeListed(t *testing.T) {
	w := newWorld(t)
	w.PublicOnly = true
	w.Local = []string{"10.1.2.3"}
	w.Insecure = []string{"10.1.2.4"}
	open := w.add(t, "10.1.2.5")
	w.hosts["10.1.2.4"] = open.Host
	open.Push(t, "fn:v1", v1.Config{Cmd: []string{"fn"}})
	if _, err := w.manifest(t, "10.1.2.4/fn", "v1"); err != nil {
		t.Errorf("a registry that is listed as insecure: %v", err)
	}
	if _, err := w.manifest(t, "10.1.2.3/fn", "v1"); err == nil || strings.Contains(err.Error(), "rejected") {
		t.Errorf("a registry that is listed, and is not there: %v, want that it does not answer", err)
	}
	var texts []string
	for _, host := range []string{"10.1.2.5", "10.1.2.6"} { // the second one is not there
		_, err := w.manifest(t, host+"/fn", "v1")
		if fault.Of(err) != fault.Precondition {
			t.Errorf("%s: %v, want Precondition", host, err)
			continue
		}
		texts = append(texts, strings.ReplaceAll(err.Error(), host, "HOST"))
	}
	if len(texts) == 2 && texts[0] != texts[1] {
		t.Errorf("errors %q tell an open port from a closed one", texts)
	}
}
