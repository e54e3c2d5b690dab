package handler_test //nolint:testableexamples // the example serves until it is told to stop

import (
	"context"
	"log"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

type account struct {
	Number string `json:"number" jsonschema:"The number of the account."`
}

func closeAccount(ctx *handler.Context, in account) (string, error) {
	action, err := ctx.Confirm("Close account "+in.Number+" for good?", handler.Key("confirm"))
	if err != nil || action != handler.Accept {
		return "Nothing was closed.", err
	}
	return "Account " + in.Number + " is closed.", nil
}

// A handler service in twenty lines: a tool that asks before it acts.
func Example() {
	server := handler.NewServer("accounts")
	handler.Tool(server, "close_account", closeAccount,
		handler.Description("Closes an account after the user has confirmed."), handler.Destructive())
	log.Fatal(handler.Run(context.Background(), server, handler.Options{Listen: "127.0.0.1:9104"}))
}
