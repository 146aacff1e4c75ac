// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"context"
	"runtime"
)

// How values are written, for tests.
var AsJSON = asJSON

// Decode is the path of Parse that decodes all of a list.
func Decode(data []byte) ([]Result, error) {
	if err := checkUTF8(data); err != nil {
		return nil, err
	}
	if _, err := checkLimits(data); err != nil {
		return nil, err
	}
	return decodeList(context.Background(), data)
}

// Recognise is the path of Parse that decodes the results alone.
func Recognise(data []byte) ([]Result, bool) {
	lines, ok := outlineList(data)
	if !ok {
		return nil, false
	}
	results, err := decodeResultLines(context.Background(), lines)
	return results, err == nil
}

// What is decoded in full at a time, in bytes of memory.
const (
	MaxDecoding      = maxDecoding
	MaxSmallDecoding = maxSmallDecoding
)

// Limits of lists.
const (
	MaxResults       = maxResults
	MaxKeys          = maxKeys
	MaxTagDirectives = maxTagDirectives
	AnyValues        = anyValues
)

// Occupy takes so much memory of the turns of large and of small decodes until release is
// called.
func Occupy(large, small int64) (release func()) {
	_ = decoding.large.Acquire(context.Background(), large)
	_ = decoding.small.Acquire(context.Background(), small)
	return func() {
		decoding.large.Release(large)
		decoding.small.Release(small)
	}
}

// Scans are turns of their own, whose Acquire is that of scans.
func Scans() func(ctx context.Context, bytes int) (release func(), err error) {
	return newTurns().acquireScan
}

// OccupyScans takes all turns of scans until release is called.
func OccupyScans() (release func()) {
	most := int64(max(1, runtime.GOMAXPROCS(0)-1))
	_ = decoding.scans.Acquire(context.Background(), most)
	return func() { decoding.scans.Release(most) }
}

// Turns are turns of their own, whose Acquire is that of full decodes.
func Turns() func(ctx context.Context, cost int64) (release func(), err error) {
	return newTurns().acquireDecode
}
