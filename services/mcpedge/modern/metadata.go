package modern

import (
	"strings"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
	"github.com/countersign-mcp/countersign/services/mcpedge/tracecontext"
)

// mcpMeta begins the names in `_meta` that MCP defines ("_meta").
const mcpMeta = "io.modelcontextprotocol/"

// metadata is what a request's `_meta` says.
type metadata struct {
	// revision is the protocol version.
	revision string
	// capabilities is what the client declared.
	capabilities *handlerv1.ClientCapabilities
	// clientInfo describes the client; nil where it did not.
	clientInfo *handlerv1.ClientInfo
	// logLevel is the lowest level of log message it wants; unspecified for none.
	logLevel handlerv1.LogLevel
	// progressToken is the exact text of its token; nil where it wants no progress.
	progressToken []byte
	// trace is which trace the request belongs to, as the client has it.
	trace tracecontext.Fields
	// vendor is an object with the members that MCP does not define; nil for none.
	vendor []byte
}

func invalidMetadata(format string, arguments ...any) error {
	return failure.Newf(failure.InvalidMetadata, format, arguments...)
}

// readMetadata reads `_meta`, which every request must have.
func readMetadata(text []byte) (metadata, error) {
	var m metadata
	if len(text) == 0 || text[0] != '{' {
		return m, invalidMetadata("params._meta is not an object; every request needs one")
	}
	var hasRevision bool
	err := jsonrpc.EachMember(text, func(name string, value []byte) error {
		var err error
		switch name {
		case mcpMeta + "protocolVersion":
			hasRevision = true
			if m.revision, err = jsonrpc.Unquote(value); err != nil {
				return invalidMetadata("%s is not a string", name)
			}
		case mcpMeta + "clientCapabilities":
			m.capabilities, err = readCapabilities(name, value)
		case mcpMeta + "clientInfo":
			m.clientInfo, err = readClientInfo(name, value)
		case mcpMeta + "logLevel":
			m.logLevel, err = readLogLevel(name, value)
		case "progressToken":
			if !jsonrpc.ValidToken(value) {
				return invalidMetadata("progressToken is not a string or integer")
			}
			m.progressToken = value
		case "traceparent":
			m.trace.Parent, _ = jsonrpc.Unquote(value) // what is malformed is absent
		case "tracestate":
			m.trace.State, _ = jsonrpc.Unquote(value)
		case "baggage":
			m.trace.Baggage, _ = jsonrpc.Unquote(value)
		default:
			if !strings.HasPrefix(name, mcpMeta) {
				m.vendor = appendMember(m.vendor, name, value)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return m, err
	case !hasRevision:
		return m, invalidMetadata("params._meta has no %sprotocolVersion", mcpMeta)
	case m.capabilities == nil:
		return m, invalidMetadata("params._meta has no %sclientCapabilities", mcpMeta)
	}
	if m.vendor != nil {
		m.vendor = append(m.vendor, '}')
	}
	return m, nil
}

// appendMember appends a member to an object that is still open; nil is one that
// has not been opened.
func appendMember(object []byte, name string, value []byte) []byte {
	separator := byte(',')
	if object == nil {
		separator = '{'
	}
	return append(append(jsonrpc.AppendString(append(object, separator), name), ':'), value...)
}

func readCapabilities(member string, text []byte) (*handlerv1.ClientCapabilities, error) {
	if text[0] != '{' {
		return nil, invalidMetadata("%s is not an object", member)
	}
	capabilities := &handlerv1.ClientCapabilities{Raw: text}
	err := jsonrpc.EachMember(text, func(name string, value []byte) error {
		isObject := value[0] == '{'
		switch name {
		case "elicitation", "sampling", "roots":
			if !isObject {
				return invalidMetadata("%s.%s is not an object", member, name)
			}
		}
		switch name {
		case "elicitation":
			form, url := has(value, "form"), has(value, "url")
			// An elicitation capability that names no mode is the form's, from before
			// there were modes (elicitation, "Capabilities").
			capabilities.ElicitationForm, capabilities.ElicitationUrl = form || !url, url
		case "sampling":
			capabilities.Sampling = true
			capabilities.SamplingTools, capabilities.SamplingContext = has(value, "tools"), has(value, "context")
		case "roots":
			capabilities.Roots = true
		}
		return nil
	})
	return capabilities, err
}

// has says whether an object has a member that is an object.
func has(object []byte, member string) bool {
	found := false
	_ = jsonrpc.EachMember(object, func(name string, value []byte) error {
		found = found || name == member && value[0] == '{'
		return nil
	})
	return found
}

func readClientInfo(member string, text []byte) (*handlerv1.ClientInfo, error) {
	if text[0] != '{' {
		return nil, invalidMetadata("%s is not an object", member)
	}
	info := &handlerv1.ClientInfo{}
	err := jsonrpc.EachMember(text, func(name string, value []byte) error {
		var err error
		switch name {
		case "name":
			info.Name, err = jsonrpc.Unquote(value)
		case "version":
			info.Version, err = jsonrpc.Unquote(value)
		case "title":
			info.Title, err = jsonrpc.Unquote(value)
		}
		if err != nil {
			return invalidMetadata("%s.%s is not a string", member, name)
		}
		return nil
	})
	return info, err
}

// logLevels are the levels as MCP names them.
var logLevels = map[string]handlerv1.LogLevel{
	"debug":     handlerv1.LogLevel_LOG_LEVEL_DEBUG,
	"info":      handlerv1.LogLevel_LOG_LEVEL_INFO,
	"notice":    handlerv1.LogLevel_LOG_LEVEL_NOTICE,
	"warning":   handlerv1.LogLevel_LOG_LEVEL_WARNING,
	"error":     handlerv1.LogLevel_LOG_LEVEL_ERROR,
	"critical":  handlerv1.LogLevel_LOG_LEVEL_CRITICAL,
	"alert":     handlerv1.LogLevel_LOG_LEVEL_ALERT,
	"emergency": handlerv1.LogLevel_LOG_LEVEL_EMERGENCY,
}

func readLogLevel(member string, text []byte) (handlerv1.LogLevel, error) {
	name, err := jsonrpc.Unquote(text)
	level, known := logLevels[name]
	if err != nil || !known {
		return 0, invalidMetadata("%s is not a log level", member)
	}
	return level, nil
}

// logLevelName writes a level as MCP names it; empty for none.
func logLevelName(level handlerv1.LogLevel) string {
	if level == handlerv1.LogLevel_LOG_LEVEL_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(level.String(), "LOG_LEVEL_"))
}
