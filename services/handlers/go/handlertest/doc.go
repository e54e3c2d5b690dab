// Package handlertest runs a handler the two ways that an edge may run it, in memory
// and over real gRPC, and finds the mistakes that show only in one of them.
//
// With *await* semantics answers arrive on the stream and the function runs once.
// With *replay* semantics every ask that is not answered yet cuts the stream, the
// state is carried over, and the function runs again from the start. [Run] does both
// and fails when
//
//   - a later attempt asks other questions than an earlier one,
//   - an [Effect] that is not in [handler.Once] happens on two attempts,
//   - the function returns a result, or has an effect, after an ask ended its attempt,
//   - the handler has a fault: it panics, misuses the kit (a form that MCP does not
//     allow, a key that is asked twice), or ends with an internal error,
//   - the arguments of the test do not fit the tool's input schema or its type,
//   - an answer of the test does not fit the form that was shown, or
//   - the two ways end differently.
//
// A tool that fails and a request that is refused are results like others: see
// [Outcome.Err]. A test of an internal error itself says [AllowFaults].
//
// It is not an edge: it does not seal, it knows nothing of rounds, sizes or
// deadlines, and only the effects that are reported to it are seen.
package handlertest
