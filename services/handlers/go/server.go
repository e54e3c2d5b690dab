package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

// Server is a handler service: a catalog of tools, prompts and resources, and the
// functions behind them. Fill it with [Tool], [Prompt], [Resource] and
// [ResourceTemplate], before or while it serves; the edge hears of changes.
type Server struct {
	handlerv1.UnimplementedHandlerServiceServer

	instructions string
	cache        *handlerv1.CacheHint
	logger       *slog.Logger

	// Looked up by every request and written when the catalog changes. The values
	// are registrations, which never change.
	tools     sync.Map // name → *toolEntry
	prompts   sync.Map // name → *promptEntry
	resources sync.Map // URI → *resourceEntry
	templates sync.Map // URI template → *templateEntry

	mutex    sync.Mutex // guards what follows, and every change of the maps
	catalog  *handlerv1.Catalog
	watchers map[*watcher]bool
}

// NewServer makes a handler service. The name is for its own log.
func NewServer(name string, options ...ServerOption) *Server {
	server := &Server{logger: slog.Default(), watchers: make(map[*watcher]bool)}
	for _, option := range options {
		option(server)
	}
	server.logger = server.logger.With("service", name)
	return server
}

// ServerOption changes a [Server].
type ServerOption func(*Server)

// WithInstructions gives a model a few sentences that help it to use the service.
func WithInstructions(text string) ServerOption {
	return func(server *Server) { server.instructions = text }
}

// WithCacheHint says how long a client may keep the lists and, unless a result
// says otherwise, the contents of the resources. Without it: not at all.
func WithCacheHint(hint CacheHint) ServerOption {
	return func(server *Server) { server.cache = hint.message() }
}

// WithLogger sets where the service logs; the default is [slog.Default].
func WithLogger(logger *slog.Logger) ServerOption {
	return func(server *Server) { server.logger = logger }
}

// CacheHint says how long and for whom a client may keep a result.
type CacheHint struct {
	// TimeToLive is rounded down to milliseconds; 0 means stale at once.
	TimeToLive time.Duration
	// Public means that the result holds nothing of the caller's and may be kept
	// for everybody.
	Public bool
}

func (h CacheHint) message() *handlerv1.CacheHint {
	milliseconds := min(max(h.TimeToLive.Milliseconds(), 0), 1<<32-1)
	hint := &handlerv1.CacheHint{TtlMs: uint32(milliseconds), Scope: handlerv1.CacheScope_CACHE_SCOPE_PRIVATE}
	if h.Public {
		hint.Scope = handlerv1.CacheScope_CACHE_SCOPE_PUBLIC
	}
	return hint
}

// toolName is what MCP allows as the name of a tool (tools, "Tool Names").
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// register adds one entry to the catalog. A mistake in a registration is a mistake
// in the program, found when it starts, so it panics.
func (s *Server) register(entries *sync.Map, kind, name string, entry any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, taken := entries.LoadOrStore(name, entry); taken {
		panic(fmt.Sprintf("handler: the %s %q is already registered", kind, name))
	}
	s.catalogChanged()
}

// RemoveTool takes a tool out of the catalog and reports whether it was there.
// Attempts that are running go on.
func (s *Server) RemoveTool(name string) bool { return s.remove(&s.tools, name) }

// RemovePrompt takes a prompt out of the catalog and reports whether it was there.
func (s *Server) RemovePrompt(name string) bool { return s.remove(&s.prompts, name) }

// RemoveResource takes a resource out of the catalog and reports whether it was
// there.
func (s *Server) RemoveResource(uri string) bool { return s.remove(&s.resources, uri) }

// RemoveResourceTemplate takes a resource template out of the catalog and reports
// whether it was there.
func (s *Server) RemoveResourceTemplate(uriTemplate string) bool {
	return s.remove(&s.templates, uriTemplate)
}

func (s *Server) remove(entries *sync.Map, name string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, found := entries.LoadAndDelete(name)
	if found {
		s.catalogChanged()
	}
	return found
}

// catalogChanged forgets the built catalog and wakes the watchers. The mutex is
// held.
func (s *Server) catalogChanged() {
	s.catalog = nil
	for watcher := range s.watchers {
		watcher.catalogChanged()
	}
}

// currentCatalog builds the catalog unless it is the one built last. It is sorted,
// and its revision is a hash of the rest: replicas of one build give the same.
func (s *Server) currentCatalog() (*handlerv1.Catalog, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.catalog != nil {
		return s.catalog, nil
	}
	catalog := &handlerv1.Catalog{Instructions: s.instructions, Cache: s.cache}
	for _, entry := range sorted[*toolEntry](&s.tools) {
		catalog.Tools = append(catalog.Tools, entry.message)
	}
	for _, entry := range sorted[*promptEntry](&s.prompts) {
		catalog.Prompts = append(catalog.Prompts, entry.message)
	}
	for _, entry := range sorted[*resourceEntry](&s.resources) {
		catalog.Resources = append(catalog.Resources, entry.message)
	}
	for _, entry := range sorted[*templateEntry](&s.templates) {
		catalog.ResourceTemplates = append(catalog.ResourceTemplates, entry.message)
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(catalog)
	if err != nil {
		return nil, fmt.Errorf("encode the catalog: %w", err)
	}
	hash := sha256.Sum256(encoded)
	catalog.Revision = hex.EncodeToString(hash[:16])
	s.catalog = catalog
	return catalog, nil
}

// sorted lists the entries by name.
func sorted[E any](entries *sync.Map) []E {
	byName := make(map[string]E)
	entries.Range(func(name, entry any) bool {
		byName[name.(string)] = entry.(E)
		return true
	})
	list := make([]E, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}
