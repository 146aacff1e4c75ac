// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// incident is what an alert is for. Each alert belongs to one.
type incident struct {
	name   string
	alerts []string
	also   []string // may fire too
	short  bool     // also without -observe.long
	// cause begins the incident. It lasts until ctx ends, or until the test does if nothing undoes it.
	cause func(ctx context.Context, t *testing.T, at place)
	look  look // how the cause is found; empty if no on-call engineer looks for it
}

// failing are the alerts that are about evaluations that fail, whatever the cause.
var failing = []string{
	"FunctionRunnerEvaluationsFail", "FunctionRunnerErrorBudgetBurns", "FunctionRunnerColdStartsFail",
	"FunctionRunnerEvaluationsSlow",
}

// incidents are in the order in which they happen to a system. None fires before its own.
var incidents = []incident{
	{name: "an image with a typo", alerts: []string{"FunctionRunnerColdStartsFail"}, cause: typo, look: look{
		"FunctionRunnerColdStartsFail", "overview.json: Evaluations",
		regexp.MustCompile("set-namespase.*(MANIFEST|NAME)_UNKNOWN"),
	}},
	{name: "unreadable credentials", alerts: []string{"FunctionRunnerPullSecretStale"}, cause: unreadableCredentials},
	{
		name: "an authority that was overwritten", cause: noAuthority,
		alerts: []string{"FunctionRunnerCertificatesNotRenewed", "FunctionRunnerCertificateExpires"},
	},
	{
		name: "a dead registry",
		alerts: []string{
			"FunctionRunnerRegistryFails", "FunctionRunnerEvaluationsFail", "FunctionRunnerErrorBudgetBurns",
		},
		also: failing, short: true, cause: deadRegistry, look: look{
			"FunctionRunnerRegistryFails", "registries.json: Requests", regexp.MustCompile("connection refused"),
		},
	},
	{
		name: "a crowd",
		alerts: []string{
			"FunctionRunnerCallersWait", "FunctionRunnerRequestsRejected", "FunctionRunnerEvaluationsSlow",
		},
		also: failing, cause: crowd, look: look{
			"FunctionRunnerRequestsRejected", "overview.json: Rejected",
			regexp.MustCompile(`"exhausted".*evaluations wait for .* already`),
		},
	},
	{
		name: "a quota without capacity for pods of a new template", alerts: []string{"FunctionRunnerPodsOutdated"},
		cause: outdatedPods, also: failing,
	},
	{name: "no image-resolver", alerts: []string{"FunctionRunnerProgramDown"}, also: failing, cause: noResolver},
	{name: "pods that break", alerts: []string{"FunctionRunnerPodsBreak"}, also: failing, cause: breakingPods},
	{
		name: "a node out of memory", alerts: []string{"FunctionRunnerColdStartsFail"}, also: failing, cause: nodeFull,
		look: look{
			"FunctionRunnerColdStartsFail", "overview.json: What callers wait for now",
			regexp.MustCompile("Insufficient memory"),
		},
	},
	{
		name: "no Kubernetes API", cause: noAPI,
		alerts: []string{"FunctionRunnerKubernetesAPIFails", "FunctionRunnerNoOwner"},
		also:   slices.Concat(failing, []string{"FunctionRunnerPullSecretStale", "FunctionRunnerCertificatesNotRenewed"}),
		look: look{
			"FunctionRunnerKubernetesAPIFails", "pods.json: Kubernetes API", regexp.MustCompile("watch interrupted.*refused"),
		},
	},
	{
		name: "one pod-manager of two that is gone", alerts: []string{"FunctionRunnerReplicaMissing"}, cause: lostManager,
		// Prometheus notices after seconds, which count as minutes here, that the pod is gone.
		also: []string{"FunctionRunnerProgramDown"},
		look: look{"FunctionRunnerReplicaMissing", "pods.json: Replicas", regexp.MustCompile("exceeded quota")},
	},
	{
		name: "no pod-manager", alerts: []string{"FunctionRunnerProgramDown"}, short: true, cause: noManager,
		also: slices.Concat(failing, []string{"FunctionRunnerNoOwner", "FunctionRunnerReplicaMissing"}),
	},
}

// atOnce runs n callers until ctx ends, with the number of the caller and of its call.
func atOnce(ctx context.Context, n int, call func(caller, call int)) {
	var running sync.WaitGroup
	for caller := range n {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				call(caller, i)
			}
		})
	}
	running.Wait()
}

// fail has the system evaluate an image that it cannot get.
func fail(ctx context.Context, t *testing.T, client evaluator.FunctionEvaluatorClient, image string) {
	request := &evaluator.EvaluateFunctionRequest{Image: image, ResourceList: []byte(suite.List)}
	if _, err := client.EvaluateFunction(ctx, request); err == nil {
		t.Errorf("%s was evaluated", image)
	}
}

// typo names images that the registry does not have.
func typo(ctx context.Context, t *testing.T, at place) {
	client, registry := evaluator.NewFunctionEvaluatorClient(at.caller(t)), s.Registry(t, "open").Host
	for n := 0; ctx.Err() == nil; n++ {
		fail(ctx, t, client, fmt.Sprintf("%s/krm-functions-catalog/set-namespase:v0.4.%d", registry, n))
		wait(ctx, 3*time.Second) // a user tries a few times, which is not enough for other alerts
	}
}

// noRegistry is an address of the node without a registry.
const noRegistry = "172.30.0.1:5999"

func deadRegistry(ctx context.Context, t *testing.T, at place) {
	client := evaluator.NewFunctionEvaluatorClient(at.caller(t))
	atOnce(ctx, 8, func(caller, call int) {
		fail(ctx, t, client, fmt.Sprintf("%s/none/fn%d:v%d", noRegistry, caller, call))
	})
}

// unreadableCredentials breaks the file that the pod-manager copies to the pull secret.
func unreadableCredentials(ctx context.Context, t *testing.T, at place) {
	at.credentials(ctx, t, "{")
	at.touch(ctx, t, "pod-manager")
	<-ctx.Done()
	over := context.WithoutCancel(ctx)
	at.credentials(over, t, `{"auths":{}}`)
	at.touch(over, t, "pod-manager")
}

// touch has the kubelet write the files of a program's pods.
func (p place) touch(ctx context.Context, t *testing.T, deployment string) {
	for _, pod := range p.replicas(ctx, t, deployment) {
		s.Touch(ctx, t, p.system, pod.Name)
	}
}

// credentials writes the docker configuration of the component private-registry.
func (p place) credentials(ctx context.Context, t *testing.T, content string) {
	secrets := s.Client.CoreV1().Secrets(p.system)
	// Kubernetes checks the content of Secrets of the type for docker configurations.
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "auth-secret"},
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(content)},
	}
	_, err := secrets.Update(ctx, secret, metav1.UpdateOptions{})
	if err != nil {
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
	}
	if err != nil {
		t.Errorf("write the credentials: %v", err)
	}
}

// crowdQueue is the limit of the queue of one function: more than the callers that alert FunctionRunnerCallersWait is
// for.
const crowdQueue = "60"

// crowd has more callers of a slow function than it has pods, and more than may be queued.
func crowd(ctx context.Context, t *testing.T, at place) {
	conn, image := at.caller(t), s.Registry(t, "open").Host+"/test/sleep:v1"
	atOnce(ctx, 110, func(caller, call int) {
		if call == 0 { // not all at once, so that some end in each second
			wait(ctx, time.Duration(caller)*150*time.Millisecond)
		}
		limited, cancel := context.WithTimeout(ctx, 15*time.Second) // longer than FunctionRunnerEvaluationsSlow is for
		defer cancel()
		_ = suite.Sleep(limited, conn, image, time.Minute)
		wait(limited, 5*time.Second)
	})
}

// wait waits, at most until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// breakingPods kills pods while they evaluate: a second after each is ready. Earlier, none would evaluate.
func breakingPods(ctx context.Context, t *testing.T, at place) {
	conn, image := at.caller(t), s.Registry(t, "open").Host+"/test/sleep:v1"
	var killing sync.WaitGroup
	killing.Go(func() {
		for ctx.Err() == nil {
			wait(ctx, 500*time.Millisecond)
			at.killReady(ctx)
		}
	})
	defer killing.Wait()
	atOnce(ctx, 20, func(int, int) { _ = suite.Sleep(ctx, conn, image, time.Minute) })
}

// outdatedPods changes the template of function pods while a quota leaves no capacity for new pods, and a caller uses
// the only pod. Other pods are deleted first, because an idle pod would make way for the new one.
func outdatedPods(ctx context.Context, t *testing.T, at place) {
	conn, image := at.caller(t), inPod(t)
	over := context.WithoutCancel(ctx)
	suite.Until(ctx, t, "the function has a pod", func() (bool, string) {
		err := suite.SetNamespace(ctx, conn, image)
		return err == nil, fmt.Sprint(err)
	})
	suite.Until(ctx, t, "there is no pod of another function", func() (bool, string) {
		others, err := at.deletePodsExcept(ctx, "set-namespace-v045-")
		return err == nil && others == 0, fmt.Sprintf("%d other pods, %v", others, err)
	})
	quotas := s.Client.CoreV1().ResourceQuotas(at.functions)
	left := resource.NewQuantity(1, resource.DecimalSI)
	if _, err := quotas.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-new-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *left}},
	}, metav1.CreateOptions{}); err != nil {
		t.Errorf("limit function pods: %v", err)
		return
	}
	defer func() {
		if err := quotas.Delete(over, "no-new-pods", metav1.DeleteOptions{}); err != nil {
			t.Errorf("remove the limit of function pods: %v", err)
		}
	}()
	templates := s.Client.CoreV1().ConfigMaps(at.system)
	template, err := templates.Get(ctx, "function-pod-template", metav1.GetOptions{})
	if err != nil {
		t.Errorf("read the template: %v", err)
		return
	}
	template.Data["template"] = strings.Replace(template.Data["template"], "metadata:\n",
		"metadata:\n  labels: {tests/changed: \"yes\"}\n", 1)
	if _, err := templates.Update(ctx, template, metav1.UpdateOptions{}); err != nil {
		t.Errorf("change the template: %v", err)
	}
	for ctx.Err() == nil {
		_ = suite.SetNamespace(ctx, conn, image)
		wait(ctx, time.Second)
	}
}

// deletePodsExcept deletes the function pods without a prefix of their name, and returns how many it found.
func (p place) deletePodsExcept(ctx context.Context, prefix string) (others int, err error) {
	pods, err := s.Client.CoreV1().Pods(p.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for i := range pods.Items {
		if !strings.HasPrefix(pods.Items[i].Name, prefix) {
			others++
			_ = s.Client.CoreV1().Pods(p.functions).Delete(ctx, pods.Items[i].Name, now)
		}
	}
	return others, nil
}

// killReady deletes the function pods that have been ready for a second.
func (p place) killReady(ctx context.Context) {
	pods, err := s.Client.CoreV1().Pods(p.functions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for i := range pods.Items {
		for _, condition := range pods.Items[i].Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue &&
				time.Since(condition.LastTransitionTime.Time) > time.Second {
				_ = s.Client.CoreV1().Pods(p.functions).Delete(ctx, pods.Items[i].Name, now)
			}
		}
	}
}

// noAPI cuts the pod-managers from the Kubernetes API. The rules end with their pods' networks at the latest.
func noAPI(ctx context.Context, t *testing.T, at place) {
	for _, pod := range at.replicas(ctx, t, "pod-manager") {
		processes := suite.Processes(t, &pod) // they share the network of the pod
		if len(processes) == 0 {
			t.Errorf("cut the pod-manager from the API: %s has no process", pod.Name)
			continue
		}
		network := fmt.Sprintf("--net=/proc/%d/ns/net", processes[0].PID)
		rule := []string{"OUTPUT", "-p", "tcp", "--dport", "443", "--jump", "REJECT", "--reject-with", "tcp-reset"}
		change := func(ctx context.Context, what string) ([]byte, error) {
			args := append([]string{network, "iptables", "--wait", what}, rule...)
			return exec.CommandContext(ctx, "nsenter", args...).CombinedOutput()
		}
		if output, err := change(ctx, "--insert"); err != nil {
			t.Errorf("cut the pod-manager from the API: %v: %s", err, output)
		}
		defer func() { _, _ = change(context.WithoutCancel(ctx), "--delete") }()
	}
	<-ctx.Done()
}

// lostManager deletes a pod-manager, which no other one replaces.
func lostManager(ctx context.Context, t *testing.T, at place) {
	at.lose(ctx, t, "pod-manager", 1)
}

// noManager deletes all pod-managers.
func noManager(ctx context.Context, t *testing.T, at place) {
	at.lose(ctx, t, "pod-manager", len(at.replicas(ctx, t, "pod-manager")))
}

// noResolver deletes all image-resolvers. Tags that were known before go on.
func noResolver(ctx context.Context, t *testing.T, at place) {
	at.lose(ctx, t, "image-resolver", len(at.replicas(ctx, t, "image-resolver")))
}

// lose deletes pods of a program. Until ctx ends, a quota leaves no capacity for others in their place, as a node that
// is lost may.
func (p place) lose(ctx context.Context, t *testing.T, app string, number int) {
	pods, err := s.Client.CoreV1().Pods(p.system).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Errorf("list pods: %v", err)
		return
	}
	left := *resource.NewQuantity(int64(len(pods.Items)-number), resource.DecimalSI)
	quotas := s.Client.CoreV1().ResourceQuotas(p.system)
	_, err = quotas.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "lost-node"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: left}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("limit the pods: %v", err)
		return
	}
	defer p.restore(context.WithoutCancel(ctx), t, app)
	for _, pod := range p.replicas(ctx, t, app)[:number] {
		if err := s.Client.CoreV1().Pods(p.system).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete %s: %v", pod.Name, err)
		}
	}
	<-ctx.Done()
}

// restore removes the quota, and has the ReplicaSets of a program try again until their pods are there: the API server
// may know the quota for a while yet, and by themselves they would wait longer after each attempt.
func (p place) restore(ctx context.Context, t *testing.T, app string) {
	if err := s.Client.CoreV1().ResourceQuotas(p.system).Delete(ctx, "lost-node", metav1.DeleteOptions{}); err != nil {
		t.Errorf("remove the limit of pods: %v", err)
	}
	sets := s.Client.AppsV1().ReplicaSets(p.system)
	for attempt := range int(suite.ConditionTimeout / time.Second) {
		list, err := sets.List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			t.Errorf("list ReplicaSets: %v", err)
			return
		}
		lacking := slices.DeleteFunc(list.Items, func(set appsv1.ReplicaSet) bool {
			return set.Status.Replicas >= *set.Spec.Replicas
		})
		if len(lacking) == 0 {
			return
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"tests/restored":"%d"}}}`, attempt)
		for _, set := range lacking {
			if _, err := sets.Patch(ctx, set.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Errorf("touch ReplicaSet %s: %v", set.Name, err)
			}
		}
		wait(ctx, time.Second)
	}
	t.Errorf("the pods of %s do not come back", app)
}
