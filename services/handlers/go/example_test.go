package handler_test //nolint:testableexamples // the example serves until it is told to stop

import (
	"context"
	"log/slog"
	"os"
	"os/signal"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

type deleteInput struct {
	File string `json:"file" jsonschema:"The file to delete."`
}

type deleteOutput struct {
	Deleted bool `json:"deleted"`
}

func deleteFile(ctx *handler.Context, in deleteInput) (deleteOutput, error) {
	action, err := ctx.Confirm("Delete " + in.File + "?")
	if err != nil {
		return deleteOutput{}, err
	}
	if action != handler.Accept {
		return deleteOutput{Deleted: false}, nil
	}
	return deleteOutput{Deleted: true}, os.Remove(in.File)
}

// A handler service in twenty lines: a tool that asks before it acts.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := handler.NewServer("files")
	handler.Tool(server, "delete_file", deleteFile,
		handler.Description("Deletes a file after the user has confirmed."), handler.Destructive())
	if err := handler.Run(ctx, server, handler.Options{Listen: "127.0.0.1:9104"}); err != nil {
		slog.ErrorContext(ctx, "the service ended", "error", err)
	}
}
