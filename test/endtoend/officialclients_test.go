package endtoend_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// officialClient is a script that calls a tool with an official client.
type officialClient struct {
	name    string
	command []string
}

func officialClients(t *testing.T) []officialClient {
	t.Helper()
	scripts := filepath.Join(deployment.Root(), "test")
	return []officialClient{
		{name: "TypeScript", command: []string{"node", installed(t, scripts, "typescript", "call.mjs", "node_modules")}},
		{name: "Python", command: []string{deployment.Python(t), installed(t, scripts, "python", "call.py", "")}},
	}
}

// installed is the path of a script whose packages must be there.
func installed(t *testing.T, scripts, folder, script, packages string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(scripts, folder, packages)); err != nil {
		t.Fatalf("the packages of test/%s are not installed; `make test-end-to-end` installs them: %v", folder, err)
	}
	return filepath.Join(scripts, folder, script)
}

// called is what the scripts print.
type called struct {
	Revision string   `json:"revision"`
	Asked    []string `json:"asked"`
	Result   struct {
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
}

// call calls a tool and answers its questions.
func (c officialClient) call(t *testing.T, url, tool, arguments, answers string) called {
	t.Helper()
	command := exec.CommandContext(t.Context(), c.command[0], append(c.command[1:], url, tool, arguments, answers)...)
	var output, errors bytes.Buffer
	command.Stdout, command.Stderr = &output, &errors
	if err := command.Run(); err != nil {
		t.Fatalf("the %s client failed: %v\n%s", c.name, err, errors.String())
	}
	var result called
	if err := json.Unmarshal(output.Bytes(), &result); err != nil {
		t.Fatalf("read what the %s client printed: %v\n%s", c.name, err, output.String())
	}
	return result
}

// refund is the refund tool's result.
type refund struct {
	RefundID    string   `json:"refund_id"`
	AmountCents int64    `json:"amount_cents"`
	Currency    string   `json:"currency"`
	Items       []string `json:"items"`
}

func TestOfficialClientsCompleteTheRefund(t *testing.T) {
	handlers := examples(t)
	sealer := deployment.Sealer{}.Start(t)
	for _, protection := range []struct {
		name    string
		encrypt bool
		purpose string
	}{
		{name: "HMAC", encrypt: false, purpose: "request_state"},
		{name: "AES-GCM", encrypt: true, purpose: "encrypted_request_state"},
	} {
		edge := deployment.Edge{Sealer: sealer, Handlers: handlers, Encrypt: protection.encrypt}.Start(t)
		for _, official := range officialClients(t) {
			t.Run(protection.name+"/"+official.name, func(t *testing.T) {
				opened := sealer.Metrics(t).Sum("countersign_open_total", "purpose="+protection.purpose, "result=ok")
				got := official.call(t, edge.MCP(), "refund", `{"order_id":"A-1001"}`,
					`{"items":["TEA-250","CUP-2"],"confirm":true}`)
				if got.Revision != client.Revision {
					t.Errorf("the revision is %q, want %q", got.Revision, client.Revision)
				}
				if len(got.Asked) != 2 || !strings.HasPrefix(got.Asked[0], "Which items") ||
					!strings.HasPrefix(got.Asked[1], "Refund 36.50 EUR") {
					t.Errorf("the user was asked %q, want the items and then a confirmation", got.Asked)
				}
				var refunded refund
				if err := json.Unmarshal(got.Result.StructuredContent, &refunded); err != nil {
					t.Fatalf("read the refund: %v", err)
				}
				if refunded.RefundID == "" || refunded.AmountCents != 3650 ||
					!reflect.DeepEqual(refunded.Items, []string{"TEA-250", "CUP-2"}) {
					t.Errorf("the refund is %+v, want 36.50 EUR for the tea and the cups", refunded)
				}
				reopened := sealer.Metrics(t).Sum("countersign_open_total", "purpose="+protection.purpose, "result=ok")
				if reopened != opened+2 {
					t.Errorf("the sealer opened %v states as %s, want 2", reopened-opened, protection.purpose)
				}
			})
		}
	}
}

func TestOfficialClientsDeclineTheRefund(t *testing.T) {
	edge := deployment.Edge{Sealer: deployment.Sealer{}.Start(t), Handlers: examples(t)}.Start(t)
	for _, official := range officialClients(t) {
		t.Run(official.name, func(t *testing.T) {
			got := official.call(t, edge.MCP(), "refund", `{"order_id":"A-1001"}`, `{"items":["POT-1"]}`)
			var refunded refund
			if err := json.Unmarshal(got.Result.StructuredContent, &refunded); err != nil {
				t.Fatalf("read the refund: %v", err)
			}
			if len(got.Asked) != 2 || refunded.RefundID != "" || refunded.AmountCents != 0 {
				t.Errorf("asked %q and refunded %+v, want two questions and no refund", got.Asked, refunded)
			}
		})
	}
}
