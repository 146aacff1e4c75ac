// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"net"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/forward"
)

// clusterNames lists the flags that select a gateway in a Kubernetes cluster. kubectl has the same flags.
var clusterNames = []string{"namespace", "context", "kubeconfig"}

func (f *Flags) registerCluster(flags *pflag.FlagSet, env command.Environment) {
	flags.StringVarP(&f.Cluster.Namespace, "namespace", "n", env.LookUp("FNCTL_NAMESPACE"),
		"namespace of the gateway, to reach it through the cluster's API server, with kubectl and its rights; by default "+
			"FNCTL_NAMESPACE")
	flags.StringVar(&f.Cluster.Context, "context", "", "with --namespace: context of the kubeconfig")
	flags.StringVar(&f.Cluster.Kubeconfig, "kubeconfig", "", "with --namespace: kubeconfig file")
}

// The default Service and port of a gateway in a cluster. Porch's function runner uses the same values.
const clusterService, clusterPort = "function-runner", "9445"

// forwardTo makes the client connect through kubectl port-forward. The host and port in config.Address name a
// Service in the cluster. [DefaultAddress] means the default Service.
func (f *Flags) forwardTo(config *client.Config) {
	scheme, service, port := serviceOf(config.Address)
	forwarder := forward.New(forward.Config{Cluster: f.Cluster, Service: service, Port: port})
	config.Address = scheme + "://" + net.JoinHostPort(service, port)
	config.Dial = forwarder.Dial
	config.Close = forwarder.Close
	config.Unreachable = "check --namespace and --context, and that kubectl port-forward works there"
}

// serviceOf splits the address of a gateway in a cluster into scheme, Service and port. It returns the default
// Service and port for [DefaultAddress] and for an address without a port.
func serviceOf(address string) (scheme, service, port string) {
	scheme, where, found := strings.Cut(address, "://")
	if !found {
		scheme, where = "http", address
	}
	if service, port, err := net.SplitHostPort(where); err == nil && where != DefaultAddress {
		return scheme, service, port
	}
	return scheme, clusterService, clusterPort
}
