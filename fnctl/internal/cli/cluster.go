// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"net"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/forward"
)

// clusterNames lists the flags that select a gateway in a Kubernetes cluster. kubectl has the same flags.
var clusterNames = []string{"namespace", "context", "kubeconfig"}

type clusterFlags struct{ forward.Cluster }

func (f *clusterFlags) register(flags *pflag.FlagSet, env Environment) {
	flags.StringVarP(&f.Namespace, "namespace", "n", env.lookUp("FNCTL_NAMESPACE"),
		"namespace of the gateway, to reach it through the cluster's API server, with kubectl and its rights; by default "+
			"FNCTL_NAMESPACE")
	flags.StringVar(&f.Context, "context", "", "with --namespace: context of the kubeconfig")
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "with --namespace: kubeconfig file")
}

// isUsed reports whether fnctl reaches the gateway through the API server of its cluster.
func (f *clusterFlags) isUsed() bool { return f.Namespace != "" }

// checkUnused returns an error if --context or --kubeconfig is set without --namespace.
func (f *clusterFlags) checkUnused() error {
	if *f != (clusterFlags{}) {
		return errors.New("takes --" + strings.Join(clusterNames[1:], ", --") + " with --namespace only")
	}
	return nil
}

// The default Service and port of a gateway in a cluster. Porch's function runner uses the same values.
const clusterService, clusterPort = "function-runner", "9445"

// forwardTo makes the client connect to a Service of the cluster through kubectl port-forward. The host and port of
// config.Address name the Service. [DefaultAddress] means the default Service.
func (f *clusterFlags) forwardTo(config *client.Config) {
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
