// SPDX-License-Identifier: Apache-2.0

package functionconfig_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
)

// compiled returns what objects mean, given from old to new: a name and a spec each.
func compiled(t *testing.T, objects ...[2]string) *functionconfig.Set {
	t.Helper()
	var configs []*functionconfig.Config
	for i, o := range objects {
		u := object(t, o[0], o[1])
		u.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(1000+i), 0)))
		configs = append([]*functionconfig.Config{functionconfig.Decode(u, prefix)}, configs...)
	}
	return functionconfig.Compile(configs, prefix)
}

// ttl returns the time to live that is set for an image's pods; zero if nothing is.
func ttl(t *testing.T, s *functionconfig.Set, image string) time.Duration {
	t.Helper()
	name, err := imagename.Parse(image, prefix)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := s.Pod(name)
	if !ok {
		return 0
	}
	return f.Settings.TTL
}

func TestPrefixesMatchAsAWhole(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	s := compiled(
		t,
		[2]string{"a", "{image: fn, prefixes: [ghcr.io/a], podExecutor: {timeToLive: 1m}}"},
		[2]string{"ab", "{image: fn, prefixes: [ghcr.io/ab/], podExecutor: {tags: [v1], timeToLive: 2m}}"},
		[2]string{"default", "{image: fn, podExecutor: {tags: [v1], timeToLive: 3m}}"},
		[2]string{"empty", "{image: other, prefixes: [''], podExecutor: {tags: [v1], timeToLive: 4m}}"},
		[2]string{"hub", "{image: hub, prefixes: [example], podExecutor: {timeToLive: 5m}}"},
	)
	for image, minutes := range map[string]int{
		"ghcr.io/a/fn:v1": 1, "ghcr.io/a/fn:v2": 1, "ghcr.io/a/fn" + digest: 1, "GHCR.IO/a/fn:v1": 1,
		"ghcr.io/ab/fn:v1": 2, "ghcr.io/ab/fn:v2": 0, "ghcr.io/ab/fn" + digest: 0,
		"ghcr.io/a/b/fn:v1": 0, "ghcr.io/fn:v1": 0, "evil.example/ghcr.io/a/fn:v1": 0, "ghcr.io/a/fnord:v1": 0,
		"fn:v1": 3, prefix + "/fn:v1": 3, prefix + "/fn:v10": 0, "other:v1": 4,
		"example/hub:v1": 5, "docker.io/example/hub": 5,
	} {
		if got, want := ttl(t, s, image), time.Duration(minutes)*time.Minute; got != want {
			t.Errorf("%s has the time to live %v, want %v", image, got, want)
		}
	}
}

func TestTheOlderObjectHasAnImage(t *testing.T) {
	s := compiled(
		t,
		[2]string{
			"z-oldest",
			"{image: fn, binaryExecutor: {tags: [v1], path: a}, podExecutor: {tags: [v1], timeToLive: 1m}}",
		},
		[2]string{
			"a-newer",
			"{image: fn, prefixes: ['', '" + prefix + "'], binaryExecutor: {tags: [v1, v2], path: b}, " +
				"podExecutor: {timeToLive: 2m}}",
		},
		[2]string{"newest", "{image: fn, podExecutor: {tags: [v3], timeToLive: 3m}}"},
		[2]string{"wrong", "{image: fn, podExecutor: {tags: [v1], timeToLive: 1s}}"},
	)
	for image, minutes := range map[string]int{"fn:v1": 1, "fn:v2": 2, "fn:v3": 2} {
		if got, want := ttl(t, s, image), time.Duration(minutes)*time.Minute; got != want {
			t.Errorf("%s has the time to live %v, want %v", image, got, want)
		}
	}
	var binaries []string
	for _, m := range s.Binaries {
		binaries = append(binaries, fmt.Sprintf("%s %v", m.Path, m.Images))
	}
	if got, want := strings.Join(binaries, ", "), "a ["+prefix+"/fn:v1], b ["+prefix+"/fn:v2]"; got != want {
		t.Errorf("binaries are %s, want %s", got, want)
	}
	const end = "which is older: remove the image from one of them"
	for name, want := range map[string]string{
		"z-oldest": "",
		"a-newer": `binaryExecutor of ` + prefix + `/fn:v1 belongs to the FunctionConfig "z-oldest", ` + end + `; ` +
			`podExecutor of a tag of ` + prefix + `/fn belongs to the FunctionConfig "z-oldest", ` + end,
		"newest": `podExecutor of ` + prefix + `/fn:v3 belongs to the FunctionConfig "a-newer", ` + end,
	} {
		if got := strings.Join(s.Problems(name), "; "); got != want {
			t.Errorf("problems of %s are %q, want %q", name, got, want)
		}
	}
}

func TestObjectsOfOneAgeAreOrderedByName(t *testing.T) {
	b := functionconfig.Decode(object(t, "b", "{image: fn, podExecutor: {timeToLive: 1m}}"), prefix)
	a := functionconfig.Decode(object(t, "a", "{image: fn, podExecutor: {timeToLive: 2m}}"), prefix)
	for _, configs := range [][]*functionconfig.Config{{a, b}, {b, a}} {
		if got := ttl(t, functionconfig.Compile(configs, prefix), "fn:v1"); got != 2*time.Minute {
			t.Errorf("the time to live is %v", got)
		}
	}
}

func TestConflictsAreNamedUpToABound(t *testing.T) {
	tags := make([]string, 100)
	for i := range tags {
		tags[i] = fmt.Sprintf("v%d", i)
	}
	spec := "{image: fn, podExecutor: {tags: [" + strings.Join(tags, ", ") + "]}}"
	s := compiled(t, [2]string{"a", spec}, [2]string{"b", spec})
	if got := s.Problems("b"); len(got) != 6 || got[5] != "older FunctionConfigs also configure further images" {
		t.Errorf("problems are %q", got)
	}
}

func TestAllObjectsTogetherAreBounded(t *testing.T) {
	tags := make([]string, 1000)
	for i := range tags {
		tags[i] = fmt.Sprintf("v%d", i)
	}
	prefixes := make([]string, 100)
	for i := range prefixes {
		prefixes[i] = fmt.Sprintf("example.com/%d", i)
	}
	spec := "{image: fn, prefixes: [" + strings.Join(prefixes, ", ") + "], " +
		"binaryExecutor: {path: fn, tags: [" + strings.Join(tags, ", ") + "]}}"
	s := compiled(t, [2]string{"a", spec}, [2]string{"b", "{image: more, binaryExecutor: {path: fn, tags: [v1]}}"})
	got := s.Problems("b")
	if len(got) != 1 || !strings.Contains(got[0], "together have more than 100000") || len(s.Binaries) != 1 {
		t.Errorf("problems are %q, and binaries those of %d objects", got, len(s.Binaries))
	}
}

// TestMinPods holds that images are listed with and without a minimum, and all tags of a repository are not.
func TestMinPods(t *testing.T) {
	u := object(t, "a", "{image: fn, podExecutor: {tags: [v1, v2]}}")
	u.SetAnnotations(map[string]string{functionconfig.SettingsAnnotation: "minPods: 2"})
	none := object(t, "b", "{image: other, podExecutor: {tags: [v1]}}")
	all := object(t, "c", "{image: third, podExecutor: {}}")
	var configs []*functionconfig.Config
	for _, o := range []*unstructured.Unstructured{u, none, all} {
		configs = append(configs, functionconfig.Decode(o, prefix))
	}
	s := functionconfig.Compile(configs, prefix)
	if got := s.MinPods(); len(got) != 3 || got[prefix+"/fn:v1"] != 2 || got[prefix+"/other:v1"] != 0 {
		t.Errorf("MinPods = %v", got)
	}
}

// TestVersionConstraints has tags as in Porch's published objects.
func TestVersionConstraints(t *testing.T) {
	s := compiled(
		t,
		[2]string{"four", "{image: fn, podExecutor: {tags: ['~0.4'], timeToLive: 1m}}"},
		[2]string{"one", "{image: fn, podExecutor: {tags: ['~0.1 != v0.1.4', v0.1.4], timeToLive: 2m}}"},
		[2]string{"exact", "{image: fn, podExecutor: {tags: [v0.4.2], timeToLive: 3m}}"},
		[2]string{"wide", "{image: fn, podExecutor: {tags: ['*'], timeToLive: 4m}}"},
		[2]string{"same", "{image: fn, podExecutor: {tags: ['~0.4'], timeToLive: 5m}}"},
	)
	for image, minutes := range map[string]int{
		"fn:v0.4.1": 1, "fn:v0.4.2": 3, "fn:0.4.9": 1, "fn:v0.1.3": 2, "fn:v0.1.4": 2, "fn:v0.5.0": 4, "fn:latest": 0,
		"fn:v0.5.0-git-1234": 0, "other:v0.4.1": 0,
	} {
		if got := ttl(t, s, image); got != time.Duration(minutes)*time.Minute {
			t.Errorf("the time to live of %s is %v, want %dm", image, got, minutes)
		}
	}
	const conflict = `fn:~0.4 belongs to the FunctionConfig "four"`
	if problems := strings.Join(s.Problems("same"), " "); !strings.Contains(problems, conflict) {
		t.Errorf("two objects have one constraint, and the younger one's problems are %q", problems)
	}
	b := compiled(t, [2]string{"b", "{image: fn, binaryExecutor: {tags: ['~0.4', v0.3.0], path: fn}}"}).Binaries
	if len(b) != 1 || len(b[0].Images) != 2 || b[0].Images[1] != prefix+"/fn:~0.4" {
		t.Errorf("binaries are %+v", b)
	}
}
