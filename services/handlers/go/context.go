package handler

import (
	"context"
	"encoding/json"
	"fmt"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Context is one attempt of one request. It is a [context.Context] that is
// cancelled when the attempt ends: because an ask was carried away to the client,
// because the client is gone, or because time is up. Pass it to whatever the
// handler calls. It must not be used after the function has returned.
//
// Its methods may be called from several goroutines, but asks wait for each
// other: to ask several things in one round use [Context.AskAll].
type Context struct {
	context.Context //nolint:containedctx // it is one, with more methods

	attempt *attempt
}

// ChainID names the original request and is the same over all its attempts. Hand
// it to a payment API as the idempotency key.
func (c *Context) ChainID() string { return c.attempt.begin.GetChainId() }

// InvocationID names this attempt in logs.
func (c *Context) InvocationID() string { return c.attempt.begin.GetInvocationId() }

// Attempt is 1 for the first attempt of the chain and one more for each after.
// Do not let a question depend on it: the question would differ on every attempt.
func (c *Context) Attempt() int { return int(c.attempt.begin.GetAttempt()) }

// Principal is on whose behalf the request is made, as the edge established it.
func (c *Context) Principal() Principal {
	return principalOf(c.attempt.begin.GetPrincipal())
}

// Principal is on whose behalf a request is made.
type Principal struct {
	// Issuer vouches for the subject: an OpenID issuer URL, or the name of the
	// edge's method (`anonymous`, `trusted-header`).
	Issuer string
	// Subject is who it is within the issuer; empty for an anonymous caller.
	Subject string
}

func principalOf(message *handlerv1.Principal) Principal {
	return Principal{Issuer: message.GetIssuer(), Subject: message.GetSubject()}
}

// Client is the client program in its own words. Use it for display and logs
// only: a client can claim to be anything.
func (c *Context) Client() ClientInfo {
	info := c.attempt.begin.GetClientInfo()
	return ClientInfo{Name: info.GetName(), Version: info.GetVersion(), Title: info.GetTitle()}
}

// ClientInfo describes a client program.
type ClientInfo struct {
	Name    string
	Version string
	Title   string
}

// Capabilities is what the client declared it can do for this request. An ask
// that needs more ends the request with an error, so look here first where a
// handler can do without the answer.
func (c *Context) Capabilities() Capabilities {
	declared := c.attempt.begin.GetClientCapabilities()
	return Capabilities{
		ElicitForm:    declared.GetElicitationForm(),
		ElicitURL:     declared.GetElicitationUrl(),
		Sample:        declared.GetSampling(),
		SampleTools:   declared.GetSamplingTools(),
		SampleContext: declared.GetSamplingContext(),
		Roots:         declared.GetRoots(),
		Raw:           declared.GetRaw(),
	}
}

// Capabilities is what a client can do.
type Capabilities struct {
	// ElicitForm: it can show a form, which [Context.Confirm] and [Elicit] need.
	ElicitForm bool
	// ElicitURL: it can send the user to a URL.
	ElicitURL bool
	// Sample: it can sample its model.
	Sample bool
	// SampleTools: it can sample with tools.
	SampleTools bool
	// SampleContext: it can sample with context from servers.
	SampleContext bool
	// Roots: it can list its roots.
	Roots bool
	// Raw is all that the client declared: a JSON object.
	Raw json.RawMessage
}

// Meta is the request's `_meta` without the members that MCP itself defines: a
// JSON object, or empty.
func (c *Context) Meta() json.RawMessage { return c.attempt.begin.GetMeta() }

// Progress reports that done of total is done, in any unit; a total of 0 is
// unknown. done must grow with every call, and calls that do not grow it are
// dropped. It costs nothing where the client did not ask for progress.
func (c *Context) Progress(done, total float64, message string) error {
	if err := c.attempt.over(); err != nil {
		return err
	}
	if !c.attempt.begin.GetWantsProgress() {
		return nil
	}
	progress := &handlerv1.Progress{Progress: done, Message: message}
	if total > 0 {
		progress.Total = &total
	}
	return c.attempt.send(&handlerv1.InvokeResponse{
		Message: &handlerv1.InvokeResponse_Progress{Progress: progress},
	})
}

// Level is how serious a log message is (RFC 5424, section 6.2.1).
type Level handlerv1.LogLevel

// The levels, from least to most serious.
const (
	LevelDebug     = Level(handlerv1.LogLevel_LOG_LEVEL_DEBUG)
	LevelInfo      = Level(handlerv1.LogLevel_LOG_LEVEL_INFO)
	LevelNotice    = Level(handlerv1.LogLevel_LOG_LEVEL_NOTICE)
	LevelWarning   = Level(handlerv1.LogLevel_LOG_LEVEL_WARNING)
	LevelError     = Level(handlerv1.LogLevel_LOG_LEVEL_ERROR)
	LevelCritical  = Level(handlerv1.LogLevel_LOG_LEVEL_CRITICAL)
	LevelAlert     = Level(handlerv1.LogLevel_LOG_LEVEL_ALERT)
	LevelEmergency = Level(handlerv1.LogLevel_LOG_LEVEL_EMERGENCY)
)

// Log sends a log message to the client: value as JSON, from the part of the
// handler named logger, which may be empty. It costs nothing where the client did
// not ask for logs of this level. The client reads it: never log a secret or
// another person's data here. For the service's own log use log/slog.
func (c *Context) Log(level Level, logger string, value any) error {
	if err := c.attempt.over(); err != nil {
		return err
	}
	wanted := c.attempt.begin.GetLogLevel()
	if wanted == handlerv1.LogLevel_LOG_LEVEL_UNSPECIFIED || handlerv1.LogLevel(level) < wanted {
		return nil
	}
	data, err := encodeJSON(value)
	if err != nil {
		return c.attempt.misused(fmt.Errorf("encode a log message: %w", err))
	}
	return c.attempt.send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Log{
		Log: &handlerv1.Log{Level: handlerv1.LogLevel(level), Logger: logger, Data: data},
	}})
}
