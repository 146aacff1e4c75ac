package podmanager

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/pause"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// firstAnswer is how long pods wait for the Kubernetes API to say whether it has
	// image volumes. They are safe without them.
	firstAnswer = time.Second
	// minAskAgain and maxAskAgain bound the time until it is asked again.
	minAskAgain = time.Second
	maxAskAgain = time.Minute
)

// launching chooses by itself how the wrapper server gets into pods: as an image volume
// where the Kubernetes API has them and nodes do not prove otherwise. What it changes is
// for pods to come.
type launching struct {
	ask func(ctx context.Context) (bool, error) // whether the API has image volumes
	use func(podspec.Launcher)
	log *slog.Logger

	mu     sync.Mutex
	failed bool // nodes cannot mount images
}

// launcher is how the wrapper server gets into pods if there is nothing to choose: a
// template says it itself.
func (c *Config) launcher() podspec.Launcher {
	if c.Launcher == LauncherImageVolume && c.Template == "" {
		return podspec.ImageVolume
	}
	return podspec.InitContainer
}

// chooses says whether the launcher is chosen by itself.
func (c *Config) chooses() bool { return c.Launcher == LauncherAuto && c.Template == "" }

// launching has the launcher chosen, and put in force by use; nil if it is settled.
func (c *Config) launching(client kubernetes.Interface, use func(podspec.Launcher), log *slog.Logger) *launching {
	if !c.chooses() {
		return nil
	}
	ask := func(ctx context.Context) (bool, error) {
		return kube.HasImageVolumes(ctx, client, c.builder(), c.defaults())
	}
	return &launching{ask: ask, use: use, log: log}
}

// Run asks the Kubernetes API until it answers. If it does not do so at once, pods are
// made in the way that works everywhere meanwhile.
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
		if !pause.For(ctx, wait) {
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

// choose puts a launcher in force, unless nodes have proved that only one will do.
func (l *launching) choose(launcher podspec.Launcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.failed {
		l.use(launcher)
	}
}

// trial is that of image volumes which nobody asked for; nil if there is none.
func (l *launching) trial() *kube.Trial {
	if l == nil {
		return nil
	}
	return kube.NewTrial(l.fail)
}

// fail takes the words of a node that cannot mount images. A pod that was found may have
// them before the Kubernetes API has answered.
func (l *launching) fail(words string) {
	l.log.Error("nodes cannot mount the wrapper server's image, though the Kubernetes API has image volumes: an init container copies it into pods from now on; set the launcher to init-container to have it so from the start", "error", words)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = true
	l.use(podspec.InitContainer)
}
