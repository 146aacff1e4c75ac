package resourcelist

// The two paths of Parse, for tests that compare them, and how values are written.
var (
	Decode    = decode
	Recognise = recognise
	AsJSON    = asJSON
)

// Occupy has full decodes wait until the function that it returns is called.
func Occupy() (free func()) {
	for range cap(decoding) {
		decoding <- struct{}{}
	}
	return func() {
		for range cap(decoding) {
			<-decoding
		}
	}
}
