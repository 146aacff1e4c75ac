// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func TestInsideTheClusterThereIsNoProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy"} {
		t.Setenv(name, "proxy.example:3128")
	}
	t.Setenv("PROXY_OF_MINE", "stays")
	env := insideEnvironment(layout.Layout{Name: "one"}, state.State{})
	if i := slices.IndexFunc(env, namesProxy); i >= 0 {
		t.Errorf("commands in the cluster get %s", env[i])
	}
	if !slices.Contains(env, "PROXY_OF_MINE=stays") {
		t.Error("a variable is missing that names no proxy")
	}
}
