// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"slices"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/process"
)

// Programs contains the directories of the programs that were built for a cluster.
type Programs struct {
	Kubernetes, Containerd, CoreDNS string
}

// Path returns the search path (PATH) for the cluster's processes.
func (p Programs) Path() string {
	return p.Containerd + ":" + p.Kubernetes + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// Components returns a cluster's processes, with their command lines and dependencies.
func Components(l layout.Layout, programs Programs) []process.Spec {
	const api = "tcp:" + layout.APIAddress
	kube := func(name string, args ...string) []string {
		return append([]string{filepath.Join(programs.Kubernetes, name)}, args...)
	}
	specs := []process.Spec{
		{Name: "etcd", Command: etcdFlags(l)},
		{Name: "kube-apiserver", Command: kube("kube-apiserver", apiServerFlags(l)...), After: "tcp:" + layout.EtcdAddress},
		{Name: "containerd", Command: []string{
			filepath.Join(programs.Containerd, "containerd"), "--config",
			l.Config("containerd.toml"),
		}},
		{Name: controllerManager, Command: kube(controllerManager, controllerFlags(l)...), After: api},
		{Name: scheduler, Command: kube(scheduler, schedulerFlags(l)...), After: api},
		{Name: kubelet, Command: kube(kubelet, kubeletFlags(l)...), After: "unix:" + layout.ContainerdSocket},
		{Name: proxy, Command: kube(proxy, "--config", l.Config("kube-proxy.yaml")), After: api},
		{
			Name: "coredns", Command: []string{filepath.Join(programs.CoreDNS, "coredns"), "-conf", l.Config("Corefile")},
			After: api,
		},
	}
	for _, registry := range layout.Registries() {
		command := []string{"docker-registry", "serve", RegistryFile(l, registry)}
		specs = append(specs, process.Spec{Name: "registry-" + registry.Name, Command: command})
	}
	return specs
}

func etcdFlags(l layout.Layout) []string {
	const url = "http://" + layout.EtcdAddress
	return []string{
		"etcd", "--name=" + layout.NodeName, "--data-dir=" + l.Path("etcd"),
		"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		"--listen-peer-urls=http://127.0.0.1:2380",
		// Without fsync, etcd may lose data if the machine crashes. The cluster would not survive such a crash anyway.
		"--unsafe-no-fsync",
	}
}

func apiServerFlags(l layout.Layout) []string {
	return slices.Concat(aggregationFlags(l), []string{
		"--etcd-servers=http://" + layout.EtcdAddress,
		"--advertise-address=" + layout.NodeAddress,
		"--bind-address=" + layout.NodeAddress,
		"--authorization-mode=Node,RBAC",
		// Disable two features that need etcd's progress reports for watches. Debian's etcd 3.4 does not send these reports.
		// With the features, each watch that begins with a list would wait for three seconds and fail.
		"--feature-gates=WatchList=false,SizeBasedListCostEstimate=false",
		"--token-auth-file=" + l.Config("tokens.csv"),
		"--tls-cert-file=" + l.PKI("apiserver.crt"), "--tls-private-key-file=" + l.PKI("apiserver.key"),
		"--client-ca-file=" + l.PKI("ca.crt"),
		// Connect to kubelets by IP address, because DNS does not contain the node's name.
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + l.PKI("ca.crt"),
		"--kubelet-client-certificate=" + l.PKI("kubelet-client.crt"), "--kubelet-client-key=" + l.PKI("kubelet-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc." + layout.Domain,
		"--service-account-key-file=" + l.PKI("accounts.crt"),
		"--service-account-signing-key-file=" + l.PKI("accounts.key"),
		"--service-cluster-ip-range=" + layout.ServiceCIDR,
		"--allow-privileged",
		"--audit-policy-file=" + l.Config("audit.yaml"), "--audit-log-path=" + l.LogFile("audit"),
		"--cert-dir=" + l.Path("pki"),
	})
}

// aggregationFlags returns the flags of kube-apiserver for API groups that servers in pods serve. kube-apiserver
// forwards requests to these servers and names the user in headers. A server trusts these headers only if the request
// comes from a client with the aggregator's certificate.
func aggregationFlags(l layout.Layout) []string {
	return []string{
		"--proxy-client-cert-file=" + l.PKI("front-proxy.crt"), "--proxy-client-key-file=" + l.PKI("front-proxy.key"),
		"--requestheader-client-ca-file=" + l.PKI("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + aggregator,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
}

func controllerFlags(l layout.Layout) []string {
	kubeconfig := l.Config(controllerManager + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--root-ca-file=" + l.PKI("ca.crt"),
		"--service-account-private-key-file=" + l.PKI("accounts.key"),
		"--use-service-account-credentials",
		"--authentication-tolerate-lookup-failure",
		"--leader-elect=false",
		"--cert-dir=" + l.Path("pki"),
		// With the default limits for API requests, new function pods would get their endpoints late, which delays
		// evaluations.
		"--kube-api-qps=100", "--kube-api-burst=200",
	}
}

func schedulerFlags(l layout.Layout) []string {
	kubeconfig := l.Config(scheduler + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--authentication-tolerate-lookup-failure",
		"--leader-elect=false",
		"--cert-dir=" + l.Path("pki"),
	}
}

func kubeletFlags(l layout.Layout) []string {
	return []string{
		"--config=" + l.Config("kubelet.yaml"),
		"--kubeconfig=" + l.Config(kubelet+".kubeconfig"),
		"--root-dir=" + l.Path("kubelet"),
		"--cert-dir=" + l.Path("pki"),
		"--hostname-override=" + layout.NodeName,
		"--node-ip=" + layout.NodeAddress,
	}
}
