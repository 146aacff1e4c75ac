// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestFunctions runs functions of all kinds, again and again, and a restart.
func TestFunctions(t *testing.T) {
	eachMode(t, nil, func(t *testing.T, sys *system) {
		for _, test := range []struct {
			name string
			run  func(t *testing.T, sys *system)
		}{
			{"of the catalog", catalogFunction},
			{"of other kinds", functionsOfOtherKinds},
			{"warm ones ask Kubernetes for nothing", warmPathAsksKubernetesForNothing},
			{"keep their pods over a restart", restartAdoptsPods},
		} {
			t.Run(test.name, func(t *testing.T) { test.run(t, sys) })
		}
	})
}

// catalogFunction is the system's first function.
func catalogFunction(t *testing.T, sys *system) {
	conn := sys.connect(t)
	for _, launched := range []string{"cold", "warm"} {
		if err := suite.SetNamespace(suite.Context(t), conn, catalog(t, "set-namespace:v0.4.5")); err != nil {
			t.Fatalf("%s: %v", launched, err)
		}
	}
	if is := pool(t, conn, catalog(t, "set-namespace:v0.4.5")); is.GetColdStartsTotal() != 1 {
		t.Errorf("the pool is %v, want a cold start only for the first evaluation", is)
	}
	// While a busy machine keeps the pod from answering, there may be a second pod.
	suite.Until(suite.Context(t), t, "there is a pod for both", func() (bool, string) {
		pods := names(sys.functionPods(t))
		return len(pods) == 1, fmt.Sprint(pods)
	})
}

// functionsOfOtherKinds runs one that is not a static program, and one whose image has both an
// entrypoint and a command, which also writes to the fixed paths that containers have.
func functionsOfOtherKinds(t *testing.T, sys *system) {
	out, err := evaluate(suite.Context(t), sys.connect(t), s.Registry(t, "open").Host+"/test/nodejs:v1", suite.List)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "kind: ResourceList") || !strings.Contains(out, "name: settings") {
		t.Errorf("the function wrote:\n%s", out)
	}
	out, err = evaluate(suite.Context(t), sys.connect(t), s.Registry(t, "open").Host+"/test/entrypoint:v1", suite.List)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"", "/tmp: ", "/dev/shm: "} {
		line := place + `["/usr/local/bin/function" "from-entrypoint" "from-cmd" "two words"]`
		if !strings.Contains(out, line) {
			t.Errorf("the function has no result %s:\n%s", line, out)
		}
	}
}

// TestConformance is the suite that the exec evaluator and the wrapper server pass too.
func TestConformance(t *testing.T) {
	eachMode(t, map[string]string{"FNR_MAX_CONCURRENCY": "64"}, func(t *testing.T, sys *system) {
		conformance.Run(t, conformance.Target{
			Serve: func(t *testing.T, behaviour string) conformance.Function {
				return conformance.Function{
					Address: sys.gateway,
					Image:   s.Registry(t, "open").Host + "/" + conformance.Repository(behaviour) + ":v1",
				}
			},
			NamesFunctions: true,
			UnknownImage:   codes.Unavailable, // no name server has the names of their registries
			Texts:          conformance.PodTexts("unable to evaluate %[1]s with pod evaluator: "),
		})
	})
}
