package resourcelist

// The two paths of Parse, for tests that compare them.
var (
	Decode    = decode
	Recognise = recognise
)
