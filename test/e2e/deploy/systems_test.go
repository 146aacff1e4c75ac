// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// root is the repository's root, relative to this directory.
const root = "../../.."

var s *suite.Suite

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// place is the pair of namespaces of a system.
type place struct {
	// system is the namespace of the services, and functions that of function pods.
	system, functions string
}

// usual is the place where manifests install a system. It can hold one system at a time: its
// user holds the lock.
var (
	usual      = place{system: "porch-system", functions: "porch-fn-system"}
	usualTaken sync.Mutex
)

// aside is another place, for systems side by side.
func aside(name string) place {
	return place{system: usual.system + "-" + name, functions: usual.functions + "-" + name}
}

// clean removes a place's namespaces when the test ends. For the usual place, it waits for the lock
// and holds it until then.
func (p place) clean(t *testing.T) {
	t.Helper()
	if p == usual {
		usualTaken.Lock()
	}
	t.Cleanup(func() {
		if p == usual {
			defer usualTaken.Unlock()
		}
		// The programs that create function pods are deleted before the pods.
		s.RemoveNamespace(t, p.system)
		s.RemoveNamespace(t, p.functions)
	})
}

// objects returns the objects to install, with the test bed's images of a version.
func (p place) objects(t *testing.T, version suite.Version,
	objects []*unstructured.Unstructured,
) []*unstructured.Unstructured {
	t.Helper()
	names := strings.NewReplacer(usual.system, p.system, usual.functions, p.functions)
	return suite.Rewrite(t, objects,
		func(document string) string { return s.OwnImages(t, version, names.Replace(document)) })
}

// install creates the namespaces, applies objects, and waits for their Deployments.
func (p place) install(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	p.clean(t)
	p.replace(t, append(suite.Namespaces(t), objects...))
}

// replace applies objects where others are, and waits for their Deployments.
func (p place) replace(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	s.Install(suite.Context(t), t, p.objects(t, suite.Current, objects)...)
}
