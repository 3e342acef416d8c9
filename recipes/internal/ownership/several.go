package ownership

import "context"

// ReenterAll returns another hold of all locks with these keys, if ctx carries one valid hold of all
// of them. some reports whether it carries holds of some of them.
func ReenterAll(ctx context.Context, keys []any) (hold *Hold, some bool) {
	first, all := Current(ctx, keys[0])
	some = all
	for _, key := range keys[1:] {
		h, held := Current(ctx, key)
		some = some || held
		all = all && held && h == first
	}
	if all {
		hold, _ = Reenter(ctx, keys[0])
	}
	return hold, some
}

// ShowFirst makes Tokens return the first token only. The nodes were created in one transaction, so
// all tokens are the same. Call it before h is shared.
func (h *Hold) ShowFirst() { h.single = &h.owned.locks()[0] }
