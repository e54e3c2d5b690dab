// Package state seals request state and cursors and opens them again, through the
// sealer.
//
// The edge holds no key and decides nothing: it says what a token is bound to, and
// the sealer answers with the token, with what was in it, or with a refusal. What
// this package adds is the difference that matters to a client. A refusal is
// final: RequestStateRefused or CursorRefused. A sealer that cannot be reached, has
// no keys or does not answer in time is not a refusal: SealerUnavailable, try again.
//
// The same code serves a sealer in another process and one in this process: both
// are a SealerServiceClient, see InProcess.
package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/mcpedge/failure"
	"github.com/countersign-mcp/countersign/services/mcpedge/identity"
)

// Errors of Seal that the handler's author can do something about.
var (
	// ErrTooLarge: the token would be longer than MaxTokenBytes.
	ErrTooLarge = errors.New("the request state is too large")
	// ErrChainExpired: the chain is past its end.
	ErrChainExpired = errors.New("the chain has expired")
)

// Options are how request state is sealed.
type Options struct {
	// Context names the deployment.
	Context *sealv1.Context
	// Encrypt hides the state from the client.
	Encrypt bool
	// MaxTokenBytes is how long a token may be, in characters.
	MaxTokenBytes int
	// MaxRound is the highest round that is opened.
	MaxRound uint32
	// Lifetime is how long a token is good.
	Lifetime time.Duration
	// Timeout bounds a call of the sealer.
	Timeout time.Duration
}

// Sealer seals and opens request state.
type Sealer struct {
	client  sealv1.SealerServiceClient
	options Options
	purpose sealv1.Purpose
}

// NewSealer returns a Sealer that calls a sealer service.
func NewSealer(client sealv1.SealerServiceClient, options Options) *Sealer {
	purpose := sealv1.Purpose_PURPOSE_REQUEST_STATE
	if options.Encrypt {
		purpose = sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE
	}
	return &Sealer{client: client, options: options, purpose: purpose}
}

// MaxTokenBytes is how long a token may be, in characters.
func (s *Sealer) MaxTokenBytes() int { return s.options.MaxTokenBytes }

// MaxRound is the highest round that is opened.
func (s *Sealer) MaxRound() uint32 { return s.options.MaxRound }

// Binding is the request that a token belongs to.
type Binding struct {
	// Method is the JSON-RPC method.
	Method string
	// Target is what it is applied to: a name or a URI.
	Target string
	// Principal is on whose behalf it is made.
	Principal identity.Principal
	// ParamsDigest is the digest of its canonical parameters.
	ParamsDigest [32]byte
}

func (s *Sealer) binding(b Binding) *sealv1.Binding {
	return &sealv1.Binding{
		Context:          s.options.Context,
		Method:           b.Method,
		Target:           b.Target,
		PrincipalIssuer:  b.Principal.Issuer,
		PrincipalSubject: b.Principal.Subject,
		ParamsDigest:     b.ParamsDigest[:],
	}
}

// Seal returns a token. It fails with ErrTooLarge, ErrChainExpired or a
// *failure.Error.
func (s *Sealer) Seal(ctx context.Context, binding Binding, state *sealv1.RequestState) (string, error) {
	response, err := s.seal(ctx, &sealv1.SealRequest{
		Purpose:       s.purpose,
		Binding:       s.binding(binding),
		RequestState:  state,
		TimeToLive:    durationpb.New(s.options.Lifetime),
		MaxTokenBytes: uint32(s.options.MaxTokenBytes), //nolint:gosec // the configuration bounds it
	})
	switch status.Code(err) {
	case codes.OK:
		return response.GetToken(), nil
	case codes.ResourceExhausted:
		return "", ErrTooLarge
	case codes.FailedPrecondition:
		return "", ErrChainExpired
	default:
		return "", s.failed(ctx, "seal", err)
	}
}

// Open returns what a token holds. It fails with a *failure.Error.
func (s *Sealer) Open(ctx context.Context, token string, binding Binding) (*sealv1.RequestState, error) {
	opened, err := s.open(ctx, failure.RequestStateRefused, &sealv1.OpenRequest{
		Token:         token,
		Purpose:       s.purpose,
		Expected:      s.binding(binding),
		MaxRound:      s.options.MaxRound,
		MaxTokenBytes: uint32(s.options.MaxTokenBytes), //nolint:gosec // the configuration bounds it
	})
	return opened.GetRequestState(), err
}

func (s *Sealer) seal(ctx context.Context, request *sealv1.SealRequest) (*sealv1.SealResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	return s.client.Seal(ctx, request)
}

// open asks the sealer, unless the token is too long to be sent; reason is what a
// refusal is called. It fails with a *failure.Error.
func (s *Sealer) open(ctx context.Context, reason failure.Reason, request *sealv1.OpenRequest) (*sealv1.Opened, error) {
	if len(request.GetToken()) > int(request.GetMaxTokenBytes()) {
		return nil, refused(reason, sealv1.RefusalReason_REFUSAL_REASON_TOO_LARGE)
	}
	callCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	response, err := s.client.Open(callCtx, request)
	if err != nil {
		return nil, s.failed(ctx, "open", err)
	}
	switch result := response.GetResult().(type) {
	case *sealv1.OpenResponse_Opened:
		return result.Opened, nil
	case *sealv1.OpenResponse_Refusal:
		return nil, refused(reason, result.Refusal.GetReason())
	default:
		return nil, failure.New(failure.SealerFailed, errors.New("the sealer gave no result"))
	}
}

// Refused is the failure of a request state that is not even a string.
func Refused() error {
	return refused(failure.RequestStateRefused, sealv1.RefusalReason_REFUSAL_REASON_MALFORMED)
}

func refused(reason failure.Reason, detail sealv1.RefusalReason) error {
	return &failure.Error{Reason: reason, Detail: reasonName(detail)}
}

// reasonName writes a reason as metrics do: `other_principal`.
func reasonName(reason sealv1.RefusalReason) string {
	return strings.ToLower(strings.TrimPrefix(reason.String(), "REFUSAL_REASON_"))
}

// failed names what an error of a call means. Only the sealer's word that the
// edge's own request was wrong is a fault of the edge; whatever else happened, the
// sealer cannot be had now.
func (s *Sealer) failed(ctx context.Context, verb string, err error) error {
	cause := fmt.Errorf("%s: %w", verb, err)
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return failure.New(failure.Cancelled, cause)
	case status.Code(err) == codes.InvalidArgument:
		return failure.New(failure.SealerFailed, cause)
	default:
		return failure.New(failure.SealerUnavailable, cause)
	}
}

// InProcess calls a sealer in this process as if it were a client of it.
type InProcess struct {
	// Server is the sealer.
	Server sealv1.SealerServiceServer
}

// Seal calls the server.
func (p InProcess) Seal(ctx context.Context, request *sealv1.SealRequest, _ ...grpc.CallOption) (*sealv1.SealResponse, error) {
	return p.Server.Seal(ctx, request)
}

// Open calls the server.
func (p InProcess) Open(ctx context.Context, request *sealv1.OpenRequest, _ ...grpc.CallOption) (*sealv1.OpenResponse, error) {
	return p.Server.Open(ctx, request)
}
