// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/resourcelist/internal/blockyaml"
)

// outlinedList is a ResourceList that package blockyaml found valid. Only its results must still be decoded.
type outlinedList struct {
	// results contains the lines of the field "results". It is nil if the list contains no results.
	results []byte
}

// outlineList recognizes a valid ResourceList in a single pass, without decoding it. It returns false if the list
// is invalid or in an unusual style: only a full decode can distinguish the two.
func outlineList(data []byte) (found outlinedList, ok bool) {
	entries, ok := blockyaml.Outline(data)
	if !ok {
		return outlinedList{}, false
	}
	isList := false
	for _, entry := range entries {
		ok := true
		switch string(entry.Key) {
		case "kind":
			isList = string(entry.Text) == kind
		case "functionConfig":
			ok = entry.Type == blockyaml.Mapping || entry.Type == blockyaml.Null
		case "items":
			ok = entry.Type == blockyaml.Sequence || entry.Type == blockyaml.Null
		case "results":
			found.results = entry.Lines
		}
		if !ok {
			return outlinedList{}, false
		}
	}
	return found, isList
}

// freeResults is the size of results, in bytes, up to which they are decoded without waiting for other decodes.
const freeResults = 4 << 10

// decodeResultLines decodes the lines of the results without the rest of the list. If it fails and ctx is not done,
// callers must decode the whole list, because the lines may be valid only together with the rest.
func (r outlinedList) decodeResultLines(ctx context.Context) (Envelope, error) {
	if r.results == nil {
		return Envelope{}, nil
	}
	values, err := checkLimits(r.results)
	if err != nil {
		return Envelope{}, err
	}
	if len(r.results) > freeResults {
		release, err := decoding.acquireDecode(ctx, decodeCost(len(r.results), values))
		if err != nil {
			return Envelope{}, err
		}
		defer release()
	}
	document, fields, err := decodeFields(ctx, r.results)
	if err != nil {
		return Envelope{}, err
	}
	results, err := document.decodeResultsField(ctx, fields["results"])
	return Envelope{Results: results}, err
}
