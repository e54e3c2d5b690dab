package handlertest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	handlerv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/handler/v1"
)

const invokeMethod = handlerv1.HandlerService_Invoke_FullMethodName

// semantics is how asks are answered.
type semantics int

const (
	await  semantics = iota // on the stream
	replay                  // by another attempt
)

// chain is all the attempts of one request.
type chain struct {
	client    handlerv1.HandlerServiceClient
	recorder  *recorder
	semantics semantics
	answers   Answerer
	begin     *handlerv1.Begin
	outcome   *Outcome

	held  map[string]*handlerv1.Answer // what the client has answered, by key
	asked []*handlerv1.Question        // what the attempts so far asked, in order
	at    int                          // how many of them this attempt has asked
}

// attempt runs the function once and reports whether the request is finished.
func (c *chain) attempt(ctx context.Context) (finished bool, err error) {
	streamContext, cut := context.WithCancel(ctx)
	defer cut()
	c.outcome.Attempts++
	c.outcome.Progress, c.outcome.Logs, c.at = nil, nil, 0
	c.begin.Attempt++
	c.begin.InvocationId = fmt.Sprintf("attempt-%d", c.begin.GetAttempt())
	c.recorder.begin(c.outcome.Attempts)
	stream, err := c.client.Invoke(streamContext)
	if err != nil {
		return false, fmt.Errorf("open a stream: %w", err)
	}
	begin := &handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_Begin{Begin: c.begin}}
	if err := stream.Send(begin); err != nil {
		return false, fmt.Errorf("begin an attempt: %w", err)
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			return false, fmt.Errorf("the stream ended without a result: %w", err)
		}
		switch message := response.GetMessage().(type) {
		case *handlerv1.InvokeResponse_Progress:
			c.outcome.Progress = append(c.outcome.Progress, message.Progress)
		case *handlerv1.InvokeResponse_Log:
			c.outcome.Logs = append(c.outcome.Logs, message.Log)
		case *handlerv1.InvokeResponse_Ask:
			reply, err := c.ask(message.Ask)
			if err != nil || reply == nil {
				cut()
				return false, errors.Join(err, c.unwound(ctx))
			}
			if err := stream.Send(reply); err != nil {
				return false, fmt.Errorf("send answers: %w", err)
			}
		case *handlerv1.InvokeResponse_Finish:
			c.outcome.Finish = message.Finish
			return true, c.complete(ctx)
		}
	}
}

// ask decides what becomes of an ask: a reply, or none, and then the attempt is over.
func (c *chain) ask(ask *handlerv1.Ask) (*handlerv1.InvokeRequest, error) {
	var answers []*handlerv1.Answer
	var shown []*handlerv1.Question
	for _, question := range ask.GetQuestions() {
		if err := c.compare(question); err != nil {
			return nil, err
		}
		if held, found := c.held[question.GetKey()]; found {
			answers = append(answers, held)
			continue
		}
		answer, err := c.answer(question)
		if err != nil {
			return nil, err
		}
		if answer.refusal != nil {
			return &handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_AskRefused{AskRefused: answer.refusal}}, nil
		}
		answers = append(answers, answer.message)
		shown = append(shown, question)
	}
	if len(shown) > 0 {
		c.outcome.Rounds = append(c.outcome.Rounds, shown)
	}
	for _, answer := range answers {
		c.held[answer.GetKey()] = answer
	}
	if c.semantics == replay && len(shown) > 0 {
		c.begin.State = maps.Clone(ask.GetState())
		return nil, nil
	}
	return &handlerv1.InvokeRequest{Message: &handlerv1.InvokeRequest_Answers{
		Answers: &handlerv1.Answers{Answers: answers},
	}}, nil
}

// answer has the client answer a question.
func (c *chain) answer(question *handlerv1.Question) (Answer, error) {
	if capability := missingCapability(question, c.begin.GetClientCapabilities()); capability != "" {
		return Answer{}, fmt.Errorf("the question %q needs the capability %s, which the client did not declare",
			question.GetKey(), capability)
	}
	if c.answers == nil {
		return Answer{}, fmt.Errorf("no answer to the question %q is given", question.GetKey())
	}
	answer, err := c.answers.Answer(proto.CloneOf(question))
	if err != nil || answer.refusal != nil {
		return answer, err
	}
	if err := answer.check(question); err != nil {
		return Answer{}, err
	}
	message := proto.CloneOf(answer.message)
	message.Key = question.GetKey()
	return Answer{message: message}, nil
}

// compare finds a question that is not the one that an earlier attempt asked here.
func (c *chain) compare(question *handlerv1.Question) error {
	position := c.at
	c.at++
	if position == len(c.asked) {
		c.asked = append(c.asked, proto.CloneOf(question))
		return nil
	}
	if !proto.Equal(c.asked[position], question) {
		return fmt.Errorf("attempt %d asks another question than the attempt before it:\nearlier: %s\nnow:     %s",
			c.outcome.Attempts, show(c.asked[position]), show(question))
	}
	return nil
}

// show is a question in one line.
func show(question *handlerv1.Question) string {
	switch kind := question.GetKind().(type) {
	case *handlerv1.Question_ElicitForm:
		return fmt.Sprintf("%q, the form %q of the schema %s",
			question.GetKey(), kind.ElicitForm.GetMessage(), kind.ElicitForm.GetRequestedSchema())
	case *handlerv1.Question_ElicitUrl:
		return fmt.Sprintf("%q, the URL %q with %q", question.GetKey(), kind.ElicitUrl.GetUrl(), kind.ElicitUrl.GetMessage())
	case *handlerv1.Question_Sample:
		return fmt.Sprintf("%q, sampling with %s", question.GetKey(), kind.Sample.GetParams())
	default:
		return fmt.Sprintf("%q, the roots", question.GetKey())
	}
}

// complete checks the last attempt.
func (c *chain) complete(ctx context.Context) error {
	if _, err := c.streamEnd(ctx); err != nil {
		return err
	}
	if c.at < len(c.asked) {
		return fmt.Errorf("attempt %d finishes without asking %q, which the attempt before asked",
			c.outcome.Attempts, c.asked[c.at].GetKey())
	}
	return nil
}

// unwound checks that the function returned when its attempt had ended.
func (c *chain) unwound(ctx context.Context) error {
	end, err := c.streamEnd(ctx)
	if err != nil {
		return err
	}
	if status.Code(end) == codes.FailedPrecondition {
		return fmt.Errorf("the function returned a result on attempt %d although an ask had ended it: "+
			"it must return the error of the ask", c.outcome.Attempts)
	}
	return nil
}

// streamEnd waits for the function to return.
func (c *chain) streamEnd(ctx context.Context) (end, err error) {
	select {
	case end := <-c.recorder.ended:
		return end, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the function does not return: %w", ctx.Err())
	}
}

// missingCapability names what a question needs and the client lacks.
func missingCapability(question *handlerv1.Question, declared *handlerv1.ClientCapabilities) string {
	switch question.GetKind().(type) {
	case *handlerv1.Question_ElicitForm:
		if !declared.GetElicitationForm() {
			return "elicitation.form"
		}
	case *handlerv1.Question_ElicitUrl:
		if !declared.GetElicitationUrl() {
			return "elicitation.url"
		}
	case *handlerv1.Question_Sample:
		if !declared.GetSampling() {
			return "sampling"
		}
	case *handlerv1.Question_ListRoots:
		if !declared.GetRoots() {
			return "roots"
		}
	}
	return ""
}
