// Package fault tells a test why a handler failed.
//
// A client is told of an internal error in one fixed sentence, so a test that speaks
// the contract cannot see the cause. The kit therefore reports each cause to whoever
// has asked for it through the context of the stream. Outside a test nobody has, and
// a report goes nowhere: the log is the place to look.
package fault

import "context"

type reporterKey struct{}

// WithReporter returns a context whose faults are reported to report, from the
// goroutines that cause them.
func WithReporter(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, reporterKey{}, report)
}

// Report tells the reporter of the context, if it has one.
func Report(ctx context.Context, cause error) {
	if report, found := ctx.Value(reporterKey{}).(func(error)); found {
		report(cause)
	}
}
