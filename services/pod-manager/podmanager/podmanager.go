// SPDX-License-Identifier: Apache-2.0

// Package podmanager maintains a pool of warm pods for each function, and grants leases on the pods. Callers send
// evaluations directly to the pods. Kubernetes is the pod-manager's only store, so the pod-manager may exit at any
// time. Several replicas may run. Each function is owned by one replica.
//
// A pod-manager starts even if the Kubernetes API, its template or other services are missing. It retries and becomes
// ready later. A rollout with a wrong template therefore stops at the first replica, while existing pods still serve.
package podmanager

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/membership"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/probe"
)

// maxResponseBytes is the maximum size of a response. The largest responses list all pools of pods.
const maxResponseBytes = 32 << 20

// maxStreams is the maximum number of concurrent leases and watches on a connection. A gateway holds a lease for each
// evaluation in a pod or in the queue.
const maxStreams = 1000

// Images looks up images for the pod-manager, in the same process or by calls to the image-resolver.
type Images = manager.Images

// Manager is the pod-manager without a network port, for callers in the same process.
type Manager struct {
	lease.Manager
	// Binaries contains the local binaries of FunctionConfigs, for the gateway.
	Binaries binaries.Source
	// Identity is the identity that callers present to function pods. It is nil if pods require no identity.
	Identity  *mtls.Identity
	component serve.Component
	keeper    *membership.Keeper
}

// Component returns the component that runs the manager. It must run while callers use the manager.
func (m *Manager) Component() serve.Component { return m.component }

// callers describes the programs that lease function pods.
type callers struct {
	// address is the address where callers reach this replica. It is empty if callers are in this process.
	address string
	// ids contains patterns of the callers' SPIFFE IDs. If it is empty, only this program may call the function pods.
	ids []string
	// refused receives the error if the issuer cannot issue this program's own certificate.
	refused <-chan error
}

// SPIFFE IDs of our programs that issue their own certificate.
const (
	podManagerID     = "spiffe://function-runner/pod-manager"
	functionRunnerID = "spiffe://function-runner/function-runner"
)

// New returns the components of the program pod-manager. These are the service with its network port, and the
// certificate issuer.
func New(cfg Config, frame servermain.Frame) ([]serve.Component, error) {
	issuing, err := cfg.issueForPrograms(&frame)
	if err != nil {
		return nil, fmt.Errorf("set up the issuer of certificates: %w", err)
	}
	component, err := cfg.service(frame)
	if err != nil {
		return nil, fmt.Errorf("set up the pod-manager: %w", err)
	}
	return []serve.Component{component, issuing.component}, nil
}

// issueForPrograms sets up the issuer of our programs' certificates, if a Secret for the issuer is configured.
func (c *Config) issueForPrograms(frame *servermain.Frame) (certificateIssuer, error) {
	if c.Issuer.Secret == "" {
		return certificateIssuer{}, nil
	}
	namespace, err := c.ownNamespace()
	if err != nil {
		return certificateIssuer{}, err
	}
	ids, err := c.Issuer.ids()
	if err != nil {
		return certificateIssuer{}, err
	}
	return c.newIssuer(issuer.Config{Certificates: ids}, podManagerID, namespace, frame)
}

// service returns the component that runs the pod-manager and serves its port.
func (c *Config) service(frame servermain.Frame) (serve.Component, error) {
	resolver, err := c.connect(frame)
	if err != nil {
		return serve.Component{}, err
	}
	address, err := c.replicaAddress()
	if err != nil {
		return serve.Component{}, err
	}
	m, err := newManager(*c, resolver, callers{address: address, ids: c.Callers}, frame)
	if err != nil {
		return serve.Component{}, err
	}
	access, err := rpcserve.Callers(frame.Identity, c.Callers)
	if err != nil {
		return serve.Component{}, err
	}
	options := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access, Port: "pod-manager"}
	handler := rpcserve.NewHandler(options, binaryService(m.Binaries, frame), rpcserve.Service{
		Name: podmanagerv1connect.PodManagerServiceName, Streams: true,
		MaxRequestBytes: lease.MaxRequestBytes, MaxResponseBytes: maxResponseBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return podmanagerv1connect.NewPodManagerServiceHandler(lease.Handler(frame.Health.Stopping, m), options...)
		},
	})
	// While this replica has stood down (owns no functions), health checks make gateways call other replicas.
	frame.Health.Require(func() bool { return m.keeper.Owners().StoodDown == "" })
	component := m.Component()
	component.Endpoints = []serve.Endpoint{{
		Name: "pod-manager", Address: c.Address, Handler: handler, MaxStreams: maxStreams,
		TLS: frame.Identity.Server(),
	}}
	return component, nil
}

// NewManager returns a Manager for callers in the same process. It starts nothing and sends no requests. If the program
// has no certificate, the Manager issues a certificate for calls to function pods. All replicas share the certificate
// authority, which is in a Secret. This Secret is in the namespace of function pods, because the Role of Porch's main
// branch permits Secrets only there.
func NewManager(cfg Config, resolver Images, frame servermain.Frame) (*Manager, error) {
	var own certificateIssuer
	if cfg.Issuer.Secret != "" && cfg.PodTLS && frame.Identity == nil {
		var err error
		if own, err = cfg.newIssuer(issuer.Config{Create: true}, functionRunnerID, cfg.Namespace, &frame); err != nil {
			return nil, fmt.Errorf("set up the certificate of this program: %w", err)
		}
	}
	m, err := newManager(cfg, resolver, callers{refused: own.refused}, frame)
	if err != nil {
		return nil, fmt.Errorf("set up the pod-manager: %w", err)
	}
	m.component.Tasks = append(m.component.Tasks, own.component.Tasks...)
	return m, nil
}

// newManager creates the components of a Manager in the order of their dependencies, and connects them. Components send
// events to the manager's inbox, which is created before the manager itself.
func newManager(cfg Config, resolver Images, callers callers, frame servermain.Frame) (*Manager, error) {
	log := frame.Telemetry.Log
	inbox := manager.NewInbox()
	use := settingsUpdates(inbox.Configure)
	replica := replicaName()
	clock := kubeclient.NewClock(log)
	client, err := kubeclient.Connect(cfg.Kubeconfig, clock, log)
	if err != nil {
		return nil, err
	}
	templates, err := cfg.templates(client, frame)
	if err != nil {
		return nil, err
	}
	launching := cfg.launching(client, func(l podspec.Launcher) { use.setTemplate(templates.UseLauncher(l)) }, log)
	file, err := cfg.openCacheConfig(use.setFunctions, log)
	if err != nil {
		return nil, err
	}
	configured, err := cfg.functionConfigs(templates, use.setTemplate, use.setConfigs, clock, client, frame)
	if err != nil {
		return nil, err
	}
	keeper := cfg.membership(client, clock, replica, callers.address, inbox.Handle, frame)
	cluster, err := kube.New(cfg.cluster(client, clock, templates, launching, keeper.Owns, inbox.Handle, frame))
	if err != nil {
		return nil, err
	}
	guarded, keepPullSecret := cfg.pullSecret(cluster, client, inbox.Handle, frame)
	prober := probe.New(frame.Identity, inbox.Handle)
	podTLS := cfg.podTLS(callers, use.setTLS, frame)
	synced, awaitSync := awaitAll(cluster.Synced(), configured.Synced(), keeper.Joined(), podTLS.known)
	ready, awaitReady := awaitAll(synced, templates.Available())
	core := manager.New(manager.Config{
		Inbox: inbox, Images: resolver, Cluster: guarded, Prober: prober, StandDown: keeper.StandDown,
		OwnerOf:  func(image string) string { return keeper.Owners().Owner(image).Address },
		Problems: keeper.Problems, Synced: synced, Obstacle: cluster.Obstacle,
		Settings: cfg.initialSettings(templates.Current(), file.Settings(), callers.address == ""),
		Replica:  replica, Namespace: cfg.Namespace, MaxMessageBytes: int(cfg.MaxMessageBytes),
		Now: clock.Now, Log: log, Meter: frame.Telemetry.Meters.Meter("pod-manager"),
	})
	tasks := []serve.Task{
		core.Run, cluster.Run,
		func(ctx context.Context) error { return templates.Run(ctx, use.setTemplate) },
		configured.Run, file.Run, prober.Run, keepPullSecret, launching.Run, podTLS.Run, awaitSync, awaitReady,
		// This replica owns functions once it is ready. When its shutdown begins, its functions move to other replicas.
		keeper.Run, after(ready, keeper.Started),
		after(frame.Health.Stopping().Done(), keeper.Leave),
	}
	return &Manager{core, configured.board, frame.Identity, serve.Component{Tasks: tasks, Ready: ready}, keeper}, nil
}

// awaitAll returns a channel, and a task that closes the channel once all signals are closed.
func awaitAll(signals ...<-chan struct{}) (<-chan struct{}, serve.Task) {
	every := make(chan struct{})
	return every, func(ctx context.Context) error {
		for _, signal := range signals {
			select {
			case <-signal:
			case <-ctx.Done():
				return nil
			}
		}
		close(every)
		return nil
	}
}

// replicaName returns the host name, which is the pod's name. It names this replica in logs and in its Lease.
func replicaName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return strings.ToLower(name) // Kubernetes requires lower-case names of Leases
}
