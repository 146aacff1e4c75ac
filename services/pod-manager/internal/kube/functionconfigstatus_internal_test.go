// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/libs/binaries"
)

// TestReplicasWithoutAReportKeepTheReportOfOthers has problems that are too long for a status.
func TestReplicasWithoutAReportKeepTheReportOfOthers(t *testing.T) {
	for _, problems := range [][]string{nil, {"short"}, {strings.Repeat("long", 1000)}} {
		written := statusError(problems, binaries.GatewayMark+"no such file")
		object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"error": written}}}
		status := configStatus{problem: statusError(problems, ""), unreported: true}
		if patch := status.patchFor(object); patch != nil {
			t.Errorf("a replica without a report replaces %.40q by %v", written, patch)
		}
	}
}
