package load

import "fmt"

// Revision is the protocol revision that all servers are spoken to in.
const Revision = "2026-07-28"

// meta is the `_meta` that the revision wants of every request.
const meta = `{"io.modelcontextprotocol/protocolVersion":"` + Revision + `",` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"benchmark","version":"1.0.0"}}`

// CallTool is the request that calls a tool. Arguments is the text of an object;
// more is empty, or further members of the params with a comma before them.
func CallTool(name, arguments, more string) []byte {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s%s,"_meta":%s}}`, name, arguments, more, meta)
	return post("tools/call", "Mcp-Name: "+name+"\r\n", body)
}

// Listen is the request that subscribes to changes of the list of tools.
func Listen() []byte {
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":` + meta + `}}`
	return post("subscriptions/listen", "", body)
}

func post(method, headers, body string) []byte {
	return fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: %s\r\nMcp-Method: %s\r\n%sContent-Length: %d\r\n\r\n%s",
		Revision, method, headers, len(body), body)
}
