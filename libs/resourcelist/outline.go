// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/resourcelist/internal/blockyaml"
)

// outlinedList is a resource list that is known to be valid YAML without decoding it. Only its results must still be
// decoded.
type outlinedList struct {
	// results contains the lines of the results. It is nil if the list contains no results.
	results []byte
}

// outlineList proves in a single pass that data is a valid list. It returns false if only a full decode can tell.
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

// freeResults is the maximum size of results that are decoded without waiting for a turn.
const freeResults = 4 << 10

// decodeResultLines decodes only the lines of the results. If it returns another error than the error of ctx, callers
// must decode the whole list, because the lines may be valid in its context.
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
