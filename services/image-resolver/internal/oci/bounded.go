// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// maxEntries is the maximum length of each list in a manifest or configuration. It is ten times the length in the
// largest known images. The limit bounds memory, because a decoded document may need a hundred times the memory of its
// text. For example, the three bytes of the text "{}," become a whole descriptor.
const maxEntries = 2000

// maxQuoted is the maximum length of a quote from a document in an error message, in bytes.
const maxQuoted = 300

var errTooMany = fmt.Errorf("a list in it has more than %d entries, which is the limit", maxEntries)

// errTwice is the error for a JSON object with a repeated field. We reject repeated fields because programs
// disagree about their value, and because decoding each repetition costs time.
var errTwice = errors.New("a field comes twice")

// list decodes a JSON array of at most maxEntries elements. A longer array is rejected before it needs much memory.
// JSON null is an empty list.
type list[T any] []T

// UnmarshalJSON decodes the elements one by one, so that it can stop after maxEntries elements.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	if *l != nil {
		return errTwice
	}
	*l = list[T]{}
	return ReadElements(raw, '[', func(in *json.Decoder) error {
		if len(*l) == maxEntries {
			return errTooMany
		}
		var item T
		if err := in.Decode(&item); err != nil {
			return err
		}
		*l = append(*l, item)
		return nil
	})
}

// readEntries calls the callback read for each field of a JSON object, with the field's key and a decoder. The callback
// must decode the field's value with this decoder. The object must be valid JSON. JSON null is an empty object.
func readEntries(raw []byte, read func(key string, in *json.Decoder) error) error {
	count := 0
	return ReadElements(raw, '{', func(in *json.Decoder) error {
		if count++; count > maxEntries {
			return errTooMany
		}
		key, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // keys are always strings
		return read(name, in)
	})
}

// ReadElements calls the callback read for each element of a JSON array if begin is '[', or for each field of a JSON
// object if begin is '{'. The value must be valid JSON. JSON null has no elements.
func ReadElements(raw []byte, begin json.Delim, read func(*json.Decoder) error) error {
	if string(raw) == "null" {
		return nil
	}
	if raw[0] != byte(begin) {
		return fmt.Errorf("expected %q, got %q", byte(begin), raw[0])
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	if _, err := in.Token(); err != nil {
		return err
	}
	for in.More() {
		if err := read(in); err != nil {
			return err
		}
	}
	return nil
}

// present is the value of a JSON field that is not decoded. It is true if the document contains the field.
type present bool

// UnmarshalJSON sets p to true. It is only called if the JSON document contains the field.
func (p *present) UnmarshalJSON([]byte) error {
	*p = true
	return nil
}

// invalidDocument returns the error for a manifest or configuration that cannot be decoded. It quotes at most
// maxQuoted bytes of err, because err may contain a part of the document.
func invalidDocument(what string, err error) error {
	return fault.New(fault.Precondition, "%s is not valid: %s: build and push the image again", what,
		excerpt.Middle(err.Error(), maxQuoted))
}
