package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

const askTwice = "test_input_required_result_multi_round"

// roundRobin is a proxy that sends each request to the next of its servers.
func roundRobin(t *testing.T, servers ...string) string {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	proxies := make([]*httputil.ReverseProxy, 0, len(servers))
	for _, server := range servers {
		target, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		proxies = append(proxies, &httputil.ReverseProxy{
			Transport:     transport,
			FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
			},
		})
	}
	var requests atomic.Uint64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxies[requests.Add(1)%uint64(len(proxies))].ServeHTTP(w, r)
	}))
	t.Cleanup(transport.CloseIdleConnections)
	t.Cleanup(proxy.Close)
	return proxy.URL + "/mcp"
}

// twoRounds makes a call that asks twice and answers both questions.
func twoRounds(ctx context.Context, c *client.Client, name string) error {
	questions := []struct {
		key    string
		answer map[string]any
	}{
		{key: "step1", answer: map[string]any{"name": name}},
		{key: "step2", answer: map[string]any{"color": "green"}},
	}
	var (
		answers      map[string]any
		requestState string
	)
	for round := range len(questions) + 1 {
		reply, err := c.CallTool(ctx, askTwice, map[string]any{}, answers, requestState)
		if err != nil {
			return err
		}
		if reply.Error != nil {
			return fmt.Errorf("in round %d: %w", round, reply.Error)
		}
		if round == len(questions) {
			if want := name + " likes green."; reply.Result.Type != "complete" || reply.Result.Content[0].Text != want {
				return fmt.Errorf("the result is %s, want %q", reply.Body, want)
			}
			return nil
		}
		question := questions[round]
		if _, asked := reply.Result.InputRequests[question.key]; !asked || reply.Result.RequestState == "" {
			return fmt.Errorf("round %d is %s, want the question %q and a state", round, reply.Body, question.key)
		}
		answers = map[string]any{question.key: client.Accept(question.answer)}
		requestState = reply.Result.RequestState
	}
	return errors.New("the call did not end")
}

func TestReplicasServeOneAnothersState(t *testing.T) {
	const (
		calls   = 1000
		workers = 8
	)
	handlers := examples(t)
	keys := deployment.KeyFile(t)
	sealers := []*deployment.Service{deployment.Sealer{KeyFile: keys}.Start(t), deployment.Sealer{KeyFile: keys}.Start(t)}
	edges := []*deployment.Service{
		deployment.Edge{Sealer: sealers[0], Handlers: handlers}.Start(t),
		deployment.Edge{Sealer: sealers[1], Handlers: handlers}.Start(t),
	}
	c := newClient(t, roundRobin(t, edges[0].MCP(), edges[1].MCP()))

	var (
		group sync.WaitGroup
		next  atomic.Int64
	)
	for range workers {
		group.Go(func() {
			for call := next.Add(1); call <= calls; call = next.Add(1) {
				if err := twoRounds(t.Context(), c, fmt.Sprintf("User %d", call)); err != nil {
					t.Errorf("call %d: %v", call, err)
				}
			}
		})
	}
	group.Wait()

	var opened, notOpened float64
	for i, sealer := range sealers {
		metrics := sealer.Metrics(t)
		ok := metrics.Sum("countersign_open_total", "result=ok")
		if ok < calls/2 {
			t.Errorf("sealer %d opened %v states, want about %d: the proxy does not alternate", i, ok, calls)
		}
		opened += ok
		notOpened += metrics.Sum("countersign_open_total") - ok
	}
	if opened != 2*calls || notOpened != 0 {
		t.Errorf("the sealers opened %v states and did not open %v, want %d and none", opened, notOpened, 2*calls)
	}
}

func TestAnEdgeWithOtherKeysRefusesTheState(t *testing.T) {
	handlers := examples(t)
	shared := deployment.Edge{Sealer: deployment.Sealer{}.Start(t), Handlers: handlers}.Start(t)
	other := deployment.Edge{Handlers: handlers}.Start(t)

	reply, err := newClient(t, shared.MCP()).CallTool(t.Context(), askTwice, map[string]any{}, nil, "")
	asked := result(t, reply, err, "input_required")
	answers := map[string]any{"step1": client.Accept(map[string]any{"name": "Ada"})}

	reply, err = newClient(t, other.MCP()).CallTool(t.Context(), askTwice, map[string]any{}, answers, asked.RequestState)
	refused := failure(t, reply, err, http.StatusOK, codeInvalidParams)
	if refused.Message != invalidState || refused.Data != nil {
		t.Errorf("the refusal is %q with data %q, want %q and none", refused.Message, refused.Data, invalidState)
	}
	if got := other.Metrics(t).Sum("countersign_open_total", "result=refused", "reason=unknown_key"); got != 1 {
		t.Errorf("the other edge counted %v refusals for an unknown key, want 1", got)
	}

	// Where the keys are known the same request goes on.
	reply, err = newClient(t, shared.MCP()).CallTool(t.Context(), askTwice, map[string]any{}, answers, asked.RequestState)
	result(t, reply, err, "input_required")
}
