// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// asJSON returns a decoded YAML value as JSON. It returns an empty string for null. Values that JSON does not support
// (infinity, keys that are not strings) become strings.
func asJSON(value any) string {
	if value == nil {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(jsonValue(value)); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(value))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// jsonValue replaces the parts of a decoded YAML value that JSON cannot represent, such as infinity, by strings.
func jsonValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = jsonValue(v[key])
		}
	case map[any]any:
		object := make(map[string]any, len(v))
		for key := range v {
			object[fmt.Sprint(key)] = jsonValue(v[key])
		}
		return object
	case []any:
		for i := range v {
			v[i] = jsonValue(v[i])
		}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Sprint(v)
		}
	}
	return value
}
