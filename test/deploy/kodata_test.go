// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestImagesGetFunctionsOfTheirPlatform tests how a developer with another kind of machine builds
// the data of images.
func TestImagesGetFunctionsOfTheirPlatform(t *testing.T) {
	platform := regexp.MustCompile(`(?m)^defaultPlatforms: \[(\w+)/(\w+)\]$`).FindStringSubmatch(
		string(mustRead(t, root+"/.ko.yaml")))
	if platform == nil {
		t.Fatal(".ko.yaml names no platform, or several: the functions are built for one")
	}
	if !strings.Contains(string(mustRead(t, root+"/skaffold.yaml")),
		"\n  platforms: ["+platform[1]+"/"+platform[2]+"]\n") {
		t.Error("skaffold builds images for other platforms than ko")
	}
	plan := exec.CommandContext(t.Context(), "make", "-C", root, "--dry-run", "kodata")
	plan.Env = append(plan.Environ(), "GOOS=plan9", "GOARCH=arm")
	out, err := plan.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	builds := 0
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "go build") {
			continue
		}
		builds++
		if !strings.Contains(line, " GOOS="+platform[1]+" GOARCH="+platform[2]+" ") {
			t.Errorf("this is not built for %s: %s", platform[0], line)
		}
		if strings.Contains(line, "/.build/functions/") {
			t.Errorf("this replaces the functions that the developer runs: %s", line)
		}
	}
	if builds != 3 {
		t.Errorf("%d builds, want those of both modules of functions and of the probe:\n%s", builds, out)
	}
}

// TestSkaffoldWatchesEmbeddedFiles checks that skaffold builds a program anew if a file in it changes that is no code.
func TestSkaffoldWatchesEmbeddedFiles(t *testing.T) {
	type build struct {
		Artifacts []struct {
			Image string `json:"image"`
			Ko    struct {
				Dependencies struct {
					Paths []string `json:"paths"`
				} `json:"dependencies"`
			} `json:"ko"`
		} `json:"artifacts"`
	}
	var config struct {
		Build    build `json:"build"`
		Profiles []struct {
			Build build `json:"build"`
		} `json:"profiles"`
	}
	if err := yaml.Unmarshal(mustRead(t, root+"/skaffold.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	artifacts := config.Build.Artifacts
	for _, p := range config.Profiles {
		artifacts = append(artifacts, p.Build.Artifacts...)
	}
	files := run(t, nil, "git", "-C", root, "grep", "^//go:embed ", "--", "services/*.go", ":!*_test.go")
	for line := range strings.Lines(string(files)) {
		source, directive, _ := strings.Cut(strings.TrimSpace(line), ":")
		embedded := path.Join(path.Dir(source), strings.TrimPrefix(directive, "//go:embed "))
		module := strings.Join(strings.Split(source, "/")[:2], "/")
		watched := 0
		for _, a := range artifacts {
			if path.Base(a.Image) != path.Base(module) && path.Base(a.Image) != "function-runner" {
				continue
			}
			if slices.ContainsFunc(a.Ko.Dependencies.Paths, func(pattern string) bool {
				directory, name, ok := strings.Cut(pattern, "/**/")
				return ok && directory == module && path.Base(embedded) == strings.TrimSuffix(name, "/*")
			}) {
				watched++
			}
		}
		if watched != 2 {
			t.Errorf("%d images are built anew if %s changes, want those of its service and of function-runner",
				watched, embedded)
		}
	}
}
