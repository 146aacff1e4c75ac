// SPDX-License-Identifier: Apache-2.0

package imagename_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/imagename"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParse(t *testing.T) {
	tests := map[string]struct {
		reason string
		image  string
		prefix string
		want   string
		key    string
	}{
		"short": {
			"a name without slash is looked up under the prefix", "set-namespace:v0.4.5", "example.com/fns",
			"example.com/fns/set-namespace:v0.4.5", "",
		},
		"trailing slash": {
			"the old default prefix ends in a slash", "set-namespace:v0.4.5", "gcr.io/kpt-fn/",
			"gcr.io/kpt-fn/set-namespace:v0.4.5", "",
		},
		"short digest": {"a digest has no slash", "fn@" + digest, "example.com", "example.com/fn@" + digest, ""},
		"no prefix":    {"without prefix a short name is docker's", "busybox", "", "docker.io/library/busybox:latest", ""},
		"docker": {
			"a path without registry is docker's, never the prefix's", "nephio/fn:v1", "example.com", "docker.io/nephio/fn:v1",
			"",
		},
		"docker alias": {"docker.io has an alias", "index.docker.io/nephio/fn:v1", "", "docker.io/nephio/fn:v1", ""},
		"port":         {"a port is no tag", "localhost:5000/fn", "", "localhost:5000/fn:latest", ""},
		"tag and digest": {
			"the digest selects the image", "example.com/fn:v1@" + digest, "", "example.com/fn:v1@" + digest,
			"example.com/fn@" + digest,
		},
		"foreign": {
			"a registry that only looks like the prefix is another", "example.com.evil/fn:v1", "example.com",
			"example.com.evil/fn:v1", "",
		},
		"prefix in path": {
			"nor does the prefix as a path make it the same", "evil.com/example.com/fn:v1", "example.com",
			"evil.com/example.com/fn:v1", "",
		},
		"upper-case host": {
			"host names are the same in any case", "Example.COM:5000/fn:v1", "", "example.com:5000/fn:v1", "",
		},
		"docker shouted": {"docker.io's are no exception", "INDEX.docker.IO/fn:V1", "", "docker.io/library/fn:V1", ""},
		"local":          {"nor is this machine's", "LOCALHOST/fn", "", "localhost/fn:latest", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := imagename.Parse(tc.image, tc.prefix)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != tc.want {
				t.Errorf("Parse(%q, %q) = %q, want %q: %s", tc.image, tc.prefix, got, tc.want, tc.reason)
			}
			key := tc.key
			if key == "" {
				key = tc.want
			}
			if got.Key() != key {
				t.Errorf("Key() = %q, want %q: %s", got.Key(), key, tc.reason)
			}
			again, err := imagename.Parse(got.String(), "other.example")
			if err != nil || again != got {
				t.Errorf("parsing %q again gives %v, %v: a canonical name is its own", got, again, err)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	for _, image := range []string{
		"", " ", "example.com/UPPER:v1", "a b", "fn:", "fn:tag with space", "fn@sha256:123", "https://example.com/fn:v1",
		"example.com/../fn", "fn:v1\n", "-fn", strings.Repeat("a", 300), "example.com/fn@md5:" + strings.Repeat("0", 32),
		"REGISTRY/fn", // in lower case it would be another one
	} {
		if got, err := imagename.Parse(image, imagename.DefaultPrefix); fault.Of(err) != fault.Invalid {
			t.Errorf("Parse(%q) = %v, %v, want an error of class invalid", image, got, err)
		}
	}
}

// TestLongNames has the longest name that there is, and one that is longer.
func TestLongNames(t *testing.T) {
	host := strings.Repeat(strings.Repeat("h", 62)+".", 4) + "io:65535"
	longest := host + "/" + strings.Repeat("p", 255) + ":" + strings.Repeat("t", 128) + "@sha512:" + strings.Repeat("0",
		128)
	if name, err := imagename.Parse(longest, ""); err != nil || name.String() != longest {
		t.Errorf("Parse(%q) = %q, %v", longest, name, err)
	}
	_, err := imagename.Parse(strings.Repeat("a", 5<<20), "")
	if fault.Of(err) != fault.Invalid || len(err.Error()) > 200 {
		t.Errorf("the error for a name of megabytes is of class %v and has %d bytes", fault.Of(err), len(err.Error()))
	}
}

func TestWithTag(t *testing.T) {
	name := imagename.Name{Repository: "example.com/fn", Tag: "v1", Digest: digest}
	got, err := name.WithTag("v2")
	if err != nil || got.String() != "example.com/fn:v2" {
		t.Errorf("WithTag(v2) = %v, %v: it replaces tag and digest", got, err)
	}
	if _, err := name.WithTag("not a tag"); fault.Of(err) != fault.Invalid {
		t.Errorf("WithTag with spaces: %v, want an error of class invalid", err)
	}
}

func TestIsPrefix(t *testing.T) {
	for prefix, want := range map[string]bool{
		imagename.DefaultPrefix: true, "localhost:5000/a/": true, "": true,
		"https://r.io": false, "r.io/A": false, "a b": false, "r.io/a:v1": false,
	} {
		if got := imagename.IsPrefix(prefix); got != want {
			t.Errorf("IsPrefix(%q) = %v, want %v", prefix, got, want)
		}
	}
}

func TestSplitTag(t *testing.T) {
	for image, want := range map[string][2]string{
		"example.com/fn:v1": {"example.com/fn", "v1"}, "fn:v1": {"fn", "v1"}, "fn": {"fn", ""}, "": {"", ""},
		"localhost:5000/fn": {"localhost:5000/fn", ""}, "localhost:5000/fn:v1": {"localhost:5000/fn", "v1"},
	} {
		if repository, tag := imagename.SplitTag(image); repository != want[0] || tag != want[1] {
			t.Errorf("SplitTag(%q) = %q, %q, want %q", image, repository, tag, want)
		}
	}
}

func TestShort(t *testing.T) {
	for want, name := range map[string]imagename.Name{
		"fn:v1": {Repository: "example.com/a/fn", Tag: "v1"},
		"fn":    {Repository: "example.com/a/fn", Digest: digest},
	} {
		if got := name.Short(); got != want {
			t.Errorf("Short() of %v = %q, want %q", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"fn", "fn:v1", "example.com/fn:v1@" + digest, "localhost:5000/a/b", "a/b:c", "🙂",
		"a@b", "::", "a//b", "EXAMPLE.com/fn", "Fn/a",
	} {
		f.Add(seed, "example.com/fns")
	}
	f.Add("fn", strings.Repeat("a", imagename.MaxBytes-len(".io/fn"))+".io") // too long with its tag
	f.Fuzz(func(t *testing.T, image, prefix string) {
		name, err := imagename.Parse(image, prefix)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Fatalf("Parse(%q, %q): class %v", image, prefix, fault.Of(err))
			}
			return
		}
		again, err := imagename.Parse(name.String(), "other.example")
		if err != nil || again != name {
			t.Fatalf("Parse(%q, %q) = %q, which parses as %q, %v", image, prefix, name, again, err)
		}
	})
}
