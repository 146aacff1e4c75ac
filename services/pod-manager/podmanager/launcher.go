// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// firstAnswer is how long pods wait for the Kubernetes API's answer about image volumes.
	// Pods work without them.
	firstAnswer = time.Second
	// minAskAgain and maxAskAgain bound the time until it is asked again.
	minAskAgain = time.Second
	maxAskAgain = time.Minute
)

// launching chooses automatically how the wrapper server gets into pods: as an image volume if
// the Kubernetes API and the nodes support it. A change applies to new pods.
type launching struct {
	ask func(ctx context.Context) (bool, error) // whether the API has image volumes
	use func(podspec.Launcher)
	log *slog.Logger

	mu     sync.Mutex
	failed bool // nodes cannot mount images
}

// launcher returns how the wrapper server gets into pods before or without an automatic
// choice. A template of the user's own contains it itself.
func (c *Config) launcher() podspec.Launcher {
	if c.Launcher == LauncherImageVolume && c.Template == "" {
		return podspec.ImageVolume
	}
	return podspec.InitContainer
}

// chooses reports whether the launcher is chosen automatically.
func (c *Config) chooses() bool { return c.Launcher == LauncherAuto && c.Template == "" }

// launching returns the automatic choice, which calls use; nil if the launcher is set.
func (c *Config) launching(client kubernetes.Interface, use func(podspec.Launcher), log *slog.Logger) *launching {
	if !c.chooses() {
		return nil
	}
	ask := func(ctx context.Context) (bool, error) {
		return kube.HasImageVolumes(ctx, client, c.builder(), c.defaults())
	}
	return &launching{ask: ask, use: use, log: log}
}

// Run asks the Kubernetes API until it answers. Until then pods are created with an init
// container, which works everywhere.
func (l *launching) Run(ctx context.Context) error {
	if l == nil {
		return nil
	}
	first, cancel := context.WithTimeout(ctx, firstAnswer)
	can, err := l.ask(first)
	cancel()
	if err != nil {
		l.log.WarnContext(ctx, "the wrapper server is copied into pods by an init container for now, since it is unknown whether the cluster has image volumes", "error", err)
		l.choose(podspec.InitContainer)
	}
	for wait := minAskAgain; err != nil; wait = min(2*wait, maxAskAgain) {
		if !retry.Sleep(ctx, wait) {
			return nil
		}
		can, err = l.ask(ctx)
	}
	if !can {
		l.log.InfoContext(ctx, "the wrapper server is copied into pods by an init container, since the cluster has no image volumes")
		l.choose(podspec.InitContainer)
		return nil
	}
	l.log.InfoContext(ctx, "the wrapper server is mounted into pods as an image volume, since the cluster can do that")
	l.choose(podspec.ImageVolume)
	return nil
}

// choose puts a launcher in force, unless nodes were found unable to mount images.
func (l *launching) choose(launcher podspec.Launcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.failed {
		l.use(launcher)
	}
}

// trial returns the check of nodes for image volumes that were chosen automatically; nil if
// there is no choice.
func (l *launching) trial() *kube.Trial {
	if l == nil {
		return nil
	}
	return kube.NewTrial(l.fail)
}

// fail takes the error of a node that cannot mount images. An adopted pod may show it before
// the Kubernetes API has answered.
func (l *launching) fail(words string) {
	l.log.Error("nodes cannot mount the wrapper server's image, though the Kubernetes API has image volumes: an init container copies it into pods from now on; set the launcher to init-container to have it so from the start", "error", words)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = true
	l.use(podspec.InitContainer)
}
