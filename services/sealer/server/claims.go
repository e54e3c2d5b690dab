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
	made := claimsOf(request, now, expires)

	encoded, err := deterministic.Marshal(made)
	if err != nil {
		return "", id, fmt.Errorf("encode claims: %w", err)
	}

	draft, err := key.Draft(purposeOf(request.GetPurpose()), contextOf(binding), encoded, random)
	if err != nil {
		return "", id, err
	}

	err = addTags(made, draft.Tags(), binding)
	if err != nil {
		return "", id, err
	}

	encoded, err = deterministic.Marshal(made)
	if err != nil {
		return "", id, fmt.Errorf("encode claims with tags: %w", err)
	}

	text, err = draft.Seal(encoded)

	return text, draft.ID(), err
}

// claims is what the claims of every purpose have.
type claims interface {
	proto.Message
	GetIssuedAtMs() int64
	GetExpiresAtMs() int64
	GetMethod() string
	GetPrincipalTag() []byte
}

// claimsOf returns the claims of a token to be made, without their tags.
func claimsOf(request *sealv1.SealRequest, now, expires time.Time) claims {
	if request.GetPurpose() == sealv1.Purpose_PURPOSE_CURSOR {
		return &sealv1.CursorClaims{
			IssuedAtMs:  now.UnixMilli(),
			ExpiresAtMs: expires.UnixMilli(),
			Method:      request.GetBinding().GetMethod(),
			Cursor:      request.GetCursor(),
		}
	}

	return &sealv1.RequestStateClaims{
		IssuedAtMs:   now.UnixMilli(),
		ExpiresAtMs:  expires.UnixMilli(),
		Method:       request.GetBinding().GetMethod(),
		Target:       request.GetBinding().GetTarget(),
		RequestState: request.GetRequestState(),
	}
}

// addTags adds the tags that the claims have.
func addTags(made claims, tags token.Tags, binding *sealv1.Binding) error {
	principal, err := tags.Principal(binding.GetPrincipalIssuer(), binding.GetPrincipalSubject())
	if err != nil {
		return err
	}

	switch made := made.(type) {
	case *sealv1.CursorClaims:
		made.PrincipalTag = principal
	case *sealv1.RequestStateClaims:
		made.PrincipalTag = principal
		made.ParamsTag, err = tags.Params([sha256.Size]byte(binding.GetParamsDigest()))
	}

	return err
}

// readClaims reads the claims of an authentic token. What this sealer does not
// understand, it does not accept.
func readClaims(purpose sealv1.Purpose, encoded []byte) (claims, error) {
	var read claims = new(sealv1.RequestStateClaims)
	if purpose == sealv1.Purpose_PURPOSE_CURSOR {
		read = new(sealv1.CursorClaims)
	}

	err := proto.Unmarshal(encoded, read)
	if err != nil || !complete(read) || hasUnknown(read.ProtoReflect()) {
		return nil, errUnreadable
	}

	return read, nil
}

// complete says whether the claims have their content and their tags.
func complete(read claims) bool {
	content := false

	switch read := read.(type) {
	case *sealv1.CursorClaims:
		content = read.GetCursor() != nil
	case *sealv1.RequestStateClaims:
		content = read.GetRequestState() != nil && len(read.GetParamsTag()) == sha256.Size
	}

	return content && len(read.GetPrincipalTag()) == sha256.Size
}

// openedOf is what the caller is told of a good token.
func openedOf(read claims, id token.ID) *sealv1.Opened {
	opened := &sealv1.Opened{TokenId: id[:], IssuedAt: timestamppb.New(time.UnixMilli(read.GetIssuedAtMs()))}

	switch read := read.(type) {
	case *sealv1.CursorClaims:
		opened.Cursor = read.GetCursor()
	case *sealv1.RequestStateClaims:
		opened.RequestState = read.GetRequestState()
	}

	opened.ExpiresAt = goodUntil(time.UnixMilli(read.GetExpiresAtMs()), opened.GetRequestState())

	return opened
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
	if state := request.GetRequestState(); state != nil && !now.Before(time.UnixMilli(state.GetChainExpiresMs())) {
		return time.Time{}, status.Error(codes.FailedPrecondition, "the chain has expired")
	}

	return now.Add(request.GetTimeToLive().AsDuration()).Truncate(time.Millisecond), nil
}

// goodUntil returns until when a token is good: for its time to live, and never
// longer than its chain, if it is of one.
func goodUntil(expires time.Time, state *sealv1.RequestState) *timestamppb.Timestamp {
	if chainExpires := time.UnixMilli(state.GetChainExpiresMs()); state != nil && expires.After(chainExpires) {
		expires = chainExpires
	}

	return timestamppb.New(expires)
}

// purposeOf returns a purpose of the contract in the words of package token.
func purposeOf(purpose sealv1.Purpose) token.Purpose {
	switch purpose {
	case sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE:
		return token.EncryptedRequestState
	case sealv1.Purpose_PURPOSE_CURSOR:
		return token.Cursor
	default:
		return token.RequestState
	}
}

func contextOf(binding *sealv1.Binding) token.Context {
	return token.Context{
		Audience:    binding.GetContext().GetAudience(),
		Tenant:      binding.GetContext().GetTenant(),
		Environment: binding.GetContext().GetEnvironment(),
	}
}
