package redislock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
)

// script is a script that servers know by its hash after its first run.
type script struct{ text, hash string }

func newScript(text string) *script {
	hash := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(hash[:])}
}

func (s *script) run(ctx context.Context, r Redis, keys []string, args ...any) (any, error) {
	answer, err := r.EvalSha(ctx, s.hash, keys, args...)
	if err != nil && strings.Contains(err.Error(), "NOSCRIPT") {
		return r.Eval(ctx, s.text, keys, args...)
	}
	return answer, err
}

// A script may run twice: go-redis sends a request again, and so does an acquire, if the answer was
// lost. Each one knows by the owner whether it has run before.

// The counter is increased before the key is set: an error of INCR leaves no key. The token is read
// by GET, because numbers of Lua are exact only up to 2^53.
//
// Returns the token and 0, or "" and the remaining time of the holder in ms, negative if it has none.
var acquireScript = newScript(`
local owner = redis.call('GET', KEYS[1])
if not owner then
	if redis.call('INCR', KEYS[2]) < 1 then
		return redis.error_reply('ERR ' .. KEYS[2] .. ' is no counter of tokens: it is negative')
	end
	redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif owner == ARGV[1] then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
	return {'', redis.call('PTTL', KEYS[1])}
end
return {redis.call('GET', KEYS[2]), 0}
`)

// Returns the owner of the key, "" if there is no key.
var renewScript = newScript(`
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return owner or ''
`)

// A release that was sent twice finds no key the second time, or that of another owner. As long as
// the counter has its token, the lock was no other owner's since. Returns 1 if the lock was the owner's
// to the end.
var releaseScript = newScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
	redis.call('DEL', KEYS[1])
	redis.call('PUBLISH', ARGV[3], '')
	return 1
end
if redis.call('GET', KEYS[2]) == ARGV[4] then
	return 1
end
return 0
`)

// errUnexpected means that a script has returned what it does not return.
var errUnexpected = errors.New("unexpected answer")
