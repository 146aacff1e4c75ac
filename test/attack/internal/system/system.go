// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/krm-function-runner/function-runner/test/internal/sandbox"
)

// Names of the programs.
const (
	FunctionRunner = "function-runner"
	Gateway        = "gateway"
	WrapperServer  = "wrapper-server"
	PodManager     = "pod-manager"
	ImageResolver  = "image-resolver"
)

// Images that callers evaluate. Well-behaved callers evaluate Steady, attackers evaluate Hostile. Both images contain
// the same program. The image Liar contains no program, because a server in the attack itself acts as its pod.
const (
	Steady  = "attack.test/fns/steady:v1"
	Hostile = "attack.test/fns/hostile:v1"
	Liar    = "attack.test/fns/liar:v1"
)

// System runs the attacked program and the servers that it needs.
type System struct {
	*Program
	// Lender grants pods to an attacked gateway. It is nil for other programs.
	Lender *Lender
	// Registries are addresses of registries that programs may use. Attacks can listen at these addresses.
	Registries []string

	registry string       // address of the working registry
	serving  *http.Server // server of the working registry, nil while no program uses it
	dir      string
	owner    int
	limited  bool
	started  int
	ports    int // number of ports that were tried
	beside   []*Program
	callers  *sandbox.Group // nil without memory limits
}

// plan contains the arguments, environment variables and addresses with which a program starts.
type plan struct {
	address, metrics string
	args, env        []string
}

// New copies the programs from bin to dir and writes their configuration. The argument limited determines whether
// programs have a memory limit when they start later.
func New(dir, bin string, owner int, limited bool) (*System, error) {
	s := &System{dir: dir, owner: owner, limited: limited}
	if err := s.newRegistries(); err != nil {
		return nil, err
	}
	for _, name := range []string{FunctionRunner, Gateway, WrapperServer, PodManager, ImageResolver} {
		if err := copyProgram(filepath.Join(bin, name), filepath.Join(dir, "bin", name)); err != nil {
			return nil, err
		}
	}
	var config strings.Builder
	config.WriteString("functions:\n")
	for _, image := range []string{Steady, Hostile} {
		if err := copyProgram(filepath.Join(bin, "function"), s.Function(image)); err != nil {
			return nil, err
		}
		fmt.Fprintf(&config, "- function: %s\n  images: [%s]\n", filepath.Base(s.Function(image)), image)
	}
	return s, errors.Join(
		os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(noKubernetes), 0o644),
	)
}

// Function returns the path of the program that implements the function of an image.
func (s *System) Function(image string) string {
	name, _, _ := strings.Cut(filepath.Base(image), ":")
	return filepath.Join(s.dir, "functions", name)
}

// Limited reports whether the programs have a memory limit.
func (s *System) Limited() bool { return s.limited }

// noKubernetes is a kubeconfig whose API server does not exist. Programs can start and serve requests without it.
const noKubernetes = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none}}]
current-context: none
`

// copyProgram copies a program to a directory that all users can read, because its build directory may be private.
func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("install a program, which make builds before: %w", err)
	}
	defer func() { _ = source.Close() }()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// Start starts the named program, and the servers that it needs.
func (s *System) Start(ctx context.Context, name string) error {
	if name == Gateway {
		if err := s.startPods(ctx); err != nil {
			return errors.Join(err, s.Stop())
		}
	}
	if name == ImageResolver {
		if err := s.startRegistry(); err != nil {
			return errors.Join(err, s.Stop())
		}
	}
	p, err := s.plan(name)
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	if s.Program, err = s.startPlan(ctx, name, p); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// startPods starts a wrapper-server per function image, and a Lender that grants them to the gateway as pods.
func (s *System) startPods(ctx context.Context) error {
	pods := map[string]string{}
	for _, image := range []string{Steady, Hostile} {
		p, err := s.plan(WrapperServer)
		if err != nil {
			return err
		}
		pod, err := s.startPlan(ctx, WrapperServer, p)
		if err != nil {
			return err
		}
		pods[image] = pod.Address
		s.beside = append(s.beside, pod)
	}
	lender, err := newLender(pods)
	s.Lender = lender
	return err
}

func (s *System) plan(name string) (plan, error) {
	address, err := s.freeAddress()
	if err != nil {
		return plan{}, err
	}
	metrics, err := s.freeAddress()
	if err != nil {
		return plan{}, err
	}
	p := plan{address: address, metrics: metrics, env: []string{
		"FNR_TELEMETRY_METRICS_ADDRESS=" + metrics, "FNR_SERVE_DRAIN_DELAY=0s",
	}}
	err = s.configure(&p, name)
	return p, err
}

// configure sets the arguments and environment variables of the named program.
func (s *System) configure(p *plan, name string) error {
	_, port, _ := strings.Cut(p.address, ":")
	functions, config := filepath.Join(s.dir, "functions"), filepath.Join(s.dir, "config.yaml")
	kubeconfig, wrapper := filepath.Join(s.dir, "kubeconfig"), "WRAPPER_SERVER_IMAGE=attack.test/wrapper-server:v1"
	switch name {
	case FunctionRunner:
		p.args = []string{"--port=" + port, "--functions=" + functions, "--config=" + config}
		p.env = append(p.env, wrapper, "FNR_KUBECONFIG="+kubeconfig, s.insecureRegistries())
	case Gateway:
		p.env = append(p.env, "FNR_ADDRESS="+p.address, "FNR_DISABLE_RUNTIMES=exec",
			"FNR_POD_MANAGER=http://"+s.Lender.Address)
	case WrapperServer:
		// Configure the wrapper-server by flags and not by environment variables, because functions inherit the variables.
		p.args = []string{
			"--port=" + port, "--telemetry-metrics-address=" + p.metrics, "--serve-drain-delay=0s", "--",
			s.Function(Steady),
		}
	case PodManager:
		p.env = append(p.env, wrapper, "FNR_ADDRESS="+p.address, "FNR_KUBECONFIG="+kubeconfig,
			"FNR_IMAGE_RESOLVER=http://127.0.0.1:1")
	case ImageResolver:
		p.env = append(p.env, "FNR_ADDRESS="+p.address, s.insecureRegistries())
	default:
		return errors.New("there is no program " + strconv.Quote(name))
	}
	return nil
}

// Favour gives the process of the well-behaved callers a high CPU weight, so that attacks do not slow it.
func (s *System) Favour(pid int) (err error) {
	if !s.limited {
		return nil
	}
	if s.callers, err = sandbox.NewGroup(s.owner, fmt.Sprintf("callers-%d", s.started), Limit); err != nil {
		return err
	}
	return s.callers.Add(pid)
}

// Stop stops the attacked program, the servers that it needs, and the well-behaved callers.
func (s *System) Stop() error {
	var failures []error
	if s.callers != nil {
		failures = append(failures, s.callers.Remove())
	}
	if s.Program != nil {
		failures = append(failures, s.Program.Stop())
	}
	for _, program := range s.beside {
		failures = append(failures, program.Stop())
	}
	if s.Lender != nil {
		s.Lender.close()
	}
	if s.serving != nil {
		failures = append(failures, s.serving.Close())
	}
	s.Program, s.beside, s.Lender, s.callers, s.serving = nil, nil, nil, nil, nil
	return errors.Join(failures...)
}
