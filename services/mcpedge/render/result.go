package render

import (
	"errors"
	"fmt"
	"strings"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/subscription"
)

// reservedMeta begins the names that MCP keeps for itself in `_meta`.
// missingHandlers is the member of a list's `_meta` that names the handlers whose
// entries the list lacks, because they have not been reached yet.
const missingHandlers = "io.github.countersign-mcp/missingHandlers"

const (
	reservedMeta = "io.modelcontextprotocol/"
	serverInfo   = reservedMeta + "serverInfo"
)

// Renderer writes results. They all carry who the server is.
type Renderer struct {
	serverInfo []byte
}

// ServerInfo is how the server describes itself.
type ServerInfo struct {
	// Name and Version are required by MCP.
	Name, Version string
	// Title is a name for display; may be empty.
	Title string
}

// NewRenderer returns a Renderer for a server.
func NewRenderer(info ServerInfo) *Renderer {
	o := newObject(nil)
	o.string("name", info.Name)
	o.string("version", info.Version)
	o.optional("title", info.Title)
	text, _ := o.close() // strings alone cannot fail
	return &Renderer{serverInfo: text}
}

// meta writes `_meta`: who the server is, and a handler's own members.
func (r *Renderer) meta(o *object, vendor []byte) {
	o.member("_meta", func(dst []byte) ([]byte, error) {
		m := newObject(dst)
		m.raw(serverInfo, r.serverInfo, '{')
		if len(vendor) == 0 {
			return m.close()
		}
		if !jsonrpc.Valid(vendor, '{') {
			return nil, errors.New("_meta is not a strict JSON object")
		}
		err := jsonrpc.EachMember(vendor, func(name string, value []byte) error {
			if strings.HasPrefix(name, reservedMeta) {
				return fmt.Errorf("_meta has the member %q, which MCP keeps for itself", name)
			}
			if len(m.text) > m.open {
				m.text = append(m.text, ',')
			}
			m.text = append(append(jsonrpc.AppendString(m.text, name), ':'), value...)
			return nil
		})
		if err != nil {
			return nil, err
		}
		return m.close()
	})
}

// complete starts a result that completes its request.
func (r *Renderer) complete(vendor []byte) *object {
	o := newObject(nil)
	o.string("resultType", "complete")
	r.meta(o, vendor)
	return o
}

func (o *object) cache(hint *handlerv1.CacheHint) {
	o.uint("ttlMs", uint64(hint.GetTtlMs()))
	if hint.GetScope() == handlerv1.CacheScope_CACHE_SCOPE_PUBLIC {
		o.string("cacheScope", "public")
		return
	}
	o.string("cacheScope", "private")
}

// CallTool returns the result of `tools/call`.
func (r *Renderer) CallTool(result *handlerv1.CallToolResult) ([]byte, error) {
	o := r.complete(result.GetMeta())
	o.array("content", len(result.GetContent()), func(i int) {
		o.append(func(dst []byte) ([]byte, error) { return AppendContentBlock(dst, result.GetContent()[i]) })
	})
	o.raw("structuredContent", result.GetStructuredContent(), 0)
	if result.GetIsError() {
		o.bool("isError", true)
	}
	return o.close()
}

// ToolFailure returns the result of a `tools/call` that failed, with the reason
// for the model.
func (r *Renderer) ToolFailure(reason string) []byte {
	text, _ := r.CallTool(&handlerv1.CallToolResult{
		IsError: true,
		Content: []*handlerv1.ContentBlock{{Content: &handlerv1.ContentBlock_Text{Text: &handlerv1.TextContent{Text: reason}}}},
	}) // typed text alone cannot fail
	return text
}

// GetPrompt returns the result of `prompts/get`.
func (r *Renderer) GetPrompt(result *handlerv1.GetPromptResult) ([]byte, error) {
	o := r.complete(result.GetMeta())
	o.optional("description", result.GetDescription())
	messages := result.GetMessages()
	o.array("messages", len(messages), func(i int) {
		o.append(func(dst []byte) ([]byte, error) {
			m := newObject(dst)
			m.string("role", role(messages[i].GetRole()))
			m.member("content", func(dst []byte) ([]byte, error) { return AppendContentBlock(dst, messages[i].GetContent()) })
			return m.close()
		})
	})
	return o.close()
}

// ReadResource returns the result of `resources/read`. The hint applies where the
// result has none of its own.
func (r *Renderer) ReadResource(result *handlerv1.ReadResourceResult, hint *handlerv1.CacheHint) ([]byte, error) {
	contents := result.GetContents()
	if len(contents) == 0 {
		return nil, errors.New("a resource was read and has no contents")
	}
	if own := result.GetCache(); own != nil {
		hint = own
	}
	o := r.complete(result.GetMeta())
	o.array("contents", len(contents), func(i int) {
		o.append(func(dst []byte) ([]byte, error) { return appendResourceContents(dst, contents[i]) })
	})
	o.cache(hint)
	return o.close()
}

// Complete returns the result of `completion/complete`. MCP allows at most 100
// values; what is beyond is cut.
func (r *Renderer) Complete(response *handlerv1.CompleteResponse) ([]byte, error) {
	const most = 100
	values, more := response.GetValues(), response.GetHasMore()
	if len(values) > most {
		values, more = values[:most], true
	}
	o := r.complete(nil)
	o.member("completion", func(dst []byte) ([]byte, error) {
		c := newObject(dst)
		c.strings("values", values)
		if response.Total != nil {
			c.uint("total", uint64(response.GetTotal()))
		}
		c.bool("hasMore", more)
		return c.close()
	})
	return o.close()
}

// List returns the result of a list method: the elements, each the exact text of
// an object, under the member's name, and the cursor of the next page, or none. The
// handlers that are missing from it are named in `_meta`.
func (r *Renderer) List(member string, elements [][]byte, next string, hint *handlerv1.CacheHint, missing []string) ([]byte, error) {
	var meta []byte
	if len(missing) > 0 {
		m := newObject(nil)
		m.strings(missingHandlers, missing)
		meta, _ = m.close() // strings cannot fail
	}
	o := r.complete(meta)
	o.array(member, len(elements), func(i int) { o.text = append(o.text, elements[i]...) })
	o.optional("nextCursor", next)
	o.cache(hint)
	return o.close()
}

// Discovery is what `server/discover` says.
type Discovery struct {
	// Revisions are the protocol versions served, newest first.
	Revisions []string
	// Instructions help a model to use the server; may be empty.
	Instructions string
}

// Discover returns the result of `server/discover`. The capabilities are the edge's
// and do not depend on the handlers: an edge whose handlers offer no prompt serves
// an empty list of them.
func (r *Renderer) Discover(discovery Discovery) ([]byte, error) {
	o := r.complete(nil)
	o.strings("supportedVersions", discovery.Revisions)
	o.member("capabilities", func(dst []byte) ([]byte, error) {
		c := newObject(dst)
		for _, capability := range []struct{ name, value string }{
			{"logging", `{}`},
			{"completions", `{}`},
			{"tools", `{"listChanged":true}`},
			{"prompts", `{"listChanged":true}`},
			{"resources", `{"subscribe":true,"listChanged":true}`},
		} {
			c.raw(capability.name, []byte(capability.value), '{')
		}
		return c.close()
	})
	o.optional("instructions", discovery.Instructions)
	o.cache(nil) // the instructions change with the handlers
	return o.close()
}

// InputRequest is a question as the client reads it.
type InputRequest struct {
	// Key is the question's key.
	Key string
	// Request is the exact text of its object, as AppendQuestion makes it.
	Request []byte
}

// InputRequired returns the result that asks the client for input.
func (r *Renderer) InputRequired(requests []InputRequest, requestState string) ([]byte, error) {
	o := newObject(nil)
	o.string("resultType", "input_required")
	r.meta(o, nil)
	o.member("inputRequests", func(dst []byte) ([]byte, error) {
		q := newObject(dst)
		for _, request := range requests {
			if len(q.text) > q.open {
				q.text = append(q.text, ',')
			}
			q.text = append(append(jsonrpc.AppendString(q.text, request.Key), ':'), request.Request...)
		}
		return q.close()
	})
	o.string("requestState", requestState)
	return o.close()
}

// Question returns a question as the request that a client reads.
func Question(question *handlerv1.Question) ([]byte, error) {
	o := newObject(nil)
	switch kind := question.GetKind().(type) {
	case *handlerv1.Question_ElicitForm:
		o.string("method", "elicitation/create")
		o.member("params", func(dst []byte) ([]byte, error) {
			p := newObject(dst)
			p.string("mode", "form")
			p.string("message", kind.ElicitForm.GetMessage())
			p.raw("requestedSchema", kind.ElicitForm.GetRequestedSchema(), '{')
			return p.close()
		})
	case *handlerv1.Question_ElicitUrl:
		o.string("method", "elicitation/create")
		o.member("params", func(dst []byte) ([]byte, error) {
			p := newObject(dst)
			p.string("mode", "url")
			p.string("message", kind.ElicitUrl.GetMessage())
			p.string("url", kind.ElicitUrl.GetUrl())
			return p.close()
		})
	case *handlerv1.Question_Sample:
		o.string("method", "sampling/createMessage")
		o.raw("params", kind.Sample.GetParams(), '{')
	case *handlerv1.Question_ListRoots:
		o.string("method", "roots/list")
	default:
		return nil, errors.New("a question has no kind")
	}
	return o.close()
}

// Progress returns the params of `notifications/progress`. The token is the exact
// text that the client sent.
func Progress(token []byte, progress *handlerv1.Progress) ([]byte, error) {
	o := newObject(nil)
	o.raw("progressToken", token, 0)
	o.float("progress", progress.GetProgress())
	if progress.Total != nil {
		o.float("total", progress.GetTotal())
	}
	o.optional("message", progress.GetMessage())
	return o.close()
}

// Log returns the params of `notifications/message`. The level is written as MCP
// names it.
func Log(level string, log *handlerv1.Log) ([]byte, error) {
	o := newObject(nil)
	o.string("level", level)
	o.optional("logger", log.GetLogger())
	if len(log.GetData()) == 0 {
		o.fail("data", "is missing")
	}
	o.raw("data", log.GetData(), 0)
	return o.close()
}

// subscribed writes `_meta` with the subscription that a message belongs to: the
// id of the request that opened it.
func (o *object) subscribed(id []byte) {
	o.member("_meta", func(dst []byte) ([]byte, error) {
		m := newObject(dst)
		m.name(subscriptionID)
		m.text = append(m.text, id...)
		return m.close()
	})
}

const subscriptionID = reservedMeta + "subscriptionId"

// Acknowledged returns the params of `notifications/subscriptions/acknowledged`.
func Acknowledged(id []byte, filter subscription.Filter) []byte {
	o := newObject(nil)
	o.subscribed(id)
	o.member("notifications", func(dst []byte) ([]byte, error) {
		f := newObject(dst)
		for _, flag := range []struct {
			name string
			set  bool
		}{{"toolsListChanged", filter.Tools}, {"promptsListChanged", filter.Prompts}, {"resourcesListChanged", filter.Resources}} {
			if flag.set {
				f.bool(flag.name, true)
			}
		}
		if len(filter.URIs) > 0 {
			f.strings("resourceSubscriptions", filter.URIs)
		}
		return f.close()
	})
	text, _ := o.close() // strings and booleans cannot fail
	return text
}

// Changed returns the params of a notification of a subscription: of a list that
// changed, or of the resource with the URI.
func Changed(id []byte, uri string) []byte {
	o := newObject(nil)
	o.subscribed(id)
	o.optional("uri", uri)
	text, _ := o.close() // strings cannot fail
	return text
}

// Listened returns the result of `subscriptions/listen`, which ends it.
func (r *Renderer) Listened(id []byte) []byte {
	o := newObject(nil)
	o.string("resultType", "complete")
	o.member("_meta", func(dst []byte) ([]byte, error) {
		m := newObject(dst)
		m.raw(serverInfo, r.serverInfo, '{')
		m.name(subscriptionID)
		m.text = append(m.text, id...)
		return m.close()
	})
	text, _ := o.close() // all of it is the edge's own
	return text
}
