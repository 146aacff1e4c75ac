package policy_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/policy"
)

const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		reason string
		allow  []string
		deny   []string
		digest bool
		image  string
		rule   string // that refuses; empty if allowed
	}{
		"no rules":         {"everything is allowed", nil, nil, false, "busybox", ""},
		"allowed":          {"one pattern is enough", []string{"quay.io/**", "ghcr.io/org/*"}, nil, false, "ghcr.io/org/fn:v1", ""},
		"not allowed":      {"one star is one segment", []string{"ghcr.io/org/*"}, nil, false, "ghcr.io/org/a/fn:v1", "allow-list"},
		"denied":           {"deny comes first", []string{"**"}, []string{"no-hub=docker.io/**"}, false, "busybox", "no-hub"},
		"denied, unnamed":  {"a pattern is its own name", nil, []string{"docker.io/**"}, false, "busybox", "docker.io/**"},
		"hub's other name": {"it is the same registry", nil, []string{"docker.io/**"}, false, "registry-1.docker.io/library/busybox", "docker.io/**"},
		"explicit port":    {"it is the same registry", nil, []string{"ghcr.io/**"}, false, "ghcr.io:443/org/fn", "ghcr.io/**"},
		"upper case":       {"host names have no case", nil, []string{"ghcr.io/**"}, false, "GHCR.io/org/fn", "ghcr.io/**"},
		"other port":       {"it is another registry", nil, []string{"ghcr.io/**"}, false, "ghcr.io:5000/org/fn", ""},
		"not a prefix":     {"patterns match all of a name", []string{"ghcr.io/org"}, nil, false, "ghcr.io/org/fn", "allow-list"},
		"dot is a dot":     {"patterns are no regular expressions", []string{"ghcr.io/**"}, nil, false, "ghcrxio.example/fn", "allow-list"},
		"digest wanted":    {"a tag can move", nil, nil, true, "ghcr.io/org/fn:v1", "require-digest"},
		"digest given":     {"a digest cannot", nil, nil, true, "ghcr.io/org/fn:v1" + digest, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := policy.Policy{Allow: rules(t, tc.allow), Deny: rules(t, tc.deny), RequireDigest: tc.digest}
			image, err := imagename.Parse(tc.image, "")
			if err != nil {
				t.Fatal(err)
			}
			err = p.Check(image)
			if tc.rule == "" {
				if err != nil {
					t.Errorf("refused: %v: %s", err, tc.reason)
				}
				return
			}
			if fault.Of(err) != fault.Denied || !strings.Contains(err.Error(), `rule "`+tc.rule+`"`) {
				t.Errorf("%v, want Denied by rule %q: %s", err, tc.rule, tc.reason)
			}
		})
	}
}

func rules(t *testing.T, list []string) []policy.Rule {
	t.Helper()
	parsed, err := policy.ParseRules(list)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestParseRulesRefuses(t *testing.T) {
	for _, s := range []string{"", "=", "name=", "=pattern"} {
		if _, err := policy.ParseRules([]string{s}); err == nil {
			t.Errorf("rule %q is accepted", s)
		}
	}
}
