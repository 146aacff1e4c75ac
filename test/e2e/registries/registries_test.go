//go:build e2e

package registries_test

import (
	"os"
	"testing"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// registry is a registry of the test bed.
func registry(t *testing.T, name string) bed.Registry {
	t.Helper()
	if s.Bed == nil {
		t.Fatal("these tests need a cluster of the test bed: run them with `make e2e` and without KUBECONFIG")
	}
	registry, err := s.Bed.Registry(name)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}
