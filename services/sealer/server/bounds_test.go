package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
)

func TestATokenThatIsTooLongIsNotMade(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	request := sealRequest(start)

	sealed := sealer.mustSeal(t, request)

	request.MaxTokenBytes = uint32(len(sealed.GetToken()))

	_, err := sealer.Seal(t.Context(), request)
	if err != nil {
		t.Errorf("at the limit: %v", err)
	}

	request.MaxTokenBytes--

	_, err = sealer.Seal(t.Context(), request)
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("beyond the limit: %v", err)
	}

	opening := openRequest(request, sealed.GetToken())
	opening.MaxTokenBytes = request.GetMaxTokenBytes()

	response, err := sealer.Open(t.Context(), opening)
	if err != nil || response.GetRefusal().GetReason() != sealv1.RefusalReason_REFUSAL_REASON_TOO_LARGE {
		t.Errorf("got %v, %v", response, err)
	}

	request.MaxTokenBytes = 0
	request.RequestState.HandlerState[0].Value = strings.Repeat("a", 1<<20)

	_, err = sealer.Seal(t.Context(), request)
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("beyond the default: %v", err)
	}
}

func TestACallThatBreaksTheContractNamesTheField(t *testing.T) {
	t.Parallel()

	long := func(length int) string { return strings.Repeat("a", length) }
	bindings := map[string]func(*sealv1.Binding){
		".context.audience is missing":    func(b *sealv1.Binding) { b.Context = nil },
		".context.audience has":           func(b *sealv1.Binding) { b.Context.Audience = long(256) },
		".context.tenant has":             func(b *sealv1.Binding) { b.Context.Tenant = long(256) },
		".context.environment has":        func(b *sealv1.Binding) { b.Context.Environment = long(256) },
		".method is missing":              func(b *sealv1.Binding) { b.Method = "" },
		".method has":                     func(b *sealv1.Binding) { b.Method = long(256) },
		".target is missing":              func(b *sealv1.Binding) { b.Target = "" },
		".target has":                     func(b *sealv1.Binding) { b.Target = long(4097) },
		".principal_issuer has":           func(b *sealv1.Binding) { b.PrincipalIssuer = long(2049) },
		".principal_subject has":          func(b *sealv1.Binding) { b.PrincipalSubject = long(2049) },
		".principal_subject is not UTF-8": func(b *sealv1.Binding) { b.PrincipalSubject = "\xff" },
		".params_digest has":              func(b *sealv1.Binding) { b.ParamsDigest = b.GetParamsDigest()[:31] },
	}
	seals := map[string]func(*sealv1.SealRequest){
		"purpose":                       func(r *sealv1.SealRequest) { r.Purpose = 0 },
		"purpose is missing or unknown": func(r *sealv1.SealRequest) { r.Purpose = 99 },
		"binding is missing":            func(r *sealv1.SealRequest) { r.Binding = nil },
		"time_to_live is missing":       func(r *sealv1.SealRequest) { r.TimeToLive = nil },
		"time_to_live must":             func(r *sealv1.SealRequest) { r.TimeToLive = durationpb.New(0) },
		"request_state is missing":      func(r *sealv1.SealRequest) { r.RequestState = nil },
		"chain_id":                      func(r *sealv1.SealRequest) { r.RequestState.ChainId = "" },
		"chain_expires_ms":              func(r *sealv1.SealRequest) { r.RequestState.ChainExpiresMs = r.GetRequestState().GetChainStartedMs() },
		"round":                         func(r *sealv1.SealRequest) { r.RequestState.Round = 0 },
		"digest has":                    func(r *sealv1.SealRequest) { r.RequestState.Questions[0].Digest = nil },
		"request_state has text":        func(r *sealv1.SealRequest) { r.RequestState.HandlerState[0].Value = "\xff" },
		"a field that this sealer does not": func(r *sealv1.SealRequest) {
			r.GetRequestState().GetAnswers()[0].ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
		},
	}
	opens := map[string]func(*sealv1.OpenRequest){
		"purpose":             func(r *sealv1.OpenRequest) { r.Purpose = 0 },
		"expected is missing": func(r *sealv1.OpenRequest) { r.Expected = nil },
		"max_round":           func(r *sealv1.OpenRequest) { r.MaxRound = 0 },
	}

	for want, spoil := range bindings {
		seals["binding"+want] = func(r *sealv1.SealRequest) { spoil(r.GetBinding()) }
		opens["expected"+want] = func(r *sealv1.OpenRequest) { spoil(r.GetExpected()) }
	}

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)

	for want, spoil := range seals {
		request := sealRequest(start)
		spoil(request)

		_, err := sealer.Seal(t.Context(), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("Seal: got %v, want %q", err, want)
		}
	}

	for want, spoil := range opens {
		request := openRequest(sealRequest(start), "token")
		spoil(request)

		_, err := sealer.Open(t.Context(), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("Open: got %v, want %q", err, want)
		}
	}

	_, sealErr := sealer.Server.Seal(t.Context(), sealRequest(start))
	_, openErr := sealer.Server.Open(t.Context(), openRequest(sealRequest(start), "token"))

	for _, err := range []error{sealErr, openErr} {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "deadline") {
			t.Errorf("without a deadline: %v", err)
		}
	}

	sealer.counts(t, map[string]float64{
		`countersign_seal_total{purpose="unknown",result="invalid"}`:                     2,
		`countersign_open_total{purpose="unknown",reason="none",result="invalid"}`:       1,
		`countersign_open_total{purpose="request_state",reason="none",result="invalid"}`: float64(len(opens)),
	})
}
