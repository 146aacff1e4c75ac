// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/libs/typo"
)

// Images returns the images that run as local binaries of the gateway or in function pods, in order. Errors are a
// [CallError].
func (g *Gateway) Images(ctx context.Context) ([]string, error) {
	status, statusErr := g.Status(ctx)
	pools, poolsErr := g.ListPools(ctx)
	if statusErr != nil && (poolsErr != nil || !IsUnimplemented(statusErr)) {
		return nil, statusErr
	}
	if poolsErr != nil && !IsUnimplemented(poolsErr) {
		return nil, poolsErr
	}
	images := slices.Clone(status.GetImages())
	for _, pool := range pools.GetPools() {
		images = append(images, pool.GetKey().GetReference())
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

// suggestTimeout is the timeout for the images of a suggestion.
const suggestTimeout = 2 * time.Second

// suggestImage adds the most similar image of the gateway to the advice of an error about an unknown image.
func (g *Gateway) suggestImage(ctx context.Context, image string, call *CallError) {
	if g.local || connect.CodeOf(call.Cause) != connect.CodeNotFound {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	images, _ := g.Images(ctx) // the error about the image is more important
	if near := nearestImage(image, images); near != "" {
		call.Advice = strings.TrimSuffix("do you mean "+near+"? "+call.Advice, " ")
	}
}

// nearestImage returns the image with the most similar repository, with the registry if the wrong image has one. It is
// empty if no repository is similar.
func nearestImage(wrong string, images []string) string {
	byRepository := map[string]string{} // the last image of a repository has the highest tag
	for _, image := range images {
		if !strings.Contains(wrong, "/") {
			image = path.Base(image)
		}
		repository, _ := kptfile.CutTag(image)
		byRepository[repository] = image
	}
	const maxEdits = 2
	repository, _ := kptfile.CutTag(wrong)
	return byRepository[typo.Nearest(repository, slices.Sorted(maps.Keys(byRepository)), maxEdits)]
}
