// SPDX-License-Identifier: Apache-2.0

package dialguard_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
)

// localAddresses are addresses that must not be reached, with the reason.
var localAddresses = map[string]string{
	"127.0.0.1":                      "loopback",
	"127.1.2.3":                      "the whole prefix is loopback",
	"0.0.0.0":                        "Linux takes it for loopback",
	"0.1.2.3":                        "this host",
	"169.254.169.254":                "metadata of most clouds",
	"169.254.170.2":                  "credentials of AWS tasks",
	"224.0.0.1":                      "multicast",
	"255.255.255.255":                "broadcast",
	"100.100.100.200":                "metadata of Alibaba",
	"168.63.129.16":                  "metadata of Azure",
	"192.0.0.192":                    "metadata of Oracle",
	"::":                             "Linux takes it for loopback",
	"::1":                            "loopback",
	"::ffff:127.0.0.1":               "IPv4-mapped",
	"::ffff:169.254.169.254":         "IPv4-mapped",
	"::127.0.0.1":                    "IPv4-compatible",
	"::ffff:0:127.0.0.1":             "IPv4-translated",
	"64:ff9b::169.254.169.254":       "NAT64",
	"64:ff9b::7f00:1%eth0":           "NAT64, with a zone",
	"64:ff9b:1:2:3::169.254.169.254": "NAT64 of a local prefix",
	"2002:7f00:1::1":                 "6to4",
	"2002:a9fe:a9fe::":               "6to4",
	"fe80::1":                        "link-local",
	"fe80::a9fe:a9fe%eth0":           "link-local, with a zone",
	"ff02::1":                        "multicast",
	"fd00:ec2::254":                  "metadata of AWS",
	"fd00:ec2::23":                   "credentials of AWS pods",
	"fd20:ce::254":                   "metadata of Google",
	"fd00:c1::a9fe:a9fe":             "metadata of Oracle",
}

// otherAddresses are addresses where a registry may be.
var otherAddresses = []string{
	"8.8.8.8", "10.1.2.3", "172.30.0.1", "192.168.1.1", "100.64.0.1", "fd12:3456::1", "2001:db8::1",
	"::ffff:10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::10.0.0.1", "2002:808:808::1", "240.0.0.1",
}

func TestCheck(t *testing.T) {
	rejected := func(ctx context.Context, address string) bool {
		err := dialguard.Check(ctx, net.JoinHostPort(address, "443"))
		found, ok := errors.AsType[*dialguard.Error](err)
		if ok && found.Host != "registry.example" {
			t.Errorf("%s: error names %q, want the request's host", address, found.Host)
		}
		return ok
	}
	restricted := dialguard.Restrict(t.Context(), dialguard.Restriction{Host: "registry.example", Private: true})
	for address, reason := range localAddresses {
		if !rejected(restricted, address) {
			t.Errorf("%s is allowed: %s", address, reason)
		}
		if rejected(t.Context(), address) || rejected(dialguard.Lift(restricted), address) {
			t.Errorf("%s is rejected without a restriction", address)
		}
	}
	for _, address := range otherAddresses {
		if rejected(restricted, address) {
			t.Errorf("%s is rejected", address)
		}
	}
	public := dialguard.Restrict(t.Context(), dialguard.Restriction{Host: "registry.example", Private: false})
	for address, want := range map[string]bool{
		"10.1.2.3": true, "172.30.0.1": true, "192.168.1.1": true, "100.64.0.1": true, "fd12:3456::1": true,
		"::ffff:10.0.0.1": true, "64:ff9b:1::10.0.0.1": true, "127.0.0.1": true, "8.8.8.8": false, "172.32.0.1": false,
		"2001:db8::1": false, "2002:808:808::1": false,
	} {
		if rejected(public, address) != want {
			t.Errorf("%s is rejected: %t, want %t where only public addresses are permitted", address, !want, want)
		}
	}
	if !rejected(restricted, "no address") {
		t.Error("an address that cannot be read is allowed")
	}
}

func TestIsLocal(t *testing.T) {
	names := map[string]string{
		"localhost":       "a name of this machine",
		"LocalHost.":      "names have no case, and may end with a dot",
		"x.localhost":     "all names below localhost",
		"":                "Go connects to this machine",
		"127.0.0.1.":      "proxies and resolvers drop the dot",
		"2130706433":      "decimal",
		"127.1":           "short",
		"0x7f.0.0.1":      "hexadecimal",
		"0x7f000001":      "hexadecimal",
		"0177.0.0.1":      "octal",
		"0xA9FEA9FE":      "metadata, hexadecimal",
		"0":               "0.0.0.0",
		"134744072":       "an unusual form of 8.8.8.8",
		"1.2.3.4.5":       "no name ends in a number",
		"256.1.1.1":       "no name ends in a number",
		"0xg":             "no name ends so",
		"１２７.０.０.１":       "package http maps wide digits to ASCII",
		"ｌocalhost":       "and wide letters",
		"ⓛocalhost":       "and letters in circles",
		"169。254。169。254": "and ideographic full stops",
	}
	for address, reason := range localAddresses {
		names[address] = reason
	}
	for host, reason := range names {
		if !dialguard.IsLocal(host) {
			t.Errorf("%q is not local: %s", host, reason)
		}
	}
	for _, host := range append(otherAddresses, "registry.example", "localhost.example", "registry1",
		"1.example") {
		if dialguard.IsLocal(host) {
			t.Errorf("%q is local", host)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.2": true, "::1": true, "::ffff:127.0.0.1": true,
		"169.254.169.254": false, "10.1.2.3": false, "registry.example": false, "0.0.0.0": false,
	} {
		if got := dialguard.IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %t, want %t", host, got, want)
		}
	}
}
