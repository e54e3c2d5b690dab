package server

import (
	"context"
	"net"
	"net/http"

	labsmcp "github.com/mark3labs/mcp-go/mcp"
	labsserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// echoed is what the tool takes.
type echoed struct {
	Text string `json:"text" jsonschema:"What to say."`
}

// officialSDK is the server of the official Go SDK.
func officialSDK(ctx context.Context, listener net.Listener, _ Options) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Says what it is given."},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoed) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	return serveHTTP(ctx, listener, mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true},
	))
}

// markLabs is the server of mark3labs/mcp-go.
func markLabs(ctx context.Context, listener net.Listener, _ Options) error {
	server := labsserver.NewMCPServer("mcp-go", "1.0.0", labsserver.WithToolCapabilities(true))
	server.AddTool(labsmcp.NewTool("echo", labsmcp.WithDescription("Says what it is given."), labsmcp.WithString("text", labsmcp.Required())),
		func(_ context.Context, request labsmcp.CallToolRequest) (*labsmcp.CallToolResult, error) {
			text, err := request.RequireString("text")
			if err != nil {
				return nil, err
			}
			return labsmcp.NewToolResultText(text), nil
		})
	return serveHTTP(ctx, listener, labsserver.NewStreamableHTTPServer(server, labsserver.WithStateLess(true)))
}
