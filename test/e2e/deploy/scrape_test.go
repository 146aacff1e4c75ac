// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// minutes is how long an alert's condition has to hold. In tests a minute is a second.
var minutes = regexp.MustCompile(`(?m)^( +for: \d+)m$`)

// windows are the times that rates are about. In tests a minute is three seconds, as many scrapes.
var windows = regexp.MustCompile(`\[(\d+)([mh])\]`)

// hasten returns rules for tests.
func hasten(rules []byte) []byte {
	return windows.ReplaceAllFunc(minutes.ReplaceAll(rules, []byte("${1}s")), func(window []byte) []byte {
		match := windows.FindSubmatch(window)
		n, _ := strconv.Atoi(string(match[1]))
		if string(match[2]) == "h" {
			n *= 60
		}
		return fmt.Appendf(nil, "[%ds]", 3*n)
	})
}

// prometheus starts one with the files of deploy/observability/prometheus: it finds the place's pods with the rights of
// its account, scrapes them each second, and has our rules. Conditions of alerts have to hold for seconds instead of
// minutes.
func (p place) prometheus(t *testing.T) prometheus {
	t.Helper()
	dir := t.TempDir()
	scraped, found := append(p.scrapeConfigs(t), p.operatorConfig(t)), discovery(t, p.mayFindPods(t))
	for _, config := range scraped {
		find := config["kubernetes_sd_configs"].([]any)[0].(map[string]any)
		namespace := find["namespaces"].(map[string]any)["names"].([]any)[0].(string)
		config["http_sd_configs"] = []any{map[string]any{"url": found + "/" + namespace, "refresh_interval": "1s"}}
		delete(config, "kubernetes_sd_configs")
	}
	config, err := yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "alerts.yaml")},
		"scrape_configs": scraped,
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"prometheus.yaml": config}
	for _, name := range []string{"rules.yaml", "alerts.yaml"} {
		files[name] = hasten(observabilityFile(t, "prometheus/"+name))
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startPrometheus(t, dir)
}

// observabilityFile returns a file of deploy/observability.
func observabilityFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "deploy/observability", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// startPrometheus starts the program with the configuration in a directory.
func startPrometheus(t *testing.T, dir string) prometheus {
	t.Helper()
	const address = "127.0.0.1:19090"
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn",
		"--enable-feature=exemplar-storage")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	return prometheus{"http://" + address}
}

// scrapeConfigs returns those of scrape.yaml for the place.
func (p place) scrapeConfigs(t *testing.T) []map[string]any {
	t.Helper()
	names := strings.NewReplacer(usual.system, p.system, usual.functions, p.functions)
	var file struct {
		Configs []map[string]any `json:"scrape_configs"`
	}
	content := names.Replace(string(observabilityFile(t, "prometheus/scrape.yaml")))
	if err := yaml.Unmarshal([]byte(content), &file); err != nil {
		t.Fatal(err)
	}
	return file.Configs
}

// monitoring is the namespace of Prometheus in the manifests.
const monitoring = "namespace: monitoring"

// mayFindPods gives Prometheus' account its rights, and returns a kubeconfig for it. The account is in the place.
func (p place) mayFindPods(t *testing.T) []byte {
	t.Helper()
	ctx := suite.Context(t)
	objects := suite.Build(t, filepath.Join(root, "deploy/observability/prometheus"))
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ConfigMap" })
	objects = suite.Rewrite(t, objects, func(document string) string {
		return strings.ReplaceAll(document, monitoring, "namespace: "+usual.system)
	})
	s.Apply(ctx, t, false, p.objects(t, suite.Current, objects)...)
	const account = "prometheus"
	_, err := s.Client.CoreV1().ServiceAccounts(p.system).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Kubeconfig(t, tokenOf(t, p.system, account))
}

// awaitTargets waits until Prometheus scrapes all ready pods of the place: our programs' by one job, function pods by
// another one, and as its operator has it. Each is one target of a job.
func (p prometheus) awaitTargets(ctx context.Context, t *testing.T, at place) {
	t.Helper()
	suite.Until(ctx, t, "each pod is scraped", func() (bool, string) {
		want := map[string]int{}
		for namespace, jobs := range map[string][]string{
			at.system: {"function-runner"}, at.functions: {"function-pods", operatorJob},
		} {
			pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range pods.Items {
				for _, job := range jobs {
					want[job+" "+pods.Items[i].Name]++
				}
			}
		}
		scraped := p.healthy(ctx, t)
		return len(want) > 6 && maps.Equal(scraped, want), fmt.Sprintf("%v, and there are %v", scraped, want)
	})
}

// healthy returns how many targets of each job and pod answer.
func (p prometheus) healthy(ctx context.Context, t *testing.T) map[string]int {
	t.Helper()
	var answer struct {
		Data struct {
			ActiveTargets []struct {
				Labels map[string]string
				Health string
			}
		}
	}
	p.get(ctx, t, "/api/v1/targets?state=active", &answer)
	found := map[string]int{}
	for _, target := range answer.Data.ActiveTargets {
		if target.Health == "up" {
			found[target.Labels["job"]+" "+target.Labels["pod"]]++
		}
	}
	return found
}
