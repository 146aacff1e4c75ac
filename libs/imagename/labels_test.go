// SPDX-License-Identifier: Apache-2.0

package imagename_test

import (
	"fmt"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

func name(t *testing.T, image string) imagename.Name {
	t.Helper()
	n, err := imagename.Parse(image, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestImagesThatShareAShortNameHaveWholeNames runs functions of two registries whose short names are equal.
func TestImagesThatShareAShortNameHaveWholeNames(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	var labels imagename.Labels
	if got := labels.Earn(name(t, "a.example/set:v1")); got != "set:v1" {
		t.Errorf("the first image has label %q", got)
	}
	if got := labels.Label(name(t, "b.example/set:v1")); got != imagename.OtherImages {
		t.Errorf("another image, which has run no function, has label %q", got)
	}
	for image, want := range map[string]string{
		"b.example/set:v1": "b.example/set:v1", "b.example/set:v1" + digest: "b.example/set:v1",
		"a.example/set:v1": "set:v1", "a.example/set:v1" + digest: "set:v1", "b.example/set:v2": "set:v2",
	} {
		if got := labels.Earn(name(t, image)); got != want || labels.Label(name(t, image)) != want {
			t.Errorf("%s has label %q, want %q", image, got, want)
		}
	}
}

func TestImageLabelsAreBounded(t *testing.T) {
	var labels imagename.Labels
	earn := func(i int) string {
		return labels.Earn(name(t, fmt.Sprintf("set:v%d", i)))
	}
	seen := make(map[string]bool)
	for i := range 10 * imagename.MaxLabels {
		seen[earn(i)] = true
	}
	if len(seen) != imagename.MaxLabels+1 || !seen[imagename.OtherImages] {
		t.Errorf("%d labels, want %d and %q", len(seen), imagename.MaxLabels, imagename.OtherImages)
	}
	if got := earn(0); got != "set:v0" {
		t.Errorf("the first image has label %q now, want its own", got)
	}
}

func TestInventedNamesUseNoLabels(t *testing.T) {
	var labels imagename.Labels
	for i := range 10 * imagename.MaxLabels {
		if got := labels.Label(name(t, fmt.Sprintf("invented:v%d", i))); got != imagename.OtherImages {
			t.Fatalf("an image that has not earned it has label %q", got)
		}
	}
	if got := labels.Earn(name(t, "set:v1")); got != "set:v1" {
		t.Errorf("an image that exists has label %q, want its own", got)
	}
	if got := labels.Label(name(t, "set:v1")); got != "set:v1" {
		t.Errorf("it has label %q later, want its own", got)
	}
}
