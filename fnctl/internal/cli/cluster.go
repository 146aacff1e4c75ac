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

// clusterNames are the flags of a gateway that is reached through the API server of its cluster, as kubectl has
// the first three.
var clusterNames = []string{"namespace", "context", "kubeconfig"}

// clusterFlags are their values.
type clusterFlags struct{ forward.Cluster }

func (f *clusterFlags) register(flags *pflag.FlagSet, env Environment) {
	flags.StringVarP(&f.Namespace, "namespace", "n", env.Namespace,
		"namespace of the gateway, to reach it through the cluster's API server, with kubectl and its rights; by default "+
			"FNCTL_NAMESPACE")
	flags.StringVar(&f.Context, "context", "", "with --namespace: context of the kubeconfig")
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "with --namespace: kubeconfig file")
}

// isUsed reports whether a gateway is to be reached so.
func (f *clusterFlags) isUsed() bool { return f.Namespace != "" }

// checkUnused returns an error if there are flags of a cluster without its namespace.
func (f *clusterFlags) checkUnused() error {
	if *f != (clusterFlags{}) {
		return errors.New("takes --" + strings.Join(clusterNames[1:], ", --") + " with --namespace only")
	}
	return nil
}

// The Service of a gateway, as Porch calls it.
const clusterService, clusterPort = "function-runner", "9445"

// forwardTo makes a client connect to a Service of the cluster: the address's host and port, unless they are the
// default of this machine.
func (f *clusterFlags) forwardTo(config *client.Config) {
	scheme, service, port := serviceOf(config.Address)
	forwarder := forward.New(forward.Config{Cluster: f.Cluster, Service: service, Port: port})
	config.Address = scheme + "://" + net.JoinHostPort(service, port)
	config.Dial, config.Close = forwarder.Dial, forwarder.Close
	config.Unreachable = "check --namespace and --context, and that kubectl port-forward works there"
}

// serviceOf returns the Service at an address, and its scheme.
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
