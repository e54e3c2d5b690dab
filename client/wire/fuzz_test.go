package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// FuzzEvents reads a stream whole and byte by byte: how it was cut on its way must
// not matter.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\r\n"))
	f.Add([]byte("\ufeff: c\revent: message\rdata\rdata:x\r\rid:1\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole := allEvents(t, bytes.NewReader(stream))
		pieces := allEvents(t, iotest.OneByteReader(bytes.NewReader(stream)))
		if !bytes.Equal(bytes.Join(whole, []byte{0}), bytes.Join(pieces, []byte{0})) {
			t.Fatalf("%q was read as %q and as %q", stream, whole, pieces)
		}
		for _, data := range whole {
			if bytes.ContainsRune(data, '\r') {
				t.Fatalf("the data %q has a line end in it", data)
			}
		}
	})
}

// allEvents reads a stream to its end.
func allEvents(t *testing.T, stream io.Reader) [][]byte {
	t.Helper()
	var events [][]byte
	for reader := newEventReader(stream); ; {
		data, err := reader.next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, data)
	}
}

// FuzzReply decodes what a server might send. A result that is taken must be one
// that the revision allows.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":[1.10]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		received, err := decode(text)
		if err != nil || received.isNotification() {
			return
		}
		result, err := received.resultOf(1, "tools/call")
		if err != nil {
			return
		}
		if !bytes.Contains(text, result.JSON) || result.JSON.Kind() != '{' {
			t.Fatalf("the result %s is not the one of %s", result.JSON, text)
		}
	})
}
