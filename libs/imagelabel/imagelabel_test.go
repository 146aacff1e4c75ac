package imagelabel_test

import (
	"fmt"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/imagelabel"
)

func TestLabelsAreBounded(t *testing.T) {
	var labels imagelabel.Labels
	label := func(i int) string {
		return labels.Label(fmt.Sprintf("set:v%d", i))
	}
	seen := make(map[string]bool)
	for i := range 10 * imagelabel.Max {
		seen[label(i)] = true
	}
	if len(seen) != imagelabel.Max+1 || !seen[imagelabel.Other] {
		t.Errorf("%d labels, want %d and %q", len(seen), imagelabel.Max, imagelabel.Other)
	}
	if got := label(0); got != "set:v0" {
		t.Errorf("the first image has label %q now, want its own", got)
	}
}
