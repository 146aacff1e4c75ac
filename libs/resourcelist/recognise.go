package resourcelist

import "github.com/krm-function-runner/function-runner/libs/resourcelist/internal/blockyaml"

// recognise returns the envelope of a list that is provably valid, of which it
// decodes the results alone. It returns false if only a full decode can tell.
func recognise(data []byte) (Envelope, bool) {
	entries, ok := blockyaml.Outline(data)
	if !ok {
		return Envelope{}, false
	}
	var envelope Envelope
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
			envelope.Results, ok = recogniseResults(entry)
		}
		if !ok {
			return Envelope{}, false
		}
	}
	return envelope, isList
}

// maxResultLines is how many bytes of results are decoded without a turn.
const maxResultLines = 256 << 10

// recogniseResults decodes the lines of the results alone, unless they are many.
func recogniseResults(entry blockyaml.Entry) ([]Result, bool) {
	if len(entry.Lines) > maxResultLines {
		return nil, false
	}
	root, err := decodeDocument(entry.Lines)
	if err != nil {
		return nil, false
	}
	fields, err := topLevel(root)
	if err != nil {
		return nil, false
	}
	results, err := decodeResults(fields["results"])
	return results, err == nil
}
