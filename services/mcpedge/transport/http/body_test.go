package http

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// deadlineRecorder is a recorder that has deadlines, as a connection does.
type deadlineRecorder struct{ *httptest.ResponseRecorder }

func (deadlineRecorder) SetReadDeadline(time.Time) error { return nil }

func TestMemoryFollowsWhatArrivedAndNotWhatWasAnnounced(t *testing.T) {
	const announced = 64 << 20
	h := NewHandler(Options{MaxBodyBytes: announced, BodyTimeout: time.Minute})
	r := httptest.NewRequest(http.MethodPost, "/mcp", io.MultiReader(strings.NewReader("{"), brokenReader{}))
	r.ContentLength = announced
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := h.read(deadlineRecorder{httptest.NewRecorder()}, r); err == nil {
		t.Error("a body that breaks off was read")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > announced/16 {
		t.Errorf("one byte of %d announced cost %d bytes of memory", announced, used)
	}
}

// brokenReader is a body that breaks off.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
