// Package stdio is MCP's stdio transport: a client starts the edge as its child
// and speaks with it over standard input and output, one message a line.
//
// All requests share the two streams. Each is served by a goroutine of its own, and
// every message that leaves is written as a whole under one lock. There are no
// headers, so what they would have to say is not checked; and there is no
// connection to close, so a request is cancelled by a notification that names its
// id. After that nothing more is written for it.
//
// The limit: the client is the process that started this one, and is trusted with
// as many requests as it likes; the length of a line is bounded. What is lost when
// the input ends is whatever was being served: the edge cancels it, gives it a
// moment to say so, and returns even if nobody reads what it says.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-mcp/countersign/services/mcpedge/canon"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/modern"
)

// Options are what a Connection needs.
type Options struct {
	// Server serves requests.
	Server *modern.Server
	// Logger logs what is refused here.
	Logger *slog.Logger
	// Refused counts what is refused before it reaches the server.
	Refused func(reason failure.Reason)
	// MaxLineBytes bounds a message, MaxDepth its nesting.
	MaxLineBytes int
	MaxDepth     int
}

// Connection is a conversation with one client.
type Connection struct {
	Options

	input *bufio.Reader

	writing sync.Mutex
	output  io.Writer

	mu sync.Mutex
	// running are the requests being served, by canonical id. An id may be there
	// more than once.
	running map[string][]*request
	serving sync.WaitGroup
}

// New returns a conversation over two streams.
func New(input io.Reader, output io.Writer, options Options) *Connection {
	return &Connection{Options: options, input: bufio.NewReaderSize(input, 64<<10), output: output, running: map[string][]*request{}}
}

// drainTimeout is how long Serve waits for what it has cancelled. A client that reads
// nothing would otherwise hold it for ever.
const drainTimeout = 2 * time.Second

// Serve serves messages until the input ends or ctx does, cancels what is being
// served, and returns when that has ended or after drainTimeout. The end of the input
// is no error. Neither a blocking read nor a blocking write can be interrupted, so
// one that is under way when Serve returns is left behind until its stream says
// something or is closed.
func (c *Connection) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer c.drain()
	defer cancel()
	lines := make(chan line)
	go c.read(ctx, lines)
	for {
		select {
		case <-ctx.Done():
			return nil
		case next := <-lines:
			switch {
			case errors.Is(next.err, io.EOF):
				return nil
			case errors.Is(next.err, bufio.ErrTooLong):
				c.refuse(ctx, nil, failure.Newf(failure.BodyTooLarge, "the message is longer than %d bytes", c.MaxLineBytes))
			case next.err != nil:
				return fmt.Errorf("read a message: %w", next.err)
			case len(bytes.TrimSpace(next.text)) > 0:
				c.receive(ctx, next.text)
			}
		}
	}
}

// drain waits for what is being served, but not longer than drainTimeout.
func (c *Connection) drain() {
	ended := make(chan struct{})
	go func() {
		c.serving.Wait()
		close(ended)
	}()
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		c.Logger.Warn("requests abandoned: they did not end in time, or the client does not read")
	}
}

// line is a line of the input, or why there is none.
type line struct {
	text []byte
	err  error
}

// read passes on the input's lines until the input or ctx ends.
func (c *Connection) read(ctx context.Context, lines chan<- line) {
	for {
		text, err := c.readLine()
		select {
		case <-ctx.Done():
			return
		case lines <- line{text, err}:
		}
		if err != nil && !errors.Is(err, bufio.ErrTooLong) {
			return
		}
	}
}

// readLine reads a line. A line that is too long is read to its end, and its error
// is bufio.ErrTooLong.
func (c *Connection) readLine() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := c.input.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > c.MaxLineBytes+1; !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0):
			return nil, err
		case tooLong:
			return nil, bufio.ErrTooLong
		default: // a last line may lack its end
			return line, nil
		}
	}
}

// receive takes in one message.
func (c *Connection) receive(ctx context.Context, line []byte) {
	message, err := jsonrpc.Decode(line, c.MaxDepth)
	if err != nil {
		c.refuse(ctx, message.ID, failure.OfDecoding(err))
		return
	}
	if message.IsNotification() {
		if message.Method == "notifications/cancelled" {
			c.cancel(message.Params)
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &request{connection: c, id: message.ID, cancel: cancel}
	key := c.add(r)
	c.serving.Go(func() {
		defer c.remove(key, r)
		result, err := c.Server.Serve(ctx, modern.Request{Message: message, Principal: identity.AnonymousPrincipal}, r)
		if err != nil {
			answer := failure.AnswerTo(err)
			c.end(ctx, r, jsonrpc.AppendError(nil, message.ID, answer.Code, answer.Message, answer.Data))
			return
		}
		c.end(ctx, r, jsonrpc.AppendResult(nil, message.ID, result))
	})
}

// end writes the message that answers a request.
func (c *Connection) end(ctx context.Context, r *request, message []byte) {
	if err := r.write(message); err != nil && !errors.Is(err, context.Canceled) {
		c.Logger.LogAttrs(ctx, slog.LevelWarn, "reply not written", slog.Any("cause", err))
	}
}

// key is the canonical form of an id: 1 and "1" differ, "1" and "\u0031" do not.
func key(id []byte) string {
	form, err := canon.Append(nil, id)
	if err != nil {
		return string(id)
	}
	return string(form)
}

func (c *Connection) add(r *request) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := key(r.id)
	c.running[k] = append(c.running[k], r)
	return k
}

func (c *Connection) remove(k string, r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.cancel()
	kept := c.running[k][:0]
	for _, other := range c.running[k] {
		if other != r {
			kept = append(kept, other)
		}
	}
	if len(kept) == 0 {
		delete(c.running, k)
		return
	}
	c.running[k] = kept
}

// cancel cancels the requests of an id. What makes no sense is ignored, as the
// specification asks.
func (c *Connection) cancel(params []byte) {
	var id []byte
	if params == nil || jsonrpc.EachMember(params, func(name string, value []byte) error {
		if name == "requestId" {
			id = value
		}
		return nil
	}) != nil || id == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.running[key(id)] {
		r.abandon()
	}
}

func (c *Connection) refuse(ctx context.Context, id jsonrpc.ID, e *failure.Error) {
	c.Refused(e.Reason)
	c.Logger.LogAttrs(ctx, slog.LevelInfo, "message refused", slog.String("reason", string(e.Reason)))
	answer := failure.AnswerTo(e)
	c.serving.Go(func() { // a client that does not read must not stop the reading
		// Whoever does not read will not read an error about it either.
		_ = c.write(jsonrpc.AppendError(nil, id, answer.Code, answer.Message, answer.Data), nil)
	})
}

// write writes a message as one line, unless it is abandoned by the time that it is
// its turn.
func (c *Connection) write(message []byte, abandoned *atomic.Bool) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if abandoned != nil && abandoned.Load() {
		return context.Canceled
	}
	if _, err := c.output.Write(append(jsonrpc.OneLine(message), '\n')); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	return nil
}

// request is a request being served.
type request struct {
	connection *Connection
	id         jsonrpc.ID
	cancel     context.CancelFunc

	// abandoned: the client has cancelled it and must hear no more of it. It is set
	// without a lock, so that cancelling never waits for a write.
	abandoned atomic.Bool
}

func (r *request) abandon() {
	r.abandoned.Store(true)
	r.cancel()
}

// write writes a message that belongs to the request, unless it was cancelled.
func (r *request) write(message []byte) error {
	return r.connection.write(message, &r.abandoned)
}

// Notify writes a notification that belongs to the request.
func (r *request) Notify(method string, params []byte) error {
	return r.write(jsonrpc.AppendNotification(nil, method, params))
}

// KeepAlive does nothing: nobody stands between.
func (*request) KeepAlive() error { return nil }
