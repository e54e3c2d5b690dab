package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/sourcetest"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC)

// sealer is a server whose calls have a deadline, with what it logs and counts.
type sealer struct {
	*server.Server

	registry *prometheus.Registry
	logged   *bytes.Buffer
}

func newSealer(t *testing.T, source keyring.Source, clock *keyringtest.Clock) *sealer {
	t.Helper()

	return newSealerWith(t, source, clock, rand.Reader)
}

func newSealerWith(t *testing.T, source keyring.Source, clock *keyringtest.Clock, random io.Reader) *sealer {
	t.Helper()

	made := &sealer{registry: prometheus.NewPedanticRegistry(), logged: new(bytes.Buffer)}
	logger := slog.New(slog.NewTextHandler(made.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))

	var err error

	made.Server, err = server.New(keyringtest.New(t, source, clock), clock.Now, random, made.registry, logger)
	if err != nil {
		t.Fatal(err)
	}

	return made
}

func (s *sealer) Seal(ctx context.Context, request *sealv1.SealRequest) (*sealv1.SealResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	return s.Server.Seal(ctx, request)
}

func (s *sealer) Open(ctx context.Context, request *sealv1.OpenRequest) (*sealv1.OpenResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	return s.Server.Open(ctx, request)
}

// counts fails the test unless the metrics have these values, by name and labels
// as Prometheus shows them.
func (s *sealer) counts(t *testing.T, want map[string]float64) {
	t.Helper()

	got := s.gather(t)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}

func (s *sealer) gather(t *testing.T) map[string]float64 {
	t.Helper()

	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	values := make(map[string]float64)

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := make([]string, 0, len(metric.GetLabel()))
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}

			name := family.GetName()
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}

			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}

	return values
}

func sealRequest(now time.Time) *sealv1.SealRequest {
	digest, question := sha256.Sum256([]byte("params")), sha256.Sum256([]byte("question"))

	return &sealv1.SealRequest{
		Purpose: sealv1.Purpose_PURPOSE_REQUEST_STATE,
		Binding: &sealv1.Binding{
			Context: &sealv1.Context{Audience: "https://tools.example/mcp", Tenant: "acme", Environment: "production"},
			Method:  "tools/call", Target: "refund",
			PrincipalIssuer: "https://login.example", PrincipalSubject: "canary-subject",
			ParamsDigest: digest[:],
		},
		RequestState: &sealv1.RequestState{
			ChainId: "chain", ChainStartedMs: now.UnixMilli(), ChainExpiresMs: now.Add(time.Hour).UnixMilli(), Round: 1, Attempts: 1,
			Questions:    []*sealv1.AskedQuestion{{Key: "confirm", Digest: question[:]}},
			Answers:      []*sealv1.RecordedAnswer{{Key: "items", Response: []byte(`{"n":9007199254740993}`)}},
			HandlerState: []*sealv1.StateEntry{{Key: "a", Value: "canary-state"}},
			Handler:      "refunds", CatalogRevision: "1",
		},
		TimeToLive: durationpb.New(10 * time.Minute),
	}
}

// openRequest is the opening that a token of the request was made for.
func openRequest(sealed *sealv1.SealRequest, text string) *sealv1.OpenRequest {
	return &sealv1.OpenRequest{
		Token: text, Purpose: sealed.GetPurpose(), MaxRound: 8,
		Expected: proto.CloneOf(sealed.GetBinding()),
	}
}

// genuineLooking is a token that is well formed and made with a key nobody knows.
func genuineLooking(t *testing.T) string {
	t.Helper()

	clock := keyringtest.NewClock(start)

	response, err := newSealer(t, keyringtest.NewSource(keyringtest.Version(200, start)), clock).Seal(t.Context(), sealRequest(start))
	if err != nil {
		t.Fatal(err)
	}

	return response.GetToken()
}

func TestWhatIsSealedOpens(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)

	for _, purpose := range []sealv1.Purpose{sealv1.Purpose_PURPOSE_REQUEST_STATE, sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE} {
		request := sealRequest(start)
		request.Purpose = purpose

		sealed, err := sealer.Seal(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}

		response, err := sealer.Open(t.Context(), openRequest(request, sealed.GetToken()))
		if err != nil {
			t.Fatal(err)
		}

		opened := response.GetOpened()
		if !proto.Equal(opened.GetRequestState(), request.GetRequestState()) {
			t.Errorf("got %v", response)
		}

		if !bytes.Equal(opened.GetTokenId(), sealed.GetTokenId()) || len(sealed.GetTokenId()) != 16 ||
			!opened.GetIssuedAt().AsTime().Equal(start) || !opened.GetExpiresAt().AsTime().Equal(start.Add(10*time.Minute)) ||
			!sealed.GetExpiresAt().AsTime().Equal(start.Add(10*time.Minute)) {
			t.Errorf("got %v and %v", sealed, opened)
		}
	}

	sealer.counts(t, map[string]float64{
		`countersign_seal_total{purpose="request_state",result="ok"}`:                         1,
		`countersign_seal_total{purpose="encrypted_request_state",result="ok"}`:               1,
		`countersign_open_total{purpose="request_state",reason="none",result="ok"}`:           1,
		`countersign_open_total{purpose="encrypted_request_state",reason="none",result="ok"}`: 1,
		`countersign_seal_duration_seconds{purpose="request_state"}`:                          1,
		`countersign_open_duration_seconds{purpose="request_state"}`:                          1,
	})
}

func TestATokenNeverOutlivesItsChain(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	request := sealRequest(start)
	request.TimeToLive = durationpb.New(2 * time.Hour)

	sealed, err := sealer.Seal(t.Context(), request)
	if err != nil || !sealed.GetExpiresAt().AsTime().Equal(start.Add(time.Hour)) {
		t.Errorf("got %v, %v", sealed, err)
	}

	clock.Advance(time.Hour)

	// The token's own time is not over: the reason is the chain.
	opened, err := sealer.Open(t.Context(), openRequest(request, sealed.GetToken()))
	if err != nil || opened.GetRefusal().GetReason() != sealv1.RefusalReason_REFUSAL_REASON_CHAIN_EXPIRED {
		t.Errorf("got %v, %v", opened, err)
	}

	_, err = sealer.Seal(t.Context(), request)
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("got %v", err)
	}

	sealer.counts(t, map[string]float64{`countersign_seal_total{purpose="request_state",result="refused"}`: 1})
}

func TestClocksMayDifferByTheSkewAndNoMore(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	request := sealRequest(start)

	sealed, err := sealer.Seal(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		offset time.Duration
		want   sealv1.RefusalReason
	}{
		{-server.ClockSkew - time.Millisecond, sealv1.RefusalReason_REFUSAL_REASON_NOT_YET_VALID},
		{-server.ClockSkew, 0},
		{10*time.Minute - time.Millisecond, 0},
		{10 * time.Minute, sealv1.RefusalReason_REFUSAL_REASON_EXPIRED},
	} {
		clock.Advance(test.offset)

		response, err := sealer.Open(t.Context(), openRequest(request, sealed.GetToken()))
		if err != nil || response.GetRefusal().GetReason() != test.want {
			t.Errorf("at %s: got %v, %v", test.offset, response, err)
		}

		clock.Advance(-test.offset)
	}
}

func TestATokenThatIsTooLongIsNotMade(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	request := sealRequest(start)

	sealed, err := sealer.Seal(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}

	request.MaxTokenBytes = uint32(len(sealed.GetToken()))

	_, err = sealer.Seal(t.Context(), request)
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

func TestARefusalIsCountedAndLoggedWithoutWhatItIsAbout(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	version := keyringtest.Version(1, start)
	sealer := newSealer(t, keyringtest.NewSource(version), clock)
	request := sealRequest(start)

	sealed, err := sealer.Seal(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}

	opening := openRequest(request, sealed.GetToken())
	opening.Expected.PrincipalSubject = "canary-other"

	for _, text := range []string{sealed.GetToken(), "canary-malformed", genuineLooking(t)} {
		opening.Token = text

		response, err := sealer.Open(t.Context(), opening)
		if err != nil || response.GetRefusal() == nil {
			t.Errorf("got %v, %v", response, err)
		}
	}

	sealer.counts(t, map[string]float64{
		`countersign_open_total{purpose="request_state",reason="other_principal",result="refused"}`: 1,
		`countersign_open_total{purpose="request_state",reason="malformed",result="refused"}`:       1,
		`countersign_open_total{purpose="request_state",reason="unknown_key",result="refused"}`:     1,
	})

	logged := sealer.logged.String()
	for _, want := range []string{
		"reason=other_principal", "reason=malformed", "reason=unknown_key",
		fmt.Sprintf("tokenId=%x", sealed.GetTokenId()), "keyId=",
	} {
		if !strings.Contains(logged, want) {
			t.Errorf("the log lacks %s: %s", want, logged)
		}
	}

	if strings.Contains(logged, "canary") || strings.Contains(logged, sealed.GetToken()[60:90]) {
		t.Errorf("the log holds what it must not: %s", logged)
	}

	sourcetest.NoKeyIn(t, logged, version.Root)
}

func TestAFailureIsInternalAndItsCauseIsInTheLogAlone(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	sealer := newSealerWith(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock, iotest.ErrReader(errors.New("no entropy")))

	_, err := sealer.Seal(t.Context(), sealRequest(start))
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "entropy") {
		t.Errorf("got %v", err)
	}

	if !strings.Contains(sealer.logged.String(), "no entropy") {
		t.Errorf("the log lacks the cause: %s", sealer.logged.String())
	}

	sealer.counts(t, map[string]float64{`countersign_seal_total{purpose="request_state",result="failed"}`: 1})
}

func TestNothingButTheSameBindingOpens(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	made := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)

	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()

		// Short texts of few letters, so that one field often is another's beginning.
		text := rapid.StringMatching(`[ab]{1,2}`)
		draw := func(label string) *sealv1.Binding {
			return &sealv1.Binding{
				Context: &sealv1.Context{
					Audience: text.Draw(t, label+" audience"), Tenant: text.Draw(t, label+" tenant"), Environment: text.Draw(t, label+" environment"),
				},
				Method: text.Draw(t, label+" method"), Target: text.Draw(t, label+" target"),
				PrincipalIssuer: text.Draw(t, label+" issuer"), PrincipalSubject: text.Draw(t, label+" subject"),
				ParamsDigest: bytes.Repeat([]byte(rapid.StringMatching(`[ab]`).Draw(t, label+" params")), sha256.Size),
			}
		}
		request := sealRequest(start)
		request.Binding = draw("sealed")
		request.Purpose = sealv1.Purpose(rapid.Int32Range(1, 2).Draw(t, "purpose"))

		sealed, err := made.Server.Seal(ctx, request)
		if err != nil {
			t.Fatal(err)
		}

		expected := proto.CloneOf(request.GetBinding())
		if rapid.Bool().Draw(t, "another") {
			expected = draw("expected")
		}

		response, err := made.Server.Open(ctx, &sealv1.OpenRequest{
			Token: sealed.GetToken(), Purpose: request.GetPurpose(), Expected: expected, MaxRound: 1,
		})
		if err != nil {
			t.Fatal(err)
		}

		if opened := response.GetOpened() != nil; opened != proto.Equal(expected, request.GetBinding()) {
			t.Fatalf("opened is %t", opened)
		}
	})
}

func TestTheKeysAreMeasured(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	retired := keyringtest.Version(1, start.Add(-72*time.Hour))
	retired.Retired = true
	source := keyringtest.NewSource(retired, keyringtest.Version(2, start.Add(-48*time.Hour)),
		keyringtest.Version(3, start.Add(-24*time.Hour)), keyringtest.Version(4, start))
	sealer := newSealer(t, source, clock)

	clock.Advance(time.Minute)
	sealer.counts(t, map[string]float64{
		"countersign_keyring_age_seconds":                60,
		"countersign_keyring_refreshes_total":            1,
		`countersign_keyring_versions{state="prepared"}`: 1,
		`countersign_keyring_versions{state="active"}`:   1,
		`countersign_keyring_versions{state="retiring"}`: 1,
		`countersign_keyring_versions{state="retired"}`:  1,
		`countersign_key_age_seconds{state="active"}`:    24*3600 + 60,
		`countersign_key_age_seconds{state="prepared"}`:  60,
		`countersign_key_age_seconds{state="retired"}`:   72*3600 + 60,
		"countersign_keyring_refresh_errors_total":       0,
	})

	fingerprints := 0

	for name := range sealer.gather(t) {
		if strings.HasPrefix(name, "countersign_keyring_info{fingerprint=") {
			fingerprints++
		}
	}

	if fingerprints != 1 {
		t.Errorf("there are %d fingerprints", fingerprints)
	}

	families, err := sealer.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) != 0 {
		t.Errorf("got %v, %v", problems, err)
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	keys := keyringtest.New(t, keyringtest.NewSource(keyringtest.Version(1, start)), clock)
	registry := prometheus.NewRegistry()

	_, err := server.New(keys, clock.Now, rand.Reader, registry, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	_, err = server.New(keys, clock.Now, rand.Reader, registry, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Error("a second server registered the same metrics")
	}
}
