package server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/token"
)

// errUnreadable means that the bytes of an authentic token are not claims.
var errUnreadable = errors.New("claims cannot be read")

var deterministic = proto.MarshalOptions{Deterministic: true}

// sealClaims makes a token of a request that has been checked.
func sealClaims(
	key *token.Key, random io.Reader, request *sealv1.SealRequest, now, expires time.Time,
) (text string, id token.ID, err error) {
	binding := request.GetBinding()
	claims := &sealv1.RequestStateClaims{
		IssuedAtMs:   now.UnixMilli(),
		ExpiresAtMs:  expires.UnixMilli(),
		Method:       binding.GetMethod(),
		Target:       binding.GetTarget(),
		RequestState: request.GetRequestState(),
	}

	encoded, err := deterministic.Marshal(claims)
	if err != nil {
		return "", id, fmt.Errorf("encode claims: %w", err)
	}

	draft, err := key.Draft(suiteOf(request.GetPurpose()), contextOf(binding), encoded, random)
	if err != nil {
		return "", id, err
	}

	claims.PrincipalTag, err = draft.Tags().Principal(binding.GetPrincipalIssuer(), binding.GetPrincipalSubject())
	if err != nil {
		return "", id, err
	}

	claims.ParamsTag, err = draft.Tags().Params([sha256.Size]byte(binding.GetParamsDigest()))
	if err != nil {
		return "", id, err
	}

	encoded, err = deterministic.Marshal(claims)
	if err != nil {
		return "", id, fmt.Errorf("encode claims with tags: %w", err)
	}

	text, err = draft.Seal(encoded)

	return text, draft.ID(), err
}

// readClaims reads the claims of an authentic token. What this sealer does not
// understand, it does not accept.
func readClaims(encoded []byte) (*sealv1.RequestStateClaims, error) {
	var claims sealv1.RequestStateClaims

	err := proto.Unmarshal(encoded, &claims)
	if err != nil {
		return nil, errUnreadable
	}

	if claims.GetRequestState() == nil || len(claims.GetPrincipalTag()) != sha256.Size || len(claims.GetParamsTag()) != sha256.Size ||
		hasUnknown(claims.ProtoReflect()) {
		return nil, errUnreadable
	}

	return &claims, nil
}

// hasUnknown says whether a message or one within it has a field that this program
// does not know.
func hasUnknown(message protoreflect.Message) bool {
	if len(message.GetUnknown()) > 0 {
		return true
	}

	found := false

	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for position := range value.List().Len() {
				found = found || hasUnknown(value.List().Get(position).Message())
			}
		default:
			found = hasUnknown(value.Message())
		}

		return !found
	})

	return found
}

// expiry returns when the time to live of a token ends. It is not cut short where
// the chain ends before: Open checks both and can then say which of them it was.
func expiry(now time.Time, request *sealv1.SealRequest) (time.Time, error) {
	if !now.Before(time.UnixMilli(request.GetRequestState().GetChainExpiresMs())) {
		return time.Time{}, status.Error(codes.FailedPrecondition, "the chain has expired")
	}

	return now.Add(request.GetTimeToLive().AsDuration()).Truncate(time.Millisecond), nil
}

// goodUntil returns until when a token is good: for its time to live, and never
// longer than its chain.
func goodUntil(expires time.Time, state *sealv1.RequestState) *timestamppb.Timestamp {
	if chainExpires := time.UnixMilli(state.GetChainExpiresMs()); expires.After(chainExpires) {
		expires = chainExpires
	}

	return timestamppb.New(expires)
}

// suiteOf returns the suite that a purpose fixes.
func suiteOf(purpose sealv1.Purpose) token.Suite {
	if purpose == sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE {
		return token.AES256GCM
	}

	return token.HMACSHA256
}

func contextOf(binding *sealv1.Binding) token.Context {
	return token.Context{
		Audience:    binding.GetContext().GetAudience(),
		Tenant:      binding.GetContext().GetTenant(),
		Environment: binding.GetContext().GetEnvironment(),
	}
}
