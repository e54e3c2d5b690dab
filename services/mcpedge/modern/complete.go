package modern

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/attempt"
	"github.com/countersign-mcp/countersign/services/mcpedge/catalog"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

// completeTimeout bounds a call for suggestions: a user is typing.
const completeTimeout = 5 * time.Second

func (s *Server) complete(ctx context.Context, c *call, _ Sink) ([]byte, error) {
	request, entry, err := s.readCompletion(c)
	if err != nil {
		return nil, err
	}
	request.Principal = &handlerv1.Principal{Issuer: c.Principal.Issuer, Subject: c.Principal.Subject}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	response, err := entry.Handler.Client.Complete(ctx, request)
	if status.Code(err) == codes.Unimplemented {
		// A service without suggestions: there are none.
		return s.Renderer.Complete(&handlerv1.CompleteResponse{})
	}
	if err != nil {
		return nil, handlerFailure(entry, attempt.Failure(ctx, err))
	}
	return s.Renderer.Complete(response)
}

// readCompletion reads the params of `completion/complete` and finds the prompt or
// template they are about.
func (s *Server) readCompletion(c *call) (*handlerv1.CompleteRequest, *catalog.Entry, error) {
	ref, err := stringMembers("ref", c.ref)
	if err != nil {
		return nil, nil, err
	}
	argument, err := stringMembers("argument", c.argument)
	if err != nil {
		return nil, nil, err
	}
	if argument["name"] == "" {
		return nil, nil, failure.Newf(failure.InvalidParams, "params.argument.name is missing")
	}
	request := &handlerv1.CompleteRequest{ArgumentName: argument["name"], ArgumentValue: argument["value"]}
	if c.context != nil {
		if request.ContextArguments, err = contextArguments(c.context); err != nil {
			return nil, nil, err
		}
	}
	snapshot, err := s.snapshot()
	if err != nil {
		return nil, nil, err
	}
	switch ref["type"] {
	case "ref/prompt":
		prompt := snapshot.Prompt(ref["name"])
		if prompt == nil {
			return nil, nil, unknown(snapshot, ref["name"], failure.Newf(failure.UnknownTarget, "unknown prompt: %q", ref["name"]))
		}
		request.Reference = &handlerv1.CompleteRequest_PromptName{PromptName: prompt.Own}
		return request, &prompt.Entry, nil
	case "ref/resource":
		template := snapshot.Template(ref["uri"])
		if template == nil {
			return nil, nil, unknown(snapshot, "", failure.Newf(failure.UnknownTarget, "unknown resource template: %q", ref["uri"]))
		}
		request.Reference = &handlerv1.CompleteRequest_UriTemplate{UriTemplate: template.Name}
		return request, &template.Entry, nil
	default:
		return nil, nil, failure.Newf(failure.InvalidParams, "params.ref.type is not \"ref/prompt\" or \"ref/resource\"")
	}
}

// contextArguments reads the arguments that are already known.
func contextArguments(text []byte) (map[string]string, error) {
	if text[0] != '{' {
		return nil, failure.Newf(failure.InvalidParams, "params.context is not an object")
	}
	var arguments []byte
	err := jsonrpc.EachMember(text, func(name string, value []byte) error {
		if name == "arguments" {
			arguments = value
		}
		return nil
	})
	if err != nil {
		return nil, failure.New(failure.Internal, err)
	}
	return stringMembers("context.arguments", arguments)
}
