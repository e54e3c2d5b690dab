// Package ballast lets a small process collect its garbage less often.
//
// The problem: Go's collector begins anew each time the heap has doubled. A service
// that keeps a few megabytes and makes a few kilobytes of garbage with every request
// has doubled after some hundred requests, and spends more on collecting than on
// requests; but a larger GOGC, which helps it, multiplies the memory of a process that
// keeps much. The mechanism: one block of memory that is reserved and never touched.
// The system gives it no pages, the collector has nothing to look at in it, and the
// heap now doubles from its size on. So a process may have that much garbage more,
// whatever else it keeps.
//
// The limit: the block counts for GOMEMLIMIT although it takes up nothing, and is
// multiplied by GOGC. Where the operator has set either, they have decided, and there
// is no ballast. What is lost is up to twice its size in resident memory.
package ballast

import (
	"os"
	"sync"
)

// Size is how many bytes are reserved.
const Size = 32 << 20

// block is the ballast; nobody reads it.
var block []byte

var once sync.Once

// Take takes the ballast aboard, once. It does nothing where the environment sets
// GOGC or GOMEMLIMIT.
func Take() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	once.Do(func() { block = make([]byte, Size) })
}
