package page

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
)

// headers are those of all answers. Nothing is loaded from elsewhere, no other page has this one in a
// frame, and no cache keeps it.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; " +
		"frame-ancestors 'none'",
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
	"Cache-Control":                "no-store",
}

// guarded returns a handler that answers only the requests that the settings permit. Writes from
// pages of other origins are refused.
func (p *Page) guarded(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" { // they tell nothing of the locks
			next.ServeHTTP(w, r)
			return
		}
		if !p.addressed(r.Host) {
			http.Error(w, "this page has another name: see --host", http.StatusMisdirectedRequest)
			return
		}
		user, status := p.authenticate(r)
		switch status {
		case http.StatusOK:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", `Basic realm="docent", charset="UTF-8"`)
			fallthrough
		default:
			http.Error(w, http.StatusText(status), status)
		}
	})
}

// addressed reports whether the page has the name of a Host header. A page elsewhere can have its own
// name resolved to a loopback address (DNS rebinding). Its requests have that name.
func (p *Page) addressed(host string) bool {
	if len(p.settings.Hosts) == 0 {
		return true
	}
	return slices.ContainsFunc(p.settings.Hosts, func(name string) bool {
		return strings.EqualFold(withoutPort(name), withoutPort(host))
	})
}

// withoutPort returns the name or address of a host.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// userKey is the key of the name of the user in the context of a request.
type userKey struct{}

func userOf(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

// authenticate returns the name of the user, which may be empty, and the status for the request.
func (p *Page) authenticate(r *http.Request) (user string, status int) {
	if want := p.settings.Token; want != "" {
		name, password, _ := r.BasicAuth()
		if scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
			password = bearer
		}
		// Sums have one length, so the time of the comparison tells nothing.
		given, wanted := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(want))
		if subtle.ConstantTimeCompare(given[:], wanted[:]) != 1 {
			return "", http.StatusUnauthorized
		}
		user = name
	}
	if name := p.settings.TrustHeader; name != "" {
		if user = r.Header.Get(name); user == "" {
			return "", http.StatusForbidden
		}
	}
	return user, http.StatusOK
}

// formToken returns the token of a form: only this process makes it, for one action on one node, and
// for one user.
func (p *Page) formToken(r *http.Request, fields ...string) string {
	sum := hmac.New(sha256.New, p.key)
	for _, field := range append([]string{userOf(r)}, fields...) {
		one := sha256.Sum256([]byte(field))
		sum.Write(one[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func hmacEqual(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }
