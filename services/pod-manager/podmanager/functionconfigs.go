// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"net/http"

	"connectrpc.com/connect"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kube"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// porchFollower watches Porch's FunctionConfigs and pod templates in Kubernetes. It also passes the local binaries
// of FunctionConfigs to gateways.
type porchFollower struct {
	*kube.PorchResources
	board *binaries.Board
}

// functionConfigs returns a watcher of Porch's FunctionConfigs and pod templates. It passes each new pod template to
// the callback use. After each change, it passes all FunctionConfigs' settings to the callback configure.
func (c *Config) functionConfigs(
	templates *kube.Templates, use func(podspec.Template), configure func(*functionconfig.Set),
	clock *kubeclient.Clock, client kubernetes.Interface, frame servermain.Frame,
) (porchFollower, error) {
	log := frame.Telemetry.Log
	dynamic, discover, err := kubeclient.ConnectDynamic(c.Kubeconfig, clock, log)
	if err != nil {
		return porchFollower{}, err
	}
	var configs *kube.FunctionConfigs
	board := binaries.NewBoard(func(p binaries.Problems) { configs.ReportBinaries(p) })
	configs = kube.NewFunctionConfigs(kube.FunctionConfigsConfig{
		DefaultImagePrefix: c.DefaultImagePrefix, Secrets: c.Issuer.secrets(), Log: log,
		Changed: func(s *functionconfig.Set) {
			configure(s)
			board.Put(s.Binaries)
		},
	})
	resources, err := kube.NewPorchResources(kube.PorchResourcesConfig{
		Client: client, Dynamic: dynamic, Discover: discover, Namespace: c.Namespace, Telemetry: frame.Telemetry,
	}, configs, templates, use)
	return porchFollower{resources, board}, err
}

// binaryService returns the RPC service by which gateways receive the local binaries of FunctionConfigs.
func binaryService(source binaries.Source, frame servermain.Frame) rpcserve.Service {
	return rpcserve.Service{
		Name: podmanagerv1connect.BinaryServiceName, Streams: true,
		MaxRequestBytes: binaries.MaxRequestBytes, MaxResponseBytes: binaries.MaxResponseBytes,
		Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
			return podmanagerv1connect.NewBinaryServiceHandler(binaries.Handler(frame.Health.Stopping, source), options...)
		},
	}
}
