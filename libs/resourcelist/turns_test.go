package resourcelist_test

import (
	"context"
	"errors"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

const (
	asBlocks = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"
	asJSON   = `{"kind": "ResourceList", "items": []}`
)

// TestFullDecodesTakeTurns has as many full decodes under way as there may be.
func TestFullDecodesTakeTurns(t *testing.T) {
	free := resourcelist.Occupy()
	if _, err := resourcelist.Parse(t.Context(), []byte(asBlocks)); err != nil {
		t.Errorf("a list that needs no full decode: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := resourcelist.Parse(ctx, []byte(asJSON)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left: %v, want that", err)
	}
	free()
	if _, err := resourcelist.Parse(t.Context(), []byte(asJSON)); err != nil {
		t.Errorf("a list that is decoded in full: %v", err)
	}
}
