package handler

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// CompletionRequest is what a user has typed so far.
type CompletionRequest struct {
	// Value is the text of the argument so far; may be empty.
	Value string
	// Arguments are the other arguments that are already known, by name.
	Arguments map[string]string
	// Principal is who is asking.
	Principal Principal
}

// Suggestions are values for an argument, best first.
type Suggestions struct {
	// Values are the suggestions. MCP allows 100; the edge cuts what is beyond.
	Values []string
	// Total is how many there are in all; nil when unknown.
	Total *uint32
	// HasMore says that there are more than those returned.
	HasMore bool
}

// CompleteFunc suggests values for one argument.
type CompleteFunc func(ctx context.Context, request CompletionRequest) (Suggestions, error)

// completers are the completions of one entry by argument.
type completers map[string]CompleteFunc

type completionOption struct {
	argument string
	complete CompleteFunc
}

// Complete suggests values for one argument of a prompt or one variable of a
// resource template, while a user types it.
func Complete(argument string, complete CompleteFunc) CompletionOption {
	return completionOption{argument, complete}
}

func (o completionOption) applyToPrompt(entry *promptEntry) error {
	return o.addTo(&entry.completers)
}

func (o completionOption) applyToTemplate(entry *templateEntry) error {
	return o.addTo(&entry.completers)
}

func (o completionOption) addTo(all *completers) error {
	if *all == nil {
		*all = make(completers)
	}
	if _, taken := (*all)[o.argument]; taken {
		return fmt.Errorf("the argument %q has two completions", o.argument)
	}
	(*all)[o.argument] = o.complete
	return nil
}

// Complete implements the contract's Complete. An argument without a completion
// has no suggestions.
func (s *Server) Complete(
	ctx context.Context, request *handlerv1.CompleteRequest,
) (response *handlerv1.CompleteResponse, err error) {
	defer func() {
		if value := recover(); value != nil {
			logPanic(s.logger.With("target", "completion"), value)
			response, err = nil, status.Error(codes.Internal, "the handler failed")
		}
	}()
	all, found := s.completersOf(request)
	if !found {
		return nil, status.Error(codes.NotFound, "there is no such prompt or resource template")
	}
	complete, found := all[request.GetArgumentName()]
	if !found {
		return new(handlerv1.CompleteResponse), nil
	}
	suggestions, err := complete(ctx, CompletionRequest{
		Value:     request.GetArgumentValue(),
		Arguments: request.GetContextArguments(),
		Principal: principalOf(request.GetPrincipal()),
	})
	if err != nil {
		s.logger.Error("a completion failed", "argument", request.GetArgumentName(), "error", err)
		return nil, status.Error(codes.Internal, "the handler failed")
	}
	return &handlerv1.CompleteResponse{
		Values: suggestions.Values, Total: suggestions.Total, HasMore: suggestions.HasMore,
	}, nil
}

func (s *Server) completersOf(request *handlerv1.CompleteRequest) (completers, bool) {
	switch reference := request.GetReference().(type) {
	case *handlerv1.CompleteRequest_PromptName:
		if entry, found := s.prompts.Load(reference.PromptName); found {
			return entry.(*promptEntry).completers, true
		}
	case *handlerv1.CompleteRequest_UriTemplate:
		if entry, found := s.templates.Load(reference.UriTemplate); found {
			return entry.(*templateEntry).completers, true
		}
	}
	return nil, false
}
