// SPDX-License-Identifier: Apache-2.0

// Package resourcelist judges the bytes of a ResourceList, which is what a KRM
// function reads and writes, and extracts its results. It never encodes one: the
// bytes that were judged are the bytes that travel on.
//
// The verdict is that of a full decode with the YAML library that kyaml and the
// function SDKs use. Most lists get it without: package blockyaml proves the block
// style that those write in a single pass, and whatever it cannot prove is decoded.
package resourcelist

import (
	"context"
	"errors"
)

// ErrNotUTF8 is in the chain of Parse's error for data that is not UTF-8.
var ErrNotUTF8 = errors.New("is not UTF-8")

// Envelope is what the runner wants to know of a ResourceList.
type Envelope struct {
	// Results are the list's results, in its order.
	Results []Result
}

// Parse returns the envelope of the ResourceList in data. It is an error if data is
// not a ResourceList, and the error says what is wrong and where:
//
//   - data must be one YAML or JSON document in UTF-8. A second document is rejected,
//     even an empty one: kyaml would read the list as one resource among others. It
//     would as well if a marker (---) stood in another line than the first.
//
//   - It must be a mapping with the kind ResourceList. The apiVersion is not looked
//     at. No top-level key may be there twice.
//
//   - functionConfig must be a mapping, items a sequence, and results a sequence of
//     results, or a mapping with such a sequence as items, as old functions write
//     it. Each may be null or missing. None may be an alias, nor may kind: kyaml
//     does not follow it and would read no items.
//
//   - Aliases inside these are fine, unless they expand the list out of proportion
//     or contain themselves.
//
//   - What it costs to decode is bounded in relation to its size: see limits.go.
//
// The envelope does not refer to data. Should ctx end first, the error is that of ctx.
func Parse(ctx context.Context, data []byte) (Envelope, error) {
	found, ok, err := inTurn(ctx, data)
	if err != nil {
		return Envelope{}, err
	}
	if ok {
		envelope, err := found.decode(ctx)
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
	release, err := decoding.acquire(ctx, cost(len(data), values))
	if err != nil {
		return Envelope{}, err
	}
	defer release()
	return decode(ctx, data)
}

// inTurn recognises data when it may.
func inTurn(ctx context.Context, data []byte) (found recognised, ok bool, err error) {
	release, err := decoding.scan(ctx, len(data))
	if err != nil {
		return recognised{}, false, err
	}
	defer release()
	found, ok = recognise(data)
	return found, ok, nil
}

// kind is the kind of a ResourceList.
const kind = "ResourceList"
