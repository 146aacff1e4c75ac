// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// operatorJob is the job with the PodMonitor for function pods.
const operatorJob = "operator"

// podMonitor is what operatorConfig reads of one.
type podMonitor struct {
	Spec struct {
		Endpoints []struct {
			Port        string       `json:"port"`
			Relabelings []relabeling `json:"relabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// relabeling is a step, in the operator's spelling.
type relabeling struct {
	SourceLabels []string `json:"sourceLabels"`
	TargetLabel  string   `json:"targetLabel"`
	Regex        string   `json:"regex"`
	Replacement  string   `json:"replacement"`
	Action       string   `json:"action"`
}

// object is one of Prometheus' configuration.
type object = map[string]any

// prometheus returns the step in Prometheus' spelling.
func (r relabeling) prometheus() object {
	step := object{"action": cmp.Or(r.Action, "replace"), "regex": cmp.Or(r.Regex, "(.*)")}
	if len(r.SourceLabels) > 0 {
		step["source_labels"] = r.SourceLabels
	}
	if r.TargetLabel != "" {
		step["target_label"] = r.TargetLabel
		step["replacement"] = cmp.Or(r.Replacement, "$1")
	}
	return step
}

// functionPods returns the PodMonitor for function pods.
func functionPods(t *testing.T) (monitor podMonitor) {
	t.Helper()
	for _, o := range suite.Build(t, filepath.Join(root, "deploy", manifests.Operator)) {
		if o.GetKind() != "PodMonitor" || o.GetName() != "function-pods" {
			continue
		}
		content, err := o.MarshalJSON()
		if err = errors.Join(err, json.Unmarshal(content, &monitor)); err != nil {
			t.Fatal(err)
		}
	}
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].Port != "" {
		t.Fatalf("the PodMonitor has endpoints %+v, want one without a port", monitor.Spec.Endpoints)
	}
	return monitor
}

// operatorConfig returns what Prometheus' operator makes of the PodMonitor for function pods. It keeps none of their
// metrics, which the other configurations have already.
func (p place) operatorConfig(t *testing.T) map[string]any {
	t.Helper()
	const meta = "__meta_kubernetes_"
	steps := []any{relabeling{
		SourceLabels: []string{meta + "pod_labelpresent_fn_kpt_dev_image"}, Regex: "true", Action: "keep",
	}.prometheus()}
	for label, source := range map[string]string{
		"namespace": "namespace", "container": "pod_container_name", "pod": "pod_name",
	} {
		steps = append(steps, relabeling{SourceLabels: []string{meta + source}, TargetLabel: label}.prometheus())
	}
	for _, r := range functionPods(t).Spec.Endpoints[0].Relabelings {
		steps = append(steps, r.prometheus())
	}
	none := relabeling{SourceLabels: []string{"__name__"}, Regex: ".+", Action: "drop"}
	return object{
		"job_name": operatorJob, "relabel_configs": steps, "metric_relabel_configs": []any{none.prometheus()},
		"kubernetes_sd_configs": []any{
			object{"role": "pod", "namespaces": object{"names": []any{p.functions}}},
		},
	}
}
