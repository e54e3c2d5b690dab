package main

import (
	"errors"
	"time"

	handler "github.com/countersign-mcp/countersign/services/handlers/go"
)

// registerTools adds the tools that answer by themselves: one for each kind of
// content, and those that fail, report progress and log.
func registerTools(server *handler.Server) {
	handler.Tool(server, "test_simple_text", simpleText,
		handler.Description("Returns a text."), handler.ReadOnly())
	handler.Tool(server, "test_image_content", imageContent,
		handler.Description("Returns a picture of one red pixel."), handler.ReadOnly())
	handler.Tool(server, "test_audio_content", audioContent,
		handler.Description("Returns a moment of silence."), handler.ReadOnly())
	handler.Tool(server, "test_embedded_resource", embeddedResource,
		handler.Description("Returns a resource inside the result."), handler.ReadOnly())
	handler.Tool(server, "test_multiple_content_types", multipleContentTypes,
		handler.Description("Returns a text, a picture and a resource together."), handler.ReadOnly())
	handler.Tool(server, "test_error_handling", fail,
		handler.Description("Fails in a way that a model can read."), handler.ReadOnly())
	handler.Tool(server, "test_tool_with_progress", reportProgress,
		handler.Description("Reports progress three times while it works."), handler.ReadOnly())
	handler.Tool(server, "test_tool_with_logging", logAtIntervals,
		handler.Description("Sends three log messages while it works."), handler.ReadOnly())
	handler.Tool(server, "test_logging_tool", logAtOnce,
		handler.Description("Logs at several levels; only a client that asks for logs sees them."), handler.ReadOnly())
}

func simpleText(*handler.Context, none) (string, error) {
	return "This is a simple text response for testing.", nil
}

func imageContent(*handler.Context, none) (*handler.Result, error) {
	return &handler.Result{Content: []handler.Content{redPixel()}}, nil
}

func audioContent(*handler.Context, none) (*handler.Result, error) {
	return &handler.Result{Content: []handler.Content{handler.Audio("audio/wav", silence())}}, nil
}

func embeddedResource(*handler.Context, none) (*handler.Result, error) {
	return &handler.Result{Content: []handler.Content{
		handler.Embed(handler.TextContents("text/plain", "This is an embedded resource content.").
			At("test://embedded-resource")),
	}}, nil
}

func multipleContentTypes(*handler.Context, none) (*handler.Result, error) {
	return &handler.Result{Content: []handler.Content{
		handler.Text("Multiple content types test:"),
		redPixel(),
		handler.Embed(handler.TextContents("application/json", `{"test":"data","value":123}`).
			At("test://mixed-content-resource")),
	}}, nil
}

func fail(*handler.Context, none) (string, error) {
	return "", errors.New("this tool intentionally returns an error for testing")
}

// step is how long the tools that report something work in between: long enough
// for a client to tell the reports apart.
const step = 50 * time.Millisecond

func reportProgress(ctx *handler.Context, _ none) (string, error) {
	const total = 100
	for _, report := range []struct {
		done    float64
		message string
	}{{0, "started"}, {total / 2, "half done"}, {total, "done"}} {
		if err := ctx.Progress(report.done, total, report.message); err != nil {
			return "", err
		}
		if err := work(ctx); err != nil {
			return "", err
		}
	}
	return "Reported progress three times.", nil
}

func logAtIntervals(ctx *handler.Context, _ none) (string, error) {
	for _, message := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if err := ctx.Log(handler.LevelInfo, "", message); err != nil {
			return "", err
		}
		if err := work(ctx); err != nil {
			return "", err
		}
	}
	return "Logged three times.", nil
}

func logAtOnce(ctx *handler.Context, _ none) (string, error) {
	for _, level := range []handler.Level{handler.LevelDebug, handler.LevelInfo, handler.LevelError} {
		if err := ctx.Log(level, "everything", map[string]string{"message": "This is for a client that asks for logs."}); err != nil {
			return "", err
		}
	}
	return "Logged at the levels debug, info and error.", nil
}

// work takes one step of time, or less when nobody waits for the result any more.
func work(ctx *handler.Context) error {
	timer := time.NewTimer(step)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
