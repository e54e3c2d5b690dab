package modern_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/handlerfake"
)

// echo finishes a tool call with its arguments as text.
func echo(begin *handlerv1.Begin, stream handlerfake.Stream) error {
	return handlerfake.FinishText(stream, string(begin.GetCallTool().GetArguments()))
}

func TestMalformedRequestsGetTheErrorThatTheSpecificationNames(t *testing.T) {
	s := newSuite(t, echo)
	good := meta(`{}`)
	old := strings.Replace(good, "2026-07-28", "v999.0.0", 1)
	for name, test := range map[string]struct {
		request request
		status  int
		code    int
		text    string // part of the body
		metric  string // the reason counted
	}{
		"no _meta":              {request{method: "server/discover"}, 400, -32602, "_meta", "invalid_metadata"},
		"no version in _meta":   {request{method: "server/discover", params: `"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}`}, 400, -32602, "protocolVersion", ""},
		"no capabilities":       {request{method: "server/discover", params: `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`}, 400, -32602, "clientCapabilities", ""},
		"capabilities: array":   {request{method: "server/discover", params: meta(`[]`)}, 400, -32602, "clientCapabilities", ""},
		"elicitation: true":     {request{method: "server/discover", params: meta(`{"elicitation":true}`)}, 400, -32602, "elicitation", ""},
		"version: number":       {request{method: "server/discover", params: strings.Replace(good, `"2026-07-28"`, "1", 1)}, 400, -32602, "protocolVersion", ""},
		"clientInfo: string":    {request{method: "server/discover", params: strings.Replace(good, `{"name":"test","version":"1"}`, `"x"`, 1)}, 400, -32602, "clientInfo", ""},
		"unknown log level":     {request{method: "server/discover", params: meta(`{}`, `"io.modelcontextprotocol/logLevel":"loud"`)}, 400, -32602, "logLevel", ""},
		"token: object":         {request{method: "server/discover", params: meta(`{}`, `"progressToken":{}`)}, 400, -32602, "progressToken", ""},
		"token: fraction":       {request{method: "server/discover", params: meta(`{}`, `"progressToken":1.5`)}, 400, -32602, "progressToken", ""},
		"unsupported version":   {request{method: "server/discover", params: old, header: map[string]string{"MCP-Protocol-Version": "v999.0.0"}}, 400, -32022, `"data":{"supported":["2026-07-28"],"requested":"v999.0.0"}`, "unsupported_revision"},
		"versions differ":       {request{method: "server/discover", params: old}, 400, -32020, "Protocol-Version", "header_mismatch"},
		"no version header":     {request{method: "server/discover", params: good, header: map[string]string{"MCP-Protocol-Version": ""}}, 400, -32020, "Protocol-Version", ""},
		"legacy initialize":     {request{method: "initialize", params: `"protocolVersion":"2025-11-25","capabilities":{}`, header: map[string]string{"MCP-Protocol-Version": "", "Mcp-Method": ""}}, 400, -32022, `"requested":"2025-11-25"`, ""},
		"other method header":   {request{method: "tools/list", params: good, header: map[string]string{"Mcp-Method": "prompts/list"}}, 400, -32020, "Mcp-Method", ""},
		"method in other case":  {request{method: "tools/list", params: good, header: map[string]string{"Mcp-Method": "TOOLS/LIST"}}, 400, -32020, "Mcp-Method", ""},
		"no method header":      {request{method: "tools/list", params: good, header: map[string]string{"Mcp-Method": ""}}, 400, -32020, "Mcp-Method", ""},
		"other name header":     {request{method: "tools/call", params: `"name":"ask",` + good, header: map[string]string{"Mcp-Name": "other"}}, 400, -32020, "Mcp-Name", ""},
		"no name header":        {request{method: "tools/call", params: `"name":"ask",` + good, header: map[string]string{"Mcp-Name": ""}}, 400, -32020, "Mcp-Name", ""},
		"badly encoded name":    {request{method: "tools/call", params: `"name":"ask",` + good, header: map[string]string{"Mcp-Name": "=?base64?YXNr=?="}}, 400, -32020, "Mcp-Name", ""},
		"no argument header":    {request{method: "tools/call", params: `"name":"route","arguments":{"region":"eu"},` + good}, 400, -32020, "Mcp-Param-Region", "header_mismatch"},
		"other argument header": {request{method: "tools/call", params: `"name":"route","arguments":{"region":"eu"},` + good, header: map[string]string{"Mcp-Param-Region": "us"}}, 400, -32020, "Mcp-Param-Region", ""},
		"no uri header":         {request{method: "resources/read", params: `"uri":"orders://all",` + good, header: map[string]string{"Mcp-Name": ""}}, 400, -32020, "Mcp-Name", ""},
		"unknown method":        {request{method: "unknown/method", params: good}, 404, -32601, "method not found", "unknown_method"},
		"initialize, modern":    {request{method: "initialize", params: good}, 404, -32601, "", ""},
		"ping":                  {request{method: "ping", params: good}, 404, -32601, "", ""},
		"logging/setLevel":      {request{method: "logging/setLevel", params: good}, 404, -32601, "", ""},
		"resources/subscribe":   {request{method: "resources/subscribe", params: good}, 404, -32601, "", ""},
		"unknown tool":          {request{method: "tools/call", params: `"name":"none",` + good}, 200, -32602, "unknown tool", "unknown_target"},
		"no tool name":          {request{method: "tools/call", params: good}, 200, -32602, "params.name", "invalid_params"},
		"arguments: array":      {request{method: "tools/call", params: `"name":"ask","arguments":[],` + good}, 200, -32602, "params.arguments", ""},
		"arguments: null":       {request{method: "tools/call", params: `"name":"ask","arguments":null,` + good}, 200, -32602, "params.arguments", ""},
		"unknown prompt":        {request{method: "prompts/get", params: `"name":"none",` + good}, 200, -32602, "unknown prompt", ""},
		"prompt lacks argument": {request{method: "prompts/get", params: `"name":"greet",` + good}, 200, -32602, `\"who\"`, ""},
		"prompt argument extra": {request{method: "prompts/get", params: `"name":"greet","arguments":{"who":"a","x":"b"},` + good}, 200, -32602, `\"x\"`, ""},
		"prompt argument: 1":    {request{method: "prompts/get", params: `"name":"greet","arguments":{"who":1},` + good}, 200, -32602, "arguments.who", ""},
		"unknown resource":      {request{method: "resources/read", params: `"uri":"test://none",` + good}, 200, -32602, `"data":{"uri":"test://none"}`, "resource_not_found"},
		"invented cursor":       {request{method: "tools/list", params: `"cursor":"x",` + good}, 200, -32602, "cursor", ""},
		"duplicate member":      {request{body: `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1,"x":2}}`}, 400, -32700, "", ""},
		"not JSON":              {request{body: `{`}, 400, -32700, "", ""},
		"batch":                 {request{body: `[]`}, 400, -32600, "", ""},
		"null id":               {request{body: `{"jsonrpc":"2.0","id":null,"method":"ping"}`}, 400, -32600, "", ""},
		"too deep":              {request{method: "tools/call", params: `"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40)}, 400, -32600, "deep", ""},
		"too large":             {request{method: "tools/call", params: `"x":"` + strings.Repeat("x", 64<<10) + `"`}, 413, -32600, "larger", ""},
		"foreign host":          {request{method: "server/discover", params: good, header: map[string]string{"Host": "evil.example"}}, 403, -32600, "Host", ""},
		"foreign origin":        {request{method: "server/discover", params: good, header: map[string]string{"Origin": "http://evil.example"}}, 403, -32600, "Origin", ""},
		"null origin":           {request{method: "server/discover", params: good, header: map[string]string{"Origin": "null"}}, 403, -32600, "Origin", ""},
		"host as a suffix":      {request{method: "server/discover", params: good, header: map[string]string{"Host": "127.0.0.1.evil.example"}}, 403, -32600, "Host", ""},
		"another media type":    {request{method: "server/discover", params: good, header: map[string]string{"Content-Type": "text/plain"}}, 415, -32600, "", ""},
		"JSON not accepted":     {request{method: "server/discover", params: good, header: map[string]string{"Accept": "text/event-stream, application/json;q=0"}}, 406, -32600, "", ""},
		"events not accepted":   {request{method: "server/discover", params: good, header: map[string]string{"Accept": "application/json"}}, 406, -32600, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{t: t, url: s.url, client: s.client, registry: s.registry}
			before := s.metric("countersign_edge_requests_total", "reason="+test.metric)
			reply := s.do(test.request)
			got := reply.parse(t)
			if got.Error == nil || reply.status != test.status || got.Error.Code != test.code || !strings.Contains(reply.body, test.text) {
				t.Errorf("got status %d, %s; want status %d, code %d, %q", reply.status, reply.body, test.status, test.code, test.text)
			}
			if test.metric != "" && s.metric("countersign_edge_requests_total", "reason="+test.metric) != before+1 {
				t.Errorf("the reason %s was not counted", test.metric)
			}
		})
	}
}

func TestWellFormedVariantsAreServed(t *testing.T) {
	s := newSuite(t, echo)
	good := meta(`{}`)
	for name, r := range map[string]request{
		"no client info":        {method: "server/discover", params: `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`},
		"accept the other way":  {method: "server/discover", params: good, header: map[string]string{"Accept": "text/event-stream, application/json"}},
		"accept anything":       {method: "server/discover", params: good, header: map[string]string{"Accept": "*/*"}},
		"charset":               {method: "server/discover", params: good, header: map[string]string{"Content-Type": "application/json; charset=utf-8"}},
		"origin of this host":   {method: "server/discover", params: good, header: map[string]string{"Origin": "http://localhost:6274"}},
		"origin that is listed": {method: "server/discover", params: good, header: map[string]string{"Origin": "https://app.example"}},
		"host with a port":      {method: "server/discover", params: good, header: map[string]string{"Host": "localhost:80"}},
		"encoded name":          {method: "tools/call", params: `"name":"ask",` + good, header: map[string]string{"Mcp-Name": "=?base64?YXNr?="}},
		"name with white space": {method: "tools/call", params: `"name":"ask",` + good, header: map[string]string{"Mcp-Name": "  ask  "}},
		"argument header":       {method: "tools/call", params: `"name":"route","arguments":{"region":"eu"},` + good, header: map[string]string{"Mcp-Param-Region": "=?base64?ZXU=?=", "Mcp-Param-Other": "x"}},
		"no arguments":          {method: "tools/call", params: `"name":"ask",` + good},
		"null cursor":           {method: "tools/list", params: `"cursor":null,` + good},
		"unknown members":       {method: "tools/list", params: `"future":{"x":1e400},` + meta(`{"future":{}}`, `"com.example/x":1`)},
		"session id is ignored": {method: "tools/list", params: good, header: map[string]string{"Mcp-Session-Id": "x", "Last-Event-ID": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{t: t, url: s.url, client: s.client}
			if got := s.do(r); got.status != http.StatusOK || got.parse(t).Error != nil {
				t.Errorf("got status %d, %s", got.status, got.body)
			}
		})
	}
}

func TestDiscoverAndListsHaveWhatTheSchemaDemands(t *testing.T) {
	s := newSuite(t, echo)
	for method, want := range map[string]string{
		"server/discover":          `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"countersign","version":"1"}},"supportedVersions":["2026-07-28"],"capabilities":{"logging":{},"completions":{},"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}},"instructions":"Be kind.","ttlMs":0,"cacheScope":"private"}`,
		"prompts/list":             `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"countersign","version":"1"}},"prompts":[{"name":"greet","description":"Greets.","arguments":[{"name":"who","required":true},{"name":"how","required":false}]}],"ttlMs":5000,"cacheScope":"public"}`,
		"resources/list":           `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"countersign","version":"1"}},"resources":[{"uri":"orders://all","name":"orders"}],"ttlMs":5000,"cacheScope":"public"}`,
		"resources/templates/list": `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"countersign","version":"1"}},"resourceTemplates":[{"uriTemplate":"orders://{id}","name":"order"}],"ttlMs":5000,"cacheScope":"public"}`,
	} {
		reply := s.do(request{method: method, params: meta(`{}`), id: `"x"`})
		if got := `{"jsonrpc":"2.0","id":"x","result":` + want + `}`; reply.body != got {
			t.Errorf("%s\ngot  %s\nwant %s", method, reply.body, got)
		}
	}
	tools := s.do(request{method: "tools/list", params: meta(`{}`)}).body
	if !strings.Contains(tools, `"annotations":{"destructiveHint":true}`) || strings.Index(tools, `"ask"`) > strings.Index(tools, `"destroy"`) {
		t.Errorf("got %s", tools)
	}
}

func TestOtherHTTPMethodsAreNotAllowed(t *testing.T) {
	s := newSuite(t, echo)
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: got status %d, Allow %q", method, response.StatusCode, response.Header.Get("Allow"))
		}
	}
}

func TestANotificationIsAcceptedAndNotAnswered(t *testing.T) {
	s := newSuite(t, echo)
	got := s.do(request{body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`})
	if got.status != http.StatusAccepted || got.body != "" {
		t.Errorf("got status %d, %q", got.status, got.body)
	}
}

func TestArgumentsThatDoNotMatchAreTheToolsFailure(t *testing.T) {
	s := newSuite(t, func(*handlerv1.Begin, handlerfake.Stream) error {
		t.Error("the handler ran")
		return nil
	})
	got := s.call(`"arguments":{"n":"seven"}`)
	if string(got.Result["isError"]) != "true" || !strings.Contains(string(got.Result["content"]), "want integer") {
		t.Errorf("got %v, %v", got.Result, got.Error)
	}
}

func TestForeignTextPassesThroughUnread(t *testing.T) {
	s := newSuite(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_CallTool{CallTool: &handlerv1.CallToolResult{
			StructuredContent: begin.GetCallTool().GetArguments(), Meta: begin.GetMeta(),
		}}})
	})
	arguments := `{ "n": 9007199254740993,` + "\n" + `"x":[1e400, 1.0, 0.1000, -9223372036854775808, "\u00e9\ud83d\ude00"], "requeſtState": null, "future":{}}`
	reply := s.do(request{method: "tools/call", params: `"name":"ask","arguments":` + arguments + `,` + meta(`{}`, `"com.example/trace":{"n":1e400}`)})
	if !strings.Contains(reply.body, `"structuredContent":`+arguments) || !strings.Contains(reply.body, `"com.example/trace":{"n":1e400}`) {
		t.Errorf("got %s", reply.body)
	}
}

func TestProgressAndLogsGoWhereTheyAreWanted(t *testing.T) {
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		total := 100.0
		for _, value := range []float64{0, 50, 50, 10, 100} {
			if err := stream.Send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Progress{Progress: &handlerv1.Progress{Progress: value, Total: &total, Message: "half"}}}); err != nil {
				return err
			}
		}
		for _, level := range []handlerv1.LogLevel{handlerv1.LogLevel_LOG_LEVEL_DEBUG, handlerv1.LogLevel_LOG_LEVEL_ERROR} {
			if err := stream.Send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Log{Log: &handlerv1.Log{Level: level, Data: []byte("{\n\"n\":1e400}")}}}); err != nil {
				return err
			}
		}
		return handlerfake.FinishText(stream, "done")
	})
	progress := func(value string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":` + value + `,"total":100,"message":"half"}}`
	}
	log := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":{ "n":1e400}}}`
	for name, test := range map[string]struct {
		meta []string
		want []string
	}{
		"neither":  {nil, nil},
		"progress": {[]string{`"progressToken":"t"`}, []string{progress("0"), progress("50"), progress("100")}},
		"logs":     {[]string{`"io.modelcontextprotocol/logLevel":"info"`}, []string{log}},
		"both":     {[]string{`"progressToken":"t"`, `"io.modelcontextprotocol/logLevel":"info"`}, []string{progress("0"), progress("50"), progress("100"), log}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{t: t, url: s.url, client: s.client}
			got := s.do(request{method: "tools/call", params: `"name":"ask",` + meta(`{}`, test.meta...)})
			if strings.Join(got.events, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got events\n%s\nwant\n%s", strings.Join(got.events, "\n"), strings.Join(test.want, "\n"))
			}
			if got.parse(t).Result == nil || (len(test.want) > 0) != (got.header.Get("X-Accel-Buffering") == "no") {
				t.Errorf("got %s with headers %v", got.message, got.header)
			}
		})
	}
	if dropped := s.metric("countersign_edge_dropped_progress_total"); dropped != 4 {
		t.Errorf("dropped progress: %v", dropped)
	}
}

func TestRequestsWithTheSameIDEachGetTheirOwnAnswer(t *testing.T) {
	s := newSuite(t, echo)
	type answer struct{ want, got string }
	answers := make(chan answer)
	const requests = 50
	for i := range requests {
		go func() {
			id, n := "1", string(rune('a'+i%26))
			if i%2 == 0 {
				id = `"1"`
			}
			got := s.do(request{method: "tools/call", id: id, params: `"name":"ask","arguments":{"x":"` + n + `"},` + meta(`{}`)})
			answers <- answer{id + `\"` + n + `\"`, string(got.parse(t).ID) + got.body}
		}()
	}
	for range requests {
		a := <-answers
		id, text, _ := strings.Cut(a.want, `\`)
		if !strings.HasPrefix(a.got, id+"{") || !strings.Contains(a.got, `\`+text) {
			t.Errorf("want %s, got %s", a.want, a.got)
		}
	}
}

func TestHandlersThatBreakTheContractAreNamedAndNeverHang(t *testing.T) {
	finish := func(result *handlerv1.CallToolResult) func(*handlerv1.Begin, handlerfake.Stream) error {
		return func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
			return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_CallTool{CallTool: result}})
		}
	}
	for name, run := range map[string]func(*handlerv1.Begin, handlerfake.Stream) error{
		"no finish": func(*handlerv1.Begin, handlerfake.Stream) error { return nil },
		"empty message": func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
			return stream.Send(&handlerv1.InvokeResponse{})
		},
		"no outcome": func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
			return handlerfake.Finish(stream, &handlerv1.Finish{})
		},
		"other kind": func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
			return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_GetPrompt{}})
		},
		"structured: broken": finish(&handlerv1.CallToolResult{StructuredContent: []byte(`{"a":1,"a":2}`)}),
		"meta: array":        finish(&handlerv1.CallToolResult{Meta: []byte(`[]`)}),
		"meta: reserved":     finish(&handlerv1.CallToolResult{Meta: []byte(`{"io.modelcontextprotocol/serverInfo":{}}`)}),
		"raw: not an object": finish(&handlerv1.CallToolResult{Content: []*handlerv1.ContentBlock{{Content: &handlerv1.ContentBlock_Raw{Raw: []byte(`1`)}}}}),
		"empty block":        finish(&handlerv1.CallToolResult{Content: []*handlerv1.ContentBlock{{}}}),
		"after the finish": func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
			if err := handlerfake.FinishText(stream, "x"); err != nil {
				return err
			}
			return stream.Send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Progress{Progress: &handlerv1.Progress{}}})
		},
		"reserved code": func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
			return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_Error{Error: &handlerv1.Error{Kind: handlerv1.ErrorKind_ERROR_KIND_APPLICATION, ApplicationCode: -32020}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSuite(t, run)
			got := s.call()
			if got.Error == nil || got.Error.Code != -32603 || !strings.Contains(got.Error.Message, "malformed") {
				t.Errorf("got %v, %+v", got.Result, got.Error)
			}
			if s.metric("countersign_edge_requests_total", "reason=handler_malformed") != 1 {
				t.Error("it was not counted")
			}
		})
	}
}

func TestOnlyWhatMayBeRepeatedIsTriedAgain(t *testing.T) {
	runs := 0
	s := newSuite(t, func(begin *handlerv1.Begin, stream handlerfake.Stream) error {
		runs++
		if runs > 1 {
			return handlerfake.FinishText(stream, "done")
		}
		if begin.GetWantsProgress() {
			if err := stream.Send(&handlerv1.InvokeResponse{Message: &handlerv1.InvokeResponse_Progress{Progress: &handlerv1.Progress{}}}); err != nil {
				return err
			}
		}
		return status.Error(codes.Unavailable, "the replica is going away")
	})
	for _, test := range []struct {
		tool, meta   string
		runs, status int
	}{{"look", "", 2, 200}, {"look", `"progressToken":1`, 1, 200}, {"ask", "", 1, 503}, {"destroy", "", 1, 503}} {
		runs = 0
		var more []string
		if test.meta != "" {
			more = append(more, test.meta)
		}
		reply := s.do(request{method: "tools/call", params: `"name":"` + test.tool + `",` + meta(`{}`, more...)})
		if runs != test.runs || reply.status != test.status || (reply.parse(t).Error == nil) != (test.runs == 2) {
			t.Errorf("%s: %d runs, status %d, %s", test.tool, runs, reply.status, reply.message)
		}
	}
}

func TestStructuredContentMustMatchTheOutputSchema(t *testing.T) {
	var result *handlerv1.CallToolResult
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_CallTool{CallTool: result}})
	})
	for name, test := range map[string]struct {
		result *handlerv1.CallToolResult
		ok     bool
	}{
		"matches":         {&handlerv1.CallToolResult{StructuredContent: []byte(`{"n":9007199254740993}`)}, true},
		"does not match":  {&handlerv1.CallToolResult{StructuredContent: []byte(`{"n":"secret"}`)}, false},
		"is missing":      {&handlerv1.CallToolResult{}, false},
		"is not JSON":     {&handlerv1.CallToolResult{StructuredContent: []byte(`{`)}, false},
		"the tool failed": {&handlerv1.CallToolResult{IsError: true}, true},
	} {
		result = test.result
		reply := s.do(request{method: "tools/call", params: `"name":"typed",` + meta(`{}`)})
		if got := reply.parse(t); (got.Error == nil) != test.ok || !test.ok && got.Error.Code != -32603 {
			t.Errorf("%s: got %s", name, reply.body)
		}
	}
	if logs := s.logs.String(); !strings.Contains(logs, "output schema") || strings.Contains(logs, "secret") {
		t.Errorf("the log must say what is wrong and not what was said: %s", logs)
	}
}

func TestAStatusOfAHandlerIsNamedAndItsWordsStayOutOfTheLog(t *testing.T) {
	var code codes.Code
	s := newSuite(t, func(*handlerv1.Begin, handlerfake.Stream) error { return status.Error(code, "secret argument") })
	for _, test := range []struct {
		code   codes.Code
		status int
		reason string
	}{
		{codes.Internal, 200, "handler_failed"},
		{codes.InvalidArgument, 200, "handler_failed"},
		{codes.ResourceExhausted, 503, "handler_unavailable"},
		{codes.Unavailable, 503, "handler_unavailable"},
		{codes.DeadlineExceeded, 200, "handler_timeout"},
	} {
		code = test.code
		before := s.metric("countersign_edge_requests_total", "reason="+test.reason)
		if got := s.do(request{method: "tools/call", params: `"name":"ask",` + meta(`{}`)}); got.status != test.status || strings.Contains(got.body, "secret") {
			t.Errorf("%v: got status %d, %s", code, got.status, got.body)
		}
		if s.metric("countersign_edge_requests_total", "reason="+test.reason) != before+1 {
			t.Errorf("%v: the reason %s was not counted", code, test.reason)
		}
	}
	if logs := s.logs.String(); strings.Contains(logs, "secret") || !strings.Contains(logs, "gRPC status Internal") {
		t.Errorf("the log: %s", logs)
	}
}

func TestWhatAHandlerNotYetReachedMayOfferIsNotUnknown(t *testing.T) {
	s := newSuite(t, echo, func(o *options) { o.more = []*handlerv1.Catalog{nil} })
	for method, params := range map[string]string{
		"tools/call": `"name":"none",`, "prompts/get": `"name":"none",`, "resources/read": `"uri":"x://none",`,
		"completion/complete": `"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"a","value":""},`,
	} {
		if got := s.do(request{method: method, params: params + meta(`{}`)}); got.status != http.StatusServiceUnavailable {
			t.Errorf("%s: got status %d, %s", method, got.status, got.body)
		}
	}
	if got := s.do(request{method: "tools/call", params: `"name":"ask",` + meta(`{}`)}); got.status != http.StatusOK || got.parse(t).Error != nil {
		t.Errorf("what another handler offers: got status %d, %s", got.status, got.body)
	}
}

func TestAResultBeyondTheLimitIsANamedError(t *testing.T) {
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		return handlerfake.FinishText(stream, strings.Repeat("x", 5<<20)) // gRPC's own limit is 4 MiB
	})
	if got := s.call(); got.Error == nil || got.Error.Code != -32603 || got.Error.Message != "the result is too large" {
		t.Errorf("got %s, %+v", got.Result, got.Error)
	}
	if s.metric("countersign_edge_requests_total", "reason=handler_message_too_large") != 1 {
		t.Error("it was not counted")
	}
}

func TestWithoutAnyHandlerAListIsAnErrorAndNotEmpty(t *testing.T) {
	s := newSuite(t, echo, func(o *options) { o.catalog = nil })
	for method, params := range map[string]string{"tools/list": "", "tools/call": `"name":"ask",`, "resources/read": `"uri":"x://1",`, "subscriptions/listen": `"notifications":{},`} {
		got := s.do(request{method: method, params: params + meta(`{}`)})
		if p := got.parse(t); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || p.Error == nil || p.Error.Code != -32603 {
			t.Errorf("%s: got status %d, %s", method, got.status, got.body)
		}
	}
	if got := s.do(request{method: "server/discover", params: meta(`{}`)}); got.status != http.StatusOK {
		t.Errorf("discover: got status %d, %s", got.status, got.body)
	}
}

func TestErrorsOfAHandlerReachTheClientAsTheirKind(t *testing.T) {
	var failed *handlerv1.Error
	s := newSuite(t, func(_ *handlerv1.Begin, stream handlerfake.Stream) error {
		return handlerfake.Finish(stream, &handlerv1.Finish{Outcome: &handlerv1.Finish_Error{Error: failed}})
	})
	for _, test := range []struct {
		kind   handlerv1.ErrorKind
		code   int32
		want   int
		status int
		data   string
	}{
		{handlerv1.ErrorKind_ERROR_KIND_UNSPECIFIED, 0, -32603, 200, `{"n":1e400}`},
		{handlerv1.ErrorKind_ERROR_KIND_INTERNAL, 0, -32603, 200, `{"n":1e400}`},
		{handlerv1.ErrorKind_ERROR_KIND_INVALID_PARAMS, 0, -32602, 200, `{"n":1e400}`},
		{handlerv1.ErrorKind_ERROR_KIND_RESOURCE_NOT_FOUND, 0, -32602, 200, `{"uri":"orders://7"}`},
		{handlerv1.ErrorKind_ERROR_KIND_APPLICATION, 402, 402, 200, `{"n":1e400}`},
		{handlerv1.ErrorKind_ERROR_KIND_UNAVAILABLE, 0, -32603, 503, `{"n":1e400}`},
	} {
		failed = &handlerv1.Error{Kind: test.kind, Message: "no such luck", Data: []byte(`{"n":1e400}`), ApplicationCode: test.code}
		reply := s.do(request{method: "resources/read", params: `"uri":"orders://7",` + meta(`{}`)})
		got := reply.parse(t)
		if got.Error == nil || got.Error.Code != test.want || got.Error.Message != "no such luck" || string(got.Error.Data) != test.data || reply.status != test.status || (test.status == 503) != (reply.header.Get("Retry-After") != "") {
			t.Errorf("%v: got status %d, %s", test.kind, reply.status, reply.body)
		}
	}
}

func TestCompletionsComeFromTheHandlerOfTheReference(t *testing.T) {
	s := newSuite(t, echo)
	ask := func(params string) parsed {
		return s.do(request{method: "completion/complete", params: params + `,` + meta(`{}`)}).parse(t)
	}
	prompt := `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"a"},"context":{"arguments":{"how":"well"}}`
	if got := ask(prompt); string(got.Result["completion"]) != `{"values":[],"hasMore":false}` {
		t.Errorf("a handler without completions: got %s, %+v", got.Result["completion"], got.Error)
	}
	s.handler.Suggest = func(r *handlerv1.CompleteRequest) *handlerv1.CompleteResponse {
		return &handlerv1.CompleteResponse{Values: append(make([]string, 150), r.GetPromptName()+r.GetUriTemplate()+r.GetContextArguments()["how"])[150-99:]}
	}
	var values struct {
		Values  []string `json:"values"`
		HasMore bool     `json:"hasMore"`
	}
	if err := json.Unmarshal(ask(prompt).Result["completion"], &values); err != nil || values.Values[99] != "greetwell" || len(values.Values) != 100 || values.HasMore {
		t.Errorf("got %v, %v", values, err)
	}
	if got := ask(`"ref":{"type":"ref/resource","uri":"orders://{id}"},"argument":{"name":"id","value":""}`); got.Error != nil {
		t.Errorf("got %+v", got.Error)
	}
	for _, params := range []string{
		`"ref":{"type":"ref/prompt","name":"none"},"argument":{"name":"a","value":""}`,
		`"ref":{"type":"ref/resource","uri":"orders://7"},"argument":{"name":"a","value":""}`,
		`"ref":{"type":"other"},"argument":{"name":"a","value":""}`,
		`"ref":{"type":"ref/prompt","name":"greet"}`,
		`"argument":{"name":"a","value":""}`,
	} {
		if got := ask(params); got.Error == nil || got.Error.Code != -32602 {
			t.Errorf("%s: got %v, %+v", params, got.Result, got.Error)
		}
	}
}
