// Package handler is the kit for writing Countersign handler services in Go.
//
// A handler service offers tools, prompts and resources to a Countersign edge
// over gRPC; the edge speaks the Model Context Protocol with the client. A
// handler may stop in the middle of a request and ask the client's user
// something, with [Context.Confirm], [Elicit], [Context.ElicitURL],
// [Context.Sample] or [Context.ListRoots], on every protocol revision and in
// the same way.
//
// # How an ask works, and where it bites
//
// An ask sends the question to the edge and waits. Where the client can be
// asked on the spot, the answer arrives and the function goes on: it runs once.
// Where it cannot, the edge cuts the stream, carries the question and the
// handler's state through the client under a seal, and runs the function again
// from the start once there is an answer. The same ask then returns it.
//
// So code before an ask runs once per attempt and must be safe to repeat. Work
// that must not be repeated goes into [Once], which keeps its result in the
// state. When the stream is cut the ask returns [ErrAttemptEnded]; return it at
// once. Nothing the function does afterwards counts: progress, state, Once and
// the result are refused.
//
// Questions must be the same on every attempt. A question that depends on the
// clock, on chance or on a map's order is asked again and again until the edge
// ends the chain. Package handlertest finds this.
//
// # What is lost
//
// State and the results of Once travel through the client: they cost bytes in
// every round, the client can read them unless the edge encrypts them, and they
// are gone when a client gives up. A payment needs an idempotency key besides:
// [Context.ChainID] is the same for all attempts of one request.
package handler
