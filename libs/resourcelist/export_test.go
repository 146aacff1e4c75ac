package resourcelist

// The two paths of Parse, for tests that compare them, and how values are written.
var (
	Decode    = decode
	Recognise = recognise
	AsJSON    = asJSON
)
