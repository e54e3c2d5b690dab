// Package catalog is what all handler services offer together.
//
// Each handler service describes itself; the edge needs one list of tools, one of
// prompts and so on, and for each name the handler that serves it. A Snapshot is
// that: immutable, made anew when a handler's catalog changes and swapped in
// atomically, so that a request reads one pointer and takes no lock. Everything
// that does not depend on a request is done when the snapshot is made: schemas
// are compiled, entries are written as JSON, lists are sorted. What a handler that
// changed nothing offers is taken over as it is, and so is a schema that stayed the
// same, so that a handler that changes all the time costs little and only itself.
//
// A name belongs to one handler. Where two offer the same, the one that stands
// first in the configuration keeps it, the other's entry is left out, and the
// Problem that says so names both. A tool whose schema does not compile is left
// out in the same way: one bad entry does not take its neighbours away.
//
// The limit: names never depend on how many handlers there are, so a collision is
// not repaired by renaming. What is lost while a handler cannot be reached is
// nothing that it described before: its entries stay, and calls of them fail.
package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/mirror"
	"github.com/countersign-mcp/countersign/services/mcpedge/schema"
)

// Handler is a handler service.
type Handler struct {
	// Name is its name in the edge's configuration.
	Name string
	// Prefix stands before the names of its tools and prompts, so that two handlers
	// may offer the same. URIs have none.
	Prefix string
	// Client calls any of its replicas.
	Client handlerv1.HandlerServiceClient
	// Replicas runs each for every replica, with a client of that replica alone,
	// until the replica or ctx is gone; looked is told after every look-up how many
	// there are. Nil for a handler that Client alone reaches.
	Replicas func(ctx context.Context, each func(ctx context.Context, replica string, client handlerv1.HandlerServiceClient), looked func(replicas int, err error))
}

// Entry is what every kind of entry has.
type Entry struct {
	// Name is the tool's or prompt's name as clients know it, the resource's URI, or
	// the URI template.
	Name string
	// Own is the name as the handler knows it.
	Own string
	// Handler serves it.
	Handler *Handler
	// Revision is the revision of the handler's catalog it stands in.
	Revision string
	// JSON is the entry as an element of its list, exact text.
	JSON []byte
}

// Tool is a tool that can be called.
type Tool struct {
	Entry

	// Input checks arguments.
	Input *schema.Schema
	// Output checks structured content; nil where the tool has no output schema.
	Output *schema.Schema
	// Repeatable: the author says that calling it again does no harm.
	Repeatable bool
	// Mirrored are the arguments that headers mirror.
	Mirrored []mirror.Param
	// AsksMustBeShown: answers count only for questions that were shown.
	AsksMustBeShown bool
}

// Prompt is a prompt that can be rendered.
type Prompt struct {
	Entry

	// Arguments are what it takes.
	Arguments []*handlerv1.PromptArgument
}

// Resource is a resource, or a family of them.
type Resource struct {
	Entry

	// Cache is how long a client may keep the contents.
	Cache *handlerv1.CacheHint
	// template matches URIs; nil for a single resource.
	template *uritemplate.Template
}

// Template is the URI template of a family; empty for a single resource.
func (r *Resource) Template() string {
	if r.template == nil {
		return ""
	}
	return r.Name
}

// Snapshot is what all handlers offer at one moment.
type Snapshot struct {
	tools     map[string]*Tool
	prompts   map[string]*Prompt
	resources map[string]*Resource
	templates []*Resource

	// Lists holds the lists of all entries as JSON, sorted by name.
	Lists Lists
	// Instructions are the handlers' instructions, one paragraph each.
	Instructions string
	// Missing are the names of handlers that have not described themselves yet, so that
	// the lists lack their entries.
	Missing []string
	// prefixes are those of the missing handlers.
	prefixes []string
	// Problems are the entries that were left out, and why.
	Problems []Problem
}

// Problem is an entry that was left out.
type Problem struct {
	// Handler is the name of the handler that offers it.
	Handler string
	// Kind is `tool`, `prompt`, `resource` or `resource template`.
	Kind string
	// Name is the entry's name.
	Name string
	// Text says what is wrong.
	Text string
}

// String is a sentence for the operator.
func (p Problem) String() string {
	return fmt.Sprintf("the %s %q of handler %q is left out: %s", p.Kind, p.Name, p.Handler, p.Text)
}

// Description is a handler with the catalog it described; nil for one that has not
// yet.
type Description struct {
	Handler *Handler
	Catalog *handlerv1.Catalog
}

// NewSnapshot makes a snapshot of descriptions, in the order of the
// configuration.
func NewSnapshot(descriptions []Description) *Snapshot {
	offers := make([]*offer, len(descriptions))
	for i, d := range descriptions {
		offers[i] = prepare(d, nil)
	}
	return merge(offers)
}

// merge makes a snapshot of offers, in the order of the configuration.
func merge(offers []*offer) *Snapshot {
	s := &Snapshot{tools: map[string]*Tool{}, prompts: map[string]*Prompt{}, resources: map[string]*Resource{}}
	templates := map[string]*Resource{}
	var instructions []string
	for _, o := range offers {
		if o.Catalog == nil {
			s.Missing = append(s.Missing, o.Handler.Name)
			s.prefixes = append(s.prefixes, o.Handler.Prefix)
			continue
		}
		take(s, o, "tool", o.tools, s.tools)
		take(s, o, "prompt", o.prompts, s.prompts)
		take(s, o, "resource", o.resources, s.resources)
		take(s, o, "resource template", o.templates, templates)
		if text := o.Catalog.GetInstructions(); text != "" {
			instructions = append(instructions, text)
		}
	}
	s.Instructions = strings.Join(instructions, "\n\n")
	s.templates = sorted(templates, func(r *Resource) string { return r.Name })
	s.Lists = Lists{
		Tools:             list(offers, sorted(s.tools, func(t *Tool) string { return t.Name }), func(t *Tool) *Entry { return &t.Entry }),
		Prompts:           list(offers, sorted(s.prompts, func(p *Prompt) string { return p.Name }), func(p *Prompt) *Entry { return &p.Entry }),
		Resources:         list(offers, sorted(s.resources, func(r *Resource) string { return r.Name }), func(r *Resource) *Entry { return &r.Entry }),
		ResourceTemplates: list(offers, s.templates, func(r *Resource) *Entry { return &r.Entry }),
	}
	return s
}

// held is an entry of any kind.
type held interface {
	handler() *Handler
}

func (e *Entry) handler() *Handler { return e.Handler }

// take takes an offer's entries of one kind in. Where one cannot be, it records why.
func take[T held](s *Snapshot, o *offer, kind string, offered []prepared[T], taken map[string]T) {
	for _, p := range offered {
		holder, isTaken := taken[p.name]
		err := p.err
		switch {
		case err != nil:
		case !isTaken:
			taken[p.name] = p.entry
			continue
		case holder.handler() == o.Handler:
			err = errTwice
		default:
			err = fmt.Errorf("handler %q offers one of the same name and stands first", holder.handler().Name)
		}
		s.Problems = append(s.Problems, Problem{Handler: o.Handler.Name, Kind: kind, Name: p.name, Text: err.Error()})
	}
}

// Tool returns the tool of a name, or nil.
func (s *Snapshot) Tool(name string) *Tool { return s.tools[name] }

// Prompt returns the prompt of a name, or nil.
func (s *Snapshot) Prompt(name string) *Prompt { return s.prompts[name] }

// MayLack says whether a name that the snapshot does not have may be one of a
// handler that is missing. A URI has no prefix: ask for the empty name.
func (s *Snapshot) MayLack(name string) bool {
	return slices.ContainsFunc(s.prefixes, func(prefix string) bool { return name == "" || strings.HasPrefix(name, prefix) })
}

// Resource returns the resource of a URI: the one listed, or else the first
// family, by name of template, that the URI matches. It returns nil if there is
// none.
func (s *Snapshot) Resource(uri string) *Resource {
	if resource := s.resources[uri]; resource != nil {
		return resource
	}
	for _, family := range s.templates {
		if family.template.Match(uri) != nil {
			return family
		}
	}
	return nil
}

// Template returns the family of a URI template, or nil.
func (s *Snapshot) Template(uriTemplate string) *Resource {
	for _, family := range s.templates {
		if family.Name == uriTemplate {
			return family
		}
	}
	return nil
}

// sorted returns the values of m sorted by name.
func sorted[T any](m map[string]T, name func(T) string) []T {
	values := make([]T, 0, len(m))
	for _, value := range m {
		values = append(values, value)
	}
	slices.SortFunc(values, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return values
}
