package znode

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestValidPathsPass(t *testing.T) {
	paths := []string{
		"/", "/a", "/a/b/c", "/...", "/a.", "/.a", "/..a", "/a..", "/a/.../b", "/a b", "/ ", "/a,b", "/a:b", "/~",
		"/\u00A0", "/\uF900", "/\uFFEF", "/\uD7FF", "/käse/鍵", "/" + strings.Repeat("x", 5000),
		"/locks/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000007",
	}
	for _, path := range paths {
		require.NoError(t, ValidatePath(path))
		require.NoError(t, ValidatePrefix(path))
	}
}

func TestErrorHasTheInvalidPathAndTheReason(t *testing.T) {
	tests := []struct{ path, want string }{
		{"", `framework: invalid path "": it is empty`},
		{"a", `framework: invalid path "a": it does not start with a slash`},
		{"a/b", `framework: invalid path "a/b": it does not start with a slash`},
		{" /a", `framework: invalid path " /a": it does not start with a slash`},
		{"//a", `framework: invalid path "//a": empty component at position 1`},
		{"/a//b", `framework: invalid path "/a//b": empty component at position 3`},
		{"/./a", `framework: invalid path "/./a": component "." at position 1`},
		{"/a/../b", `framework: invalid path "/a/../b": component ".." at position 3`},
		{"/a\x00", `framework: invalid path "/a\x00": forbidden character U+0000 at position 2`},
		{"/\x01", `framework: invalid path "/\x01": forbidden character U+0001 at position 1`},
		{"/a\n", `framework: invalid path "/a\n": forbidden character U+000A at position 2`},
		{"/\x1F", `framework: invalid path "/\x1f": forbidden character U+001F at position 1`},
		{"/\x7F", `framework: invalid path "/\x7f": forbidden character U+007F at position 1`},
		{"/\u009F", `framework: invalid path "/\u009f": forbidden character U+009F at position 1`},
		{"/\uE000", `framework: invalid path "/\ue000": forbidden character U+E000 at position 1`},
		{"/\uF8FF", `framework: invalid path "/\uf8ff": forbidden character U+F8FF at position 1`},
		{"/\uFFF0", `framework: invalid path "/\ufff0": forbidden character U+FFF0 at position 1`},
		{"/é\uFFFD", "framework: invalid path \"/é\uFFFD\": forbidden character U+FFFD at position 3"},
		{"/\uFFFF", `framework: invalid path "/\uffff": forbidden character U+FFFF at position 1`},
		{"/🔒", `framework: invalid path "/🔒": forbidden character U+1F512 at position 1`},
		{"/a\xFF", `framework: invalid path "/a\xff": invalid UTF-8 at position 2`},
		{"/\xED\xA0\x80", `framework: invalid path "/\xed\xa0\x80": invalid UTF-8 at position 1`}, // U+D800, encoded
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			for _, validate := range []func(string) error{ValidatePath, ValidatePrefix} {
				err := validate(tt.path)
				require.EqualError(t, err, tt.want)
				require.ErrorIs(t, err, ErrInvalid)
			}
		})
	}
}

func TestPrefixMayEndInAComponentThatDigitsMakeValid(t *testing.T) {
	tests := []struct{ path, want string }{
		{"/a/", `framework: invalid path "/a/": it ends with a slash`},
		{"/.", `framework: invalid path "/.": component "." at position 1`},
		{"/a/.", `framework: invalid path "/a/.": component "." at position 3`},
		{"/a/..", `framework: invalid path "/a/..": component ".." at position 3`},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			require.EqualError(t, ValidatePath(tt.path), tt.want)
			require.NoError(t, ValidatePrefix(tt.path))
			require.NoError(t, ValidatePath(tt.path+"0000000001"))
		})
	}
}

func TestPrefixIsCheckedBeforeItsLastComponent(t *testing.T) {
	for _, path := range []string{"//", "/a//", "/a//b", "/./", "/../x", "/a/\x00/"} {
		require.ErrorIs(t, ValidatePrefix(path), ErrInvalid, path)
	}
}

func TestValidatingAValidPathDoesNotAllocate(t *testing.T) {
	path := "/locks/käse/_c_8026b758-0c64-4418-a4a7-a40067d845c1-lock-0000000007"
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = ValidatePath(path) }))
}

// obviouslyValid checks the rules in the manner of a server: by component and by unit of UTF-16.
func obviouslyValid(path string) bool {
	if !utf8.ValidString(path) || !strings.HasPrefix(path, "/") {
		return false
	}
	for _, c := range utf16.Encode([]rune(path)) {
		switch {
		case c <= 0x1F, c >= 0x7F && c <= 0x9F, c >= 0xD800 && c <= 0xF8FF, c >= 0xFFF0:
			return false
		}
	}
	if path == "/" {
		return true
	}
	for _, component := range strings.Split(path, "/")[1:] {
		if component == "" || component == "." || component == ".." {
			return false
		}
	}
	return true
}

func FuzzValidatePath(f *testing.F) {
	for _, seed := range []string{
		"", "/", "/a", "/a/", "//", "/a//b", "/.", "/a/..", "/...", "/a\x00b", "/\x7F", "/\u00A0", "/\uD7FF", "/\uE000",
		"/\uF900", "/\uFFEF", "/\uFFFD", "/🔒", "/\xFF", "/\xED\xA0\x80", "a",
		"/_c_8026b758-0c64-4418-a4a7-a40067d845c1-x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		err := ValidatePath(path)
		require.Equal(t, obviouslyValid(path), err == nil, "%q: %v", path, err)
		sequential := ValidatePrefix(path)
		require.Equal(t, obviouslyValid(path+"1") && path != "", sequential == nil, "%q: %v", path, sequential)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.NoError(t, sequential)
		if path != "/" {
			require.NoError(t, ValidatePath(Parent(path)))
			require.Equal(t, path, Join(Parent(path), "/"+Base(path)))
		}
	})
}
