package handler_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	handler "github.com/countersign-mcp/countersign/services/handlers/go"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

type idVariables struct {
	ID int `json:"id"`
}

// fullServer has one entry of each kind.
func fullServer() *handler.Server {
	server := serverWith(func(*handler.Context, none) (string, error) { return "", nil })()
	handler.Prompt(server, "prompt", func(_ *handler.Context, in struct {
		Count int    `json:"count" title:"Count" jsonschema:"How many."`
		Note  string `json:"note,omitempty"`
	},
	) ([]handler.Message, error) {
		return []handler.Message{
			handler.User(handler.Text(in.Note)), handler.Assistant(handler.Text("Yes.")),
		}, nil
	}, handler.Description("A prompt."), handler.Complete("count",
		func(_ context.Context, request handler.CompletionRequest) (handler.Suggestions, error) {
			switch request.Value {
			case "fail":
				return handler.Suggestions{}, errors.New("no")
			case "panic":
				panic("no")
			}
			return handler.Suggestions{
				Values: []string{request.Value + "0", request.Arguments["note"], request.Principal.Subject}, HasMore: true,
			}, nil
		}))
	handler.Resource(server, "test://one", "one", func(*handler.Context) (*handler.ReadResult, error) {
		return &handler.ReadResult{
			Contents: []handler.Contents{handler.BlobContents("x/y", []byte{1}), handler.TextContents("", "t").At("test://other")},
			Cache:    &handler.CacheHint{TimeToLive: 1500e6, Public: true},
		}, nil
	}, handler.MIMEType("x/y"), handler.Annotated(handler.Annotations{}))
	handler.Resource(server, "test://empty", "empty", func(*handler.Context) (*handler.ReadResult, error) {
		return handler.Read(), nil
	})
	handler.ResourceTemplate(server, "test://n/{id}", "n", func(_ *handler.Context, variables idVariables) (*handler.ReadResult, error) {
		if variables.ID == 0 {
			return nil, handler.NotFound()
		}
		return handler.Read(handler.TextContents("text/plain", "n")), nil
	})
	return server
}

func TestPromptsBindTheirArguments(t *testing.T) {
	outcome := handlertest.Run(t, fullServer, handlertest.GetPrompt("prompt", map[string]string{"count": "3", "note": "hi"}), nil)
	messages := outcome.Finish.GetGetPrompt().GetMessages()
	if len(messages) != 2 || outcome.Text() != "hi" || messages[1].GetRole() != handlerv1.Role_ROLE_ASSISTANT {
		t.Errorf("got %v", outcome.Finish)
	}
	wrong := handlertest.Run(t, fullServer, handlertest.GetPrompt("prompt", map[string]string{"count": "three"}), nil)
	if got := wrong.Finish.GetError(); got.GetMessage() != `the argument "count" is not an integer of 64 bits` {
		t.Errorf("got %v", got)
	}
	arguments := describe(t, fullServer()).GetPrompts()[0].GetArguments()
	if len(arguments) != 2 || !arguments[0].GetRequired() || arguments[1].GetRequired() ||
		arguments[0].GetTitle() != "Count" || arguments[0].GetDescription() != "How many." {
		t.Errorf("the arguments are %v", arguments)
	}
}

func TestResourcesAreReadByURIAndByTemplate(t *testing.T) {
	one := handlertest.Run(t, fullServer, handlertest.ReadResource("test://one"), nil).Finish.GetReadResource()
	if one.GetContents()[0].GetUri() != "test://one" || one.GetContents()[1].GetUri() != "test://other" ||
		one.GetCache().GetTtlMs() != 1500 || one.GetCache().GetScope() != handlerv1.CacheScope_CACHE_SCOPE_PUBLIC {
		t.Errorf("got %v", one)
	}
	for uri, want := range map[string]handlerv1.ErrorKind{
		"test://n/7":   handlerv1.ErrorKind_ERROR_KIND_UNSPECIFIED,
		"test://n/0":   handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND,
		"test://n/x":   handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND,
		"other://else": handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND,
	} {
		outcome := handlertest.Run(t, fullServer, handlertest.ReadTemplated(uri, "test://n/{id}"), nil)
		if got := outcome.Finish.GetError().GetKind(); got != want {
			t.Errorf("%s: got %v", uri, outcome.Finish)
		}
	}
	empty := handlertest.Run(t, fullServer, handlertest.ReadResource("test://empty"), nil, handlertest.AllowFaults()).Finish.GetError()
	if empty.GetKind() != handlerv1.ErrorKind_ERROR_KIND_INTERNAL || empty.GetMessage() != "the handler failed" {
		t.Errorf("a resource without contents is %v", empty)
	}
}

func TestCompletionsAreThoseOfTheArgument(t *testing.T) {
	client := handlertest.Serve(t, fullServer())
	complete := func(request *handlerv1.CompleteRequest) (*handlerv1.CompleteResponse, error) {
		request.Reference = &handlerv1.CompleteRequest_PromptName{PromptName: "prompt"}
		return client.Complete(t.Context(), request)
	}
	response, err := complete(&handlerv1.CompleteRequest{
		ArgumentName: "count", ArgumentValue: "1", ContextArguments: map[string]string{"note": "n"},
		Principal: &handlerv1.Principal{Subject: "ada"},
	})
	if err != nil || !slices.Equal(response.GetValues(), []string{"10", "n", "ada"}) || !response.GetHasMore() {
		t.Errorf("got %v, %v", response, err)
	}
	if response, err := complete(&handlerv1.CompleteRequest{ArgumentName: "note"}); err != nil || len(response.GetValues()) != 0 {
		t.Errorf("an argument without completion: %v, %v", response, err)
	}
	for _, value := range []string{"fail", "panic"} {
		if _, err := complete(&handlerv1.CompleteRequest{ArgumentName: "count", ArgumentValue: value}); status.Code(err) != codes.Internal {
			t.Errorf("%s: got %v", value, err)
		}
	}
	if _, err := client.Complete(t.Context(), new(handlerv1.CompleteRequest)); status.Code(err) != codes.NotFound {
		t.Errorf("no reference: got %v", err)
	}
}

func TestTheRevisionIsAHashOfTheCatalog(t *testing.T) {
	one, two := describe(t, fullServer()), describe(t, fullServer())
	if one.GetRevision() == "" || one.GetRevision() != two.GetRevision() {
		t.Errorf("two replicas have the revisions %q and %q", one.GetRevision(), two.GetRevision())
	}
	changed := fullServer()
	changed.RemoveTool("tool")
	if other := describe(t, changed); other.GetRevision() == one.GetRevision() {
		t.Error("another catalog has the same revision")
	}
	hinted := describe(t, handler.NewServer("test", handler.WithInstructions("Do."), handler.WithCacheHint(handler.CacheHint{TimeToLive: 1e9})))
	if hinted.GetInstructions() != "Do." || hinted.GetCache().GetTtlMs() != 1000 ||
		hinted.GetCache().GetScope() != handlerv1.CacheScope_CACHE_SCOPE_PRIVATE {
		t.Errorf("the catalog is %v", hinted)
	}
}

func TestWatchTellsOfEveryChange(t *testing.T) {
	server := fullServer()
	client := handlertest.Serve(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.Watch(ctx, new(handlerv1.WatchRequest))
	if err != nil {
		t.Fatal(err)
	}
	next := func() *handlerv1.WatchResponse {
		response, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	revisions := []string{next().GetCatalogChanged().GetRevision()}
	for _, change := range []func(){
		func() { server.RemoveTool("tool") },
		func() { server.RemovePrompt("prompt") },
		func() { server.RemoveResource("test://empty") },
		func() { server.RemoveResourceTemplate("test://n/{id}") },
		func() {
			handler.Tool(server, "new", func(*handler.Context, none) (string, error) { return "", nil }, handler.Description("New."))
		},
	} {
		change()
		revision := next().GetCatalogChanged().GetRevision()
		if slices.Contains(revisions, revision) {
			t.Errorf("the revision %q comes again", revision)
		}
		revisions = append(revisions, revision)
	}
	response, err := client.Describe(t.Context(), new(handlerv1.DescribeRequest))
	if err != nil || response.GetCatalog().GetRevision() != revisions[len(revisions)-1] {
		t.Errorf("the catalog is %v, %v", response, err)
	}
	server.ResourceUpdated("test://one")
	if uri := next().GetResourceUpdated().GetUri(); uri != "test://one" {
		t.Errorf("the resource %q was updated", uri)
	}
	if server.RemoveTool("tool") {
		t.Error("a tool was removed twice")
	}
}

func TestAResourceMayAskBeforeItIsRead(t *testing.T) {
	outcome := handlertest.Run(t, func() *handler.Server {
		server := handler.NewServer("test")
		handler.Resource(server, "test://secret", "secret", func(ctx *handler.Context) (*handler.ReadResult, error) {
			action, err := ctx.Confirm("Show it?", handler.Key("show"))
			if err != nil || action != handler.Accept {
				return nil, err
			}
			return handler.Read(handler.TextContents("text/plain", "shown")), nil
		})
		return server
	}, handlertest.ReadResource("test://secret"), handlertest.Answers{"show": handlertest.Confirm()})
	contents := outcome.Finish.GetReadResource().GetContents()
	if len(contents) != 1 || contents[0].GetText() != "shown" || outcome.Attempts != 2 {
		t.Errorf("got %v in %d attempts", outcome.Finish, outcome.Attempts)
	}
}

func TestEntriesOfAllKindsAreDescribedTheSameWay(t *testing.T) {
	server := handler.NewServer("test")
	priority := 1.0
	annotated := handler.Annotated(handler.Annotations{Priority: &priority, LastModified: time.Unix(0, 0)})
	title, description := handler.Title("Title"), handler.Description("Description")
	icons := handler.Icons(handler.Icon{Source: "data:,", Theme: "dark"})
	handler.Tool(server, "tool", func(*handler.Context, none) (string, error) { return "", nil },
		title, description, icons, handler.NonDestructive())
	handler.Prompt(server, "prompt", func(*handler.Context, none) ([]handler.Message, error) { return nil, nil },
		title, description, icons)
	handler.Resource(server, "test://r", "r", func(*handler.Context) (*handler.ReadResult, error) { return nil, nil },
		title, description, icons, annotated)
	handler.ResourceTemplate(server, "test://{id}", "t",
		func(*handler.Context, idVariables) (*handler.ReadResult, error) { return nil, nil },
		title, description, icons, annotated, handler.MIMEType("x/y"))
	catalog := describe(t, server)
	resource, template := catalog.GetResources()[0], catalog.GetResourceTemplates()[0]
	for kind, entry := range map[string]interface {
		GetTitle() string
		GetDescription() string
		GetIcons() []*handlerv1.Icon
	}{
		"tool": catalog.GetTools()[0], "prompt": catalog.GetPrompts()[0], "resource": resource, "template": template,
	} {
		if entry.GetTitle() != "Title" || entry.GetDescription() != "Description" || entry.GetIcons()[0].GetTheme() != "dark" {
			t.Errorf("the %s is %v", kind, entry)
		}
	}
	for kind, annotations := range map[string]*handlerv1.Annotations{
		"resource": resource.GetAnnotations(), "template": template.GetAnnotations(),
	} {
		if annotations.GetPriority() != 1 || annotations.GetLastModified() != "1970-01-01T00:00:00Z" {
			t.Errorf("the annotations of the %s are %v", kind, annotations)
		}
	}
	if template.GetMimeType() != "x/y" {
		t.Errorf("the template is %v", template)
	}
	annotations := catalog.GetTools()[0].GetAnnotations()
	if annotations.DestructiveHint == nil || annotations.GetDestructiveHint() {
		t.Errorf("the annotations of the tool are %v", annotations)
	}
}
