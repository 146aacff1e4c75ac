// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"maps"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// GatewayMark is the prefix of problems that a gateway in another process reported, so that the pod-manager
// recognizes them in the status of a FunctionConfig.
const GatewayMark = "gateway: "

// maxProblems is the maximum number of problems that a gateway reports in a request. maxProblem is the maximum
// length of each problem in bytes.
const maxProblems, maxProblem = 1000, 512

// boundProblems limits the size of a request: it returns at most maxProblems of the problems, each shortened to
// maxProblem bytes.
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

// request returns the request that starts a watch. It contains the problems that the gateway found in the previous
// list of binaries.
func request(problems Problems) *podmanagerv1.WatchBinariesRequest {
	if problems == nil {
		return &podmanagerv1.WatchBinariesRequest{}
	}
	return &podmanagerv1.WatchBinariesRequest{Problems: &podmanagerv1.BinaryProblems{ByConfig: problems}}
}

// receivedProblems returns the problems in a gateway's message, marked with GatewayMark. It returns nil if the
// message contains no report.
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
