package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Request is a request that asks: a tool to call, a prompt to get or a resource to
// read.
type Request struct {
	// Tool is the name of a tool. Its input schema must have no `x-mcp-header`.
	Tool string `yaml:"tool"`
	// Prompt is the name of a prompt.
	Prompt string `yaml:"prompt"`
	// Resource is the URI of a resource.
	Resource string `yaml:"resource"`
	// Arguments are the arguments, the text of a JSON object; none for a resource.
	Arguments string `yaml:"arguments"`
	// Answers are the `inputResponses` that complete the request, the text of a JSON
	// object. When empty, every form is accepted with values that fit its schema.
	Answers string `yaml:"answers"`
}

// named is how many things a request names.
func (r Request) named() int {
	named := 0
	for _, name := range []string{r.Tool, r.Prompt, r.Resource} {
		if name != "" {
			named++
		}
	}
	return named
}

func (r Request) method() string {
	switch {
	case r.Tool != "":
		return "tools/call"
	case r.Prompt != "":
		return "prompts/get"
	default:
		return "resources/read"
	}
}

// name is what the method is applied to.
func (r Request) name() string { return r.Tool + r.Prompt + r.Resource }

// members are the members of the params that say what is requested, as text.
func (r Request) members() []string {
	name := "name"
	if r.Resource != "" {
		name = "uri"
	}
	members := []string{quote(name) + ":" + quote(r.name())}
	if r.Arguments != "" {
		members = append(members, `"arguments":`+r.Arguments)
	}
	return members
}

// with returns the request with other arguments.
func (r Request) with(arguments string) Request {
	r.Arguments = arguments
	return r
}

// argument is one member of an object as text.
type argument struct{ name, value string }

// arguments are the members of the request's arguments in their order.
func (r Request) arguments() ([]argument, error) {
	if r.Arguments == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(r.Arguments))
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	var members []argument
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		members = append(members, argument{fmt.Sprint(name), string(value)})
	}
	return members, nil
}

// withNumber returns the request with another value of one argument.
func (r Request) withNumber(name, value string) (Request, error) {
	members, err := r.arguments()
	if err != nil {
		return r, err
	}
	i := slices.IndexFunc(members, func(member argument) bool { return member.name == name })
	if i < 0 {
		members = append(members, argument{name, value})
	} else {
		members[i].value = value
	}
	return r.with(object(members)), nil
}

// object writes an object.
func object(members []argument) string {
	texts := make([]string, len(members))
	for i, member := range members {
		texts[i] = quote(member.name) + ":" + member.value
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// quote writes a JSON string.
func quote(text string) string {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(fmt.Sprintf("probe: encode a string: %v", err)) // a string can always be encoded
	}
	return strings.TrimSuffix(quoted.String(), "\n")
}

// escape writes a JSON string with every character as an escape.
func escape(text string) string {
	var escaped strings.Builder
	for _, character := range []byte(text) {
		fmt.Fprintf(&escaped, `\u%04x`, character)
	}
	return `"` + escaped.String() + `"`
}

// answersTo answers questions by key as a user who agrees to everything, and
// returns the text of the `inputResponses`.
func answersTo(questions map[string]json.RawMessage) (string, error) {
	var members []argument
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		answer, err := answerTo(questions[key])
		if err != nil {
			return "", fmt.Errorf("answer the question %q: %w", key, err)
		}
		members = append(members, argument{key, answer})
	}
	return object(members), nil
}

func answerTo(text json.RawMessage) (string, error) {
	var question struct {
		Method string `json:"method"`
		Params struct {
			Mode            string `json:"mode"`
			RequestedSchema struct {
				Properties map[string]field `json:"properties"`
			} `json:"requestedSchema"`
		} `json:"params"`
	}
	if err := json.Unmarshal(text, &question); err != nil {
		return "", fmt.Errorf("read the question: %w", err)
	}
	switch question.Method {
	case "elicitation/create":
		if question.Params.Mode == "url" {
			return `{"action":"accept"}`, nil
		}
		var members []argument
		for _, name := range slices.Sorted(maps.Keys(question.Params.RequestedSchema.Properties)) {
			members = append(members, argument{name, question.Params.RequestedSchema.Properties[name].value()})
		}
		return `{"action":"accept","content":` + object(members) + `}`, nil
	case "sampling/createMessage":
		return `{"role":"assistant","content":{"type":"text","text":"yes"},"model":"none","stopReason":"endTurn"}`, nil
	case "roots/list":
		return `{"roots":[]}`, nil
	default:
		return "", fmt.Errorf("the method %q is not one that a server may ask with", question.Method)
	}
}

// field is an input of a form.
type field struct {
	Type      string            `json:"type"`
	Format    string            `json:"format"`
	Default   json.RawMessage   `json:"default"`
	Enum      []json.RawMessage `json:"enum"`
	OneOf     []choice          `json:"oneOf"`
	Minimum   json.RawMessage   `json:"minimum"`
	MinLength int               `json:"minLength"`
}

type choice struct {
	Const json.RawMessage `json:"const"`
}

// value is a value that fits the field, as far as a small set of rules finds one.
func (f field) value() string {
	switch {
	case f.Default != nil:
		return string(f.Default)
	case len(f.Enum) > 0:
		return string(f.Enum[0])
	case len(f.OneOf) > 0:
		return string(f.OneOf[0].Const)
	case f.Minimum != nil:
		return string(f.Minimum)
	}
	switch f.Type {
	case "boolean":
		return "true"
	case "number", "integer":
		return "1"
	case "array":
		return "[]"
	}
	switch f.Format {
	case "email":
		return `"ada@example.com"`
	case "uri":
		return `"https://example.com/"`
	case "date":
		return `"2026-07-28"`
	case "date-time":
		return `"2026-07-28T00:00:00Z"`
	default:
		return quote(strings.Repeat("x", max(f.MinLength, 1)))
	}
}
