// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Launching chooses the mechanism that adds the wrapper server to new function pods. It uses an image volume if the API
// server's version supports image volumes. Otherwise, and after a node failed to mount an image, it uses init
// containers. It detects this failure in the pod's status, because access to nodes requires rights on the whole
// cluster. Pods with either mechanism count as current. A nil Launching does nothing.
type Launching struct {
	version func(context.Context) (*version.Info, error) // requests the API server's version
	use     func(podspec.Launcher)
	log     *slog.Logger

	mu     sync.Mutex
	passed bool // true if a node mounted an image
	failed bool // true if a node could not mount an image
}

// NewLaunching returns a Launching for a cluster. It passes each chosen mechanism (launcher) to the callback.
func NewLaunching(client kubernetes.Interface, use func(podspec.Launcher), log *slog.Logger) *Launching {
	api := discovery.ToDiscoveryInterfaceWithContext(client.Discovery())
	return &Launching{version: api.ServerVersionWithContext, use: use, log: log}
}

// versionTimeout is the timeout of the request for the API server's version. It is short, because new pods wait for the
// first attempt. If the attempt fails, new pods use init containers, which work with every version.
const versionTimeout = time.Second

// Run chooses the launcher according to the API server's version. If the first request for the version fails, new pods
// use init containers until a retry succeeds.
func (l *Launching) Run(ctx context.Context) error {
	if l == nil {
		return nil
	}
	launcher, err := l.supportedLauncher(ctx)
	if err != nil {
		l.log.WarnContext(ctx, "API server version unknown; using init containers", "error", err,
			"hint", "image volumes are used once the version is known and has them")
		l.applyLauncher(podspec.InitContainer)
	}
	for backoff := (retry.Backoff{First: time.Second, Max: time.Minute}); err != nil; {
		if !backoff.Wait(ctx) {
			return nil
		}
		launcher, err = l.supportedLauncher(ctx)
	}
	l.log.InfoContext(ctx, "launcher chosen", "launcher", launcher)
	l.applyLauncher(launcher)
	return nil
}

// applyLauncher uses a launcher for new pods. It does nothing after a node failed to mount an image, because new pods
// must then keep using init containers.
func (l *Launching) applyLauncher(launcher podspec.Launcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.failed {
		l.use(launcher)
	}
}

// firstMinor is the first minor version of Kubernetes that supports image volumes, unless feature gates disable them.
const firstMinor = 35

// supportedLauncher returns ImageVolume if the API server's version supports image volumes, else InitContainer.
func (l *Launching) supportedLauncher(ctx context.Context) (podspec.Launcher, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	found, err := l.version(ctx)
	if err != nil {
		return "", fmt.Errorf("ask the Kubernetes API for its version (not asked if the launcher is set): %w", err)
	}
	// Some distributions report the minor version as "35+".
	minor, err := strconv.Atoi(strings.TrimRight(found.Minor, "+"))
	if err != nil {
		return "", fmt.Errorf("the Kubernetes API has the version %s, from which nothing follows about image volumes: "+
			"set the launcher", found)
	}
	if found.Major == "1" && minor < firstMinor {
		return podspec.InitContainer, nil
	}
	return podspec.ImageVolume, nil
}

// classifyLaunchFailure changes the kind of a problem to Lost if the image volume failed. The next pod uses an init
// container instead, and may work. Other problems stay unchanged.
func (l *Launching) classifyLaunchFailure(pod *corev1.Pod, problem pool.Problem) pool.Problem {
	if l == nil {
		return problem
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch launch := podspec.LaunchOf(pod); {
	case launch == podspec.Launched:
		l.passed = true
	case launch == podspec.LaunchMissing, launch == podspec.LaunchFailed && !l.passed:
		problem.Kind = pool.Lost
		l.fallBack(problem.Reason)
	}
	return problem
}

// fallBack switches new pods to init containers, and logs the reason that an image volume failed. Callers must hold the
// lock.
func (l *Launching) fallBack(reason string) {
	if l.failed {
		return
	}
	l.failed = true
	l.log.Error("image volumes unsupported; using init containers", "error", reason,
		"hint", "set FNR_LAUNCHER to init-container to use them from the start")
	l.use(podspec.InitContainer)
}
