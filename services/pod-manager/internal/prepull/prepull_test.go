// SPDX-License-Identifier: Apache-2.0

package prepull_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/prepull"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set   = pool.Function{Reference: "example.com/set:v1", Digest: "sha256:1"}
	label = pool.Function{Reference: "example.com/label:v1", Digest: "sha256:2"}
)

// node returns a node that pods fit, with changes.
func node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name),
		Labels: map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"},
	}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func image(f pool.Function) prepull.Image {
	return prepull.Image{Function: f, Spec: &corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelArchStable: "amd64"},
		Tolerations:  []corev1.Toleration{{Key: "functions", Operator: corev1.TolerationOpExists}},
	}}
}

// requiring has the pods of an image run only on nodes that one of the terms matches.
func requiring(i prepull.Image, terms ...corev1.NodeSelectorTerm) prepull.Image {
	i.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	return i
}

func pull(node string, f pool.Function) prepull.Pull { return prepull.Pull{Node: node, Function: f} }

func pod(of prepull.Pull) prepull.Pod {
	return prepull.Pod{Pull: of, Name: "p", UID: "p", Created: start}
}

func has(f pool.Function) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"mirror.example/x@" + f.Digest, "mirror.example/x:v1"}}}
	}
}

func taint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
}

func ownsAll(string) bool { return true }

// TestPlan has a new planner decide once.
func TestPlan(t *testing.T) {
	ended := pod(pull("a", set))
	ended.Ended = true
	stuck := pod(pull("a", set))
	stuck.Created = start.Add(-prepull.MaxAge)
	deleting := ended
	deleting.Deleting = true
	for _, row := range []struct {
		reason string
		nodes  []*corev1.Node
		images []prepull.Image
		pods   []prepull.Pod
		owns   func(string) bool
		create []prepull.Pull
		gone   int
	}{
		{reason: "no function is listed", nodes: []*corev1.Node{node("a")}},
		{
			reason: "each node pulls", nodes: []*corev1.Node{node("a"), node("b")}, images: []prepull.Image{image(set)},
			create: []prepull.Pull{pull("a", set), pull("b", set)},
		},
		{
			reason: "one image after the other on a node", nodes: []*corev1.Node{node("a")},
			images: []prepull.Image{image(set), image(label)}, create: []prepull.Pull{pull("a", set)},
		},
		{
			reason: "the node has it, from any registry", nodes: []*corev1.Node{node("a", has(set)), node("b", has(label))},
			images: []prepull.Image{image(set)}, create: []prepull.Pull{pull("b", set)},
		},
		{
			reason: "other architecture", images: []prepull.Image{image(set)},
			nodes: []*corev1.Node{node("a", func(n *corev1.Node) { n.Labels[corev1.LabelArchStable] = "arm64" })},
		},
		{
			reason: "other operating system", images: []prepull.Image{image(set)},
			nodes: []*corev1.Node{node("a", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" })},
		},
		{
			reason: "cordoned", images: []prepull.Image{image(set)},
			nodes: []*corev1.Node{node("a", func(n *corev1.Node) { n.Spec.Unschedulable = true })},
		},
		{
			reason: "not ready", images: []prepull.Image{image(set)},
			nodes: []*corev1.Node{node("a", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })},
		},
		{
			reason: "being deleted", images: []prepull.Image{image(set)},
			nodes: []*corev1.Node{node("a", func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.NewTime(start)) })},
		},
		{
			reason: "taints keep pods away unless they are tolerated", images: []prepull.Image{image(set)},
			nodes: []*corev1.Node{
				node("a", taint("other", corev1.TaintEffectNoSchedule)), node("b", taint("other", corev1.TaintEffectNoExecute)),
				node("c", taint("functions", corev1.TaintEffectNoSchedule)),
				node("d", taint("other", corev1.TaintEffectPreferNoSchedule)),
			},
			create: []prepull.Pull{pull("c", set), pull("d", set)},
		},
		{
			reason: "the template requires other nodes", nodes: []*corev1.Node{
				node("a"), node("b", func(n *corev1.Node) { n.Labels["disk"] = "fast" }), node("c"),
			},
			images: []prepull.Image{requiring(image(set), corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}},
			}, corev1.NodeSelectorTerm{
				MatchFields: []corev1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"c"},
				}},
			})},
			create: []prepull.Pull{pull("b", set), pull("c", set)},
		},
		{
			reason: "a pod is at it", nodes: []*corev1.Node{node("a")}, images: []prepull.Image{image(set)},
			pods: []prepull.Pod{pod(pull("a", set))},
		},
		{
			reason: "a pod of another replica's function is on the node", nodes: []*corev1.Node{node("a")},
			images: []prepull.Image{image(set)}, pods: []prepull.Pod{pod(pull("a", label))},
		},
		{
			reason: "a pod has ended: its node pulls no other image before it is gone", nodes: []*corev1.Node{node("a")},
			images: []prepull.Image{image(set), image(label)}, pods: []prepull.Pod{ended}, gone: 1,
		},
		{
			reason: "a pod whose function is not listed any more has ended", nodes: []*corev1.Node{node("a")},
			pods: []prepull.Pod{ended}, gone: 1,
		},
		{reason: "another replica deletes it", pods: []prepull.Pod{ended}, owns: func(string) bool { return false }},
		{reason: "it is being deleted", pods: []prepull.Pod{deleting}},
		{reason: "it does not end", pods: []prepull.Pod{stuck}, gone: 1},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if row.owns == nil {
				row.owns = ownsAll
			}
			plan := prepull.NewPlanner().Plan(prepull.State{
				Now: start, Nodes: row.nodes, Images: row.images, Pods: row.pods, Owns: row.owns,
			})
			if !slices.Equal(plan.Create, row.create) || len(plan.Delete) != row.gone {
				t.Errorf("creates %v and deletes %v, want %v and %d", plan.Create, plan.Delete, row.create, row.gone)
			}
		})
	}
}

// world has a planner decide again and again.
type world struct {
	*prepull.Planner
	prepull.State
}

func newWorld(nodes ...*corev1.Node) *world {
	return &world{prepull.NewPlanner(), prepull.State{
		Now: start, Nodes: nodes, Images: []prepull.Image{image(set)}, Owns: ownsAll,
	}}
}

// after returns what the planner creates after some time.
func (w *world) after(passed time.Duration) []prepull.Pull {
	w.Now = w.Now.Add(passed)
	return w.Plan(w.State).Create
}

// expect checks how many pods the planner creates after some time.
func (w *world) expect(t *testing.T, reason string, passed time.Duration, want int) {
	t.Helper()
	if got := w.after(passed); len(got) != want {
		t.Errorf("%s: creates %v, want %d", reason, got, want)
	}
}

func TestPodsAreBounded(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 100 {
		nodes = append(nodes, node(fmt.Sprint("n", i)))
	}
	w := newWorld(nodes...)
	created := w.after(0)
	if len(created) != 16 {
		t.Fatalf("creates %d pods at a time, want 16", len(created))
	}
	w.expect(t, "none is in the informer yet", time.Second, 0)
	for _, pull := range created {
		w.Pods = append(w.Pods, pod(pull))
	}
	w.expect(t, "all run", time.Minute, 0)
	w.Pods = w.Pods[1:]
	w.Ended(w.Now, created[0], "", false)
	w.expect(t, "one has ended", 0, 1)
}

// TestPodsEndOnce has the informer show a pod that has been deleted as it was before.
func TestPodsEndOnce(t *testing.T) {
	w := newWorld(node("a"))
	ended := pod(pull("a", set))
	ended.Ended, ended.Problem = true, "ErrImagePull"
	w.Pods = []prepull.Pod{ended}
	for _, want := range []int{1, 0} {
		if plan := w.Plan(w.State); len(plan.Delete) != want {
			t.Errorf("deletes %v, want %d", plan.Delete, want)
		}
		w.Ended(w.Now, ended.Pull, ended.UID, true)
	}
}

func TestPulledImagesAreRemembered(t *testing.T) {
	w := newWorld(node("a"))
	w.expect(t, "at first", 0, 1)
	w.Ended(w.Now, pull("a", set), "", false)
	if plan := w.Plan(w.State); plan.Missing != 0 {
		t.Errorf("%d images are missing after a pull", plan.Missing)
	}
	w.expect(t, "the status of the node does not name it", 23*time.Hour, 0)
	w.expect(t, "a day later it may be gone", time.Hour, 1)
	w.Ended(w.Now, pull("a", set), "", false)
	w.Nodes[0].UID = "another"
	w.expect(t, "another node has the name", 0, 1)
	w.Ended(w.Now, pull("a", set), "", false)
	moved := set
	moved.Digest = "sha256:3"
	w.Images = []prepull.Image{image(moved)}
	w.expect(t, "the tag has another digest", 0, 1)
}

func TestFailuresHaveBackoff(t *testing.T) {
	w := newWorld(node("a"))
	w.expect(t, "at first", 0, 1)
	for _, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		w.Ended(w.Now, pull("a", set), "", true)
		if plan := w.Plan(w.State); plan.Missing != 1 {
			t.Errorf("%d images are missing, want 1", plan.Missing)
		}
		w.expect(t, "too early", time.Duration(minutes)*time.Minute-time.Second, 0)
		w.expect(t, "in time", time.Second, 1)
	}
}
