package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// obtainedAt presents a request state that was obtained at another endpoint.
func obtainedAt(endpoint func(*Target) *Endpoint) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		held, err := s.obtain(ctx, *endpoint(s.target), s.target.Request)
		if err != nil {
			return err
		}
		return s.refuse(ctx, s.target.Request, quote(held.state))
	}
}

// obtainedFrom presents a request state that was obtained with another request.
func obtainedFrom(request func(*Target) *Request) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		held, err := s.obtain(ctx, s.target.Endpoint, *request(s.target))
		if err != nil {
			return err
		}
		return s.refuse(ctx, s.target.Request, quote(held.state))
	}
}

func otherArguments(ctx context.Context, s *session) error {
	return obtainedFrom(func(target *Target) *Request {
		other := target.Request.with(target.OtherArguments)
		return &other
	})(ctx, s)
}

// otherNumber presents a request state for one of two numbers with the other.
func otherNumber(pairs ...[2]string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for _, pair := range pairs {
			if err := s.withNumbers(ctx, pair[0], pair[1], s.refuse); err != nil {
				return fmt.Errorf("%s against %s: %w", pair[1], pair[0], err)
			}
		}
		return nil
	}
}

func equalNumbers(ctx context.Context, s *session) error {
	for _, other := range []string{"1.0", "1e0", "10e-1", "1.000", "0.1E+1"} {
		if err := s.withNumbers(ctx, "1", other, s.accept); err != nil {
			return fmt.Errorf("%s against 1: %w", other, err)
		}
	}
	return nil
}

// withNumbers obtains a request state with one number as the argument and presents
// it with another.
func (s *session) withNumbers(
	ctx context.Context, first, second string, judge func(context.Context, Request, string) error,
) error {
	request, err := s.target.Request.withNumber(s.target.NumberArgument, first)
	if err != nil {
		return err
	}
	held, err := s.obtain(ctx, s.target.Endpoint, request)
	if err != nil {
		return err
	}
	if request, err = s.target.Request.withNumber(s.target.NumberArgument, second); err != nil {
		return err
	}
	return judge(ctx, request, quote(held.state))
}

// ownWithArguments obtains a request state for the target's request, and takes its
// arguments apart.
func (s *session) ownWithArguments(ctx context.Context) (string, []argument, error) {
	arguments, err := s.target.Request.arguments()
	if err != nil {
		return "", nil, err
	}
	state, err := s.own(ctx)
	return state, arguments, err
}

// keyOrder turns the order of the params around, and that of the arguments.
func keyOrder(ctx context.Context, s *session) error {
	state, arguments, err := s.ownWithArguments(ctx)
	if err != nil {
		return err
	}
	request := s.target.Request
	if len(arguments) > 0 {
		slices.Reverse(arguments)
		request = request.with(object(arguments))
	}
	members := append(request.members(), s.round(quote(state))...)
	slices.Reverse(members)
	reply, err := s.presentText(ctx, request, members)
	if err != nil {
		return err
	}
	return s.checkAcceptance(reply)
}

// spelling writes the names as escapes and puts white space where JSON allows it.
func spelling(ctx context.Context, s *session) error {
	state, arguments, err := s.ownWithArguments(ctx)
	if err != nil {
		return err
	}
	var spelled []string
	for _, each := range arguments {
		spelled = append(spelled, escapeASCII(each.name)+"\t:\r\n"+each.value)
	}
	named := "name"
	if s.target.Request.Resource != "" {
		named = "uri"
	}
	members := []string{escapeASCII(named) + " : " + escapeASCII(s.target.Request.name())}
	if len(spelled) > 0 {
		members = append(members, escapeASCII("arguments")+":{ "+strings.Join(spelled, " ,\n")+" }")
	}
	s.presented++
	reply, err := s.sendText(ctx, s.target.Endpoint, s.target.Request,
		"\n\t"+strings.Join(append(members, s.round(quote(state))...), "\r\n , "), " , ")
	if err != nil {
		return err
	}
	return s.checkAcceptance(reply)
}

// escapeASCII writes a JSON string of escapes where the text is ASCII.
func escapeASCII(text string) string {
	for _, character := range text {
		if character > '~' {
			return quote(text)
		}
	}
	return escape(text)
}

// duplicateKeys lets names stand twice. Two parsers may then see two requests, so a
// server must not choose one. The refusal may come from its JSON parser.
func duplicateKeys(ctx context.Context, s *session) error {
	state, arguments, err := s.ownWithArguments(ctx)
	if err != nil {
		return err
	}
	request, good := s.target.Request, quote(state)
	variants := map[string][]string{
		"requestState": append(append(request.members(), s.round(good)...), `"requestState":"AQ"`),
		"the name":     append(append(request.members(), s.round(good)...), request.members()[0]),
	}
	if len(arguments) > 0 {
		twice := request.with(object(append(arguments, arguments[0])))
		variants["arguments"] = append(append(request.members(), s.round(good)...), `"arguments":`+request.Arguments)
		variants["an argument"] = append(twice.members(), s.round(good)...)
	}
	for _, what := range slices.Sorted(maps.Keys(variants)) {
		reply, err := s.presentText(ctx, request, variants[what])
		if err != nil {
			return err
		}
		if reply.kind != kindError {
			return fmt.Errorf("%s twice: it was not refused: the reply is %s", what, reply)
		}
	}
	return nil
}

// changedQuestion answers a question after it has changed.
func changedQuestion(ctx context.Context, s *session) error {
	changing := s.target.ChangingQuestion
	before, err := s.obtain(ctx, s.target.Endpoint, changing.Request)
	if err != nil {
		return err
	}
	if err := changing.Change.do(ctx); err != nil {
		return fmt.Errorf("change the question: %w", err)
	}
	reply, err := s.presentText(ctx, changing.Request,
		append(changing.Request.members(), `"inputResponses":`+before.answers, `"requestState":`+quote(before.state)))
	if err != nil {
		return err
	}
	if reply.kind != kindInputRequired {
		return fmt.Errorf("the server did not ask again: the reply is %s", reply)
	}
	s.counted++
	for key, question := range before.questions {
		if string(reply.questions[key]) == string(question) {
			return fmt.Errorf("the question %q was asked again as it was: it has not changed", key)
		}
	}
	return nil
}

// replayed presents a request state once more after the request has completed.
func replayed(ctx context.Context, s *session) error {
	state, err := s.own(ctx)
	if err != nil {
		return err
	}
	if err := s.accept(ctx, s.target.Request, quote(state)); err != nil {
		return fmt.Errorf("the first time: %w", err)
	}
	if *s.target.OnceOnly {
		return s.refuse(ctx, s.target.Request, quote(state))
	}
	return s.accept(ctx, s.target.Request, quote(state))
}

func preparedKey(ctx context.Context, s *session) error {
	held, err := s.obtain(ctx, *s.target.PreparedKey, s.target.Request)
	if err != nil {
		return err
	}
	return s.accept(ctx, s.target.Request, quote(held.state))
}

// lapsed presents a request state again and again until it is refused. At first it
// must be good, or the refusal would prove nothing.
func lapsed(lapse func(*Target) *Lapse) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		l := lapse(s.target)
		held, err := s.obtain(ctx, l.Endpoint, s.target.Request)
		if err != nil {
			return err
		}
		if err := s.accept(ctx, s.target.Request, quote(held.state)); err != nil {
			return fmt.Errorf("before: %w", err)
		}
		if err := l.Action.do(ctx); err != nil {
			return fmt.Errorf("bring it about: %w", err)
		}
		return s.awaitRefusal(ctx, held.state, l.Within)
	}
}

func (s *session) awaitRefusal(ctx context.Context, state string, within time.Duration) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	again := time.NewTicker(max(within/300, 10*time.Millisecond))
	defer again.Stop()
	for {
		reply, err := s.present(ctx, s.target.Request, quote(state))
		if err != nil {
			return err
		}
		if reply.kind != s.completed {
			return s.checkRefusal(reply)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return errors.New("it was still accepted after " + within.String())
		case <-again.C:
		}
	}
}
