package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// fields are the fields of a JSON object that this package does not know. They are kept when the
// object is read and written.
type fields = map[string]json.RawMessage

// unmarshal stores the known fields of a JSON object, each where known says, and returns the others.
func unmarshal(data []byte, known map[string]any) (fields, error) {
	var all fields
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for name, target := range known {
		if text, there := all[name]; there {
			if err := json.Unmarshal(text, target); err != nil {
				return nil, fmt.Errorf("field %s: %w", name, err)
			}
			delete(all, name)
		}
	}
	return all, nil
}

// marshal returns the JSON of a struct with further fields behind its own. It does not escape what
// Curator does not escape.
func marshal(known any, more fields) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(known); err != nil {
		return nil, err
	}
	out.Truncate(out.Len() - len("}\n"))
	for _, name := range slices.Sorted(maps.Keys(more)) {
		out.WriteByte(',')
		if err := encoder.Encode(name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		out.Write(more[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
