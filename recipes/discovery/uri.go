package discovery

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// URISpec is a template of the URI of an instance, such as "{scheme}://{address}:{port}/orders".
// Instance.BuildURI fills it in. Curator: UriSpec.
type URISpec struct {
	Parts []URIPart

	unknown fields // not changed
}

// URIPart is a part of a URISpec: text, or the name of a variable.
type URIPart struct {
	Value    string
	Variable bool

	unknown fields // not changed
}

// MarshalJSON returns the JSON that Curator writes, with the fields of other programs that were read.
func (s URISpec) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		Parts []URIPart `json:"parts"`
	}{append([]URIPart{}, s.Parts...)}, s.unknown) // [] and not null
}

// UnmarshalJSON reads what Curator has written. Fields that are missing have the zero value.
func (s *URISpec) UnmarshalJSON(data []byte) (err error) {
	*s = URISpec{}
	s.unknown, err = unmarshal(data, map[string]any{"parts": &s.Parts})
	return err
}

// MarshalJSON is that of URISpec.
func (p URIPart) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		Value    string `json:"value"`
		Variable bool   `json:"variable"`
	}{p.Value, p.Variable}, p.unknown)
}

// UnmarshalJSON is that of URISpec.
func (p *URIPart) UnmarshalJSON(data []byte) (err error) {
	*p = URIPart{}
	p.unknown, err = unmarshal(data, map[string]any{"value": &p.Value, "variable": &p.Variable})
	return err
}

// ParseURISpec returns the URISpec that is written as text, with the names of variables in braces.
// The variables "[" and "]" stand for the braces themselves. It returns an error for a brace without
// a counterpart, and for a brace in braces.
func ParseURISpec(text string) (*URISpec, error) {
	spec := &URISpec{Parts: []URIPart{}}
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		name, after, closed := strings.Cut(after, "}")
		switch {
		case strings.Contains(before, "}"):
			return nil, fmt.Errorf("URI %q: } without {", text)
		case found && !closed:
			return nil, fmt.Errorf("URI %q: { without }", text)
		case strings.Contains(name, "{"):
			return nil, fmt.Errorf("URI %q: { in the name of a variable", text)
		}
		spec.add(before, false)
		spec.add(strings.TrimSpace(name), true)
		rest = after
	}
	return spec, nil
}

func (s *URISpec) add(value string, variable bool) {
	if value != "" {
		s.Parts = append(s.Parts, URIPart{Value: value, Variable: variable})
	}
}

// String returns the text that ParseURISpec takes.
func (s *URISpec) String() string {
	var text strings.Builder
	for _, p := range s.Parts {
		if p.Variable {
			text.WriteString("{" + p.Value + "}")
		} else {
			text.WriteString(p.Value)
		}
	}
	return text.String()
}

// BuildURI returns the URI of the instance. It replaces the variables "scheme" ("https" if there is
// an SSL port, otherwise "http"), "name", "id", "address", "port", "ssl-port",
// "registration-time-utc", "service-type", and those of more, which come first. More may be nil. It
// returns an error if the instance has no URI, and for a variable without a value. Curator:
// buildUriSpec, which leaves such a variable out.
func (i *Instance) BuildURI(more map[string]string) (string, error) {
	if i.URI == nil {
		return "", errors.New("the instance has no URI")
	}
	var uri strings.Builder
	for _, p := range i.URI.Parts {
		value := p.Value
		if p.Variable {
			if value = i.variable(p.Value, more); value == "" {
				return "", fmt.Errorf("URI %q: there is no value of %q", i.URI, p.Value)
			}
		}
		uri.WriteString(value)
	}
	return uri.String(), nil
}

func (i *Instance) variable(name string, more map[string]string) string {
	if value, there := more[name]; there {
		return value
	}
	switch name {
	case "scheme":
		if i.SSLPort != 0 {
			return "https"
		}
		return "http"
	case "name":
		return i.Name
	case "id":
		return i.ID
	case "address":
		return i.Address
	case "port":
		return number(i.Port)
	case "ssl-port":
		return number(i.SSLPort)
	case "registration-time-utc":
		return strconv.FormatInt(i.Registered.UnixMilli(), 10)
	case "service-type":
		return strings.ToLower(string(i.Type))
	case "[":
		return "{"
	case "]":
		return "}"
	}
	return ""
}

func number(port int) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}
