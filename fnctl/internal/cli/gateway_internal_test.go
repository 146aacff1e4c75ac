// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

func TestAddressOfTheEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, fnctl, services, want string
	}{
		"none":       {"the flag's default counts", "", "", ""},
		"own":        {"its own variable counts", "a.example:9445", "b.example:9445", "a.example:9445"},
		"earlier":    {"it had this name before", "", "b.example:9445", "b.example:9445"},
		"URL":        {"it is one to call", "", "https://b.example", "https://b.example"},
		"port":       {"a service listens there", "", ":9448", ""},
		"every host": {"a service listens there", "", "0.0.0.0:9448", ""},
	} {
		t.Run(name, func(t *testing.T) {
			environment := map[string]string{"FNCTL_ADDRESS": tc.fnctl, "FNR_ADDRESS": tc.services}
			if got := Address(func(name string) string { return environment[name] }); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// TestAdviceWithoutAnAddress checks what users read where no gateway answers.
func TestAdviceWithoutAnAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, environment, flag, want string
	}{
		"none":        {"they may not know that one is needed", "", DefaultAddress, noGateway},
		"environment": {"they have one, which is down", DefaultAddress, DefaultAddress, ""},
		"flag":        {"they have one, which is down", "", "gateway.example:9445", ""},
	} {
		t.Run(name, func(t *testing.T) {
			flags := gatewayFlags{address: tc.flag}
			got, err := flags.clientConfig(Environment{Address: tc.environment})
			if err != nil || got.Unreachable != tc.want {
				t.Errorf("advice %q, error %v, want %q: %s", got.Unreachable, err, tc.want, tc.reason)
			}
		})
	}
}
