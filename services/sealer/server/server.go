// Package server decides whether a token is good.
//
// The problem: what travels through a client must be tied to one request, one
// principal and one deployment, and whoever compares must not be the one who holds
// the keys, or a mistake in the comparison becomes an acceptance. The mechanism: a
// Server answers the two calls of SealerService. Seal writes claims, with a tag of
// the principal and, for request state, of the parameters, and seals them with the
// key that is active now. Open takes what the caller expects, checks everything
// that the purpose has in the order of RefusalReason, and returns the content or
// the first reason. The comparisons of
// tags are all made, in constant time, before any reason is returned. The caller
// learns a decision and never a key.
//
// That there are no usable keys is an error of the call, UNAVAILABLE, and never a
// refusal: the token may be good. A refusal is an ordinary answer. Both are
// counted, with the reason; the log has the reason, the token id and the key id,
// and never the token, the principal, the parameters or an answer.
//
// The limit: the server remembers no token, so it opens one as often as it is
// presented within its time. Clocks of replicas may differ by ClockSkew. What is
// lost: a caller that is told "refused" cannot tell the client why, by design.
//
// A Server needs no listener: a process can call it as the interface that the
// generated code declares.
package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// ClockSkew is how far in the future a token may have been sealed, by the clock of
// the replica that opens it.
const ClockSkew = 60 * time.Second

// Server implements SealerService. It is safe for use by several goroutines.
type Server struct {
	sealv1.UnimplementedSealerServiceServer

	keys    *keyring.Keyring
	clock   func() time.Time
	random  io.Reader
	metrics *metrics
	logger  *slog.Logger
}

// New makes a Server that seals and opens with the keys. It registers its metrics
// and those of the keys; an error means that the registerer has them already. The
// random source must be safe for use by several goroutines, as crypto/rand.Reader
// is.
func New(
	keys *keyring.Keyring, clock func() time.Time, random io.Reader, registerer prometheus.Registerer, logger *slog.Logger,
) (*Server, error) {
	registered, err := newMetrics(registerer, keys, clock)
	if err != nil {
		return nil, fmt.Errorf("make sealer: %w", err)
	}

	return &Server{keys: keys, clock: clock, random: random, metrics: registered, logger: logger}, nil
}

// Seal implements SealerService.
func (s *Server) Seal(ctx context.Context, request *sealv1.SealRequest) (*sealv1.SealResponse, error) {
	now := s.clock()
	response, err := s.seal(ctx, now, request)
	s.metrics.sealed(request.GetPurpose(), resultOf(err), s.clock().Sub(now))

	return response, err
}

func (s *Server) seal(ctx context.Context, now time.Time, request *sealv1.SealRequest) (*sealv1.SealResponse, error) {
	err := checkSeal(ctx, request)
	if err != nil {
		return nil, err
	}

	expires, err := expiry(now, request)
	if err != nil {
		return nil, err
	}

	key, err := s.keys.Sealing(now)
	if err != nil {
		return nil, s.unavailable(ctx, err)
	}

	text, id, err := sealClaims(key, s.random, request, now, expires)
	if err != nil {
		return nil, s.failed(ctx, "seal", err)
	}

	if limit := maxLength(request.GetMaxTokenBytes()); len(text) > limit {
		return nil, status.Errorf(codes.ResourceExhausted, "the token has %d characters, which is more than max_token_bytes allows: %d", len(text), limit)
	}

	return &sealv1.SealResponse{Token: text, TokenId: id[:], ExpiresAt: goodUntil(expires, request.GetRequestState())}, nil
}

// Open implements SealerService.
func (s *Server) Open(ctx context.Context, request *sealv1.OpenRequest) (*sealv1.OpenResponse, error) {
	now := s.clock()
	opened, reason, err := s.open(ctx, now, request)
	s.metrics.opened(request.GetPurpose(), resultOfOpen(reason, err), reason, s.clock().Sub(now))

	switch {
	case err != nil:
		return nil, err
	case reason != accepted:
		return &sealv1.OpenResponse{Result: &sealv1.OpenResponse_Refusal{Refusal: &sealv1.Refusal{Reason: reason}}}, nil
	default:
		return &sealv1.OpenResponse{Result: &sealv1.OpenResponse_Opened{Opened: opened}}, nil
	}
}

// accepted is the reason of a token that is not refused.
const accepted = sealv1.RefusalReason_REFUSAL_REASON_UNSPECIFIED

func (s *Server) open(
	ctx context.Context, now time.Time, request *sealv1.OpenRequest,
) (*sealv1.Opened, sealv1.RefusalReason, error) {
	err := checkOpen(ctx, request)
	if err != nil {
		return nil, accepted, err
	}

	parsed, err := token.Parse(request.GetToken(), purposeOf(request.GetPurpose()), maxLength(request.GetMaxTokenBytes()))
	if err != nil {
		s.logger.InfoContext(ctx, refusedMessage, "reason", reasonName(refusal(err)))

		return nil, refusal(err), nil
	}

	opened, reason, err := s.openParsed(ctx, now, request, parsed)
	if err != nil {
		return nil, accepted, err
	}

	if reason != accepted {
		s.logger.InfoContext(ctx, refusedMessage,
			"reason", reasonName(reason), "tokenId", parsed.ID().String(), "keyId", parsed.KeyID().String())
	}

	return opened, reason, nil
}

const refusedMessage = "token refused"

func (s *Server) openParsed(
	ctx context.Context, now time.Time, request *sealv1.OpenRequest, parsed *token.Parsed,
) (*sealv1.Opened, sealv1.RefusalReason, error) {
	key, err := s.keys.Opening(ctx, now, parsed.KeyID())

	switch {
	case errors.Is(err, keyring.ErrUnknownKey), errors.Is(err, keyring.ErrRetiredKey):
		return nil, refusal(err), nil
	case errors.Is(err, keyring.ErrUnavailable):
		return nil, accepted, s.unavailable(ctx, err)
	case err != nil:
		return nil, accepted, s.failed(ctx, "find key", err)
	}

	opened, err := key.Open(parsed, contextOf(request.GetExpected()))

	switch {
	case err != nil && refusal(err) != accepted:
		return nil, refusal(err), nil
	case err != nil:
		return nil, accepted, s.failed(ctx, "open", err)
	}

	read, err := readClaims(request.GetPurpose(), opened.Claims)
	if err != nil {
		return nil, refusal(err), nil
	}

	reason, err := judge(read, opened.Tags(), now, request)

	switch {
	case err != nil:
		return nil, accepted, s.failed(ctx, "make tags", err)
	case reason != accepted:
		return nil, reason, nil
	}

	return openedOf(read, parsed.ID()), accepted, nil
}

// judge returns the first reason for which the claims of an authentic token are
// refused.
func judge(read claims, tags token.Tags, now time.Time, request *sealv1.OpenRequest) (sealv1.RefusalReason, error) {
	// A cursor has no chain, target, parameters or round: nothing is checked of them.
	requestState, isRequestState := read.(*sealv1.RequestStateClaims)
	expected := request.GetExpected()

	principal, err := tags.Principal(expected.GetPrincipalIssuer(), expected.GetPrincipalSubject())
	if err != nil {
		return accepted, err
	}

	// Both tags are compared whatever else is wrong, so that the time of an answer
	// tells nothing about either.
	samePrincipal := subtle.ConstantTimeCompare(principal, read.GetPrincipalTag()) == 1
	sameParams := true

	if isRequestState {
		params, err := tags.Params([sha256.Size]byte(expected.GetParamsDigest()))
		if err != nil {
			return accepted, err
		}

		sameParams = subtle.ConstantTimeCompare(params, requestState.GetParamsTag()) == 1
	}

	nowMS, state := now.UnixMilli(), requestState.GetRequestState()

	switch {
	case read.GetIssuedAtMs() > nowMS+ClockSkew.Milliseconds():
		return sealv1.RefusalReason_REFUSAL_REASON_NOT_YET_VALID, nil
	case nowMS >= read.GetExpiresAtMs():
		return sealv1.RefusalReason_REFUSAL_REASON_EXPIRED, nil
	case isRequestState && nowMS >= state.GetChainExpiresMs():
		return sealv1.RefusalReason_REFUSAL_REASON_CHAIN_EXPIRED, nil
	case read.GetMethod() != expected.GetMethod():
		return sealv1.RefusalReason_REFUSAL_REASON_OTHER_METHOD, nil
	case isRequestState && requestState.GetTarget() != expected.GetTarget():
		return sealv1.RefusalReason_REFUSAL_REASON_OTHER_TARGET, nil
	case !samePrincipal:
		return sealv1.RefusalReason_REFUSAL_REASON_OTHER_PRINCIPAL, nil
	case !sameParams:
		return sealv1.RefusalReason_REFUSAL_REASON_OTHER_PARAMS, nil
	case isRequestState && state.GetRound() > request.GetMaxRound():
		return sealv1.RefusalReason_REFUSAL_REASON_TOO_MANY_ROUNDS, nil
	default:
		return accepted, nil
	}
}

// refusal returns the reason that an error stands for, or
// accepted if it is a failure and says nothing about the token.
func refusal(err error) sealv1.RefusalReason {
	for _, known := range []struct {
		err    error
		reason sealv1.RefusalReason
	}{
		{token.ErrTooLarge, sealv1.RefusalReason_REFUSAL_REASON_TOO_LARGE},
		{token.ErrMalformed, sealv1.RefusalReason_REFUSAL_REASON_MALFORMED},
		{token.ErrUnknownVersion, sealv1.RefusalReason_REFUSAL_REASON_UNKNOWN_VERSION},
		{token.ErrWrongSuite, sealv1.RefusalReason_REFUSAL_REASON_WRONG_SUITE},
		{token.ErrOtherKey, sealv1.RefusalReason_REFUSAL_REASON_UNKNOWN_KEY},
		{keyring.ErrUnknownKey, sealv1.RefusalReason_REFUSAL_REASON_UNKNOWN_KEY},
		{keyring.ErrRetiredKey, sealv1.RefusalReason_REFUSAL_REASON_RETIRED_KEY},
		{token.ErrWrongCommitment, sealv1.RefusalReason_REFUSAL_REASON_WRONG_COMMITMENT},
		{token.ErrNotAuthentic, sealv1.RefusalReason_REFUSAL_REASON_NOT_AUTHENTIC},
		{errUnreadable, sealv1.RefusalReason_REFUSAL_REASON_UNREADABLE_CLAIMS},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}

	return accepted
}

// unavailable logs why there are no keys and returns what the caller is told.
func (s *Server) unavailable(ctx context.Context, err error) error {
	s.logger.WarnContext(ctx, "no usable keys", "error", err)

	return status.Error(codes.Unavailable, "the sealer has no keys that it may use")
}

// failed logs a failure and returns what the caller is told. A caller that has
// gone is no failure.
func (s *Server) failed(ctx context.Context, attempted string, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}

	s.logger.ErrorContext(ctx, "sealer failed", "attempted", attempted, "error", err)

	return status.Error(codes.Internal, "the sealer failed; its log says why")
}
