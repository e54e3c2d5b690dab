package server

import (
	"context"
	"crypto/sha256"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
)

// The bounds of the fields, as seal.proto states them, in bytes.
const (
	maxContextField = 255
	maxMethod       = 255
	maxTarget       = 4096
	maxPrincipal    = 2048
	maxAfter        = 4096
	defaultLength   = 1 << 20
)

// maxLength returns the longest token that a caller can use.
func maxLength(given uint32) int {
	if given == 0 {
		return defaultLength
	}

	return int(given)
}

func checkSeal(ctx context.Context, request *sealv1.SealRequest) error {
	err := checkCall(ctx, request.GetPurpose(), "binding", request.GetBinding())
	if err != nil {
		return err
	}

	timeToLive := request.GetTimeToLive()

	switch {
	case timeToLive == nil:
		return invalid("time_to_live is missing")
	case timeToLive.CheckValid() != nil || timeToLive.AsDuration() <= 0:
		return invalid("time_to_live must be more than zero")
	}

	if request.GetPurpose() == sealv1.Purpose_PURPOSE_CURSOR {
		return checkCursor(request)
	}

	if request.GetCursor() != nil {
		return notOfPurpose("cursor")
	}

	return checkRequestState(request.GetRequestState())
}

func checkOpen(ctx context.Context, request *sealv1.OpenRequest) error {
	err := checkCall(ctx, request.GetPurpose(), "expected", request.GetExpected())
	if err != nil {
		return err
	}

	isCursor := request.GetPurpose() == sealv1.Purpose_PURPOSE_CURSOR

	switch {
	case isCursor && request.GetMaxRound() != 0:
		return notOfPurpose("max_round")
	case !isCursor && request.GetMaxRound() == 0:
		return invalid("max_round must be at least 1")
	}

	return nil
}

// checkCall checks what both calls have.
func checkCall(ctx context.Context, purpose sealv1.Purpose, name string, binding *sealv1.Binding) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return invalid("the call has no deadline; every call needs one")
	}

	switch purpose {
	case sealv1.Purpose_PURPOSE_REQUEST_STATE, sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE, sealv1.Purpose_PURPOSE_CURSOR:
	default:
		return invalid("purpose is missing or unknown")
	}

	if binding == nil {
		return invalid("%s is missing", name)
	}

	isCursor := purpose == sealv1.Purpose_PURPOSE_CURSOR

	switch {
	case isCursor && binding.GetTarget() != "":
		return notOfPurpose(name + ".target")
	case isCursor && len(binding.GetParamsDigest()) > 0:
		return notOfPurpose(name + ".params_digest")
	case !isCursor && len(binding.GetParamsDigest()) != sha256.Size:
		return invalid("%s.params_digest has %d bytes, want %d", name, len(binding.GetParamsDigest()), sha256.Size)
	}

	for _, text := range []struct {
		field    string
		value    string
		max      int
		required bool
	}{
		{"context.audience", binding.GetContext().GetAudience(), maxContextField, true},
		{"context.tenant", binding.GetContext().GetTenant(), maxContextField, false},
		{"context.environment", binding.GetContext().GetEnvironment(), maxContextField, false},
		{"method", binding.GetMethod(), maxMethod, true},
		{"target", binding.GetTarget(), maxTarget, !isCursor},
		{"principal_issuer", binding.GetPrincipalIssuer(), maxPrincipal, false},
		{"principal_subject", binding.GetPrincipalSubject(), maxPrincipal, false},
	} {
		switch {
		case text.required && text.value == "":
			return invalid("%s.%s is missing", name, text.field)
		case len(text.value) > text.max:
			return invalid("%s.%s has %d bytes, at most %d are allowed", name, text.field, len(text.value), text.max)
		case !utf8.ValidString(text.value):
			return invalid("%s.%s is not UTF-8", name, text.field)
		}
	}

	return nil
}

func checkCursor(request *sealv1.SealRequest) error {
	cursor := request.GetCursor()

	switch {
	case request.GetRequestState() != nil:
		return notOfPurpose("request_state")
	case cursor == nil:
		return invalid("cursor is missing")
	case cursor.GetAfter() == "":
		return invalid("cursor.after is missing")
	case len(cursor.GetAfter()) > maxAfter:
		return invalid("cursor.after has %d bytes, at most %d are allowed", len(cursor.GetAfter()), maxAfter)
	case !utf8.ValidString(cursor.GetAfter()):
		return invalid("cursor.after is not UTF-8")
	case hasUnknown(cursor.ProtoReflect()):
		return invalid("cursor has a field that this sealer does not know")
	default:
		return nil
	}
}

func checkRequestState(state *sealv1.RequestState) error {
	switch {
	case state == nil:
		return invalid("request_state is missing")
	case state.GetChainId() == "":
		return invalid("request_state.chain_id is missing")
	case state.GetChainExpiresMs() <= state.GetChainStartedMs():
		return invalid("request_state.chain_expires_ms must be after chain_started_ms")
	case state.GetRound() == 0:
		return invalid("request_state.round must be at least 1")
	}

	for _, question := range state.GetQuestions() {
		if len(question.GetDigest()) != sha256.Size {
			return invalid("request_state.questions: a digest has %d bytes, want %d", len(question.GetDigest()), sha256.Size)
		}
	}

	// Open refuses what it does not know, so it must not be sealed.
	if hasUnknown(state.ProtoReflect()) {
		return invalid("request_state has a field that this sealer does not know")
	}

	return checkText(state)
}

// checkText finds text that protobuf could not encode. It matters to a caller in
// the same process: on the wire, it cannot be.
func checkText(state *sealv1.RequestState) error {
	valid := utf8.ValidString(state.GetChainId()) && utf8.ValidString(state.GetHandler()) && utf8.ValidString(state.GetCatalogRevision())

	for _, question := range state.GetQuestions() {
		valid = valid && utf8.ValidString(question.GetKey())
	}

	for _, answer := range state.GetAnswers() {
		valid = valid && utf8.ValidString(answer.GetKey())
	}

	for _, entry := range state.GetHandlerState() {
		valid = valid && utf8.ValidString(entry.GetKey()) && utf8.ValidString(entry.GetValue())
	}

	if !valid {
		return invalid("request_state has text that is not UTF-8")
	}

	return nil
}

// notOfPurpose refuses a field that the purpose does not have. The caller relies on
// something that would not be there.
func notOfPurpose(field string) error {
	return invalid("%s must be empty: the purpose does not have it", field)
}

func invalid(format string, arguments ...any) error {
	return status.Errorf(codes.InvalidArgument, format, arguments...)
}
