// Package telemetry counts what the edge does. Every name and every label of the
// edge's metrics stands here; docs/metrics.md explains them to operators.
package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the edge's metrics.
const (
	RequestsName         = "countersign_edge_requests_total"
	DurationName         = "countersign_edge_request_duration_seconds"
	InFlightName         = "countersign_edge_requests_in_flight"
	QuestionsName        = "countersign_edge_questions_total"
	StateRefusalsName    = "countersign_edge_request_state_refusals_total"
	CursorRefusalsName   = "countersign_edge_cursor_refusals_total"
	DroppedAnswersName   = "countersign_edge_dropped_answers_total"
	HandlerUpName        = "countersign_edge_handler_up"
	CatalogEntriesName   = "countersign_edge_catalog_entries"
	CatalogProblemsName  = "countersign_edge_catalog_problems"
	DroppedProgressName  = "countersign_edge_dropped_progress_total"
	AskRefusalsName      = "countersign_edge_ask_refusals_total"
	RefusedMessagesName  = "countersign_edge_refused_messages_total"
	SubscriptionsName    = "countersign_edge_subscriptions"
	outcomeComplete      = "complete"
	outcomeInputRequired = "input_required"
	outcomeError         = "error"
	noReason             = "none"
	// OtherMethod stands for a method the edge does not serve: the label must not
	// hold what a client invents.
	OtherMethod = "other"
)

// Metrics counts what the edge does.
type Metrics struct {
	requests        *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	inFlight        prometheus.Gauge
	subscriptions   prometheus.Gauge
	questions       *prometheus.CounterVec
	stateRefusals   *prometheus.CounterVec
	cursorRefusals  *prometheus.CounterVec
	droppedAnswers  *prometheus.CounterVec
	droppedProgress prometheus.Counter
	askRefusals     *prometheus.CounterVec
	refusedMessages *prometheus.CounterVec
	handlerUp       *prometheus.GaugeVec
	catalogEntries  *prometheus.GaugeVec
	catalogProblems prometheus.Gauge
}

// New registers the metrics.
func New(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: RequestsName, Help: "Requests by method, outcome (complete, input_required, error) and reason of the error.",
		}, []string{"method", "outcome", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: DurationName, Help: "Seconds from a decoded request to its reply.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: InFlightName, Help: "Requests being served.",
		}),
		subscriptions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: SubscriptionsName, Help: "Open streams of subscriptions/listen.",
		}),
		questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: QuestionsName, Help: "Questions put to clients, by kind.",
		}, []string{"kind"}),
		stateRefusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: StateRefusalsName, Help: "Request states refused, by the sealer's reason.",
		}, []string{"reason"}),
		cursorRefusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: CursorRefusalsName, Help: "Cursors of lists refused, by the sealer's reason.",
		}, []string{"reason"}),
		droppedAnswers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: DroppedAnswersName, Help: "Answers not used, by why: the question changed, or it was never shown.",
		}, []string{"reason"}),
		droppedProgress: prometheus.NewCounter(prometheus.CounterOpts{
			Name: DroppedProgressName, Help: "Progress reports of handlers that did not grow and were not passed on.",
		}),
		askRefusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: AskRefusalsName, Help: "Asks of handlers that could not be put to the client, by reason.",
		}, []string{"reason"}),
		refusedMessages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: RefusedMessagesName, Help: "Messages refused before they were read as a request, by reason.",
		}, []string{"reason"}),
		handlerUp: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: HandlerUpName, Help: "Whether a handler service answers (1) or not (0).",
		}, []string{"handler"}),
		catalogEntries: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: CatalogEntriesName, Help: "Entries of the catalog, by kind.",
		}, []string{"kind"}),
		catalogProblems: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: CatalogProblemsName, Help: "Entries that handlers offer and that were left out of the catalog.",
		}),
	}
	registerer.MustRegister(m.requests, m.duration, m.inFlight, m.subscriptions, m.questions, m.stateRefusals, m.cursorRefusals, m.droppedAnswers,
		m.droppedProgress, m.askRefusals, m.refusedMessages, m.handlerUp, m.catalogEntries, m.catalogProblems)
	return m
}

// Started counts a request that begins; the function it returns counts its end.
func (m *Metrics) Started() (ended func()) {
	m.inFlight.Inc()
	return m.inFlight.Dec
}

// Subscribed counts a subscription that begins; the function it returns counts its
// end.
func (m *Metrics) Subscribed() (ended func()) {
	m.subscriptions.Inc()
	return m.subscriptions.Dec
}

// Completed counts a request that was served.
func (m *Metrics) Completed(method string, took time.Duration) {
	m.ended(method, outcomeComplete, noReason, took)
}

// InputRequired counts a request whose reply asks for input.
func (m *Metrics) InputRequired(method string, took time.Duration) {
	m.ended(method, outcomeInputRequired, noReason, took)
}

// Failed counts a request that was not served, by a reason of package failure.
func (m *Metrics) Failed(method, reason string, took time.Duration) {
	m.ended(method, outcomeError, reason, took)
}

func (m *Metrics) ended(method, outcome, reason string, took time.Duration) {
	m.requests.WithLabelValues(method, outcome, reason).Inc()
	m.duration.WithLabelValues(method).Observe(took.Seconds())
}

// Asked counts a question put to a client.
func (m *Metrics) Asked(kind string) { m.questions.WithLabelValues(kind).Inc() }

// AskRefused counts an ask that could not be put.
func (m *Metrics) AskRefused(reason string) { m.askRefusals.WithLabelValues(reason).Inc() }

// MessageRefused counts a message that was refused before it was read as a
// request, by a reason of package failure.
func (m *Metrics) MessageRefused(reason string) { m.refusedMessages.WithLabelValues(reason).Inc() }

// StateRefused counts a refused request state.
func (m *Metrics) StateRefused(reason string) { m.stateRefusals.WithLabelValues(reason).Inc() }

// CursorRefused counts a refused cursor.
func (m *Metrics) CursorRefused(reason string) { m.cursorRefusals.WithLabelValues(reason).Inc() }

// Reasons for which an answer is not used.
const (
	QuestionChanged  = "question_changed"
	QuestionNotShown = "question_not_shown"
	// QuestionNotAskedAgain: the handler, run again, asked something else.
	QuestionNotAskedAgain = "question_not_asked_again"
)

// AnswerDropped counts an answer that is not used.
func (m *Metrics) AnswerDropped(reason string) { m.droppedAnswers.WithLabelValues(reason).Inc() }

// ProgressDropped counts a progress report that did not grow.
func (m *Metrics) ProgressDropped() { m.droppedProgress.Inc() }

// HandlerUp says whether a handler answers.
func (m *Metrics) HandlerUp(handler string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.handlerUp.WithLabelValues(handler).Set(value)
}

// Catalog says how many entries the catalog has, by kind, and how many were left
// out.
func (m *Metrics) Catalog(entries map[string]int, problems int) {
	for kind, count := range entries {
		m.catalogEntries.WithLabelValues(kind).Set(float64(count))
	}
	m.catalogProblems.Set(float64(problems))
}
