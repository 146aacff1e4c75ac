package resourcelist

import "context"

// The two paths of Parse, for tests that compare them, and how values are written.
var (
	Decode    = decode
	Recognise = recognise
	AsJSON    = asJSON
)

// MaxDecoding is how many bytes of lists are decoded in full at a time.
const MaxDecoding = maxDecoding

// Occupy takes the turns of so many bytes of full decodes until free is called.
func Occupy(bytes int64) (free func()) {
	_ = decoding.Acquire(context.Background(), bytes)
	return func() { decoding.Release(bytes) }
}
