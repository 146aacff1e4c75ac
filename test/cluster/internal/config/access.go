// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/base64"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// Users of the cluster's API. Each user has a static token in its kubeconfig.
const (
	admin             = "admin"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	proxy             = "kube-proxy"
	kubelet           = "kubelet"
)

// account is a line in the API server's file of static tokens.
type account struct {
	Name, Group, Token string
}

func listAccounts(secrets Secrets) []account {
	return []account{
		{Name: admin, Group: "system:masters", Token: secrets.Token(admin)},
		{Name: "system:" + controllerManager, Token: secrets.Token(controllerManager)},
		{Name: "system:" + scheduler, Token: secrets.Token(scheduler)},
		{Name: "system:" + proxy, Token: secrets.Token(proxy)},
		{Name: "system:node:" + layout.NodeName, Group: "system:nodes", Token: secrets.Token(kubelet)},
	}
}

// writeAccess writes the API server's tokens, and a kubeconfig for each user.
func writeAccess(l layout.Layout, secrets Secrets, authority []byte) error {
	if err := renderFile(l.Config("tokens.csv"), "tokens.csv", listAccounts(secrets), 0o600); err != nil {
		return err
	}
	paths := map[string]string{admin: l.Kubeconfig()}
	for _, user := range []string{controllerManager, scheduler, proxy, kubelet} {
		paths[user] = l.Config(user + ".kubeconfig")
	}
	for user, path := range paths {
		data := map[string]string{
			"APIAddress": layout.APIAddress,
			"CA":         base64.StdEncoding.EncodeToString(authority),
			"Token":      secrets.Token(user),
		}
		if err := renderFile(path, "kubeconfig", data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
