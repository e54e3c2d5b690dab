package server_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/keyring/keyringtest"
	"github.com/countersign-mcp/countersign/services/sealer/token"
	"github.com/countersign-mcp/countersign/services/sealer/token/tokentest"
)

const vectorDirectory = "../token/testdata/vectors"

// openVector opens a token as a vector says and returns the name of the reason for
// which it was refused.
func openVector(t *testing.T, opening tokentest.Opening, text string) (*sealv1.Opened, string) {
	t.Helper()

	clock := keyringtest.NewClock(time.UnixMilli(opening.Now))

	var versions []keyring.Version

	add := func(root []byte, retired bool) {
		versions = append(versions, keyring.Version{
			Number: uint64(len(versions)) + 1, Created: clock.Now(), Root: token.NewSecret(root), Retired: retired,
		})
	}
	for _, root := range opening.Roots {
		add(root, false)
	}

	for _, root := range opening.RetiredRoots {
		add(root, true)
	}

	if len(opening.Roots) == 0 {
		// A ring needs one version that opens.
		versions = append(versions, keyringtest.Version(uint64(len(versions))+1, clock.Now()))
	}

	sealer := newSealer(t, keyringtest.NewSource(versions...), clock)

	response, err := sealer.Open(t.Context(), &sealv1.OpenRequest{
		Token: text, Purpose: sealv1.Purpose(opening.For()), MaxRound: opening.MaxRound, MaxTokenBytes: uint32(opening.MaxLength),
		Expected: &sealv1.Binding{
			Context: &sealv1.Context{
				Audience: opening.Context.Audience, Tenant: opening.Context.Tenant, Environment: opening.Context.Environment,
			},
			Method: opening.Method, Target: opening.Target,
			PrincipalIssuer: opening.Principal.Issuer, PrincipalSubject: opening.Principal.Subject,
			ParamsDigest: opening.ParamsDigest,
		},
	})
	if err != nil {
		t.Fatal(err)
	}

	reason := ""
	if refused := response.GetRefusal(); refused != nil {
		reason = refused.GetReason().String()
	}

	return response.GetOpened(), reason
}

func TestTheTokensOfTheVectorsOpen(t *testing.T) {
	t.Parallel()

	for _, vector := range tokentest.Load(t, vectorDirectory).Tokens {
		// Exactly one of the two is there.
		issuedAt := vector.Decoded.IssuedAt + vector.DecodedCursor.IssuedAt
		expiresAt := vector.Decoded.ExpiresAt + vector.DecodedCursor.ExpiresAt

		opening := vector.Opening()
		opening.MaxRound, opening.MaxLength, opening.Now = vector.Decoded.Round, len(vector.Token), expiresAt-1

		opened, reason := openVector(t, opening, vector.Token)
		if reason != "" {
			t.Errorf("%s: %s", vector.Name, reason)

			continue
		}

		state := opened.GetRequestState()
		if state.GetChainId() != vector.Decoded.ChainID || state.GetRound() != vector.Decoded.Round ||
			opened.GetCursor().GetAfter() != vector.DecodedCursor.After ||
			opened.GetIssuedAt().AsTime().UnixMilli() != issuedAt ||
			opened.GetExpiresAt().AsTime().UnixMilli() != expiresAt ||
			string(opened.GetTokenId()) != string(vector.TokenID) {
			t.Errorf("%s: got %v", vector.Name, opened)
		}

		for _, answer := range state.GetAnswers() {
			if string(answer.GetResponse()) != vector.Decoded.Answers[answer.GetKey()] {
				t.Errorf("%s: got answer %s", vector.Name, answer.GetResponse())
			}
		}
	}
}

func TestTheRefusedVectorsAreRefusedForTheirReason(t *testing.T) {
	t.Parallel()

	vectors := tokentest.Load(t, vectorDirectory)
	seen := make(map[string]bool)

	refused := vectors.Refused
	refused = append(refused, tokentest.Refused{
		Name: "collision", Opening: vectors.Collision.Opening, Token: vectors.Collision.Token, Reason: vectors.Collision.Reason,
	})

	for _, vector := range refused {
		seen[vector.Reason] = true

		_, reason := openVector(t, vector.Opening, vector.Token)
		if reason != "REFUSAL_REASON_"+vector.Reason {
			t.Errorf("%s: got %q, want %s", vector.Name, reason, vector.Reason)
		}
	}

	// Every reason that can be sent has a vector.
	if len(seen) != len(sealv1.RefusalReason_name)-1 {
		t.Errorf("the vectors have %d reasons of %d", len(seen), len(sealv1.RefusalReason_name)-1)
	}
}

func TestAnErrorOfTheKeysIsNeverARefusal(t *testing.T) {
	t.Parallel()

	vector := tokentest.Load(t, vectorDirectory).Refused[0]
	clock := keyringtest.NewClock(time.UnixMilli(vector.Opening.Now))
	sealer := newSealer(t, keyringtest.NewSource(keyringtest.Version(1, clock.Now())), clock)

	clock.Advance(keyring.Defaults().HardAge + 1)

	sealed := sealRequest(clock.Now())

	_, err := sealer.Seal(t.Context(), sealed)
	if status.Code(err) != codes.Unavailable {
		t.Errorf("Seal: got %v", err)
	}

	response, err := sealer.Open(t.Context(), openRequest(sealed, genuineLooking(t)))
	if status.Code(err) != codes.Unavailable || response != nil {
		t.Errorf("Open: got %v, %v", response, err)
	}

	sealer.counts(t, map[string]float64{
		`countersign_seal_total{purpose="request_state",result="unavailable"}`:               1,
		`countersign_open_total{purpose="request_state",reason="none",result="unavailable"}`: 1,
	})
}
