package fence_test

import (
	"errors"
	"fmt"

	"github.com/docent-zk/docent/fence"
)

// file is a resource that a lock protects.
type file struct {
	fencing fence.Register
	content string
}

// write takes the token of the holder, recipes.Hold.Token.
func (f *file) write(token int64, content string) error {
	return f.fencing.Do(token, func() error {
		f.content = content
		return nil
	})
}

func ExampleRegister_Do() {
	var f file
	fmt.Println(f.write(33, "by the first holder"))
	// The first holder is paused, its session expires, and another client gets the lock.
	fmt.Println(f.write(34, "by the second holder"))
	// The first holder goes on.
	err := f.write(33, "by the first holder, late")
	fmt.Println(err, errors.Is(err, fence.ErrStale))
	fmt.Println(f.content)
	// Output:
	// <nil>
	// <nil>
	// fence: stale token: 0x21 after 0x22 true
	// by the second holder
}

func ExampleRegister_Accept() {
	var r fence.Register
	stored := int64(34) // stored with the data of the resource, read at its start
	if err := r.Accept(stored); err != nil {
		panic(err)
	}
	fmt.Println(r.Accept(33))
	fmt.Println(r.Accept(35), r.Last())
	// Output:
	// fence: stale token: 0x21 after 0x22
	// <nil> 35
}
