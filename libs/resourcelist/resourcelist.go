// SPDX-License-Identifier: Apache-2.0

// Package resourcelist validates ResourceLists, the inputs and outputs of KRM functions, and extracts their results. It
// never encodes a list, so that callers can forward the original bytes. A list is valid if the YAML library that kyaml
// and the function SDKs use can decode it. Package blockyaml recognizes most valid lists in a single pass. Package
// resourcelist decodes a list in full only if blockyaml does not recognize it.
package resourcelist

import (
	"context"
	"errors"

	"github.com/krm-function-runner/function-runner/libs/resourcelist/internal/blockyaml"
)

// ErrNotUTF8 is the error that Parse wraps if the list is not UTF-8.
var ErrNotUTF8 = errors.New("is not UTF-8")

// Parse validates the ResourceList in data and returns the list's results, in the list's order. If data is not valid,
// the error names the problem and its line. The requirements are:
//
//   - data is a single YAML or JSON document in UTF-8. A second document is an error, even if it is empty, and so
//     is a document marker (---) after the first line. kyaml would then read the list as an ordinary resource.
//   - The document is a mapping with the kind ResourceList. The apiVersion is ignored. No top-level key occurs
//     twice.
//   - functionConfig is a mapping, and items is a sequence. results is a sequence or, as old functions write it, a
//     mapping whose key "items" contains the sequence. Each of these fields may be null or missing.
//   - These fields and kind are not aliases, because kyaml would not resolve them and would read no items. Aliases
//     inside the fields are allowed, unless they contain themselves or expand the list too much.
//   - The number of values is limited in relation to the size, and there are at most 64 %TAG directives, because
//     these numbers determine the cost of decoding.
//
// The results do not refer to the memory of data. If ctx is canceled first, Parse returns the error of ctx.
func Parse(ctx context.Context, data []byte) ([]Result, error) {
	lines, ok, err := inTurn(ctx, data)
	if err != nil {
		return nil, err
	}
	if ok {
		results, err := decodeResultLines(ctx, lines)
		if err == nil || ctx.Err() != nil {
			return results, err
		}
	}
	if err := checkUTF8(data); err != nil {
		return nil, err
	}
	values, err := checkLimits(data)
	if err != nil {
		return nil, err
	}
	release, err := decoding.acquireDecode(ctx, decodeCost(len(data), values))
	if err != nil {
		return nil, err
	}
	defer release()
	return decodeList(ctx, data)
}

// inTurn calls outlineList. If too many large lists are being scanned, inTurn waits first.
func inTurn(ctx context.Context, data []byte) (resultLines []byte, ok bool, err error) {
	release, err := decoding.acquireScan(ctx, len(data))
	if err != nil {
		return nil, false, err
	}
	defer release()
	resultLines, ok = outlineList(data)
	return resultLines, ok, nil
}

const kind = "ResourceList"

// outlineList recognizes a valid ResourceList in a single pass, without decoding it. It returns false for other lists.
// Only a full decode can then determine whether the list is invalid or only in an unusual style. resultLines contains
// the lines of the field "results", which still need decoding. It is nil if the list contains no results.
func outlineList(data []byte) (resultLines []byte, ok bool) {
	entries, ok := blockyaml.Outline(data)
	if !ok {
		return nil, false
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
			resultLines = entry.Lines
		}
		if !ok {
			return nil, false
		}
	}
	return resultLines, isList
}

// freeResults is the maximum size of results, in bytes, that we decode without waiting for other decodes.
const freeResults = 4 << 10

// decodeResultLines decodes the results without the rest of the list. If it fails before ctx is done, callers must
// decode the whole list. The results may still be valid together with the rest, because some limits grow with the size
// of the list.
func decodeResultLines(ctx context.Context, lines []byte) ([]Result, error) {
	if lines == nil {
		return nil, nil
	}
	values, err := checkLimits(lines)
	if err != nil {
		return nil, err
	}
	if len(lines) > freeResults {
		release, err := decoding.acquireDecode(ctx, decodeCost(len(lines), values))
		if err != nil {
			return nil, err
		}
		defer release()
	}
	document, fields, err := decodeFields(ctx, lines)
	if err != nil {
		return nil, err
	}
	return document.decodeResultsField(ctx, fields["results"])
}
