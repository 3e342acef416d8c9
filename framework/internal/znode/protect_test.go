package znode

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const guid = "8026b758-0c64-4418-a4a7-a40067d845c1"

var (
	canonicalV4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	protected   = regexp.MustCompile(`(?s)^_c_([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})-.`)
)

func TestGUIDIsCanonicalVersion4AndNew(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := GUID()
		require.Regexp(t, canonicalV4, id)
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestProtectChangesTheLastComponentOnly(t *testing.T) {
	tests := []struct{ path, want string }{
		{"/p/lock-", "/p/_c_" + guid + "-lock-"},
		{"/lock-", "/_c_" + guid + "-lock-"},
		{"/a/b/c/x", "/a/b/c/_c_" + guid + "-x"},
		{"/p/", "/p/_c_" + guid + "-"},
		{"/", "/_c_" + guid + "-"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			got := Protect(tt.path, guid)
			require.Equal(t, tt.want, got)
			require.True(t, IsProtectedBy(Base(got), guid))
			require.Equal(t, Parent(tt.path), Parent(got))
		})
	}
}

func TestCreatorRecognisesItsNodeByTheWholeGUID(t *testing.T) {
	tests := []struct {
		name, guid string
		want       bool
	}{
		{"_c_" + guid + "-lock-0000000007", guid, true},
		{"_c_" + guid + "-", guid, true},
		{"_c_" + guid + "-lock-0000000007", GUID(), false},
		{"_c_" + guid + "-lock-0000000007", guid[:35], false},
		{"_c_" + guid, guid, false},
		{"_c_" + guid + "lock-", guid, false},
		{"x_c_" + guid + "-lock-", guid, false},
		{"/p/_c_" + guid + "-lock-", guid, false}, // a path, not a name
		{guid + "-lock-", guid, false},
		{"_c_", guid, false},
		{"", guid, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, IsProtectedBy(tt.name, tt.guid))
		})
	}
}

func TestGUIDOfRecognisesWhatCuratorDoes(t *testing.T) {
	undashed := strings.ReplaceAll(guid, "-", "")
	tests := []struct{ about, name, want string }{
		{"a lock node", "_c_" + guid + "-lock-0000000007", guid},
		{"the shortest name", "_c_" + guid + "-x", guid},
		{"upper case", "_c_" + strings.ToUpper(guid) + "-x", strings.ToUpper(guid)},
		{"nothing after the protection", "_c_" + guid + "-", ""},
		{"no separator", "_c_" + guid + "lock-0000000007", ""},
		{"without dashes", "_c_" + undashed + "-lock-0000000007", ""},
		{"a dash too early", "_c_8026b75-80c64-4418-a4a7-a40067d845c1-lock-", ""},
		{"not hexadecimal", "_c_g026b758-0c64-4418-a4a7-a40067d845c1-lock-", ""},
		{"a prefix in upper case", "_C_" + guid + "-lock-0000000007", ""},
		{"another prefix", "_d_" + guid + "-lock-0000000007", ""},
		{"not protected", "lock-0000000007", ""},
		{"only the prefix", "_c_", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			got, ok := GUIDOf(tt.name)
			require.Equal(t, tt.want != "", ok)
			require.Equal(t, tt.want, got)
		})
	}
}

func FuzzGUIDOf(f *testing.F) {
	for _, seed := range []string{
		"", "_c_", "lock-0000000007", "_c_" + guid, "_c_" + guid + "-", "_c_" + guid + "-x",
		"_c_" + guid + "-lock--000000005",
		"_c_" + strings.ReplaceAll(guid, "-", "") + "-lock-0000000007", "_c_" + strings.Repeat("-", 37) + "x",
		"_C_" + guid + "-x", "_c_" + guid[:35] + "é-x", "_c_" + guid + "-\n", "_c_" + guid + "-\xFF",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, ok := GUIDOf(name)
		require.Equal(t, protected.MatchString(name), ok)
		if !ok {
			require.Empty(t, got)
			return
		}
		require.Equal(t, protected.FindStringSubmatch(name)[1], got)
		require.True(t, IsProtectedBy(name, got))
	})
}
