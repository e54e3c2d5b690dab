package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

// content is what a tool says.
func content(t *testing.T, tool string) []*handlerv1.ContentBlock {
	t.Helper()
	outcome := handlertest.Run(t, newServer, handlertest.CallTool(tool, nil), nil)
	result := outcome.Finish.GetCallTool()
	if result == nil || result.GetIsError() {
		t.Fatalf("%s ended with %v", tool, outcome.Finish)
	}
	return result.GetContent()
}

func TestSaysText(t *testing.T) {
	blocks := content(t, "test_simple_text")
	if len(blocks) != 1 || blocks[0].GetText().GetText() != "This is a simple text response for testing." {
		t.Errorf("said %v", blocks)
	}
}

func TestShowsOneRedPixel(t *testing.T) {
	blocks := content(t, "test_image_content")
	if len(blocks) != 1 || blocks[0].GetImage().GetMimeType() != "image/png" {
		t.Fatalf("said %v", blocks)
	}
	picture, err := png.Decode(bytes.NewReader(blocks[0].GetImage().GetData()))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != 1 || size.Y != 1 {
		t.Errorf("the picture has a size of %v", size)
	}
	if red, green, blue, alpha := picture.At(0, 0).RGBA(); red != 0xffff || green != 0 || blue != 0 || alpha != 0xffff {
		t.Errorf("the pixel is %x %x %x %x", red, green, blue, alpha)
	}
}

func TestPlaysAWaveFile(t *testing.T) {
	blocks := content(t, "test_audio_content")
	if len(blocks) != 1 || blocks[0].GetAudio().GetMimeType() != "audio/wav" {
		t.Fatalf("said %v", blocks)
	}
	file := blocks[0].GetAudio().GetData()
	if len(file) < 44 || string(file[:4]) != "RIFF" || string(file[8:16]) != "WAVEfmt " || string(file[36:40]) != "data" {
		t.Fatalf("not a wave file: %x", file)
	}
	if length := binary.LittleEndian.Uint32(file[4:]); int(length) != len(file)-8 {
		t.Errorf("the file says %d bytes follow, and %d do", length, len(file)-8)
	}
	if length := binary.LittleEndian.Uint32(file[40:]); int(length) != len(file)-44 || length == 0 {
		t.Errorf("the file says it has %d samples, and has %d", length, len(file)-44)
	}
}

func TestEmbedsAResource(t *testing.T) {
	blocks := content(t, "test_embedded_resource")
	if len(blocks) != 1 {
		t.Fatalf("said %v", blocks)
	}
	embedded := blocks[0].GetResource().GetContents()
	if embedded.GetUri() != "test://embedded-resource" || embedded.GetMimeType() != "text/plain" ||
		embedded.GetText() != "This is an embedded resource content." {
		t.Errorf("embedded %v", embedded)
	}
}

func TestMixesKindsOfContent(t *testing.T) {
	blocks := content(t, "test_multiple_content_types")
	if len(blocks) != 3 || blocks[0].GetText() == nil || blocks[1].GetImage() == nil || blocks[2].GetResource() == nil {
		t.Errorf("said %v", blocks)
	}
}

func TestFailsWithAResult(t *testing.T) {
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("test_error_handling", nil), nil)
	if !outcome.IsError() ||
		outcome.Text() != "this tool intentionally returns an error for testing" {
		t.Errorf("ended with %v", outcome.Finish)
	}
}

func TestReportsProgressInOrder(t *testing.T) {
	outcome := handlertest.Run(t, newServer, handlertest.CallTool("test_tool_with_progress", nil), nil)
	if len(outcome.Progress) != 3 {
		t.Fatalf("reported %v", outcome.Progress)
	}
	for i, want := range []float64{0, 50, 100} {
		if got := outcome.Progress[i]; got.GetProgress() != want || got.GetTotal() != 100 {
			t.Errorf("report %d is %v, want %v of 100", i, got, want)
		}
	}
}

func TestLogs(t *testing.T) {
	for tool, levels := range map[string][]handlerv1.LogLevel{
		"test_tool_with_logging": {
			handlerv1.LogLevel_LOG_LEVEL_INFO, handlerv1.LogLevel_LOG_LEVEL_INFO, handlerv1.LogLevel_LOG_LEVEL_INFO,
		},
		"test_logging_tool": {
			handlerv1.LogLevel_LOG_LEVEL_DEBUG, handlerv1.LogLevel_LOG_LEVEL_INFO, handlerv1.LogLevel_LOG_LEVEL_ERROR,
		},
	} {
		t.Run(tool, func(t *testing.T) {
			outcome := handlertest.Run(t, newServer, handlertest.CallTool(tool, nil), nil)
			if len(outcome.Logs) != len(levels) {
				t.Fatalf("logged %v", outcome.Logs)
			}
			for i, level := range levels {
				if outcome.Logs[i].GetLevel() != level {
					t.Errorf("message %d is %v, want the level %v", i, outcome.Logs[i], level)
				}
			}
		})
	}
}

func TestDescribesWhatItIsGiven(t *testing.T) {
	for _, test := range []struct{ tool, arguments, text string }{
		{
			"json_schema_2020_12_tool",
			`{"name":"Alice","address":{"street":"High Street 1","city":"Bath"},"contactMethod":"phone","phone":"12","email":"a@example.com"}`,
			`"Alice" of "Bath" is reached at "12".`,
		},
		{
			"json_schema_2020_12_tool",
			`{"name":"Alice","email":"a@example.com"}`,
			`"Alice" of "" is reached at "a@example.com".`,
		},
		{"test_x_mcp_header", `{"region":"us-west1","level":9007199254740993}`, `The region is "us-west1" and the level 9007199254740993.`},
		{"test_x_mcp_header", `{"region":"Hello"}`, `The region is "Hello" and the level 0.`},
	} {
		outcome := handlertest.Run(t, newServer, handlertest.CallTool(test.tool, json.RawMessage(test.arguments)), nil)
		if outcome.Text() != test.text {
			t.Errorf("%s of %s is %q, want %q", test.tool, test.arguments, outcome.Text(), test.text)
		}
	}
}

func TestSchemasAreListedAsTheyAreWritten(t *testing.T) {
	written := map[string]string{"json_schema_2020_12_tool": contactSchema, "test_x_mcp_header": regionSchema}
	for _, tool := range catalog(t, handlertest.Serve(t, newServer())).GetTools() {
		want, byHand := written[tool.GetName()]
		if byHand && string(tool.GetInputSchema()) != want {
			t.Errorf("the schema of %s is %s", tool.GetName(), tool.GetInputSchema())
		}
		delete(written, tool.GetName())
	}
	if len(written) > 0 {
		t.Errorf("not listed: %v", written)
	}
}
