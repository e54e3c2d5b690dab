package question

import (
	"strings"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Capabilities is what a client must have declared to be asked something.
type Capabilities struct {
	ElicitationForm, ElicitationURL, Sampling, SamplingTools, SamplingContext, Roots bool
}

// And returns what either needs.
func (c Capabilities) And(other Capabilities) Capabilities {
	return Capabilities{
		ElicitationForm: c.ElicitationForm || other.ElicitationForm,
		ElicitationURL:  c.ElicitationURL || other.ElicitationURL,
		Sampling:        c.Sampling || other.Sampling,
		SamplingTools:   c.SamplingTools || other.SamplingTools,
		SamplingContext: c.SamplingContext || other.SamplingContext,
		Roots:           c.Roots || other.Roots,
	}
}

// Missing returns what is needed and was not declared.
func (c Capabilities) Missing(declared *handlerv1.ClientCapabilities) Capabilities {
	return Capabilities{
		ElicitationForm: c.ElicitationForm && !declared.GetElicitationForm(),
		ElicitationURL:  c.ElicitationURL && !declared.GetElicitationUrl(),
		Sampling:        c.Sampling && !declared.GetSampling(),
		SamplingTools:   c.SamplingTools && !declared.GetSamplingTools(),
		SamplingContext: c.SamplingContext && !declared.GetSamplingContext(),
		Roots:           c.Roots && !declared.GetRoots(),
	}
}

// JSON returns the capabilities as a ClientCapabilities object.
func (c Capabilities) JSON() []byte {
	var parts []string
	if c.ElicitationForm || c.ElicitationURL {
		parts = append(parts, `"elicitation":`+flags("form", c.ElicitationForm, "url", c.ElicitationURL))
	}
	if c.Roots {
		parts = append(parts, `"roots":{}`)
	}
	if c.Sampling || c.SamplingTools || c.SamplingContext {
		parts = append(parts, `"sampling":`+flags("context", c.SamplingContext, "tools", c.SamplingTools))
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

func flags(first string, hasFirst bool, second string, hasSecond bool) string {
	var parts []string
	if hasFirst {
		parts = append(parts, `"`+first+`":{}`)
	}
	if hasSecond {
		parts = append(parts, `"`+second+`":{}`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}
