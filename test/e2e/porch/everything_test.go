// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porch_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/cosigned"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// pods is the repository of the images that run in pods; empty for the catalog's copy in the open registry.
var pods string

// useMicroservices installs our services in place of function-runner, under the Service that Porch calls, with all
// that decides who may call and what may run: mutual TLS, the port for callers with identities, a policy that
// requires signatures of images in pods, and an audit log.
func useMicroservices(t *testing.T) {
	t.Helper()
	kubectl(t, "-n", system, "delete", "deployment", "function-runner", "--cascade=foreground")
	t.Cleanup(func() {
		// The test's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		run(ctx, t, "", "kubectl", "delete", "clusterrolebinding,clusterrole", "function-runner-token-review")
	})
	key := signedImages(t)
	dir := manifests.Combine(t, "../../../deploy", "overlays/porch-microservices", "callers")
	objects := s.OnTheBed(t, suite.Build(t, dir))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == "gateway" {
			decide(t, o)
		}
	}
	objects = append(objects, key.Policy(t, system, "policy", pods+"/**",
		`{name: binaries, images: ['ghcr.io/kptdev/**'], when: 'evaluator == "exec"', action: allow}`))
	own := func(document string) string { return s.OwnImages(t, suite.Current, document) }
	s.Install(suite.Context(t), t, suite.Rewrite(t, objects, own)...)
}

// auditDirectory has the audit log of a gateway.
const auditDirectory = "/var/log/function-runner"

// decide gives a gateway a policy and an audit log.
func decide(t *testing.T, gateway *unstructured.Unstructured) {
	t.Helper()
	suite.SetVariable(t, gateway, "FNR_POLICY_FILE", "/etc/function-runner/policy.yaml")
	suite.Mount(t, gateway, "policy", "/etc/function-runner",
		map[string]any{"configMap": map[string]any{"name": "policy"}})
	suite.SetVariable(t, gateway, "FNR_AUDIT_OUTPUT", auditDirectory+"/audit.log")
	suite.Mount(t, gateway, "audit", auditDirectory, map[string]any{"emptyDir": map[string]any{}})
}

// signedImages copies the catalog's functions to a repository of the open registry, where pods run them from now on,
// signs all but one, and returns the key.
func signedImages(t *testing.T) cosigned.Key {
	t.Helper()
	key, open := cosigned.NewKey(t), s.Registry(t, "open").Host
	pods = open + "/e2e/" + strings.ToLower(rand.Text())
	for _, image := range []string{"set-namespace:v0.4.5", "apply-setters:v0.2.2", "starlark:v0.5.5"} {
		digest := cosigned.Push(t, open+"/krm-functions-catalog/"+image, pods+"/"+image, "signed")
		name, _, _ := strings.Cut(image, ":")
		key.Sign(t, pods+"/"+name, digest, digest)
	}
	cosigned.Push(t, open+"/krm-functions-catalog/set-namespace:v0.4.5", pods+"/unsigned:v1", "unsigned")
	return key
}

// event is an event of the audit log, as far as it is compared.
type event struct {
	Image struct {
		Given   string   `json:"given"`
		Digest  string   `json:"digest"`
		Signers []string `json:"signers"`
	} `json:"image"`
	Evaluator string `json:"evaluator"`
	Verdict   string `json:"verdict"`
	Rule      string `json:"rule"`
	Code      string `json:"code"`
}

// String is what an event says, without its digest.
func (e event) String() string {
	return fmt.Sprintf("%s %s %s %s %v %s",
		filepath.Base(e.Image.Given), e.Evaluator, e.Verdict, e.Rule, e.Image.Signers, e.Code)
}

// decidesAndRecords has Porch render a package whose function is not signed, and finds in the audit log what was
// decided about it, and about the packages that have been rendered.
func decidesAndRecords(t *testing.T) {
	register(t, "decided")
	d := newDraft(t, "decided", "shop")
	d.mutators = []function{setNamespace(inPod(t, "unsigned:v1"))}
	if out, err := d.push(t); err == nil || !strings.Contains(out, "has to be signed by release. Found: no signature") {
		t.Errorf("with an image that is not signed, Porch answers (%v)\n%s", err, out)
	}
	found := make(map[string]bool)
	for _, e := range auditEvents(t) {
		found[e.String()] = true
		if e.Evaluator == "pod" && !strings.HasPrefix(e.Image.Digest, "sha256:") {
			t.Errorf("an event has no digest: %+v", e)
		}
	}
	for _, want := range []string{
		"set-namespace:v0.4.5 exec allow binaries [] ok",
		"set-namespace:v0.4.5 pod allow signed [release] ok",
		"apply-setters:v0.2.2 pod allow signed [release] ok",
		"starlark:v0.5.5 pod allow signed [release] internal",
		"unsigned:v1  deny signed [] denied",
	} {
		if !found[want] {
			t.Errorf("there is no event %q among %v", want, found)
		}
	}
}

// auditEvents returns the events in the audit logs of all gateways.
func auditEvents(t *testing.T) (events []event) {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: "app=gateway"}
	gateways, err := s.Client.CoreV1().Pods(system).List(suite.Context(t), options)
	if err != nil {
		t.Fatal(err)
	}
	for i := range gateways.Items {
		events = append(events, eventsOf(t, &gateways.Items[i])...)
	}
	return events
}

func eventsOf(t *testing.T, gateway *corev1.Pod) (events []event) {
	t.Helper()
	process := suite.FindProcess(t, gateway, suite.ProgramOf(gateway))
	file, err := os.Open(fmt.Sprintf("/proc/%d/root%s/audit.log", process.PID, auditDirectory))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Errorf("%v: %s", err, lines.Bytes())
		}
		events = append(events, e)
	}
	return events
}
