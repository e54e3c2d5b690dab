package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// eventReader reads the data of server-sent events (WHATWG HTML, section 9.2).
// Event types other than `message`, ids and comments mean nothing here.
type eventReader struct {
	lines *bufio.Reader
	// afterCarriageReturn says that the last line ended in CR, so that an LF that
	// follows belongs to it.
	afterCarriageReturn bool
	started             bool
}

// newEventReader reads events from a response body.
func newEventReader(body io.Reader) *eventReader {
	return &eventReader{lines: bufio.NewReader(body)}
}

// next returns the data of the next event, or io.EOF when there is none. An
// event that the end of the stream cut off is dropped.
func (r *eventReader) next() ([]byte, error) {
	var data []byte
	hasData, isMessage := false, true
	for {
		line, err := r.line(maxMessageBytes - len(data))
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if hasData && isMessage {
				return data, nil
			}
			data, hasData, isMessage = nil, false, true
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if hasData {
				data = append(data, '\n')
			}
			data = append(data, value...)
			hasData = true
		case "event":
			isMessage = len(value) == 0 || string(value) == "message"
		}
	}
}

// line returns the next line without its end, which is CR, LF or both. It must
// not wait for the byte after a CR: the server may be waiting for us.
func (r *eventReader) line(limit int) ([]byte, error) {
	var line []byte
	for {
		next, err := r.lines.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, err
		}
		wasCarriageReturn := r.afterCarriageReturn
		r.afterCarriageReturn = next == '\r'
		switch {
		case next == '\n' && wasCarriageReturn:
			continue
		case next == '\n' || next == '\r':
			if !r.started {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
				r.started = true
			}
			return line, nil
		}
		if len(line) >= limit {
			return nil, fmt.Errorf("an event is longer than %d bytes", maxMessageBytes)
		}
		line = append(line, next)
	}
}
