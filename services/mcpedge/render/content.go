package render

import (
	"errors"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/jsonrpc"
)

// AppendContentBlock appends a ContentBlock.
func AppendContentBlock(dst []byte, block *handlerv1.ContentBlock) ([]byte, error) {
	if raw, ok := block.GetContent().(*handlerv1.ContentBlock_Raw); ok {
		if block.GetAnnotations() != nil || len(block.GetMeta()) > 0 {
			return nil, errors.New("a raw content block has annotations or meta beside it")
		}
		if !jsonrpc.Valid(raw.Raw, '{') {
			return nil, errors.New("a raw content block is not a strict JSON object")
		}
		return append(dst, raw.Raw...), nil
	}
	o := newObject(dst)
	switch content := block.GetContent().(type) {
	case *handlerv1.ContentBlock_Text:
		o.string("type", "text")
		o.string("text", content.Text.GetText())
	case *handlerv1.ContentBlock_Image:
		o.string("type", "image")
		o.base64("data", content.Image.GetData())
		o.string("mimeType", content.Image.GetMimeType())
	case *handlerv1.ContentBlock_Audio:
		o.string("type", "audio")
		o.base64("data", content.Audio.GetData())
		o.string("mimeType", content.Audio.GetMimeType())
	case *handlerv1.ContentBlock_ResourceLink:
		link := content.ResourceLink
		o.string("type", "resource_link")
		o.string("uri", link.GetUri())
		o.string("name", link.GetName())
		o.optional("title", link.GetTitle())
		o.optional("description", link.GetDescription())
		o.optional("mimeType", link.GetMimeType())
		if link.Size != nil {
			o.uint("size", link.GetSize())
		}
	case *handlerv1.ContentBlock_Resource:
		o.string("type", "resource")
		o.member("resource", func(dst []byte) ([]byte, error) {
			return appendResourceContents(dst, content.Resource.GetContents())
		})
	default:
		return nil, errors.New("a content block has no content")
	}
	o.annotations(block.GetAnnotations())
	o.raw("_meta", block.GetMeta(), '{')
	return o.close()
}

func appendResourceContents(dst []byte, contents *handlerv1.ResourceContents) ([]byte, error) {
	o := newObject(dst)
	o.string("uri", contents.GetUri())
	o.optional("mimeType", contents.GetMimeType())
	switch body := contents.GetBody().(type) {
	case *handlerv1.ResourceContents_Text:
		o.string("text", body.Text)
	case *handlerv1.ResourceContents_Blob:
		o.base64("blob", body.Blob)
	default:
		return nil, errors.New("resource contents have no body")
	}
	o.raw("_meta", contents.GetMeta(), '{')
	return o.close()
}

func (o *object) annotations(annotations *handlerv1.Annotations) {
	if annotations == nil {
		return
	}
	o.member("annotations", func(dst []byte) ([]byte, error) {
		a := newObject(dst)
		if audience := annotations.GetAudience(); len(audience) > 0 {
			a.array("audience", len(audience), func(i int) { a.text = jsonrpc.AppendString(a.text, role(audience[i])) })
		}
		if annotations.Priority != nil {
			a.float("priority", annotations.GetPriority())
		}
		a.optional("lastModified", annotations.GetLastModified())
		return a.close()
	})
}

func (o *object) icons(icons []*handlerv1.Icon) {
	if len(icons) == 0 {
		return
	}
	o.array("icons", len(icons), func(i int) {
		o.append(func(dst []byte) ([]byte, error) {
			icon := newObject(dst)
			icon.string("src", icons[i].GetSrc())
			icon.optional("mimeType", icons[i].GetMimeType())
			if sizes := icons[i].GetSizes(); len(sizes) > 0 {
				icon.strings("sizes", sizes)
			}
			icon.optional("theme", icons[i].GetTheme())
			return icon.close()
		})
	})
}
