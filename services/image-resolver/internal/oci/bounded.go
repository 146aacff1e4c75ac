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

// maxEntries is the maximum length of each list in a document: ten times the length in the largest images. The limit
// is necessary because decoding may increase the size a hundredfold: the text "{}," becomes a whole descriptor.
const maxEntries = 2000

// maxQuoted bounds the quotation of a document in an error, in bytes.
const maxQuoted = 300

var errTooMany = fmt.Errorf("a list in it has more than %d entries, which is the limit", maxEntries)

// errTwice is the error for a repeated field. We reject repeated fields because programs disagree about their value,
// and because each repetition costs time.
var errTwice = errors.New("a field comes twice")

// list is a JSON array of at most maxEntries elements. Null is an empty list. Errors occur before much memory is
// allocated.
type list[T any] []T

// UnmarshalJSON decodes the elements one by one, so that it can stop at maxEntries.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	if *l != nil {
		return errTwice
	}
	*l = list[T]{}
	return readElements(raw, '[', func(in *json.Decoder) error {
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

// texts is a JSON object of at most maxEntries texts. Null is an empty object.
type texts map[string]string

// UnmarshalJSON decodes the entries one by one, so that it can stop at maxEntries.
func (t *texts) UnmarshalJSON(raw []byte) error {
	if *t != nil {
		return errTwice
	}
	*t = texts{}
	return readEntries(raw, func(key string, in *json.Decoder) error {
		var value string
		if err := in.Decode(&value); err != nil {
			return err
		}
		(*t)[key] = value
		return nil
	})
}

// readEntries calls read for each entry of a JSON object. The function read gets the key, and must decode the value.
// The object must be valid JSON. Null is an empty object.
func readEntries(raw []byte, read func(key string, in *json.Decoder) error) error {
	count := 0
	return readElements(raw, '{', func(in *json.Decoder) error {
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

// readElements calls read for each element of a JSON list or object, which must begin with the delimiter begin. The
// value must be valid JSON. Null has no elements.
func readElements(raw []byte, begin json.Delim, read func(*json.Decoder) error) error {
	if string(raw) == "null" {
		return nil
	}
	if raw[0] != byte(begin) {
		return errors.New("a list or an object should stand where something else does")
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

// present is true if a document contains a field.
type present bool

// UnmarshalJSON sets p to true, because JSON contains a value for the field. The value itself is not needed.
func (p *present) UnmarshalJSON([]byte) error {
	*p = true
	return nil
}

// invalidDocument returns the error for a document that cannot be read. It quotes at most maxQuoted bytes of err.
func invalidDocument(what string, err error) error {
	return fault.New(fault.Precondition, "%s is not valid: %s: build and push the image again", what,
		excerpt.Middle(err.Error(), maxQuoted))
}
