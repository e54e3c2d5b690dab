package render

import (
	"math"
	"testing"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

func text(s string) *handlerv1.ContentBlock {
	return &handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Text{Text: &handlerv1.TextContent{Text: s}}}
}

func TestContentBlocksAreWrittenAsMCPReadsThem(t *testing.T) {
	priority, size := 0.5, uint64(7)
	annotated := text("a \"b\" </script> é\n")
	annotated.Annotations = &handlerv1.Annotations{Audience: []handlerv1.Role{handlerv1.Role_ROLE_USER, handlerv1.Role_ROLE_ASSISTANT}, Priority: &priority, LastModified: "2026-01-01"}
	annotated.Meta = []byte(`{"n":1e400}`)
	for _, test := range []struct {
		block *handlerv1.ContentBlock
		want  string
	}{
		{text(""), `{"type":"text","text":""}`},
		{annotated, `{"type":"text","text":"a \"b\" </script> é\n","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-01-01"},"_meta":{"n":1e400}}`},
		{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Image{Image: &handlerv1.ImageContent{Data: []byte{0xff, 0xfe, 0}, MimeType: "image/png"}}}, `{"type":"image","data":"//4A","mimeType":"image/png"}`},
		{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Audio{Audio: &handlerv1.AudioContent{Data: []byte{1}, MimeType: "audio/wav"}}}, `{"type":"audio","data":"AQ==","mimeType":"audio/wav"}`},
		{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_ResourceLink{ResourceLink: &handlerv1.ResourceLink{Uri: "x://1", Name: "one", Title: "One", Description: "d", MimeType: "text/plain", Size: &size}}}, `{"type":"resource_link","uri":"x://1","name":"one","title":"One","description":"d","mimeType":"text/plain","size":7}`},
		{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Resource{Resource: &handlerv1.EmbeddedResource{Contents: &handlerv1.ResourceContents{Uri: "x://1", MimeType: "text/plain", Body: &handlerv1.ResourceContents_Text{Text: "t"}, Meta: []byte(`{}`)}}}}, `{"type":"resource","resource":{"uri":"x://1","mimeType":"text/plain","text":"t","_meta":{}}}`},
		{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Resource{Resource: &handlerv1.EmbeddedResource{Contents: &handlerv1.ResourceContents{Uri: "x://1", Body: &handlerv1.ResourceContents_Blob{Blob: []byte{1}}}}}}, `{"type":"resource","resource":{"uri":"x://1","blob":"AQ=="}}`},
		{&handlerv1.ContentBlock{Content: &handlerv1.ContentBlock_Raw{Raw: []byte(`{"type":"future", "n": 1.0}`)}}, `{"type":"future", "n": 1.0}`},
	} {
		got, err := AppendContentBlock(nil, test.block)
		if err != nil || string(got) != test.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
		}
	}
}

func TestWhatIsNotTheContractIsAnError(t *testing.T) {
	nan := math.NaN()
	for name, block := range map[string]*handlerv1.ContentBlock{
		"nothing":               {},
		"raw beside meta":       {Content: &handlerv1.ContentBlock_Raw{Raw: []byte(`{}`)}, Meta: []byte(`{}`)},
		"raw with duplicate":    {Content: &handlerv1.ContentBlock_Raw{Raw: []byte(`{"a":1,"a":1}`)}},
		"raw with two values":   {Content: &handlerv1.ContentBlock_Raw{Raw: []byte(`{}{}`)}},
		"meta is not an object": {Content: text("x").GetContent(), Meta: []byte(`1`)},
		"resource without body": {Content: &handlerv1.ContentBlock_Resource{Resource: &handlerv1.EmbeddedResource{Contents: &handlerv1.ResourceContents{Uri: "x://1"}}}},
		"priority is no number": {Content: text("x").GetContent(), Annotations: &handlerv1.Annotations{Priority: &nan}},
	} {
		if got, err := AppendContentBlock(nil, block); err == nil {
			t.Errorf("%s: written as %s", name, got)
		}
	}
	if got, err := NewRenderer(ServerInfo{}).ReadResource(&handlerv1.ReadResourceResult{}, nil); err == nil {
		t.Errorf("a resource without contents: written as %s", got)
	}
	if got, err := Progress([]byte(`1`), &handlerv1.Progress{Progress: math.Inf(1)}); err == nil {
		t.Errorf("infinite progress: written as %s", got)
	}
	if got, err := Log("info", &handlerv1.Log{}); err == nil {
		t.Errorf("a log message without data: written as %s", got)
	}
}

func TestAListNamesTheHandlersThatAreMissing(t *testing.T) {
	got, err := NewRenderer(ServerInfo{Name: "s", Version: "1"}).List("tools", [][]byte{[]byte(`{"name":"a"}`)}, "next", nil, []string{"b"})
	want := `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"io.github.countersign-mcp/missingHandlers":["b"]},"tools":[{"name":"a"}],"nextCursor":"next","ttlMs":0,"cacheScope":"private"}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestAResultsOwnHintBeatsTheCatalogs(t *testing.T) {
	contents := []*handlerv1.ResourceContents{{Uri: "x://1", Body: &handlerv1.ResourceContents_Text{Text: "t"}}}
	hint := &handlerv1.CacheHint{TtlMs: 9, Scope: handlerv1.CacheScope_CACHE_SCOPE_PUBLIC}
	renderer := NewRenderer(ServerInfo{Name: "s", Version: "1", Title: "S"})
	head := `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1","title":"S"},"com.example/x":1},"contents":[{"uri":"x://1","text":"t"}],`
	for _, test := range []struct {
		own  *handlerv1.CacheHint
		want string
	}{{nil, `"ttlMs":9,"cacheScope":"public"}`}, {&handlerv1.CacheHint{}, `"ttlMs":0,"cacheScope":"private"}`}} {
		got, err := renderer.ReadResource(&handlerv1.ReadResourceResult{Contents: contents, Cache: test.own, Meta: []byte(`{"com.example/x":1}`)}, hint)
		if err != nil || string(got) != head+test.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, head+test.want)
		}
	}
}
