package server_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
)

func cursorRequest() *sealv1.SealRequest {
	return &sealv1.SealRequest{
		Purpose: sealv1.Purpose_PURPOSE_CURSOR,
		Binding: &sealv1.Binding{
			Context: &sealv1.Context{Audience: "https://tools.example/mcp", Tenant: "acme", Environment: "production"},
			Method:  "tools/list", PrincipalIssuer: "https://login.example", PrincipalSubject: "canary-subject",
		},
		Cursor:     &sealv1.Cursor{After: "refund"},
		TimeToLive: durationpb.New(time.Hour),
	}
}

// openCursor is the opening that a token of the request was made for.
func openCursor(sealed *sealv1.SealRequest, text string) *sealv1.OpenRequest {
	return &sealv1.OpenRequest{Token: text, Purpose: sealed.GetPurpose(), Expected: proto.CloneOf(sealed.GetBinding())}
}

func TestACursorThatIsSealedOpensUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	request := cursorRequest()

	sealed := sealer.mustSeal(t, request)
	if !sealed.GetExpiresAt().AsTime().Equal(start.Add(time.Hour)) || len(sealed.GetTokenId()) != 16 {
		t.Errorf("got %v", sealed)
	}

	clock.Advance(time.Hour - time.Millisecond)

	response, err := sealer.Open(t.Context(), openCursor(request, sealed.GetToken()))
	if err != nil {
		t.Fatal(err)
	}

	opened := response.GetOpened()
	if !proto.Equal(opened.GetCursor(), request.GetCursor()) || opened.GetRequestState() != nil ||
		!opened.GetIssuedAt().AsTime().Equal(start) || !opened.GetExpiresAt().AsTime().Equal(start.Add(time.Hour)) {
		t.Errorf("got %v", response)
	}

	clock.Advance(time.Millisecond)

	response, err = sealer.Open(t.Context(), openCursor(request, sealed.GetToken()))
	if err != nil || response.GetRefusal().GetReason() != sealv1.RefusalReason_REFUSAL_REASON_EXPIRED {
		t.Errorf("got %v, %v", response, err)
	}

	sealer.counts(t, map[string]float64{
		`countersign_seal_total{purpose="cursor",result="ok"}`:                       1,
		`countersign_open_total{purpose="cursor",reason="none",result="ok"}`:         1,
		`countersign_open_total{purpose="cursor",reason="expired",result="refused"}`: 1,
		`countersign_seal_duration_seconds{purpose="cursor"}`:                        1,
		`countersign_open_duration_seconds{purpose="cursor"}`:                        2,
	})
}

func TestATokenOpensForItsPurposeAlone(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	cursor, state := cursorRequest(), sealRequest(start)

	// As like as two can be: the purpose is all that is left to tell them apart.
	state.Binding.Method = cursor.GetBinding().GetMethod()

	for _, opening := range []*sealv1.OpenRequest{
		openCursor(cursor, sealer.mustSeal(t, state).GetToken()),
		openRequest(state, sealer.mustSeal(t, cursor).GetToken()),
	} {
		response, err := sealer.Open(t.Context(), opening)
		if err != nil || response.GetRefusal().GetReason() != sealv1.RefusalReason_REFUSAL_REASON_NOT_AUTHENTIC {
			t.Errorf("for %s: got %v, %v", opening.GetPurpose(), response, err)
		}
	}
}

func TestACallWithAFieldThatItsPurposeDoesNotHaveIsRefused(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	state := sealRequest(start)

	seals := map[string]func(*sealv1.SealRequest){
		"binding.target must be empty":        func(r *sealv1.SealRequest) { r.Binding.Target = "refund" },
		"binding.params_digest must be empty": func(r *sealv1.SealRequest) { r.Binding.ParamsDigest = state.GetBinding().GetParamsDigest() },
		"request_state must be empty":         func(r *sealv1.SealRequest) { r.RequestState = state.GetRequestState() },
		"cursor is missing":                   func(r *sealv1.SealRequest) { r.Cursor = nil },
		"cursor.after is missing":             func(r *sealv1.SealRequest) { r.Cursor.After = "" },
		"cursor.after has 4097":               func(r *sealv1.SealRequest) { r.Cursor.After = strings.Repeat("a", 4097) },
		"cursor.after is not UTF-8":           func(r *sealv1.SealRequest) { r.Cursor.After = "\xff" },
		"cursor has a field": func(r *sealv1.SealRequest) {
			r.GetCursor().ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
		},
		"binding.method is missing": func(r *sealv1.SealRequest) { r.Binding.Method = "" },
		"time_to_live is missing":   func(r *sealv1.SealRequest) { r.TimeToLive = nil },
		// As request state, with a cursor beside it.
		"cursor must be empty": func(r *sealv1.SealRequest) {
			r.Purpose, r.Binding, r.RequestState = state.GetPurpose(), state.GetBinding(), state.GetRequestState()
		},
	}
	for want, spoil := range seals {
		request := cursorRequest()
		spoil(request)

		_, err := sealer.Seal(t.Context(), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("Seal: got %v, want %q", err, want)
		}
	}

	opens := map[string]func(*sealv1.OpenRequest){
		"expected.target must be empty":        func(r *sealv1.OpenRequest) { r.Expected.Target = "refund" },
		"expected.params_digest must be empty": func(r *sealv1.OpenRequest) { r.Expected.ParamsDigest = state.GetBinding().GetParamsDigest() },
		"max_round must be empty":              func(r *sealv1.OpenRequest) { r.MaxRound = 1 },
	}
	for want, spoil := range opens {
		request := openCursor(cursorRequest(), "token")
		spoil(request)

		_, err := sealer.Open(t.Context(), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: got %v, want %q", err, want)
		}
	}

	sealer.counts(t, map[string]float64{
		`countersign_seal_total{purpose="cursor",result="invalid"}`:               float64(len(seals) - 1),
		`countersign_open_total{purpose="cursor",reason="none",result="invalid"}`: float64(len(opens)),
	})
}
