package zktest

// isWord reports whether a connection begins with a four-letter word in place of a frame.
func isWord(s string) bool { return s == "ruok" }

func (c *conn) answerWord(word string) {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.out.put(outFrame{[]byte("imok"), false})
	c.end(flushAll)
}
