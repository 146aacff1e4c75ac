//go:build e2e

package faults_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestFaults breaks one thing after the other in systems that are deployed in each way.
// What breaks only one function's pods is tested at the same time, and what all systems
// share is broken once for all of them.
func TestFaults(t *testing.T) {
	shared := &meeting{events: map[string]*event{}}
	for _, d := range deployments {
		t.Run(d.name, func(t *testing.T) {
			shared.join(t)
			t.Parallel()
			sys := deploy(t, d)
			sys.shared = shared
			breakAll(t, sys)
		})
	}
}

// breakAll breaks one thing after the other in a system. In the end nothing is left.
func breakAll(t *testing.T, sys *system) {
	t.Run("first", func(t *testing.T) {
		sys.sleeper(t, "first").awaitSuccess(t) // the Services' rules may be a moment later than their pods
		sys.connectAll(t)
	})
	if sys.perPod {
		abandon(t, sys)
	}
	before := sys.least(t)
	t.Logf("before there are %v", before)
	t.Run("of pods", func(t *testing.T) {
		for _, test := range podFaults {
			if test.suits(sys) {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(t, sys)
				})
			}
		}
	})
	t.Run("of pods leave nothing", func(t *testing.T) { sys.returnsTo(t, before) })
	for _, test := range systemFaults {
		if test.suits(sys) {
			t.Run(test.name, func(t *testing.T) { test.run(t, sys) })
			t.Run(test.name+" leaves nothing", func(t *testing.T) { sys.returnsTo(t, before) })
		}
	}
	// By now the Service whose pod somebody else deleted is old enough to be collected.
	sys.awaitNoService(suite.Context(t), t)
}

// connectAll has callers ask for images that there are not, of which each pod-manager owns
// some: all programs have the connections then that they keep.
func (sys *system) connectAll(t *testing.T) {
	t.Helper()
	const images = 16
	for n := range images {
		f := sys.function(t, fmt.Sprintf("%s/test/sleep:missing-%d", s.Registry(t, "open").Host, n))
		if err := f.evaluateWithin(suite.Context(t), impatient, 0); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s: %v, want that there is no such image", f.image, err)
		}
	}
}

// faultTest is a test of one fault.
type faultTest struct {
	name string
	run  func(t *testing.T, sys *system)
	in   func(d deployment) bool // the systems in which there is such a thing; nil for all
}

func (f faultTest) suits(sys *system) bool { return f.in == nil || f.in(sys.deployment) }

// What systems have, or are.
func withServices(d deployment) bool { return d.perPod }
func withTemplate(d deployment) bool { return d.template }
func oneManager(d deployment) bool   { return !slices.Contains(d.programs, "pod-manager 2") } // what images do is the same with two
func oneProcess(d deployment) bool   { return len(d.programs) == 1 }
func severalProcesses(d deployment) bool {
	return !oneProcess(d)
}

// podFaults are those that concern the pods of one function only.
var podFaults = []faultTest{
	{name: "pod deleted while idle", run: podDeletedWhileIdle},
	{name: "pod deleted while evaluating", run: podDeletedWhileEvaluating},
	{name: "pod killed while evaluating", run: podKilledWhileEvaluating},
	{name: "wrapper killed", run: wrapperKilled},
	{name: "Service deleted", run: serviceDeleted, in: withServices},
	{name: "image missing", run: imageMissing, in: oneManager},
	{name: "image without rights", run: imageWithoutRights, in: oneManager},
	{name: "image that the node cannot pull", run: imageNodeCannotPull, in: oneManager},
	{name: "image without a command", run: imageWithoutCommand, in: oneManager},
	{name: "image that crashes", run: imageCrashes, in: oneManager},
	{name: "container that cannot be started", run: containerNotStarted, in: oneManager},
	{name: "function that crashes", run: functionCrashes, in: oneManager},
	{name: "function out of memory", run: functionOutOfMemory, in: oneManager},
	{name: "pod out of memory", run: podOutOfMemory, in: oneManager},
	{name: "caller gives up", run: callerGivesUp},
	{name: "caller gives up while evaluating", run: callerGivesUpWhileEvaluating},
	{name: "caller gives up for good", run: callerGivesUpForGood},
	{name: "caller gives up on a function that ignores signals", run: callerGivesUpOnStubborn},
	{name: "clock an hour behind", run: clockBehind},
	{name: "clock an hour ahead", run: clockAhead},
}

// systemFaults are those that concern everybody.
var systemFaults = []faultTest{
	{name: "quota reached", run: quotaReached},
	{name: "node unschedulable", run: nodeUnschedulable},
	{name: "template broken", run: templateBroken, in: withTemplate},
	{name: "containerd restarted", run: containerdRestarted},
	{name: "kubelet restarted", run: kubeletRestarted},
	{name: "API server gone", run: apiServerGone},
	{name: "pod-manager killed", run: podManagerKilled, in: severalProcesses},
	{name: "gateway killed", run: gatewayKilled, in: severalProcesses},
	{name: "function-runner killed", run: functionRunnerKilled, in: oneProcess},
}
