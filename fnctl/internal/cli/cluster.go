// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/forward"
)

// clusterNames are the flags of a gateway that is reached through the API server of its cluster, as kubectl has
// them.
var clusterNames = []string{"namespace", "context", "kubeconfig"}

// clusterFlags are their values.
type clusterFlags struct{ namespace, context, kubeconfig string }

func (f *clusterFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.namespace, "namespace", "n", "",
		"namespace of the gateway, to reach it through the cluster's API server, with kubectl and its rights")
	flags.StringVar(&f.context, "context", "", "with --namespace: context of the kubeconfig")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "with --namespace: kubeconfig file")
}

// used reports whether a gateway is to be reached so.
func (f *clusterFlags) used() bool { return f.namespace != "" }

// The Service of a gateway, as Porch knows it, unless the address names another one.
const clusterService, clusterPort = "function-runner", "9445"

// reach has a client connect to a Service of the cluster: the address's host and port, unless they are those of
// this machine.
func (f *clusterFlags) reach(config *client.Config) {
	scheme, where, found := strings.Cut(config.Address, "://")
	if !found {
		scheme, where = "http", config.Address
	}
	service, port, err := net.SplitHostPort(where)
	if err != nil || where == DefaultAddress {
		service, port = clusterService, clusterPort
	}
	forwarder := forward.New(forward.Config{
		Namespace: f.namespace, Context: f.context, Kubeconfig: f.kubeconfig, Service: service, Port: port,
	})
	config.Address = scheme + "://" + net.JoinHostPort(service, port)
	config.Dial, config.Close = forwarder.Dial, forwarder.Close
	config.Unreachable = "check --namespace and --context, and that kubectl port-forward works there"
}
