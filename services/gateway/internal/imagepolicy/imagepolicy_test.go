// SPDX-License-Identifier: Apache-2.0

package imagepolicy_test

import (
	"cmp"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/imagepolicy"
)

const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		reason string
		allow  []string
		deny   []string
		digest bool
		image  string
		rule   string // that rejects; empty if allowed
	}{
		"no rules": {"everything is allowed", nil, nil, false, "busybox", ""},
		"allowed": {
			"one pattern is enough",
			[]string{"quay.io/**", "ghcr.io/org/*"},
			nil,
			false,
			"ghcr.io/org/fn:v1",
			"",
		},
		"not allowed": {
			"one star is one segment",
			[]string{"ghcr.io/org/*"},
			nil,
			false,
			"ghcr.io/org/a/fn:v1",
			"allow-list",
		},
		"denied": {
			"deny comes first",
			[]string{"**"},
			[]string{"no-hub=docker.io/**"},
			false,
			"busybox",
			"no-hub",
		},
		"denied, unnamed": {"a pattern is its own name", nil, []string{"docker.io/**"}, false, "busybox", "docker.io/**"},
		"hub's other name": {
			"it is the same registry",
			nil,
			[]string{"docker.io/**"},
			false,
			"registry-1.docker.io/library/busybox",
			"docker.io/**",
		},
		"explicit port": {
			"it is the same registry",
			nil,
			[]string{"ghcr.io/**"},
			false,
			"ghcr.io:443/org/fn",
			"ghcr.io/**",
		},
		"port with a zero": {
			"connections go to the same port",
			nil,
			[]string{"ghcr.io/**"},
			false,
			"ghcr.io:0443/org/fn",
			"ghcr.io/**",
		},
		"port with zeros": {
			"connections go to the same port",
			nil,
			[]string{"ghcr.io:5000/**"},
			false,
			"ghcr.io:0005000/org/fn",
			"ghcr.io:5000/**",
		},
		"address in IPv6": {
			"connections go to the same address",
			nil,
			[]string{"10.0.0.5:5000/**"},
			false,
			"[::ffff:a00:5]:5000/fn",
			"10.0.0.5:5000/**",
		},
		"long address": {
			"it is the same address",
			nil,
			[]string{"[fd00::5]:5000/**"},
			false,
			"[fd00:0:0:0:0:0:0:0005]:5000/fn",
			"[fd00::5]:5000/**",
		},
		"hub's alias": {
			"a rule may use any name of a registry",
			nil,
			[]string{"index.docker.io/**"},
			false,
			"busybox",
			"index.docker.io/**",
		},
		"hub's third name": {
			"a rule may use any name of a registry",
			[]string{"registry-1.docker.io/library/*"},
			nil,
			false,
			"busybox",
			"",
		},
		"port in a rule": {
			"so may a rule write the port",
			nil,
			[]string{"ghcr.io:0443/org/*"},
			false,
			"ghcr.io/org/fn",
			"ghcr.io:0443/org/*",
		},
		"case in a rule": {"host names have no case", nil, []string{"GHCR.io/**"}, false, "ghcr.io/org/fn", "GHCR.io/**"},
		"as it is written": {
			"a rule counts for what it looks like too",
			nil,
			[]string{"*.docker.io/**"},
			false,
			"registry-1.docker.io/library/busybox",
			"*.docker.io/**",
		},
		"upper case": {"host names have no case", nil, []string{"ghcr.io/**"}, false, "GHCR.io/org/fn", "ghcr.io/**"},
		"other port": {"it is another registry", nil, []string{"ghcr.io/**"}, false, "ghcr.io:5000/org/fn", ""},
		"not a prefix": {
			"patterns match all of a name",
			[]string{"ghcr.io/org"},
			nil,
			false,
			"ghcr.io/org/fn",
			"allow-list",
		},
		"dot is a dot": {
			"patterns are no regular expressions",
			[]string{"ghcr.io/**"},
			nil,
			false,
			"ghcrxio.example/fn",
			"allow-list",
		},
		"digest wanted": {"a tag can move", nil, nil, true, "ghcr.io/org/fn:v1", "require-digest"},
		"digest given":  {"a digest cannot", nil, nil, true, "ghcr.io/org/fn:v1" + digest, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPolicy(t, imagepolicy.Lists{Allow: tc.allow, Deny: tc.deny, RequireDigest: tc.digest})
			image, err := imagename.Parse(tc.image, "")
			if err != nil {
				t.Fatal(err)
			}
			err = p.Check(image)
			if tc.rule == "" {
				if err != nil {
					t.Errorf("rejected: %v: %s", err, tc.reason)
				}
				return
			}
			if fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), `rule "`+tc.rule+`"`) {
				t.Errorf("%v, want Denied by rule %q: %s", err, tc.rule, tc.reason)
			}
		})
	}
}

func newPolicy(t testing.TB, lists imagepolicy.Lists) imagepolicy.Policy {
	t.Helper()
	p, err := imagepolicy.New(lists)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMalformedRulesAreRejected(t *testing.T) {
	for _, s := range []string{"", "=", "name=", "=pattern"} {
		for _, lists := range []imagepolicy.Lists{{Allow: []string{s}}, {Deny: []string{s}}} {
			if _, err := imagepolicy.New(lists); err == nil {
				t.Errorf("rule %q is accepted in %+v", s, lists)
			}
		}
	}
}

// FuzzDeny looks for a spelling with which a connection would go to a denied registry.
func FuzzDeny(f *testing.F) {
	for _, seed := range []string{
		"ghcr.io", "ghcr.io:443", "ghcr.io:0443", "GHCR.IO:00443", "ghcr.io:5000",
		"ghcr.io:", "[::1]:0443", "localhost",
	} {
		f.Add(seed)
	}
	denying := newPolicy(f, imagepolicy.Lists{Deny: []string{"ghcr.io/**", "10.0.0.5/**", "[::1]/**"}})
	f.Fuzz(func(t *testing.T, host string) {
		image, err := imagename.Parse(host+"/org/fn", "")
		if err != nil {
			return // no image has that name
		}
		u, err := url.Parse("https://" + image.Repository)
		if err != nil {
			return // no request could be made
		}
		port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
		if err != nil || port != 443 {
			return
		}
		name := strings.ToLower(u.Hostname())
		if address, err := netip.ParseAddr(name); err == nil {
			name = address.Unmap().String()
		}
		denied := fault.Of(denying.Check(image)) == fault.Denied
		if listed := name == "ghcr.io" || name == "10.0.0.5" || name == "::1"; denied != listed {
			t.Errorf("%q leads to %s, port %d: denied is %t", host, name, port, denied)
		}
	})
}
