// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// JSON returns a protobuf message as JSON that is safe to show on a terminal, indented unless indent is empty. It
// normalizes the white space, because protojson's white space differs between builds of a program.
func JSON(msg proto.Message, indent string) string {
	data, err := protojson.Marshal(msg)
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	var out bytes.Buffer
	if indent == "" {
		err = json.Compact(&out, data)
	} else {
		err = json.Indent(&out, data, "", indent)
	}
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return EscapeJSON(secondsOf(msg.ProtoReflect().Descriptor()).ReplaceAllString(out.String(), "$1$2"))
}

// ValueJSON returns a value as indented JSON that is safe to show on a terminal. It panics on unsupported types.
func ValueJSON(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return EscapeJSON(strings.TrimSuffix(out.String(), "\n"))
}

// secondsOf returns a regular expression for JSON fields with a duration, such as "1.5s". [JSON] replaces such a text
// by a number. The expression captures the field's name and the number. It never matches inside a string, because
// quotes inside a string are escaped.
func secondsOf(message protoreflect.MessageDescriptor) *regexp.Regexp {
	names, seen := []string{"-"}, map[protoreflect.FullName]bool{}
	var visit func(protoreflect.MessageDescriptor)
	visit = func(message protoreflect.MessageDescriptor) {
		if seen[message.FullName()] {
			return
		}
		seen[message.FullName()] = true
		for i := range message.Fields().Len() {
			switch field := message.Fields().Get(i); {
			case field.Message() == nil:
			case field.Message().FullName() == "google.protobuf.Duration":
				names = append(names, field.JSONName())
			default:
				visit(field.Message())
			}
		}
	}
	visit(message)
	return regexp.MustCompile(`("(?:` + strings.Join(names, "|") + `)": ?)"(-?[0-9.]+)s"`)
}

// EscapeJSON escapes hidden and control characters that JSON permits but a terminal interprets. An example is
// U+009B, which begins a terminal sequence. Newlines stay, because they occur only between strings.
func EscapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if (unicode.IsControl(r) && r != '\n') || excerpt.IsHidden(r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
