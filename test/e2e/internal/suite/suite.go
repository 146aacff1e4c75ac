// SPDX-License-Identifier: Apache-2.0

// Package suite helps tests on clusters. It provides clients and namespaces, waits for objects, and collects logs
// and objects of failed tests.
package suite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/krm-function-runner/function-runner/test/bed"
)

// waitTimeout is the timeout of a test. It can be long, because only failing tests reach it.
const waitTimeout = 10 * time.Minute

// Names of the environment variables that configure the tests.
const (
	toolboxVariable  = "FNR_TOOLBOX_IMAGE"
	evidenceVariable = "FNR_EVIDENCE"
)

// Suite provides access to the cluster under test.
type Suite struct {
	Client kubernetes.Interface
	// Toolbox is an image of test/images/toolbox that the cluster can pull.
	Toolbox string
	// Bed describes the cluster if it is a test bed (test/cluster), and is nil otherwise.
	Bed *bed.Info

	config   *rest.Config
	objects  dynamic.Interface
	mapper   meta.RESTMapper
	evidence string
}

// New returns a suite for the cluster in KUBECONFIG. Outside of the test bed, FNR_TOOLBOX_IMAGE must name an image of
// test/images/toolbox. Logs and objects of failed tests are saved to the directory FNR_EVIDENCE, by default a temporary
// directory.
func New() (*Suite, error) {
	s := &Suite{Toolbox: os.Getenv(toolboxVariable), evidence: os.Getenv(evidenceVariable)}
	if err := s.connect(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)); err != nil {
		return nil, err
	}
	if path := os.Getenv(bed.InfoVariable); path != "" {
		if err := s.useBed(path); err != nil {
			return nil, err
		}
	}
	if s.Toolbox == "" {
		return nil, fmt.Errorf("set %s to an image of test/images/toolbox that the cluster can pull", toolboxVariable)
	}
	if s.evidence == "" {
		dir, err := os.MkdirTemp("", "function-runner-e2e-")
		if err != nil {
			return nil, fmt.Errorf("make a directory for evidence: %w", err)
		}
		s.evidence = dir
	}
	own, err := packageDir(s.evidence)
	if err != nil {
		return nil, err
	}
	s.evidence = own
	return s, nil
}

// packageDir returns the directory for logs and objects from the tests of the current package. Each package needs its
// own directory, because packages are tested concurrently.
func packageDir(evidence string) (string, error) {
	here, err := os.Getwd() // the directory of the package's sources
	if err != nil {
		return "", fmt.Errorf("choose a directory for evidence: %w", err)
	}
	return filepath.Join(evidence, filepath.Base(here)), nil
}

func (s *Suite) connect(kubeconfig string) error {
	var err error
	if s.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("read the kubeconfig that KUBECONFIG names: %w", err)
	}
	s.config.QPS = -1
	s.config.WarningHandler = rest.NoWarnings{}
	// Discard the logs of client-go. At the end of a test its watches end, and client-go would log each of them.
	klog.SetLogger(logr.Discard())
	if s.Client, err = kubernetes.NewForConfig(s.config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if s.objects, err = dynamic.NewForConfig(s.config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.Client.Discovery()))
	return nil
}

// WithWarnings returns a copy of the suite. Its dynamic client passes the API server's warnings to handler.
func (s *Suite) WithWarnings(handler rest.WarningHandler) (*Suite, error) {
	warned := *s
	warned.config = rest.CopyConfig(s.config)
	warned.config.WarningHandler = handler
	var err error
	if warned.objects, err = dynamic.NewForConfig(warned.config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &warned, nil
}

func (s *Suite) useBed(path string) error {
	info, err := bed.Load(path)
	if err != nil {
		return err
	}
	open, err := info.Registry("open")
	if err != nil {
		return err
	}
	s.Bed = &info
	s.Toolbox = open.Host + "/toolbox:latest"
	return nil
}

// Run runs the tests of a package and returns their exit code, for TestMain. Before the tests, it passes the new suite
// to the function use. If tests fail, it prints the path of their logs and objects.
func Run(m *testing.M, use func(*Suite)) int {
	s, err := New()
	if err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		return 1
	}
	use(s)
	code := m.Run()
	if code == 0 {
		_ = os.Remove(filepath.Dir(s.evidence)) // fails if another package has left evidence
		return code
	}
	s.collectComponents()
	fmt.Fprintf(os.Stderr, "logs, events and objects are in %s\n", s.evidence)
	return code
}

// Context returns the context of a test, with an additional timeout.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}

// CleanupContext returns a context for cleanup functions, which run after the test's own context has ended. It has the
// same timeout as the result of [Context].
func CleanupContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}
