// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// root is the repository's root, relative to this directory.
const root = "../../.."

// The Secrets of the manifests.
const (
	authSecret = "auth-secret"
	tlsSecret  = "registry-tls"
)

// mode is a way to deploy the system with private registries.
type mode struct {
	name, overlay string
	// resolver is the Deployment that calls registries, and insecure the variable that names those
	// without TLS.
	resolver, insecure string
	// account is the account of the program that manages pods.
	account string
}

var modes = []mode{
	{"microservices", "dev", "image-resolver", "FNR_INSECURE_REGISTRIES", "pod-manager"},
	{
		"function-runner", "dev-function-runner", "function-runner", "FNR_INSECURE_REGISTRIES",
		"porch-fn-runner",
	},
}

// system is the whole system in separate namespaces.
type system struct {
	// services is the namespace of the services, and functions that of function pods.
	services, functions string
	wrapper             string // image of the wrapper server
	// listed are the registries at private addresses whose errors callers see.
	listed []string
}

// deploy deploys the manifests, with listed registries at private addresses, and these initial contents of the Secrets.
func deploy(t *testing.T, m mode, wrapper string, listed []string, secrets ...*corev1.Secret) *system {
	t.Helper()
	sys := &system{services: s.Namespace(t), functions: s.Namespace(t), wrapper: wrapper, listed: listed}
	for _, secret := range secrets {
		sys.put(t, secret)
	}
	s.Install(suite.Context(t), t, sys.manifests(t, m)...)
	return sys
}

// manifests returns the objects of a mode, with the test bed's images and registry, and in the
// namespaces of the test: other tests use the usual ones.
func (sys *system) manifests(t *testing.T, m mode) []*unstructured.Unstructured {
	t.Helper()
	rename := strings.NewReplacer("porch-system", sys.services, "porch-fn-system", sys.functions,
		"ghcr.io/krm-function-runner/wrapper-server:latest", sys.wrapper)
	kustomization := manifests.Combine(t, filepath.Join(root, "deploy"), "overlays/"+m.overlay, "private-registry")
	objects := append(suite.Namespaces(t), suite.Build(t, kustomization)...)
	objects = suite.Rewrite(t, objects, func(document string) string {
		return s.OwnImages(t, suite.Current, rename.Replace(document))
	})
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == m.resolver {
			suite.SetVariable(t, o, m.insecure, s.Registry(t, "private").Host+","+s.Registry(t, "open").Host)
			suite.SetVariable(t, o, "FNR_INTERNAL_REGISTRIES", strings.Join(sys.listed, ","))
		}
	}
	return objects
}
