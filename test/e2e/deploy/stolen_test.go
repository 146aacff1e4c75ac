// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"crypto/tls"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// blind is how a client connects to any server, and shows a certificate.
func blind(certificate tls.Certificate) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}}
}

// certificate is how one of our programs connects whose certificate is in a Secret.
func (p place) certificate(t *testing.T, secret string) *tls.Config {
	t.Helper()
	data := p.secret(suite.Context(t), t, secret)
	pair, err := tls.X509KeyPair(data[mtls.CertificateFile], data[mtls.KeyFile])
	if err != nil {
		t.Fatal(err)
	}
	return blind(pair)
}

// forged is how an attacker connects who issues certificates.
func forged(t *testing.T, id string) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(mtlstest.NewAuthority(t, time.Hour).Issue(t, id, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return blind(pair)
}

// stolen is how an attacker connects who has the certificate and the key of a function pod.
func stolen(t *testing.T, pod corev1.Pod) *tls.Config {
	t.Helper()
	const annotation = "krm-function-runner.github.io/identity"
	proof, err := mtls.NewProof(pod.Annotations[annotation], pod.Annotations[annotation+"-secret"])
	if err != nil {
		t.Fatalf("pod %s: %v", pod.Name, err)
	}
	quiet := telemetry.Discard()
	unused := mtlstest.NewAuthority(t, time.Hour).PEM
	identity, err := mtls.Make(proof, string(unused), quiet.Log, quiet.Meters)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := identity.Server().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return blind(*pair)
}
