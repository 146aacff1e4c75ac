// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"maps"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// GatewayMark is the prefix of problems that a gateway in another process reported.
const GatewayMark = "gateway: "

// maxProblems is the maximum number of problems in a request, and maxProblem the maximum length of each problem in
// bytes.
const maxProblems, maxProblem = 1000, 512

// boundProblems returns at most maxProblems of the problems, each shortened to maxProblem bytes.
func boundProblems(problems Problems) Problems {
	if problems == nil {
		return nil
	}
	some := Problems{}
	for _, config := range slices.Sorted(maps.Keys(problems))[:min(len(problems), maxProblems)] {
		some[config] = excerpt.Middle(problems[config], maxProblem)
	}
	return some
}

// request returns the request of a watch. It reports the problems that the gateway found in the previous list.
func request(problems Problems) *podmanagerv1.WatchBinariesRequest {
	if problems == nil {
		return &podmanagerv1.WatchBinariesRequest{}
	}
	return &podmanagerv1.WatchBinariesRequest{Problems: &podmanagerv1.BinaryProblems{ByConfig: problems}}
}

// receivedProblems returns the problems of a message. It returns nil for a message without problems.
func receivedProblems(m *podmanagerv1.BinaryProblems) Problems {
	if m == nil {
		return nil
	}
	problems := Problems{}
	for config, problem := range m.GetByConfig() {
		problems[config] = GatewayMark + problem
	}
	return problems
}
