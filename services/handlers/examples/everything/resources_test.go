package main

import (
	"bytes"
	"encoding/json"
	"image/png"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/handlers/go/handlertest"
)

// read is what one resource holds.
func read(t *testing.T, request handlertest.Request) *handlerv1.ResourceContents {
	t.Helper()
	outcome := handlertest.Run(t, newServer, request, nil)
	contents := outcome.Finish.GetReadResource().GetContents()
	if len(contents) != 1 {
		t.Fatalf("ended with %v", outcome.Finish)
	}
	return contents[0]
}

func TestReadsText(t *testing.T) {
	contents := read(t, handlertest.ReadResource("test://static-text"))
	if contents.GetUri() != "test://static-text" || contents.GetMimeType() != "text/plain" ||
		contents.GetText() != "This is the content of the static text resource." {
		t.Errorf("read %v", contents)
	}
}

func TestReadsAPicture(t *testing.T) {
	contents := read(t, handlertest.ReadResource("test://static-binary"))
	if contents.GetUri() != "test://static-binary" || contents.GetMimeType() != "image/png" {
		t.Errorf("read %v", contents)
	}
	if _, err := png.Decode(bytes.NewReader(contents.GetBlob())); err != nil {
		t.Error(err)
	}
}

func TestReadsTheRecordOfAnID(t *testing.T) {
	contents := read(t, handlertest.ReadTemplated("test://template/12%223/data", "test://template/{id}/data"))
	var record struct {
		ID   string `json:"id"`
		Data string `json:"data"`
	}
	if err := json.Unmarshal([]byte(contents.GetText()), &record); err != nil {
		t.Fatal(err)
	}
	if record.ID != `12"3` || record.Data != `Data for ID: 12"3` || contents.GetMimeType() != "application/json" {
		t.Errorf("read %v", contents)
	}
}
