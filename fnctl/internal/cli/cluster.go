// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/forward"
)

// clusterNames are the flags of a gateway that is reached through the API server of its cluster, as kubectl has
// the first three.
var clusterNames = []string{"namespace", "context", "kubeconfig", "service-account"}

// clusterFlags are their values.
type clusterFlags struct {
	forward.Cluster
	account string
}

func (f *clusterFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.Namespace, "namespace", "n", "",
		"namespace of the gateway, to reach it through the cluster's API server, with kubectl and its rights")
	flags.StringVar(&f.Context, "context", "", "with --namespace: context of the kubeconfig")
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "with --namespace: kubeconfig file")
	flags.StringVar(&f.account, "service-account", "",
		"with --namespace: NAME or NAMESPACE/NAME of an account, as which to call the gateway; kubectl requests its tokens")
}

// used reports whether a gateway is to be reached so.
func (f *clusterFlags) used() bool { return f.Namespace != "" }

// checkUnused returns an error if there are flags of a cluster without its namespace.
func (f *clusterFlags) checkUnused(credentials client.Credentials) error {
	switch {
	case *f != clusterFlags{}:
		return errors.New("takes --" + strings.Join(clusterNames[1:], ", --") + " with --namespace only")
	case forward.InCluster(credentials.Authority):
		return errors.New("takes --ca " + credentials.Authority + " with --namespace only: give a file")
	}
	return nil
}

// The Services of a gateway: as Porch knows it, and that with the port for callers with identities.
const (
	clusterService, clusterPort = "function-runner", "9445"
	secureService, securePort   = "gateway", "9443"
)

// reach has a client connect to a Service of the cluster: the address's host and port, unless they are those of
// this machine.
func (f *clusterFlags) reach(ctx context.Context, config *client.Config) error {
	credentials := &config.Credentials
	if f.account != "" {
		credentials.Request = forward.NewAccount(f.Cluster, f.account).Token
	}
	if forward.InCluster(credentials.Authority) {
		var err error
		if credentials.Authorities, err = f.Authorities(ctx, credentials.Authority); err != nil {
			return err
		}
	}
	scheme, service, port := serviceOf(config.Address, credentials.Used())
	forwarder := forward.New(forward.Config{Cluster: f.Cluster, Service: service, Port: port})
	config.Address = scheme + "://" + net.JoinHostPort(service, port)
	config.Dial, config.Close = forwarder.Dial, forwarder.Close
	config.Unreachable = "check --namespace and --context, and that kubectl port-forward works there"
	switch {
	case scheme != "https":
		config.Unreachable += "; to a gateway that asks who calls, show --token-file, --service-account or --cert"
	case credentials.Authority == "":
		config.Unreachable += "; give the authority of the gateway's certificate with --ca, such as secret/gateway-tls"
	}
	return nil
}

// serviceOf returns the Service at an address, and how it is called.
func serviceOf(address string, withIdentity bool) (scheme, service, port string) {
	scheme, where, found := strings.Cut(address, "://")
	if !found {
		scheme, where = "http", address
	}
	service, port, err := net.SplitHostPort(where)
	switch {
	case err == nil && where != DefaultAddress:
		return scheme, service, port
	case withIdentity:
		return "https", secureService, securePort
	}
	return scheme, clusterService, clusterPort
}
