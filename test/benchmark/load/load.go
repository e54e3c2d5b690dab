// Package load sends requests to an HTTP server over connections that stay open.
//
// A benchmark on one machine shares its processors between the server and whoever
// calls it, so the caller must be cheap, and the same for every server. A request is
// a text that was put together beforehand; a response is read with net/http's parser
// and otherwise not looked at. Each connection has one request under way.
//
// The limit: latency is that of a caller who waits for each response, and says
// nothing about a server that is offered more than it can serve.
package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Connection is an open connection to a server.
type Connection struct {
	connection net.Conn
	reader     *bufio.Reader
	body       bytes.Buffer
}

// Dial opens a connection.
func Dial(address string) (*Connection, error) {
	connection, err := net.Dial("tcp", address) //nolint:noctx // to this machine; it answers at once or refuses
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	return &Connection{connection: connection, reader: bufio.NewReader(connection)}, nil
}

// Close closes the connection.
func (c *Connection) Close() error { return c.connection.Close() }

// Do sends a request, which is the exact text, and returns the body of the
// response, which is good until the next call. Another status than 200 is an error.
func (c *Connection) Do(request []byte) ([]byte, error) {
	response, err := c.Open(request)
	if err != nil {
		return nil, err
	}
	c.body.Reset()
	_, err = c.body.ReadFrom(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d: %s", response.StatusCode, c.body.Bytes())
	}
	return c.body.Bytes(), nil
}

// Open sends a request and returns the response as soon as its header is there.
func (c *Connection) Open(request []byte) (*http.Response, error) {
	if _, err := c.connection.Write(request); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	return response, nil
}

// Run calls a function again and again, in as many goroutines as are given, until
// the time is over, and returns how many calls there were and how long they took in
// all. The function is told the number of its goroutine. It ends with the first
// error.
func Run(goroutines int, duration time.Duration, call func(goroutine int) error) (int, time.Duration, error) {
	began := time.Now()
	deadline := began.Add(duration)
	counts, failures := make([]int, goroutines), make([]error, goroutines)
	var group sync.WaitGroup
	for i := range goroutines {
		group.Go(func() {
			for failures[i] == nil && time.Now().Before(deadline) {
				failures[i] = call(i)
				counts[i]++
			}
		})
	}
	group.Wait()
	calls := 0
	for _, count := range counts {
		calls += count
	}
	return calls, time.Since(began), errors.Join(failures...)
}
