// SPDX-License-Identifier: Apache-2.0

// Package prepull decides which nodes pull the images of listed functions before a pod needs them. It does no I/O and
// has no clock.
//
// What a node has is in its status. That names 50 images unless its kubelet is configured otherwise, so a [Planner]
// also remembers what it had pulled. A new one does not: it creates pods again for images that no status names, as
// many at a time as always, and these pods find their images on the node.
package prepull

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// maxNodes is how many nodes pull images at a time, for all replicas together. Each has one pod at a time:
	// kubelets pull one image after the other anyway.
	maxNodes = 16
	// unseen is how long a created pod counts that the informer does not have yet.
	unseen = 30 * time.Second
	// minBackoff and maxBackoff are when a node tries an image again that it could not pull.
	minBackoff, maxBackoff = time.Minute, time.Hour
	// remembered is when an image is pulled again that the status of its node does not name: the kubelet may have
	// deleted it, and should not be made to pull it as often as it does.
	remembered = 24 * time.Hour
	// MaxAge is when a pod counts as failed that has not ended: nothing may schedule it, or its kubelet be gone.
	MaxAge = 15 * time.Minute
)

// Pull is an image that a node pulls.
type Pull struct {
	Node     string
	Function pool.Function
}

// Image is an image that nodes should have.
type Image struct {
	Function pool.Function
	// Spec is that of its function's pods, for the nodes that they may run on.
	Spec *corev1.PodSpec
}

// Pod is a pre-pull pod that exists.
type Pod struct {
	Pull
	Name    string
	UID     types.UID
	Created time.Time
	// Deleting reports that it is being deleted.
	Deleting bool
	// Ended reports that it has come to its end, and Problem has why the image was not pulled.
	Ended   bool
	Problem string
}

// State is what is known of a cluster.
type State struct {
	Now    time.Time
	Nodes  []*corev1.Node
	Images []Image // of functions that this replica owns
	Pods   []Pod
	// Owns reports whether this replica owns an image's function.
	Owns func(image string) bool
}

// Plan is what to do now.
type Plan struct {
	Create []Pull
	// Delete are pods that have ended: [Planner.Ended] has to be called for each that is deleted.
	Delete []Pod
	// Missing counts the images that nodes do not have, each once for each node, as far as that is known.
	Missing int
}

// Planner decides, and remembers what nodes have pulled. Use [NewPlanner].
type Planner struct {
	attempts map[Pull]attempt
	nodes    map[string]types.UID // of the last plan
}

// attempt is the last attempt to have a node pull an image.
type attempt struct {
	node     types.UID // another node may get its name
	pod      types.UID // that has ended, and has been deleted
	pulled   bool      // it succeeded
	failures int       // since the last success
	next     time.Time // when the node may pull the image again
	unseen   time.Time // until when its pod counts, although it is in no list
}

// NewPlanner returns a Planner that remembers nothing.
func NewPlanner() *Planner { return &Planner{attempts: make(map[Pull]attempt)} }

// Plan returns what to do in a state.
func (p *Planner) Plan(s State) Plan {
	p.forget(s)
	var plan Plan
	work := p.workload(s, &plan)
	onNode := make([]map[string]bool, len(s.Nodes))
	for i, node := range s.Nodes {
		onNode[i] = digests(node)
	}
	for _, image := range s.Images {
		place := newPlacement(image.Spec)
		for i, node := range s.Nodes {
			pull := Pull{Node: node.Name, Function: image.Function}
			last := p.attempts[pull]
			waits := s.Now.Before(last.next)
			if onNode[i][image.Function.Digest] || last.pulled && waits || !place.fits(node) {
				continue
			}
			plan.Missing++
			if len(work) >= maxNodes || work[node.Name] || waits {
				continue
			}
			work[node.Name] = true
			plan.Create = append(plan.Create, pull)
			p.attempts[pull] = attempt{
				node: node.UID, failures: last.failures, next: s.Now.Add(minBackoff), unseen: s.Now.Add(unseen),
			}
		}
	}
	return plan
}

// workload returns the nodes that pull an image now, and plans to delete the pods that are done.
func (p *Planner) workload(s State, plan *Plan) map[string]bool {
	work := make(map[string]bool)
	for pull, a := range p.attempts {
		if s.Now.Before(a.unseen) {
			work[pull.Node] = true
		}
	}
	for _, pod := range s.Pods {
		work[pod.Node] = true
		if !pod.Ended && s.Now.Sub(pod.Created) >= MaxAge {
			pod.Ended, pod.Problem = true, "the pod has not ended for "+MaxAge.String()
		}
		known := pod.Deleting || pod.UID == p.attempts[pod.Pull].pod // the informer may not have its deletion yet
		if pod.Ended && !known && s.Owns(pod.Function.Reference) {
			plan.Delete = append(plan.Delete, pod)
		}
	}
	return work
}

// forget forgets attempts of images that are not listed any more, and of nodes that are gone.
func (p *Planner) forget(s State) {
	p.nodes = make(map[string]types.UID, len(s.Nodes))
	for _, node := range s.Nodes {
		p.nodes[node.Name] = node.UID
	}
	listed := make(map[pool.Function]bool, len(s.Images))
	for _, image := range s.Images {
		listed[image.Function] = true
	}
	maps.DeleteFunc(p.attempts, func(pull Pull, a attempt) bool {
		uid, ok := p.nodes[pull.Node]
		return !ok || uid != a.node || !listed[pull.Function]
	})
}

// Ended records how an attempt has ended, and the pod that was deleted; empty if none was created.
func (p *Planner) Ended(now time.Time, pull Pull, pod types.UID, failed bool) {
	last := attempt{node: p.nodes[pull.Node], pod: pod, pulled: true, next: now.Add(remembered)}
	if failed {
		failures := p.attempts[pull].failures + 1
		last.pulled, last.failures = false, failures
		last.next = now.Add(min(minBackoff<<min(failures-1, 10), maxBackoff))
	}
	p.attempts[pull] = last
}
