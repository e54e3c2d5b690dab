package endtoend_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/countersign-mcp/countersign/test/client"
	"github.com/countersign-mcp/countersign/test/deployment"
)

// invalidState is what a client is told about every request state that is not good,
// byte for byte.
const invalidState = "the requestState is not valid"

// JSON-RPC codes.
const (
	codeInvalidParams = -32602
	codeInternal      = -32603
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// examples starts the example handler services.
func examples(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"refunds":    deployment.StartHandler(t, "refunds").Address,
		"everything": deployment.StartHandler(t, "everything").Address,
	}
}

// newClient returns a client whose connections are closed with the test.
func newClient(t *testing.T, url string) *client.Client {
	t.Helper()
	c := client.New(url)
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return c
}

// result is the result of a reply that must be one of the given type.
func result(t *testing.T, reply *client.Reply, err error, resultType string) *client.Result {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if reply.Error != nil {
		t.Fatalf("the reply is %v with HTTP status %d, want a result", reply.Error, reply.Status)
	}
	if reply.Result.Type != resultType {
		t.Fatalf("the result is %q, want %q: %s", reply.Result.Type, resultType, reply.Body)
	}
	return reply.Result
}

// failure is the error of a reply that must be one.
func failure(t *testing.T, reply *client.Reply, err error, status, code int) *client.Error {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if reply.Error == nil {
		t.Fatalf("the reply is a result, want an error: %s", reply.Body)
	}
	if reply.Error.Code != code || reply.Status != status {
		t.Fatalf("the reply is %v with HTTP status %d, want code %d and status %d",
			reply.Error, reply.Status, code, status)
	}
	return reply.Error
}
