package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/countersign-mcp/countersign/test/benchmark/load"
)

// connections are how many clients call at once.
const connections = 64

// echoArguments are the arguments of the tool that all servers have.
const echoArguments = `{"text":"hello"}`

// calls measures tools/call against the other servers, all with one value of GOGC.
func (b *benchmark) calls(gogc string) error {
	deployed, err := b.fleet.deploy(gogc, 10)
	if err != nil {
		return err
	}
	bare, err := b.fleet.server(gogc, "echo")
	if err != nil {
		return err
	}
	type rival struct {
		name    string
		server  string
		options []string
		behind  []*process
	}
	edge, err := caller("edge and handler", deployed.edge, []*process{deployed.edge, deployed.handler})
	if err != nil {
		return err
	}
	contestants := []contestant{edge}
	for _, r := range []rival{
		{"official Go SDK, in process", "go-sdk", nil, nil},
		{"mark3labs/mcp-go, in process", "mcp-go", nil, nil},
		{"net/http and a bare gRPC echo", "floor", []string{"--backend", bare.address}, []*process{bare}},
	} {
		started, err := b.fleet.server(gogc, r.server, r.options...)
		if err != nil {
			return err
		}
		c, err := caller(r.name, started, append(r.behind, started))
		if err != nil {
			return err
		}
		contestants = append(contestants, c)
	}
	scores, err := contest(contestants, b.rounds, b.duration)
	if err != nil {
		return err
	}
	b.compare("tools/call of an echo, GOGC="+gogc, contestants, scores)
	return nil
}

// caller is a contestant that calls the echo of a server.
func caller(name string, server *process, processes []*process) (contestant, error) {
	open, err := dial(server.address, connections)
	if err != nil {
		return contestant{}, err
	}
	request := load.CallTool("echo", echoArguments, "")
	reply, err := open[0].Do(request)
	if err != nil {
		return contestant{}, fmt.Errorf("%s: %w", name, err)
	}
	if !bytes.Contains(reply, []byte(`"text":"hello"`)) {
		return contestant{}, fmt.Errorf("%s did not echo: %s", name, reply)
	}
	return contestant{name: name, processes: processes, goroutines: connections, call: func(goroutine int) error {
		_, err := open[goroutine].Do(request)
		return err
	}}, nil
}

// rounds measures a call that asks once, against two that do not ask: a question
// costs a seal and an opening.
func (b *benchmark) twoRounds(gogc string) error {
	deployed, err := b.fleet.deploy(gogc, 10)
	if err != nil {
		return err
	}
	all := []*process{deployed.edge, deployed.handler, deployed.sealer}
	plain, err := caller("a call that asks nothing", deployed.edge, all)
	if err != nil {
		return err
	}
	open, err := dial(deployed.edge.address, connections)
	if err != nil {
		return err
	}
	first := load.CallTool("ask", echoArguments, "")
	asking := contestant{name: "a call in two rounds", processes: all, goroutines: connections, call: func(goroutine int) error {
		reply, err := open[goroutine].Do(first)
		if err != nil {
			return err
		}
		token, err := requestState(reply)
		if err != nil {
			return err
		}
		second := load.CallTool("ask", echoArguments, `,"inputResponses":{"sure":{"action":"accept","content":{"confirm":true}}},"requestState":"`+token+`"`)
		reply, err = open[goroutine].Do(second)
		if err == nil && !bytes.Contains(reply, []byte(`"text":"hello"`)) {
			err = fmt.Errorf("the second round did not complete: %s", reply)
		}
		return err
	}}
	contestants := []contestant{asking, plain}
	scores, err := contest(contestants, b.rounds, b.duration)
	if err != nil {
		return err
	}
	b.compare("a question, with edge, handler and sealer, GOGC="+gogc, contestants, scores)
	return nil
}

// requestState cuts the request state out of a reply.
func requestState(reply []byte) (string, error) {
	_, after, found := bytes.Cut(reply, []byte(`"requestState":"`))
	token, _, closed := bytes.Cut(after, []byte(`"`))
	if !found || !closed {
		return "", errors.New("the reply has no request state")
	}
	return string(token), nil
}
