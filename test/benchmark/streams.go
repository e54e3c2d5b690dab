package main

import (
	"bufio"
	"fmt"

	"github.com/countersign-mcp/countersign/test/benchmark/load"
)

// tools measures what a call costs with few and with many tools in the catalog.
func (b *benchmark) tools(gogc string) error {
	var contestants []contestant
	for _, count := range []int{10, 10000} {
		deployed, err := b.fleet.deploy(gogc, count)
		if err != nil {
			return err
		}
		c, err := caller(fmt.Sprintf("a catalog of %d tools", count), deployed.edge, []*process{deployed.edge, deployed.handler})
		if err != nil {
			return err
		}
		contestants = append(contestants, c)
	}
	scores, err := contest(contestants, b.rounds, b.duration)
	if err != nil {
		return err
	}
	b.compare("tools/call with few and many tools, GOGC="+gogc, contestants, scores)
	return nil
}

// idleStreams measures what an idle listen stream costs in memory, and what calls
// cost while many are open.
func (b *benchmark) idleStreams(gogc string) error {
	var edges []deployment
	for range 2 {
		deployed, err := b.fleet.deploy(gogc, 10)
		if err != nil {
			return err
		}
		edges = append(edges, deployed)
	}
	subjects := []struct {
		name    string
		process *process
	}{{"edge", edges[1].edge}}
	for _, name := range []string{"go-sdk", "mcp-go"} {
		started, err := b.fleet.server(gogc, name)
		if err != nil {
			return err
		}
		subjects = append(subjects, struct {
			name    string
			process *process
		}{name, started})
	}
	b.header(fmt.Sprintf("memory of an idle listen stream, %d of them, GOGC=%s", b.streams, gogc), "", "KiB a stream", "this / first")
	var first float64
	closeEdge := func() {}
	defer func() { closeEdge() }() //nolint:gocritic // it is set below
	for i, subject := range subjects {
		perStream, closeAll, err := b.openStreams(subject.process)
		if err != nil {
			return fmt.Errorf("%s: %w", subject.name, err)
		}
		if i == 0 {
			// The edge's streams stay open: calls are measured beside them.
			first, closeEdge = perStream, closeAll
		} else {
			closeAll()
		}
		b.row(subject.name, fmt.Sprintf("%.1f", perStream), fmt.Sprintf("%.2f", perStream/first))
	}

	var contestants []contestant
	for i, name := range []string{"no listen stream", fmt.Sprintf("%d listen streams", b.streams)} {
		c, err := caller(name, edges[i].edge, []*process{edges[i].edge, edges[i].handler})
		if err != nil {
			return err
		}
		contestants = append(contestants, c)
	}
	scores, err := contest(contestants, b.rounds, b.duration)
	if err != nil {
		return err
	}
	b.compare("tools/call beside idle listen streams, GOGC="+gogc, contestants, scores)
	return nil
}

// openStreams opens listen streams and returns how much memory the server has more
// for each, in KiB, and what closes them.
func (b *benchmark) openStreams(server *process) (float64, func(), error) {
	var open callers
	closeAll := func() {
		for _, c := range open {
			_ = c.Close()
		}
	}
	request := load.Listen()
	var before int
	for i := range b.streams + warmUp {
		if i == warmUp {
			var err error
			if before, err = residentBytes(server); err != nil {
				return 0, closeAll, err
			}
		}
		c, err := load.Dial(server.address)
		if err != nil {
			return 0, closeAll, err
		}
		open = append(open, c)
		response, err := c.Open(request)
		if err == nil {
			// The acknowledgement is there: the stream is open.
			_, err = bufio.NewReaderSize(response.Body, 16).ReadByte()
		}
		if err != nil {
			return 0, closeAll, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	// What is garbage counts: it is memory that the server has.
	after, err := residentBytes(server)
	return float64(after-before) / float64(b.streams) / 1024, closeAll, err
}

// warmUp is how many streams are opened before the memory is read.
const warmUp = 100
