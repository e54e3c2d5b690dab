package server

import (
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sealv1 "github.com/countersign-mcp/countersign/proto/gen/go/countersign/seal/v1"
	"github.com/countersign-mcp/countersign/services/sealer/keyring"
)

// The names of the metrics. Their labels never vary.
const (
	// MetricSealTotal counts calls of Seal by purpose and result.
	MetricSealTotal = "countersign_seal_total"
	// MetricOpenTotal counts calls of Open by purpose, result and reason.
	MetricOpenTotal = "countersign_open_total"
	// MetricSealSeconds is how long Seal took, by purpose.
	MetricSealSeconds = "countersign_seal_duration_seconds"
	// MetricOpenSeconds is how long Open took, by purpose.
	MetricOpenSeconds = "countersign_open_duration_seconds"
	// MetricKeyringAge is how long ago the keys were read with success.
	MetricKeyringAge = "countersign_keyring_age_seconds"
	// MetricKeyringInfo is 1, with the ring's fingerprint as a label: replicas that
	// hold the same keys show the same.
	MetricKeyringInfo = "countersign_keyring_info"
	// MetricKeyringVersions is the number of versions by state.
	MetricKeyringVersions = "countersign_keyring_versions"
	// MetricKeyAge is the age of the oldest version by state.
	MetricKeyAge = "countersign_key_age_seconds"
	// MetricRefreshTotal counts how many times the source was asked.
	MetricRefreshTotal = "countersign_keyring_refreshes_total"
	// MetricRefreshErrors counts how many of these failed.
	MetricRefreshErrors = "countersign_keyring_refresh_errors_total"
)

// The values of the label `result`.
const (
	// ResultOK is a token that was made or opened.
	ResultOK = "ok"
	// ResultRefused is a token that was refused or, in Seal, one that cannot be:
	// its chain is over or it would be too long.
	ResultRefused = "refused"
	// ResultUnavailable is a call made while there were no usable keys.
	ResultUnavailable = "unavailable"
	// ResultInvalid is a call that broke the contract.
	ResultInvalid = "invalid"
	// ResultCanceled is a call whose caller had gone.
	ResultCanceled = "canceled"
	// ResultFailed is a defect or a broken machine.
	ResultFailed = "failed"
)

// ReasonNone is the value of the label `reason` of a token that was not refused.
// Other values are the names in seal.proto, in lower case, without their prefix.
const ReasonNone = "none"

// durations are from a token that is all but empty to one that waits for its key.
var durations = []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 5e-3, 25e-3, 100e-3, 1, 10}

type metrics struct {
	sealTotal, openTotal     *prometheus.CounterVec
	sealSeconds, openSeconds *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer, keys *keyring.Keyring, clock func() time.Time) (*metrics, error) {
	made := &metrics{
		sealTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: MetricSealTotal, Help: "Calls of Seal.",
		}, []string{"purpose", "result"}),
		openTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: MetricOpenTotal, Help: "Calls of Open.",
		}, []string{"purpose", "result", "reason"}),
		sealSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: MetricSealSeconds, Help: "How long Seal took.", Buckets: durations,
		}, []string{"purpose"}),
		openSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: MetricOpenSeconds, Help: "How long Open took.", Buckets: durations,
		}, []string{"purpose"}),
	}

	var failures error
	for _, collector := range []prometheus.Collector{
		made.sealTotal, made.openTotal, made.sealSeconds, made.openSeconds, &keyringCollector{keys: keys, clock: clock},
	} {
		failures = errors.Join(failures, registerer.Register(collector))
	}

	return made, failures
}

func (m *metrics) sealed(purpose sealv1.Purpose, result string, took time.Duration) {
	m.sealTotal.WithLabelValues(purposeName(purpose), result).Inc()
	m.sealSeconds.WithLabelValues(purposeName(purpose)).Observe(took.Seconds())
}

func (m *metrics) opened(purpose sealv1.Purpose, result string, reason sealv1.RefusalReason, took time.Duration) {
	m.openTotal.WithLabelValues(purposeName(purpose), result, reasonName(reason)).Inc()
	m.openSeconds.WithLabelValues(purposeName(purpose)).Observe(took.Seconds())
}

// resultOf returns the result of a call by what the caller is told.
func resultOf(err error) string {
	switch status.Code(err) {
	case codes.OK:
		return ResultOK
	case codes.InvalidArgument:
		return ResultInvalid
	case codes.FailedPrecondition, codes.ResourceExhausted:
		return ResultRefused
	case codes.Unavailable:
		return ResultUnavailable
	case codes.Canceled, codes.DeadlineExceeded:
		return ResultCanceled
	default:
		return ResultFailed
	}
}

func resultOfOpen(reason sealv1.RefusalReason, err error) string {
	if err == nil && reason != accepted {
		return ResultRefused
	}

	return resultOf(err)
}

// purposeName returns a label: whatever a caller sends, there are four.
func purposeName(purpose sealv1.Purpose) string {
	switch purpose {
	case sealv1.Purpose_PURPOSE_REQUEST_STATE:
		return "request_state"
	case sealv1.Purpose_PURPOSE_ENCRYPTED_REQUEST_STATE:
		return "encrypted_request_state"
	case sealv1.Purpose_PURPOSE_CURSOR:
		return "cursor"
	default:
		return "unknown"
	}
}

func reasonName(reason sealv1.RefusalReason) string {
	if reason == accepted {
		return ReasonNone
	}

	return strings.ToLower(strings.TrimPrefix(reason.String(), "REFUSAL_REASON_"))
}

// keyringCollector reads the keyring when metrics are asked for.
type keyringCollector struct {
	keys  *keyring.Keyring
	clock func() time.Time
}

var (
	ageDescription      = prometheus.NewDesc(MetricKeyringAge, "How long ago the keys were read with success.", nil, nil)
	infoDescription     = prometheus.NewDesc(MetricKeyringInfo, "The fingerprint of the keys.", []string{"fingerprint"}, nil)
	versionsDescription = prometheus.NewDesc(MetricKeyringVersions, "Versions of the key.", []string{"state"}, nil)
	keyAgeDescription   = prometheus.NewDesc(MetricKeyAge, "Age of the oldest version in a state.", []string{"state"}, nil)
	refreshDescription  = prometheus.NewDesc(MetricRefreshTotal, "Times the source of keys was asked.", nil, nil)
	failureDescription  = prometheus.NewDesc(MetricRefreshErrors, "Times the source of keys could not be read.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *keyringCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{
		ageDescription, infoDescription, versionsDescription, keyAgeDescription, refreshDescription, failureDescription,
	} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (c *keyringCollector) Collect(collected chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		collected <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	current := c.keys.Status(c.clock())

	collected <- prometheus.MustNewConstMetric(refreshDescription, prometheus.CounterValue, float64(current.Refreshes))

	collected <- prometheus.MustNewConstMetric(failureDescription, prometheus.CounterValue, float64(current.Failures))

	if current.Fingerprint == "" {
		return
	}

	gauge(ageDescription, current.Age.Seconds())
	gauge(infoDescription, 1, current.Fingerprint)

	count, oldest := make(map[keyring.State]int), make(map[keyring.State]time.Duration)
	for _, version := range current.Versions {
		count[version.State]++
		oldest[version.State] = max(oldest[version.State], version.Age)
	}

	for _, state := range keyring.States() {
		gauge(versionsDescription, float64(count[state]), string(state))

		if count[state] > 0 {
			gauge(keyAgeDescription, oldest[state].Seconds(), string(state))
		}
	}
}
