// SPDX-License-Identifier: Apache-2.0

package podname_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// label is a DNS label of RFC 1035, which a Service's name has to be.
var label = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func TestPodID(t *testing.T) {
	tests := map[string]struct {
		reason    string
		reference string
		digest    string
		slot      int
		want      string
	}{
		"catalog": {
			"the format of Porch",
			"ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5", digest, 1, "set-namespace-v045-1-e3b0c442",
		},
		"underscore": {"labels have no underscores", "example.com/a/my_fn:v1", digest, 2, "my-fn-v1-2-e3b0c442"},
		"port":       {"a port is no tag", "localhost:5000/fn", digest, 1, "fn-1-e3b0c442"},
		"no tag":     {"the digest is enough", "example.com/fn", digest, 1, "fn-1-e3b0c442"},
		"upper case": {"what has to be changed gets a hash", "example.com/fn:V1", digest, 1, "fn-v1-c9c9ac0e-1-e3b0c442"},
		"digit first": {
			"a Service's name starts with a letter",
			"example.com/7zip:v1", digest, 1, "fn-7zip-v1-c81e39bc-1-e3b0c442",
		},
		"dot in path": {
			"dots are left out of tags only",
			"example.com/fn.io:v1", digest, 1, "fn-io-v1-d0081fe9-1-e3b0c442",
		},
		"long": {
			"the tag and the beginning of the name say the most",
			"example.com/" + strings.Repeat("long-", 20) + "fn:v1", digest, 1,
			"long-long-long-long-long-long-long-v1-94232c03-1-e3b0c442",
		},
		"other digest": {"what is no digest is hashed", "example.com/fn:v1", "", 1, "fn-v1-1-ba768b33"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podname.PodID(tc.reference, tc.digest, tc.slot); got != tc.want {
				t.Errorf("PodID(%q, %q, %d) = %q, want %q: %s", tc.reference, tc.digest, tc.slot, got, tc.want, tc.reason)
			}
		})
	}
}

func TestPodIDsDiffer(t *testing.T) {
	const other = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	long := strings.Repeat("x", 70)
	ids := map[string]string{}
	for _, in := range []struct {
		reference, digest string
		slot              int
	}{
		{"example.com/fn:v1", digest, 1},
		{"example.com/fn:v1", digest, 2},
		{"example.com/fn:v1", other, 1},
		{"example.com/fn:v2", digest, 1},
		{"example.com/fn:V1", digest, 1},
		{"example.com/f.n:v1", digest, 1},
		{"example.com/" + long + "a:v1", digest, 1},
		{"example.com/" + long + "b:v1", digest, 1},
		{"example.org/" + long + "a:v1", digest, 1},
	} {
		id := podname.PodID(in.reference, in.digest, in.slot)
		if before, ok := ids[id]; ok {
			t.Errorf("%v and %s have the same id %s", in, before, id)
		}
		ids[id] = in.reference
	}
}

func TestPodName(t *testing.T) {
	const reference = "example.com/fn:v1"
	first := podname.PodName(reference, digest, 1, "")
	if again := podname.PodName(reference, digest, 1, ""); again != first {
		t.Errorf("two replicas choose %q and %q: they have to meet", first, again)
	}
	if !strings.HasPrefix(first, podname.PodID(reference, digest, 1)+"-") {
		t.Errorf("PodName = %q, want the id in front", first)
	}
	for what, other := range map[string]string{
		"a successor":          podname.PodName(reference, digest, 1, "b6a2e7c8-1111-2222-3333-444455556666"),
		"a later successor":    podname.PodName(reference, digest, 1, "b6a2e7c8-1111-2222-3333-444455556667"),
		"another slot":         podname.PodName(reference, digest, 2, ""),
		"an image with its id": podname.PodName("example.org/fn:v1", digest, 1, ""),
	} {
		if other == first {
			t.Errorf("%s has the name %q too", what, first)
		}
	}
}

func FuzzPodID(f *testing.F) {
	for _, seed := range []string{
		"", "/", ":", "a", "example.com/a/b:v1", "A:B", "-:-", "...", "9", "ä/ö:ü", "a@b",
		strings.Repeat("a", 100) + ":" + strings.Repeat("b.", 60),
	} {
		f.Add(seed, digest, 1)
		f.Add(seed, seed, 1<<40)
	}
	f.Fuzz(func(t *testing.T, reference, digest string, slot int) {
		id, name := podname.PodID(reference, digest, slot), podname.PodName(reference, digest, slot, "")
		if !label.MatchString(id) || !label.MatchString(name) || len(name) > 63 {
			t.Errorf("PodID(%q, %q, %d) = %q, pod %q: not both labels", reference, digest, slot, id, name)
		}
		if got := podname.ID(name); got != id {
			t.Errorf("ID(%q) = %q, want %q", name, got, id)
		}
	})
}
