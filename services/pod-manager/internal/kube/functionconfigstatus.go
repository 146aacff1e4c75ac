// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// statusWriters is the number of goroutines that write statuses of FunctionConfig objects.
	statusWriters = 8
	// statusDelay is the delay before the status of a changed FunctionConfig object is written. If a local binary is
	// missing, gateways can report this error within the delay. The first status then already contains the error.
	statusDelay = 200 * time.Millisecond
	// unreportedDelay is the maximum delay of a status while a gateway's report on the local binary is missing. Gateways
	// need time to connect to this replica. The delay is limited, because they may report only to another replica.
	unreportedDelay = 2 * time.Second
	// minStatusRetry and maxStatusRetry limit the delay before a failed write of a status is retried.
	minStatusRetry = 100 * time.Millisecond
	maxStatusRetry = 5 * time.Minute
	// statusMark is the prefix of the errors that this program writes to a FunctionConfig object's status. Errors
	// without the prefix were written by other components.
	statusMark = "function-runner: "
	// maxStatusError is the maximum size of the problems in an object's status, in bytes.
	maxStatusError = 2 << 10
)

type configStatus struct {
	generation int64
	problem    string // error text, or empty if the whole object is effective
	// unreported is true for an object with a local binary while no gateway reports on binaries to this process.
	unreported bool
}

// wantedStatus returns the status that a FunctionConfig object should get. It returns false if this process has not
// applied the object's newest version yet.
func (f *FunctionConfigs) wantedStatus(u *unstructured.Unstructured) (configStatus, bool) {
	now := f.compiled.Load()
	config := now.configs[u.GetName()]
	if config == nil || config.UID != string(u.GetUID()) || config.Generation != u.GetGeneration() {
		return configStatus{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	reported := ""
	if config.Binary != nil {
		reported = f.binaries[config.Name]
	}
	text := statusError(now.set.Problems(config.Name), reported)
	return configStatus{config.Generation, text, f.binaries == nil && config.Binary != nil}, true
}

// reportDelay returns the remaining time to wait for a gateway's report on an object's local binary. If it is zero or
// negative, the status can be written now.
func (f *FunctionConfigs) reportDelay(name string, status configStatus) time.Duration {
	if !status.unreported {
		return 0
	}
	return time.Until(f.compiled.Load().since[name].Add(unreportedDelay))
}

// statusError returns the error text for an object's status, or "" if there are no problems. The text contains the
// problems, shortened to 2 KiB (maxStatusError), followed by the gateway's error. Because of this order, a replica
// without the gateway's report can compare the start of the text with its own problems.
func statusError(problems []string, reported string) string {
	text := ""
	if len(problems) > 0 {
		text = excerpt.Middle(statusMark+strings.Join(problems, "; "), maxStatusError)
	}
	switch {
	case reported == "":
		return text
	case text == "":
		return statusMark + reported
	default:
		return text + "; " + reported
	}
}

// patchFor returns the patch that writes this status to a FunctionConfig, or nil if none is necessary. An error that a
// gateway reported to another replica stays in the status. A new error does not change the observed generation. Without
// a new error, errors that other components wrote for the same generation stay.
func (s configStatus) patchFor(u *unstructured.Unstructured) map[string]any {
	generation, _, _ := unstructured.NestedInt64(u.Object, "status", "functionRunnerObservedGeneration")
	observed, _, _ := unstructured.NestedString(u.Object, "status", "error")
	switch {
	case s.unreported && ofGateway(observed, s.problem):
		return nil
	case s.problem != "" && observed == s.problem:
		return nil
	case s.problem != "":
		return map[string]any{"status": map[string]any{"error": s.problem}}
	case generation != s.generation && observed != "", strings.HasPrefix(observed, statusMark):
		return map[string]any{"status": map[string]any{"functionRunnerObservedGeneration": s.generation, "error": nil}}
	case generation != s.generation:
		return map[string]any{"status": map[string]any{"functionRunnerObservedGeneration": s.generation}}
	}
	return nil
}

// ofGateway reports whether observed is the problem, followed by a gateway's error about a local binary.
func ofGateway(observed, problem string) bool {
	return strings.HasPrefix(observed, cmp.Or(problem, statusMark)) && strings.Contains(observed, binaries.GatewayMark)
}

// forgetDeleted removes the statuses of deleted FunctionConfig objects from memory.
func (f *FunctionConfigs) forgetDeleted(now *functionConfigSnapshot) {
	there := make(map[string]bool, len(now.configs))
	for _, c := range now.configs {
		there[c.UID] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.written, func(uid string, _ configStatus) bool { return !there[uid] })
}

type statusWriter struct {
	*FunctionConfigs
	objects   dynamic.ResourceInterface
	store     cache.Store
	namespace string
}

// run writes the statuses of the objects in the queue until the queue is shut down.
func (w statusWriter) run(ctx context.Context) {
	for {
		name, shutdown := w.statuses.Get()
		if shutdown {
			return
		}
		err := w.writeStatus(ctx, name)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			w.statuses.Forget(name)
		case apierrors.IsForbidden(err):
			w.pauseWrites(ctx, err)
			w.statuses.AddAfter(name, maxStatusRetry)
		default:
			w.log.DebugContext(ctx, "status of a FunctionConfig not written, retrying", "config", name, "error", err)
			w.statuses.AddRateLimited(name)
		}
		w.statuses.Done(name)
	}
}

// pauseWrites pauses writes of statuses for 5 minutes after a denied write. It logs the first denial.
func (w statusWriter) pauseWrites(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.denied.IsZero() {
		w.log.WarnContext(ctx, "status of FunctionConfigs not writable", "error", err,
			"hint", "they are applied, without status; apply the Role of deploy/components/porch-main")
	}
	w.denied = time.Now().Add(maxStatusRetry)
}

// mayWrite reports whether statuses may be written now. If a recent write was denied, it queues the object for later.
func (w statusWriter) mayWrite(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := time.Until(w.denied)
	if wait > 0 {
		w.statuses.AddAfter(name, wait)
	}
	return wait <= 0
}

// writeStatus writes the status of a FunctionConfig object if it is out of date. If the object is being deleted,
// writeStatus instead removes Porch's finalizer, so that the deletion can complete.
func (w statusWriter) writeStatus(ctx context.Context, name string) error {
	object, _, err := w.store.GetByKey(w.namespace + "/" + name)
	u, ok := object.(*unstructured.Unstructured)
	if err != nil || !ok || !w.mayWrite(name) {
		return nil
	}
	if u.GetDeletionTimestamp() != nil {
		return w.removeFinalizer(ctx, u)
	}
	status, ok := w.wantedStatus(u)
	if !ok || w.alreadyWrote(u, status) {
		return nil
	}
	if wait := w.reportDelay(name, status); wait > 0 {
		w.statuses.AddAfter(name, wait)
		return nil
	}
	change := status.patchFor(u)
	if change == nil {
		return nil
	}
	if err := w.patch(ctx, name, change, "status"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written[string(u.GetUID())] = status
	return nil
}

// alreadyWrote reports whether this process has already written this status. If another client then replaces the
// status, this process does not write it again. Otherwise, replicas of different versions, for example, would overwrite
// each other's statuses forever.
func (w statusWriter) alreadyWrote(u *unstructured.Unstructured, status configStatus) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.written[string(u.GetUID())]
	return ok && last == status
}

// removeFinalizer removes the finalizer of Porch's own function runner from an object that is being deleted.
// Porch's function runner no longer runs, so it cannot remove the finalizer itself.
func (w statusWriter) removeFinalizer(ctx context.Context, u *unstructured.Unstructured) error {
	others := slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f == functionconfig.Finalizer })
	if len(others) == len(u.GetFinalizers()) {
		return nil
	}
	return w.patch(ctx, u.GetName(), map[string]any{"metadata": map[string]any{
		"finalizers": others, "resourceVersion": u.GetResourceVersion(), // concurrent changes make the patch fail
	}})
}

func (w statusWriter) patch(ctx context.Context, name string, change map[string]any, subresource ...string) error {
	content, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = w.objects.Patch(ctx, name, types.MergePatchType, content,
		metav1.PatchOptions{FieldManager: podspec.FieldManager}, subresource...)
	return err
}
