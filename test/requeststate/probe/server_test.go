package probe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-mcp/countersign/services/mcpedge/canon"
)

// defect is something that a server gets wrong.
type defect string

// fakeServer is a small MCP server that keeps what it must remember in a request
// state of its own format. It is right in everything but its defect.
type fakeServer struct {
	defect defect

	lock     sync.Mutex
	ahead    time.Duration
	question int
	retired  bool
	used     map[string]bool
}

// fakeState is what its request state says.
type fakeState struct {
	Deployment   string    `json:"deployment"`
	Key          string    `json:"key"`
	Issuer       string    `json:"issuer"`
	Subject      string    `json:"subject"`
	Method       string    `json:"method"`
	Target       string    `json:"target"`
	Params       string    `json:"params"`
	Question     string    `json:"question"`
	Expires      time.Time `json:"expires"`
	ChainExpires time.Time `json:"chainExpires"`
	ID           int64     `json:"id"`
}

func startFakeServer(t *testing.T, d defect) *Target {
	t.Helper()
	fake := &fakeServer{defect: d, used: map[string]bool{}}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	at := func(path string) *Endpoint {
		return &Endpoint{URL: server.URL + path, Headers: map[string]string{"Subject": "ada"}}
	}
	const arguments = `{"amount":1,"note":"x"}`
	once := false
	return &Target{
		Endpoint:         *at("/mcp"),
		Samples:          100,
		Request:          Request{Tool: "ask", Arguments: arguments},
		NumberArgument:   "amount",
		OtherArguments:   `{"amount":2}`,
		OtherTarget:      &Request{Tool: "ask_too", Arguments: arguments},
		OtherMethod:      &Request{Prompt: "ask", Arguments: arguments},
		OtherPrincipal:   &Endpoint{Headers: map[string]string{"Subject": "grace"}},
		OtherIssuer:      at("/other-issuer"),
		OtherDeployment:  at("/other-deployment"),
		UnknownKey:       at("/unknown-key"),
		PreparedKey:      at("/prepared-key"),
		Expiry:           &Lapse{Action: &Action{Post: server.URL + "/advance"}, Within: 100 * time.Millisecond},
		ChainExpiry:      &Lapse{Endpoint: *at("/short-chain"), Action: &Action{Post: server.URL + "/advance"}, Within: 100 * time.Millisecond},
		ChangingQuestion: &ChangingQuestion{Request: Request{Tool: "ask"}, Change: &Action{Post: server.URL + "/change"}},
		Retire:           &Lapse{Action: &Action{Post: server.URL + "/retire"}, Within: 100 * time.Millisecond},
		OnceOnly:         &once,
	}
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.lock.Lock()
	defer f.lock.Unlock()
	switch r.URL.Path {
	case "/advance":
		f.ahead += time.Hour
	case "/change":
		f.question++
	case "/retire":
		f.retired = true
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,%s}`, f.answer(r, body))
	}
}

// fakeParams are the params of a request.
type fakeParams struct {
	Name           string          `json:"name"`
	Arguments      json.RawMessage `json:"arguments"`
	InputResponses json.RawMessage `json:"inputResponses"`
	RequestState   json.RawMessage `json:"requestState"`
}

const (
	fakeRefusal = `"error":{"code":-32602,"message":"no"}`
	fakeResult  = `"result":{"resultType":"complete","content":[]}`
)

func (f *fakeServer) answer(r *http.Request, body []byte) string {
	var message struct {
		Method string     `json:"method"`
		Params fakeParams `json:"params"`
	}
	_, duplicate := canon.Digest(body)
	if duplicate != nil && f.defect != "takes the last of two names" || json.Unmarshal(body, &message) != nil {
		return `"error":{"code":-32700,"message":"not JSON"}`
	}
	expected := f.expected(r, message.Method, message.Params)
	switch raw := string(message.Params.RequestState); {
	case raw == "null" && f.defect == "takes null for a state":
		return fakeRefusal
	case raw == "" || raw == "null":
		return f.ask(expected)
	default:
		problem := f.check(raw, expected)
		switch {
		case problem == "" && message.Params.InputResponses != nil:
			return fakeResult
		case problem == "question", f.defect == "asks again instead of refusing":
			return f.ask(expected)
		case f.defect == "says why":
			return `"error":{"code":-32602,"message":` + quote(problem) + `}`
		default:
			return fakeRefusal
		}
	}
}

// expected is what a request state must say to be good for a request.
func (f *fakeServer) expected(r *http.Request, method string, params fakeParams) fakeState {
	now := time.Now().Add(f.ahead)
	state := fakeState{
		Deployment: "one", Key: "one", Issuer: "one", Subject: r.Header.Get("Subject"),
		Method: method, Target: params.Name, Params: f.digest(params.Arguments), Question: strconv.Itoa(f.question),
		Expires: now.Add(time.Minute), ChainExpires: now.Add(2 * time.Hour), ID: now.UnixNano(),
	}
	switch r.URL.Path {
	case "/other-issuer":
		state.Issuer = "two"
	case "/other-deployment":
		state.Deployment = "two"
	case "/unknown-key":
		state.Key = "unknown"
	case "/prepared-key":
		state.Key = "two"
	case "/short-chain":
		state.Expires, state.ChainExpires = now.Add(24*time.Hour), now.Add(time.Minute)
	}
	return state
}

func (f *fakeServer) digest(arguments json.RawMessage) string {
	if f.defect == "binds the text" || len(arguments) == 0 {
		return string(arguments)
	}
	if f.defect == "reads doubles" {
		arguments = throughDoubles(arguments)
	}
	digest, err := canon.Digest(arguments)
	if err != nil {
		return string(arguments)
	}
	return hex.EncodeToString(digest[:])
}

// throughDoubles is JSON as a parser leaves it that knows no other numbers.
func throughDoubles(text json.RawMessage) json.RawMessage {
	var value any
	err := json.Unmarshal(text, &value)
	if err == nil {
		text, err = json.Marshal(value)
	}
	if err != nil {
		panic(err)
	}
	return text
}

func (f *fakeServer) ask(state fakeState) string {
	text, err := json.Marshal(state)
	if err != nil {
		panic(err)
	}
	// White space, so that the last character has bits that are not used.
	for (sha256.Size+len(text))%3 != 1 {
		text = append(text, ' ')
	}
	mac := hmac.New(sha256.New, []byte(state.Key))
	mac.Write(text)
	sealed := base64.RawURLEncoding.EncodeToString(append(mac.Sum(nil), text...))
	return `"result":{"resultType":"input_required","requestState":` + quote(sealed) + `,"inputRequests":{"go":{"method":"elicitation/create","params":{"mode":"form","message":` +
		quote("Question "+state.Question+"?") + `,"requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean"}}}}}}}`
}

// check says what is wrong with a request state; nothing when it is good.
func (f *fakeServer) check(raw string, expected fakeState) string {
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		if f.defect == "passes over what is not a string" {
			return ""
		}
		return "type"
	}
	if f.defect == "does not decode JSON" {
		text = strings.Trim(raw, `"`)
	}
	if len(text) > 10_000 {
		if f.defect == "does not look at what is too long" {
			return ""
		}
		return "size"
	}
	sealed, err := f.decode(text)
	if err != nil || len(sealed) < sha256.Size {
		return "encoding"
	}
	var state fakeState
	content := sealed[sha256.Size:]
	if json.Unmarshal(content, &state) != nil {
		return "content"
	}
	mac := hmac.New(sha256.New, []byte(state.Key))
	mac.Write(content)
	if f.defect != "does not verify" && !hmac.Equal(mac.Sum(nil), sealed[:sha256.Size]) {
		return "integrity"
	}
	return f.judge(state, expected)
}

func (f *fakeServer) decode(text string) ([]byte, error) {
	switch f.defect {
	case "skips white space":
		text = strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\v\f", r) {
				return -1
			}
			return r
		}, text)
	case "decodes padding":
		text = strings.TrimRight(text, "=")
	case "decodes both alphabets":
		text = strings.NewReplacer("+", "-", "/", "_").Replace(text)
	case "decodes percent":
		text = strings.NewReplacer("%0A", "").Replace(text)
	case "cuts at a dot":
		text, _, _ = strings.Cut(text, ".")
	case "decodes a data URL":
		text = strings.TrimPrefix(text, "data:;base64,")
	}
	if f.defect != "skips line breaks" && strings.ContainsAny(text, "\r\n") {
		return nil, base64.CorruptInputError(0)
	}
	if f.defect == "ignores unused bits" {
		return base64.RawURLEncoding.DecodeString(text)
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}

func (f *fakeServer) judge(state, expected fakeState) string {
	now := time.Now().Add(f.ahead)
	id := strconv.FormatInt(state.ID, 10)
	defer func() { f.used[id] = true }()
	for _, rule := range []struct {
		broken bool
		name   string
	}{
		{state.Deployment != expected.Deployment, "deployment"},
		{state.Key == "unknown", "unknown key"},
		{state.Key == "two" && f.defect == "ignores the prepared key", "prepared key"},
		{state.Key == "one" && f.retired, "retired key"},
		{now.After(state.Expires), "expiry"},
		{now.After(state.ChainExpires), "chain expiry"},
		{state.Issuer != expected.Issuer, "issuer"},
		{state.Subject != expected.Subject, "subject"},
		{state.Method != expected.Method, "method"},
		{state.Target != expected.Target, "target"},
		{state.Params != expected.Params, "params"},
		{f.used[id] && f.defect == "serves once", "once"},
		{state.Question != expected.Question, "question"},
	} {
		if rule.broken && f.defect != defect("ignores the "+rule.name) || rule.broken && rule.name == "prepared key" {
			return rule.name
		}
	}
	return ""
}
