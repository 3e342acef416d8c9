// Start is the program of docs/start.md: it writes something under a lock. It needs a server at 127.0.0.1:2181.
package main
