// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeAttackers has the table of attackers written instead of compared.
var writeAttackers = flag.String("attackers.write", "", "a file for the table of attackers, to compare it with ours")

// attackedPort is a port that attackers call.
type attackedPort struct {
	name string
	// app selects the pod with the port: the value of the label "app", or nothing for function pods.
	app  string
	port int
}

// attackedPorts are all ports of a system. The status page is for the pod's own network alone.
var attackedPorts = []attackedPort{
	{"gateway, plaintext", "gateway", 9445},
	{"gateway, with identities", "gateway", 9443},
	{"gateway, status", "gateway", 9447},
	{"gateway, metrics", "gateway", 9464},
	{"pod-manager", "pod-manager", 9448},
	{"pod-manager, metrics", "pod-manager", 9464},
	{"image-resolver", "image-resolver", 9449},
	{"image-resolver, metrics", "image-resolver", 9464},
	{"function pod", "", 9446},
	{"function pod, metrics", "", 9464},
}

// credential is what an attacker shows.
type credential struct {
	name string
	tls  *tls.Config // nil for plaintext
	// token is one of Kubernetes, empty for none.
	token string
}

// attackerCredentials returns what attackers can have: a network only, tokens of accounts, the certificate of a caller
// of the gateway, of a function pod, of each of our programs, and one that they issue.
func (p place) attackerCredentials(t *testing.T) []credential {
	t.Helper()
	anonymous := &tls.Config{InsecureSkipVerify: true}
	all := []credential{
		{"nothing, plaintext", nil, ""},
		{"nothing, TLS", anonymous, ""},
		{"a token of the system's namespace, plaintext", nil, p.token(t, p.system, "function-runner")},
		{"a token of the system's namespace", anonymous, p.token(t, p.system, "function-runner")},
		{"a token of the functions' namespace", anonymous, p.token(t, p.functions, "function-runner")},
		{"a token for another audience", anonymous, p.token(t, p.system, "other")},
		{"the certificate of a caller", p.certificate(t, callerSecret), ""},
		{"a gateway's certificate of another authority", forged(t, "spiffe://function-runner/gateway"), ""},
		{"a function pod's certificate", stolen(t, p.first(t, "")), ""},
	}
	for _, program := range programs {
		all = append(all, credential{"the certificate of the " + program, p.certificate(t, program+"-tls"), ""})
	}
	return all
}

// attackersGetTheTable calls each port, with all methods of all services and each credential, from pods in each
// namespace with each label: the test bed's network enforces no policy, so all of them get the same.
func (p place) attackersGetTheTable(t *testing.T) {
	t.Helper()
	want, err := os.ReadFile("testdata/attackers.txt")
	if err != nil {
		t.Fatal(err)
	}
	credentials := p.attackerCredentials(t)
	for _, from := range p.attackerPods(t) {
		for _, labels := range disguises {
			name := from.disguise(t, labels)
			got := p.tableOf(t, from, credentials)
			if *writeAttackers != "" {
				if err := os.WriteFile(*writeAttackers, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Fatalf("attackers in %s do not get what testdata/attackers.txt has (-want, +got):\n%s", name, diff)
			}
		}
	}
}

// tableOf returns the table of what an attacker gets, from all ports at the same time.
func (p place) tableOf(t *testing.T, from attacker, credentials []credential) string {
	t.Helper()
	parts := make([]string, len(attackedPorts))
	var called sync.WaitGroup
	for i, port := range attackedPorts {
		address := fmt.Sprintf("%s:%d", p.first(t, port.app).Status.PodIP, port.port)
		called.Go(func() {
			var part strings.Builder
			fmt.Fprintf(&part, "%s (%d)\n", port.name, port.port)
			for _, with := range credentials {
				fmt.Fprintf(&part, "  %-46s %s\n", with.name, from.tries(t, address, with))
			}
			parts[i] = part.String()
		})
	}
	called.Wait()
	return strings.Join(parts, "\n")
}
