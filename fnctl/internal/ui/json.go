package ui

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// JSON returns a message as JSON, indented unless indent is empty. The library's own
// white space changes from one program to the next.
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
	return out.String()
}
