//go:build e2e

package faults_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestFaults breaks one thing after the other in the same system. What breaks only one
// function's pods is tested at the same time.
func TestFaults(t *testing.T) {
	sys := microservices(t)
	abandon(t, sys)
	before := sys.level(suite.Context(t), t)
	t.Logf("before there are %v", before)
	breakPods(t, sys, podFaults)
	t.Run("leave nothing", func(t *testing.T) { sys.returnsTo(t, before) })
	// By the time that all the rest is done these are old enough to be collected.
	alone := sys.serviceNames(suite.Context(t), t, "")
	for _, test := range systemFaults {
		t.Run(test.name, func(t *testing.T) { test.run(t, sys) })
		t.Run(test.name+" leaves nothing", func(t *testing.T) { sys.returnsTo(t, before) })
	}
	if len(alone) == 0 {
		t.Error("no Service was left by a pod that somebody deleted: that they are collected is not seen")
	}
	sys.awaitNoService(suite.Context(t), t, alone)
}

// TestFaultsInOneProcess breaks some pods of the system that is one process.
func TestFaultsInOneProcess(t *testing.T) {
	t.Parallel() // with the next test, when nothing breaks the cluster any more
	sys := functionRunner(t)
	sys.sleeper(t, "first").awaitSuccess(t)
	before := sys.level(suite.Context(t), t)
	breakPods(t, sys, podFaults[:few])
	t.Run("leave nothing", func(t *testing.T) { sys.returnsTo(t, before) })
}

// TestFaultsWithTwoPodManagers breaks some pods that both know, and one of the two.
func TestFaultsWithTwoPodManagers(t *testing.T) {
	t.Parallel()
	sys := twoPodManagers(t)
	sys.sleeper(t, "first").awaitSuccess(t)
	before := sys.level(suite.Context(t), t)
	breakPods(t, sys, podFaults[:few])
	t.Run("leave nothing", func(t *testing.T) { sys.returnsTo(t, before) })
	t.Run("pod-manager killed", func(t *testing.T) { podManagerKilled(t, sys) })
	t.Run("pod-manager killed leaves nothing", func(t *testing.T) { sys.returnsTo(t, before) })
}

// breakPods breaks the pods of functions, all at a time.
func breakPods(t *testing.T, sys *system, tests []faultTest) {
	t.Run("of pods", func(t *testing.T) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, sys)
			})
		}
	})
}

// faultTest is a test of one fault.
type faultTest struct {
	name string
	run  func(t *testing.T, sys *system)
}

// few is how many of podFaults are for other ways to deploy the system too.
const few = 6

// podFaults are those that concern the pods of one function only.
var podFaults = []faultTest{
	{"pod deleted while idle", podDeletedWhileIdle},
	{"wrapper killed", wrapperKilled},
	{"image missing", imageMissing},
	{"out of memory", outOfMemory},
	{"caller gives up", callerGivesUp},
	{"caller gives up while evaluating", callerGivesUpWhileEvaluating},
	{"pod deleted while evaluating", podDeletedWhileEvaluating},
	{"pod killed while evaluating", podKilledWhileEvaluating},
	{"Service deleted", serviceDeleted},
	{"image without rights", imageWithoutRights},
	{"image that the node cannot pull", imageNodeCannotPull},
	{"image that crashes", imageCrashes},
	{"function that crashes", functionCrashes},
	{"caller gives up for good", callerGivesUpForGood},
	{"caller gives up on a function that ignores signals", callerGivesUpOnStubborn},
	{"clock an hour behind", clockBehind},
	{"clock an hour ahead", clockAhead},
}

// systemFaults are those that concern everybody.
var systemFaults = []faultTest{
	{"quota reached", quotaReached},
	{"node unschedulable", nodeUnschedulable},
	{"template broken", templateBroken},
	{"containerd restarted", containerdRestarted},
	{"kubelet restarted", kubeletRestarted},
	{"API server gone", apiServerGone},
	{"pod-manager killed", podManagerKilled},
	{"gateway killed", gatewayKilled},
}
