package state

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
)

const (
	// cursorLifetime is how long a client may take from one page to the next.
	cursorLifetime = time.Hour
	// maxCursorBytes is how long a cursor may be, in characters: enough for the
	// longest name, which has 4096 bytes.
	maxCursorBytes = 8 << 10
)

// CursorBinding is the list that a cursor belongs to.
type CursorBinding struct {
	// Method is the JSON-RPC method.
	Method string
	// Principal is whom the list is for.
	Principal identity.Principal
}

func (s *Sealer) cursorBinding(b CursorBinding) *sealv1.Binding {
	return &sealv1.Binding{
		Context:          s.options.Context,
		Method:           b.Method,
		PrincipalIssuer:  b.Principal.Issuer,
		PrincipalSubject: b.Principal.Subject,
	}
}

// SealCursor returns the cursor of the page that begins after a name, which must
// not be empty. It fails with a *failure.Error.
func (s *Sealer) SealCursor(ctx context.Context, binding CursorBinding, after string) (string, error) {
	response, err := s.seal(ctx, &sealv1.SealRequest{
		Purpose:       sealv1.Purpose_PURPOSE_CURSOR,
		Binding:       s.cursorBinding(binding),
		Cursor:        &sealv1.Cursor{After: after},
		TimeToLive:    durationpb.New(cursorLifetime),
		MaxTokenBytes: maxCursorBytes,
	})
	if err != nil {
		return "", s.failed(ctx, "seal cursor", err)
	}
	return response.GetToken(), nil
}

// OpenCursor returns the name after which a cursor's page begins. It fails with a
// *failure.Error.
func (s *Sealer) OpenCursor(ctx context.Context, cursor string, binding CursorBinding) (string, error) {
	opened, err := s.open(ctx, failure.CursorRefused, &sealv1.OpenRequest{
		Token:         cursor,
		Purpose:       sealv1.Purpose_PURPOSE_CURSOR,
		Expected:      s.cursorBinding(binding),
		MaxTokenBytes: maxCursorBytes,
	})
	return opened.GetCursor().GetAfter(), err
}

// CursorRefused is the failure of a cursor that is not even a string.
func CursorRefused() error {
	return refused(failure.CursorRefused, sealv1.RefusalReason_REFUSAL_REASON_MALFORMED)
}
