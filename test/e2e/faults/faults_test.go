// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// TestFaults breaks things of one system only, in three systems at the same time, and then the
// cluster, with nothing else on it.
func TestFaults(t *testing.T) {
	sys := deploy(t, microservices)
	sys.settle(t)
	sys.abandon(t)
	before := sys.least(t)
	t.Run("of systems", func(t *testing.T) {
		t.Run("several processes", func(t *testing.T) {
			t.Parallel()
			breakAll(t, sys, before, slices.Concat(podFaults, furtherPodFaults), severalProcessesFaults)
		})
		t.Run("one process", testOneProcess)
		t.Run("two pod-managers", testTwoPodManagers)
	})
	breakEach(t, sys, before, clusterFaults)
	// By now the Service whose pod was deleted by another client is old enough to be collected.
	sys.awaitNoService(suite.Context(t), t)
}

// testOneProcess breaks pods of the system in one process, and that process. Its node's clock is
// wrong.
func testOneProcess(t *testing.T) {
	t.Parallel()
	sys := deploy(t, functionRunner, wrongTime(t, behind)...)
	sys.settle(t)
	breakAll(t, sys, sys.least(t), slices.Concat(podFaults, oneProcessPodFaults), oneProcessFaults)
}

// testTwoPodManagers breaks pods that both replicas know, and one of the two.
func testTwoPodManagers(t *testing.T) {
	t.Parallel()
	sys := deploy(t, twoPodManagers)
	sys.settle(t)
	breakAll(t, sys, sys.least(t), podFaults, twoPodManagersFaults)
}

// breakAll breaks pods of a system, and then its other components one after the other. Faults of
// only one function's pods are tested at the same time.
func breakAll(t *testing.T, sys *system, before level, ofPods, ofSystem []faultTest) {
	t.Logf("before there are %v", before)
	t.Run("of pods", func(t *testing.T) {
		for _, test := range ofPods {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, sys)
			})
		}
	})
	t.Run("of pods leave nothing", func(t *testing.T) { sys.returnsTo(t, before) })
	breakEach(t, sys, before, ofSystem)
}

// breakEach breaks one thing after the other.
func breakEach(t *testing.T, sys *system, before level, faults []faultTest) {
	for _, test := range faults {
		t.Run(test.name, func(t *testing.T) { test.run(t, sys) })
		t.Run(test.name+" leaves nothing", func(t *testing.T) { sys.returnsTo(t, before) })
	}
}

// settle makes all programs open the connections that they keep, before anything breaks.
func (sys *system) settle(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		sys.sleeper(t, "first").awaitSuccess(t) // the Services' rules may arrive a moment after their pods
		ctx := suite.Context(t)
		suite.Until(ctx, t, "each pod-manager was asked for an image of its own", func() (bool, string) {
			sys.askForMissing(ctx, t)
			for name := range sys.pods {
				page, err := sys.metrics(ctx, name)
				if strings.HasPrefix(name, "pod-manager") && !strings.Contains(page, `PodManagerService/Lease"`) {
					return false, fmt.Sprintf("%s was not: %v", name, err)
				}
			}
			return true, ""
		})
	})
}

// askForMissing requests images that do not exist, of which each of several pod-managers owns some,
// once the gateway knows it.
func (sys *system) askForMissing(ctx context.Context, t *testing.T) {
	t.Helper()
	const images = 16
	for n := range images {
		f := &function{system: sys, image: fmt.Sprintf("%s/test/sleep:missing-%d", s.Registry(t, "open").Host, n)}
		if err := f.evaluateWithin(ctx, failureDeadline, 0); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s: %v, want that the image does not exist", f.image, err)
		}
	}
}

// faultTest is a test of one fault.
type faultTest struct {
	name string
	run  func(t *testing.T, sys *system)
}

// podFaults concern the pods of one function only, and are tested with each way to deploy the
// system. The one that takes longest comes first.
var podFaults = []faultTest{
	{"caller gives up for good", callerGivesUpForGood},
	{"pod deleted while idle", podDeletedWhileIdle},
	{"pod deleted while evaluating", podDeletedWhileEvaluating},
	{"pod killed while evaluating", podKilledWhileEvaluating},
	{"wrapper killed", wrapperKilled},
	{"image missing", imageMissing},
	{"function out of memory", functionOutOfMemory},
	{"caller gives up", callerGivesUp},
	{"caller gives up while evaluating", callerGivesUpWhileEvaluating},
}

// furtherPodFaults have the same effect with each way to deploy the system.
var furtherPodFaults = []faultTest{
	{"Service deleted", serviceDeleted},
	{"image without rights", imageWithoutRights},
	{"image that the node cannot pull", imageNodeCannotPull},
	{"image without a command", imageWithoutCommand},
	{"image that crashes", imageCrashes},
	{"container that cannot be started", containerNotStarted},
	{"function that crashes", functionCrashes},
	{"caller gives up on a function that ignores signals", callerGivesUpOnStubborn},
	{"clock an hour behind", clockBehind},
	{"clock an hour ahead", clockAhead},
}

// severalProcessesFaults concern all callers of the system.
var severalProcessesFaults = []faultTest{
	{"quota reached", quotaReached},
	{"template broken", templateBroken},
	{"pod-manager killed", podManagerKilled},
	{"gateway killed", gatewayKilled},
}

// clusterFaults concern everything on the cluster.
var clusterFaults = []faultTest{
	{"node unschedulable", nodeUnschedulable},
	{"containerd restarted", containerdRestarted},
	{"kubelet restarted", kubeletRestarted},
	{"API server gone", apiServerGone},
}

// oneProcessPodFaults are for the automatic launcher, and for a wrong clock.
var oneProcessPodFaults = []faultTest{
	{"container that cannot be started", containerNotStarted},
	{"own clock an hour behind", ownClockBehind},
}

// oneProcessFaults concern the process: the next one has a wrong clock, too.
var oneProcessFaults = []faultTest{
	{"function-runner killed", functionRunnerKilled},
	{"own clock an hour behind again", ownClockBehind},
}

// twoPodManagersFaults concern one of the two.
var twoPodManagersFaults = []faultTest{
	{"pod-manager killed", podManagerKilled},
}
