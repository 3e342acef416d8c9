package discovery_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/docent-zk/docent/internal/testzk"
	"github.com/docent-zk/docent/recipes/discovery"
)

// What Curator 5.4 writes, with the instance that it is. The second part of each pair is what is
// written again, if that is different.
var written = map[string]struct {
	text, again string
	instance    discovery.Instance
}{
	"without options": {
		text: `{"name":"orders","id":"a","address":"10.0.0.3","port":10,"sslPort":null,"payload":null,` +
			`"registrationTimeUTC":1234,"serviceType":"DYNAMIC","uriSpec":null}`,
		instance: discovery.Instance{
			Name: "orders", ID: "a", Address: "10.0.0.3", Port: 10, Registered: at(1234), Type: discovery.Dynamic,
		},
	},
	"with a text and a URI": {
		text: `{"name":"orders","id":"a","address":"10.0.0.3","port":10,"sslPort":11,"payload":"text <b>&é",` +
			`"registrationTimeUTC":1234,"serviceType":"STATIC",` +
			`"uriSpec":{"parts":[{"value":"scheme","variable":true},` +
			`{"value":"://","variable":false},{"value":"address","variable":true},{"value":"/a","variable":false}]}}`,
		instance: discovery.Instance{
			Name: "orders", ID: "a", Address: "10.0.0.3", Port: 10, SSLPort: 11, Registered: at(1234),
			Type: discovery.Static, Payload: []byte(`"text <b>&é"`),
			URI: &discovery.URISpec{Parts: []discovery.URIPart{
				{Value: "scheme", Variable: true}, {Value: "://"}, {Value: "address", Variable: true}, {Value: "/a"}}},
		},
	},
	"with an object of a Java class, disabled": {
		text: `{"name":"orders","id":"a","address":null,"port":null,"sslPort":null,` +
			`"payload":{"@class":"java.util.HashMap","k":1},` +
			`"registrationTimeUTC":1234,"serviceType":"PERMANENT","uriSpec":null,"enabled":false}`,
		instance: discovery.Instance{
			Name: "orders", ID: "a", Registered: at(1234), Type: discovery.Permanent,
			Payload: []byte(`{"@class":"java.util.HashMap","k":1}`), Disabled: true,
		},
	},
	"enabled": {
		text: `{"name":"orders","id":"a","address":null,"port":null,"sslPort":null,"payload":5,` +
			`"registrationTimeUTC":1234,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":{"parts":[]},"enabled":true}`,
		again: `{"name":"orders","id":"a","address":null,"port":null,"sslPort":null,"payload":5,` +
			`"registrationTimeUTC":1234,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":{"parts":[]}}`,
		instance: discovery.Instance{
			Name: "orders", ID: "a", Registered: at(1234), Type: discovery.DynamicSequential, Payload: []byte(`5`),
			URI: &discovery.URISpec{Parts: []discovery.URIPart{}},
		},
	},
}

func at(milliseconds int64) time.Time { return time.UnixMilli(milliseconds).UTC() }

func TestJSONIsCurators(t *testing.T) {
	for name, row := range written {
		t.Run(name, func(t *testing.T) {
			var got discovery.Instance
			require.NoError(t, got.UnmarshalJSON([]byte(row.text)))
			require.EqualExportedValues(t, row.instance, got)
			want := row.text
			if row.again != "" {
				want = row.again
			}
			for _, i := range []discovery.Instance{got, row.instance} {
				text, err := i.MarshalJSON()
				require.NoError(t, err)
				require.Equal(t, want, string(text))
			}
		})
	}
}

func TestJSONOfAnInstanceWithoutTypeAndTime(t *testing.T) {
	text, err := json.Marshal(discovery.Instance{Name: "orders", ID: "a"})
	require.NoError(t, err)
	var got discovery.Instance
	require.NoError(t, got.UnmarshalJSON(text))
	require.Contains(t, string(text), `"serviceType":"DYNAMIC"`)
	require.Contains(t, string(text), `"registrationTimeUTC":0,`)
}

func TestUnknownFieldsAreKept(t *testing.T) {
	const text = `{"tag":"<x>","name":"orders","id":"a","Port":"not the port","more":{"b":[1, 2.50]}}`
	var i discovery.Instance
	require.NoError(t, json.Unmarshal([]byte(text), &i))
	i.Port = 80
	copied := i
	again, err := copied.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"orders","id":"a","address":null,"port":80,"sslPort":null,"payload":null,
		"registrationTimeUTC":0,"serviceType":"DYNAMIC","uriSpec":null,
		"tag":"<x>","Port":"not the port","more":{"b":[1,2.50]}}`, string(again))
	_, err = json.Marshal(i)
	require.NoError(t, err)
}

func TestUnknownFieldsOfAURIAreKept(t *testing.T) {
	const uri = `{"parts":[{"value":"<a>","variable":false,"note":"<b>"},` +
		`{"value":"port","variable":true}],"more":[1, 2]}`
	var i discovery.Instance
	require.NoError(t, i.UnmarshalJSON([]byte(`{"name":"orders","id":"a","uriSpec":`+uri+`}`)))
	again, err := i.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(again), `"uriSpec":`+strings.ReplaceAll(uri, "1, 2", "1,2"))
	r := newRegistry(t, testzk.Client(t, "127.0.0.1:1"), "/services")
	self, err := r.Register(i)
	require.NoError(t, err)
	kept := self.Instance()
	copied, err := kept.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(copied), `"note":"<b>"`)
	require.Contains(t, string(copied), `"more":[1,2]`)
}

func TestWhatIsNotAnInstanceIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "10.0.0.3", "null", "[]", "{}", `{"name":"orders"}`, `{"id":"a"}`, `{"name":"orders","id":"a"`,
		`{"name":"orders","id":5}`, `{"name":"orders","id":"a","port":"x"}`, `{"name":"orders","id":"a","uriSpec":[]}`,
	} {
		var i discovery.Instance
		require.Error(t, i.UnmarshalJSON([]byte(text)), text)
	}
}

func FuzzInstance(f *testing.F) {
	for _, row := range written {
		f.Add([]byte(row.text))
	}
	f.Add([]byte(`{"name":"a","id":"b","x":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var i discovery.Instance
		if i.UnmarshalJSON(data) != nil {
			return
		}
		text, err := i.MarshalJSON()
		require.NoError(t, err)
		var again discovery.Instance
		require.NoError(t, again.UnmarshalJSON(text), string(text))
		second, err := again.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(text), string(second))
	})
}

func TestURISpec(t *testing.T) {
	i := &discovery.Instance{
		Name: "orders", ID: "a", Address: "10.0.0.3", Port: 80, Registered: at(1234), Type: discovery.Dynamic,
	}
	for text, want := range map[string]string{
		"":                                   "",
		"http://example.com":                 "http://example.com",
		"{scheme}://{address}:{ port }/{id}": "http://10.0.0.3:80/a",
		"{[}{name}{]}{}":                     "{orders}",
		"{registration-time-utc}{service-type}{extra}": "1234dynamicmore",
	} {
		spec, err := discovery.ParseURISpec(text)
		require.NoError(t, err)
		i.URI = spec
		uri, err := i.BuildURI(map[string]string{"extra": "more"})
		require.NoError(t, err)
		require.Equal(t, want, uri)
		again, err := discovery.ParseURISpec(spec.String())
		require.NoError(t, err)
		require.Equal(t, spec, again)
	}
	for _, text := range []string{"{", "}", "a}b", "{a{b}}", "{a}}", "{a}{"} {
		_, err := discovery.ParseURISpec(text)
		require.Error(t, err, text)
	}
	spec, err := discovery.ParseURISpec("{scheme}://{address}:{ssl-port}")
	require.NoError(t, err)
	i.URI = spec
	_, err = i.BuildURI(nil)
	require.ErrorContains(t, err, `no value of "ssl-port"`)
	i.SSLPort = 443
	uri, err := i.BuildURI(nil)
	require.NoError(t, err)
	require.Equal(t, "https://10.0.0.3:443", uri)
	i.URI = nil
	_, err = i.BuildURI(nil)
	require.Error(t, err)
}

// FuzzURISpec reads arbitrary texts. What is written of a text is read as the same.
func FuzzURISpec(f *testing.F) {
	for _, text := range []string{
		"", "{scheme}://{address}:{ port }/{id}", "{[}{name}{]}{}", "{", "}", "{a{b}}", "a{}b{ }",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := discovery.ParseURISpec(text)
		if err != nil {
			require.Contains(t, err.Error(), strconv.Quote(text))
			return
		}
		again, err := discovery.ParseURISpec(spec.String())
		require.NoError(t, err)
		require.Equal(t, spec.String(), again.String())
		written, err := json.Marshal(spec)
		require.NoError(t, err)
		if !utf8.ValidString(text) {
			return // JSON has other runes
		}
		var read discovery.URISpec
		require.NoError(t, json.Unmarshal(written, &read))
		second, err := json.Marshal(read)
		require.NoError(t, err)
		require.Equal(t, string(written), string(second))
		require.Equal(t, spec.String(), read.String())
	})
}
