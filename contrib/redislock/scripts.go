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
// lost. It may also run late. So each release notes its owner for the time to live, a minute at most: a
// repeated release finds the note, and an acquire that comes after the release of its owner is refused.
//
// The scripts of all kinds have the same KEYS and ARGV: see single. Their time is that of the server.

// prelude is what all scripts begin with.
const prelude = `
local lock, counter, done = KEYS[1], KEYS[2], KEYS[3]
local me, ttl, channel, waits = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- keep lets a key live for the time to live at least: other programs may have another one.
local function keep(key)
	if redis.call('PTTL', key) < ttl then
		redis.call('PEXPIRE', key, ttl)
	end
end
`

// refuseReleased refuses an acquire of an owner that was released. countUp takes the next token before
// the lock is granted, so that an error of INCR leaves no lock. The token is returned by GET, because
// numbers of Lua are exact only up to 2^53.
const (
	refuseReleased = `
if redis.call('ZSCORE', done, me) then
	return {'', -1}
end
`
	countUp = `
if redis.call('INCR', counter) < 1 then
	return redis.error_reply('ERR ' .. counter .. ' is no counter of tokens: it is negative')
end
`
)

// released returns the end of a release script, of a part that sets ours to 1 if the lock was the
// owner's to the end. The part removes the record of a waiter first, because the key of the lock may have
// become one of another kind. A repeated release returns what the first one has returned.
func released(free string) string {
	return `
redis.call('ZREMRANGEBYSCORE', done, '-inf', now)
if redis.call('ZSCORE', done, me) then
	return redis.call('ZSCORE', done, 'lost:' .. me) and 0 or 1
end
local ours = 0
` + free + `
local noted = now + math.min(ttl, 60000)
redis.call('ZADD', done, noted, me)
if ours == 0 then
	redis.call('ZADD', done, noted, 'lost:' .. me)
end
keep(done)
return ours
`
}

// The lock is a key, whose value is the owner.

// Returns the token and 0, or "" and the remaining time of the holder in ms, negative if it has none.
var acquireScript = newScript(prelude + refuseReleased + `
local owner = redis.call('GET', lock)
if not owner then ` + countUp + `
	redis.call('SET', lock, me, 'PX', ttl)
elseif owner == me then
	redis.call('PEXPIRE', lock, ttl)
else
	return {'', redis.call('PTTL', lock)}
end
return {redis.call('GET', counter), 0}
`)

// Returns the owner of the key, "" if there is no key.
var renewScript = newScript(prelude + `
local owner = redis.call('GET', lock)
if owner == me then
	redis.call('PEXPIRE', lock, ttl)
end
return owner or ''
`)

var releaseScript = newScript(prelude + released(`
if redis.call('GET', lock) == me then
	redis.call('DEL', lock)
	redis.call('PUBLISH', channel, '')
	ours = 1
end
`))

// A fair lock is that key, too. Its waiters are the sorted set KEYS[4], by arrival, and KEYS[5] has until
// when each of them is there in ms. head returns the first one that is, and for how long.
const fair = prelude + `
local function leave(owner)
	redis.call('ZREM', KEYS[4], owner)
	redis.call('ZREM', KEYS[5], owner)
end
local function head()
	while true do
		local first = redis.call('ZRANGE', KEYS[4], 0, 0)[1]
		local left = first and (redis.call('ZSCORE', KEYS[5], first) or 0) - now
		if not first or left > 0 then
			return first, left
		end
		leave(first)
	end
end
`

var (
	acquireFairScript = newScript(fair + refuseReleased + `
local owner = redis.call('GET', lock)
local first, left = head()
if not owner and (not first or first == me) then ` + countUp + `
	redis.call('SET', lock, me, 'PX', ttl)
	leave(me)
elseif owner == me then
	redis.call('PEXPIRE', lock, ttl)
else
	if waits == '1' then
		if not redis.call('ZSCORE', KEYS[4], me) then
			local last = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2] or 0
			redis.call('ZADD', KEYS[4], last + 1, me)
		end
		redis.call('ZADD', KEYS[5], now + ttl, me)
		keep(KEYS[4])
		keep(KEYS[5])
	end
	return {'', owner and redis.call('PTTL', lock) or left}
end
return {redis.call('GET', counter), 0}
`)
	releaseFairScript = newScript(fair + released(`
leave(me)
if redis.call('GET', lock) == me then
	redis.call('DEL', lock)
	ours = 1
end
local first = head()
if first and redis.call('EXISTS', lock) == 0 then
	redis.call('PUBLISH', channel .. first, '')
end
`))
)

// Of the locks that several owners have, the lock is a sorted set: the owners by the time in ms at which
// they expire. Each script sweeps those that have expired.

const sweep = `
redis.call('ZREMRANGEBYSCORE', lock, '-inf', now)
`

// acquireAmong returns the script of an acquire, of a part that refuses owners of another kind, and one
// that sets left, unless the lock is free for me: to the time in ms until it may be. Of
// repeated acquires each one takes a token, because another owner may have had the one of the acquire
// before.
func acquireAmong(refuse, left string) *script {
	return newScript(prelude + refuseReleased + sweep + refuse + `
local left
if not redis.call('ZSCORE', lock, me) then ` + left + `
end
if left then
	return {'', left}
end ` + countUp + `
redis.call('ZADD', lock, now + ttl, me)
keep(lock)
return {redis.call('GET', counter), 0}
`)
}

// Returns the owner, "" if it has expired.
var renewAmongScript = newScript(prelude + sweep + `
if not redis.call('ZSCORE', lock, me) then
	return ''
end
redis.call('ZADD', lock, now + ttl, me)
keep(lock)
keep(KEYS[4])
return me
`)

const removeAmong = sweep + `
ours = redis.call('ZREM', lock, me)
`

// Owners of the sides of a read-write lock and owners of permits do not mix in one sorted set.
const (
	isSide = `
local function isSide(owner)
	return string.sub(owner, 1, 6) == 'write:' or string.sub(owner, 1, 5) == 'read:'
end
`
	refusePermits = isSide + `
local any = redis.call('ZRANGE', lock, 0, 0)[1]
if any and not isSide(any) then
	return redis.error_reply('WRONGTYPE ' .. lock .. ' is a semaphore')
end
`
	refuseSides = isSide + `
local any = redis.call('ZRANGE', lock, 0, 0)[1]
if any and isSide(any) then
	return redis.error_reply('WRONGTYPE ' .. lock .. ' is a read-write lock')
end
`
)

// The waiting writers of a read-write lock are the sorted set KEYS[4]: new readers wait for them. Each
// side has its own channel.
var (
	acquireReadScript = acquireAmong(refusePermits, `
	redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
	local last = redis.call('ZREVRANGE', lock, 0, 0, 'WITHSCORES')
	if not last[1] or string.sub(last[1], 1, 6) ~= 'write:' then
		last = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')
	end
	left = last[1] and last[2] - now
`)
	acquireWriteScript = acquireAmong(refusePermits, `
	local last = redis.call('ZREVRANGE', lock, 0, 0, 'WITHSCORES')
	if last[1] then
		left = last[2] - now
		if waits == '1' then
			redis.call('ZADD', KEYS[4], now + ttl, me)
			keep(KEYS[4])
		end
	end
`)
	releaseSideScript = newScript(prelude + released(`
redis.call('ZREM', KEYS[4], me)
`+removeAmong+`
redis.call('PUBLISH', channel .. 'read:', '')
redis.call('PUBLISH', channel .. 'write:', '')
`))
)

// The permits of a semaphore are KEYS[4]. They count as long as there are owners.
var (
	acquirePermitScript = acquireAmong(refuseSides, `
	local permits = ARGV[5]
	local first = redis.call('ZRANGE', lock, 0, 0, 'WITHSCORES')
	if first[1] and (redis.call('GET', KEYS[4]) or permits) ~= permits then
		return redis.error_reply('ERR ' .. lock .. ' has ' .. redis.call('GET', KEYS[4]) ..
			' permits for its present holders, and not ' .. permits)
	end
	if redis.call('ZCARD', lock) >= tonumber(permits) then
		left = first[2] - now
	elseif not redis.call('SET', KEYS[4], permits, 'PX', ttl, 'NX') then
		redis.call('SET', KEYS[4], permits, 'PX', math.max(ttl, redis.call('PTTL', KEYS[4])))
	end
`)
	releasePermitScript = newScript(prelude + released(removeAmong+`
redis.call('PUBLISH', channel, '')
`))
)

// On each server of a Redlock the lock is a key, whose value is the owner, and releases are noted.
// takeScript returns the owner that has had the key, "" if there was none.
var (
	takeScript = newScript(prelude + `
if redis.call('ZSCORE', done, me) then
	return 'released'
end
local owner = redis.call('GET', lock)
if not owner or owner == me then
	redis.call('SET', lock, me, 'PX', ttl)
end
return owner or ''
`)
	dropScript = newScript(prelude + released(`
if redis.call('GET', lock) == me then
	ours = redis.call('DEL', lock)
end
`))
)

// errUnexpected means that a script has returned what it does not return.
var errUnexpected = errors.New("unexpected answer")
