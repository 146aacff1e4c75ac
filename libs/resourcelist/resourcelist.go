// SPDX-License-Identifier: Apache-2.0

// Package resourcelist validates the bytes of a ResourceList, the input and output of a KRM function, and extracts its
// results. It never encodes a list: the validated bytes are sent on unchanged.
//
// A list is valid if the YAML library that kyaml and the function SDKs use can decode it. For most lists we need no
// decode, because package blockyaml proves in a single pass that a list in the block style of these libraries is
// valid. Only the other lists are decoded in full.
package resourcelist

import (
	"context"
	"errors"
)

// ErrNotUTF8 is wrapped by Parse's error for data that is not UTF-8.
var ErrNotUTF8 = errors.New("is not UTF-8")

// Envelope contains the parts of a ResourceList that the runner needs.
type Envelope struct {
	// Results contains the list's results, in the list's order.
	Results []Result
}

// Parse returns the envelope of the ResourceList in data. If data is not a ResourceList, the error names the problem
// and its line:
//
//   - data must be a single YAML or JSON document in UTF-8. A second document is rejected,
//     even if it is empty: kyaml would read the list as a resource among others. The same
//     happens if a marker (---) stands in another line than the first.
//
//   - It must be a mapping with the kind ResourceList. The apiVersion is ignored.
//     No top-level key may occur twice.
//
//   - functionConfig must be a mapping, items a sequence, and results a sequence of
//     results, or a mapping with such a sequence as items, as old functions write
//     it. Each may be null or missing. None of them may be an alias, nor may kind: kyaml
//     does not follow it and would read no items.
//
//   - Aliases inside these fields are allowed, unless they expand the list out of proportion
//     or contain themselves.
//
//   - The cost of decoding is limited in relation to the size: see limits.go.
//
// The envelope does not refer to data. If ctx is canceled first, Parse returns its error.
func Parse(ctx context.Context, data []byte) (Envelope, error) {
	found, ok, err := inTurn(ctx, data)
	if err != nil {
		return Envelope{}, err
	}
	if ok {
		envelope, err := found.decodeResultLines(ctx)
		if err == nil || ctx.Err() != nil {
			return envelope, err
		}
	}
	if err := checkUTF8(data); err != nil {
		return Envelope{}, err
	}
	values, err := checkLimits(data)
	if err != nil {
		return Envelope{}, err
	}
	release, err := decoding.acquireDecode(ctx, decodeCost(len(data), values))
	if err != nil {
		return Envelope{}, err
	}
	defer release()
	return decodeList(ctx, data)
}

// inTurn waits until data may be scanned, and calls outlineList.
func inTurn(ctx context.Context, data []byte) (found outlinedList, ok bool, err error) {
	release, err := decoding.acquireScan(ctx, len(data))
	if err != nil {
		return outlinedList{}, false, err
	}
	defer release()
	found, ok = outlineList(data)
	return found, ok, nil
}

const kind = "ResourceList"
