package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/keysource/sourcetest"
	"github.com/countersign-mcp/countersign/services/sealer/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

	sealed := sealer.mustSeal(t, request)

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

func TestARefusalIsCountedAndLoggedWithoutWhatItIsAbout(t *testing.T) {
	t.Parallel()

	clock := keyringtest.NewClock(start)
	version := keyringtest.Version(1, start)
	sealer := newSealer(t, keyringtest.NewSource(version), clock)
	request := sealRequest(start)

	sealed := sealer.mustSeal(t, request)

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
		purpose := sealv1.Purpose(rapid.Int32Range(1, 3).Draw(t, "purpose"))
		draw := func(label string) *sealv1.Binding {
			binding := &sealv1.Binding{
				Context: &sealv1.Context{
					Audience: text.Draw(t, label+" audience"), Tenant: text.Draw(t, label+" tenant"), Environment: text.Draw(t, label+" environment"),
				},
				Method: text.Draw(t, label+" method"), Target: text.Draw(t, label+" target"),
				PrincipalIssuer: text.Draw(t, label+" issuer"), PrincipalSubject: text.Draw(t, label+" subject"),
				ParamsDigest: bytes.Repeat([]byte(rapid.StringMatching(`[ab]`).Draw(t, label+" params")), sha256.Size),
			}
			if purpose == sealv1.Purpose_PURPOSE_CURSOR {
				binding.Target, binding.ParamsDigest = "", nil
			}

			return binding
		}

		request, maxRound := sealRequest(start), uint32(1)
		if purpose == sealv1.Purpose_PURPOSE_CURSOR {
			request, maxRound = cursorRequest(), 0
		}

		request.Binding, request.Purpose = draw("sealed"), purpose

		sealed, err := made.Server.Seal(ctx, request)
		if err != nil {
			t.Fatal(err)
		}

		expected := proto.CloneOf(request.GetBinding())
		if rapid.Bool().Draw(t, "another") {
			expected = draw("expected")
		}

		response, err := made.Server.Open(ctx, &sealv1.OpenRequest{
			Token: sealed.GetToken(), Purpose: request.GetPurpose(), Expected: expected, MaxRound: maxRound,
		})
		if err != nil {
			t.Fatal(err)
		}

		if opened := response.GetOpened() != nil; opened != proto.Equal(expected, request.GetBinding()) {
			t.Fatalf("opened is %t", opened)
		}
	})
}
