package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccy/go-yaml"
)

// Target describes the server to test and what it offers for it. Only a URL and a
// request that asks are needed; whatever else is missing makes the cases that need
// it not applicable.
type Target struct {
	// Endpoint is the endpoint under test, as the principal that most cases use.
	Endpoint `yaml:",inline"`
	// Metrics is the URL of Countersign's metrics, at the operations listener of the
	// edge under test. With it the reason of every refusal is checked as well; nobody
	// else may use the edge meanwhile.
	Metrics string `yaml:"metrics"`
	// Request is a request that asks something before it completes. It must be safe
	// to repeat some hundred times.
	Request Request `yaml:"request"`
	// Refusal is how the server refuses a request state.
	Refusal Refusal `yaml:"refusal"`

	// NumberArgument names a member of the request's arguments that takes any number.
	NumberArgument string `yaml:"numberArgument"`
	// OtherArguments are arguments that are valid too and mean something else: the
	// text of a JSON object.
	OtherArguments string `yaml:"otherArguments"`
	// OtherTarget is a request of the same method for another tool, prompt or
	// resource.
	OtherTarget *Request `yaml:"otherTarget"`
	// OtherMethod is a request of another method, best for the same name.
	OtherMethod *Request `yaml:"otherMethod"`
	// OtherPrincipal is the endpoint as another principal.
	OtherPrincipal *Endpoint `yaml:"otherPrincipal"`
	// OtherIssuer is an endpoint of the same deployment where the same subject is
	// vouched for by another issuer.
	OtherIssuer *Endpoint `yaml:"otherIssuer"`
	// OtherDeployment is an endpoint of a deployment that shares nothing but keys, if
	// even those.
	OtherDeployment *Endpoint `yaml:"otherDeployment"`
	// UnknownKey is an endpoint that differs only in its keys, which the endpoint
	// under test does not know.
	UnknownKey *Endpoint `yaml:"unknownKey"`
	// PreparedKey is an endpoint that already seals with a key that the endpoint
	// under test knows and does not seal with yet.
	PreparedKey *Endpoint `yaml:"preparedKey"`
	// Expiry is how a request state gets past its lifetime.
	Expiry *Lapse `yaml:"expiry"`
	// ChainExpiry is how a chain gets past its lifetime while the request state is
	// still within its own.
	ChainExpiry *Lapse `yaml:"chainExpiry"`
	// ChangingQuestion is a request whose question can be changed.
	ChangingQuestion *ChangingQuestion `yaml:"changingQuestion"`
	// Retire retires the key that seals, so that what it sealed is refused. It is the
	// last thing that is done.
	Retire *Lapse `yaml:"retire"`
	// OnceOnly says whether a request state is good for one retry only, or may be
	// presented again after the request has completed.
	OnceOnly *bool `yaml:"onceOnly"`

	// Samples is about how many changed characters are tried; 500 when zero.
	Samples int `yaml:"samples"`
	// OversizeBytes is how long a request state must be to be too long; 65,536 when
	// zero.
	OversizeBytes int `yaml:"oversizeBytes"`
	// Seed makes the choice of samples repeatable.
	Seed uint64 `yaml:"seed"`
}

// Endpoint is where requests are sent and as whom.
type Endpoint struct {
	// URL is the MCP endpoint; that of the target when empty.
	URL string `yaml:"url"`
	// Headers are sent with every request: whatever authenticates the principal.
	Headers map[string]string `yaml:"headers"`
}

// Refusal is how a server refuses a request state.
type Refusal struct {
	// As is `error`, a JSON-RPC error, the default; or `toolFailure`, a result with
	// isError.
	As string `yaml:"as"`
	// Code is the code of the error; any when zero.
	Code int `yaml:"code"`
	// Message is the message of the error; any when empty.
	Message string `yaml:"message"`
	// MayDiffer allows refusals that can be told apart. Otherwise the HTTP status and
	// the text of the error or result must be the same for all.
	MayDiffer bool `yaml:"mayDiffer"`
}

// The values of Refusal.As.
const (
	asError       = "error"
	asToolFailure = "toolFailure"
)

// Lapse is something that is no longer good after a while.
type Lapse struct {
	// Endpoint is where the request state comes from; the endpoint under test when
	// empty. It may be one of the same deployment with shorter lifetimes.
	Endpoint `yaml:",inline"`
	// Action brings it about; nothing but time when absent.
	Action *Action `yaml:"action"`
	// Within is how long it may take until the endpoint under test refuses; 30s when
	// zero. The request state is presented again and again until then.
	Within time.Duration `yaml:"within"`
}

// ChangingQuestion is a request whose question can be changed.
type ChangingQuestion struct {
	// Request asks.
	Request Request `yaml:"request"`
	// Change makes it ask something else under the same key; absent where each
	// request asks something else by itself.
	Change *Action `yaml:"change"`
}

// Action is something to do to the target: exactly one of the fields.
type Action struct {
	// Command is a program with its arguments.
	Command []string `yaml:"command"`
	// Post is a URL that is sent a POST request without a body.
	Post string `yaml:"post"`
}

// Load reads a target's description from a YAML file. Unknown fields are refused.
func Load(path string) (*Target, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the target: %w", err)
	}
	target := new(Target)
	if err := yaml.UnmarshalWithOptions(text, target, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read the target %q: %w", path, err)
	}
	return target, nil
}

// Check reports everything that is wrong with the description, and fills in what
// was left out.
func (t *Target) Check() error {
	var problems []error
	demand := func(met bool, problem string) {
		if !met {
			problems = append(problems, errors.New(problem))
		}
	}
	demand(t.URL != "", "url is missing")
	demand(t.Refusal.As == "" || t.Refusal.As == asError || t.Refusal.As == asToolFailure, "refusal.as: must be error or toolFailure")
	demand(t.OtherArguments == "" || isObject(t.OtherArguments), "otherArguments: must be the text of a JSON object")
	requests := map[string]*Request{"request": &t.Request, "otherTarget": t.OtherTarget, "otherMethod": t.OtherMethod}
	if t.ChangingQuestion != nil {
		requests["changingQuestion.request"] = &t.ChangingQuestion.Request
	}
	for name, request := range requests {
		if request != nil {
			demand(request.named() == 1, name+": name one tool, prompt or resource")
			demand(request.Arguments == "" || isObject(request.Arguments), name+".arguments: must be the text of a JSON object")
			demand(request.Answers == "" || isObject(request.Answers), name+".answers: must be the text of a JSON object")
		}
	}
	if t.OtherTarget != nil {
		demand(t.OtherTarget.method() == t.Request.method(), "otherTarget: must be of the method of request")
	}
	if t.OtherMethod != nil {
		demand(t.OtherMethod.method() != t.Request.method(), "otherMethod: must not be of the method of request")
	}
	t.fill()
	return errors.Join(problems...)
}

// fill sets what was left out.
func (t *Target) fill() {
	if t.Refusal.As == "" {
		t.Refusal.As = asError
	}
	if t.Samples == 0 {
		t.Samples = 500
	}
	if t.OversizeBytes == 0 {
		t.OversizeBytes = 64 << 10
	}
	for _, endpoint := range []*Endpoint{t.OtherPrincipal, t.OtherIssuer, t.OtherDeployment, t.UnknownKey, t.PreparedKey} {
		if endpoint != nil && endpoint.URL == "" {
			endpoint.URL = t.URL
		}
	}
	for _, lapse := range []*Lapse{t.Expiry, t.ChainExpiry, t.Retire} {
		if lapse == nil {
			continue
		}
		if lapse.URL == "" {
			lapse.Endpoint = t.Endpoint
		}
		if lapse.Within == 0 {
			lapse.Within = 30 * time.Second
		}
	}
}

// isObject says whether a text is a JSON object.
func isObject(text string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &members) == nil && members != nil
}
