package deployment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the metric families of a service by name.
type Metrics map[string]*dto.MetricFamily

// Sum adds up the values of a counter or gauge over all series that have the given
// labels, written as `name=value`.
func (m Metrics) Sum(name string, labels ...string) float64 {
	var sum float64
	for _, metric := range m[name].GetMetric() {
		if hasLabels(metric, labels) {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum
}

func hasLabels(metric *dto.Metric, labels []string) bool {
	has := make(map[string]bool, len(metric.GetLabel()))
	for _, label := range metric.GetLabel() {
		has[label.GetName()+"="+label.GetValue()] = true
	}
	for _, label := range labels {
		if !has[label] {
			return false
		}
	}
	return true
}

// readMetrics reads the metrics that a URL serves.
func readMetrics(tb testing.TB, url string) Metrics {
	tb.Helper()
	text, err := get(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return families
}

// report is what a readiness endpoint says.
type report struct {
	Checks map[string]string `json:"checks"`
}

// readReport reads the report that a URL serves, whatever its status.
func readReport(ctx context.Context, url string) (report, error) {
	text, err := get(ctx, url)
	if err != nil {
		return report{}, err
	}
	var read report
	if err := json.Unmarshal(text, &read); err != nil {
		return report{}, fmt.Errorf("read readiness report: %w", err)
	}
	return read, nil
}

// get returns what a URL serves.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask %q: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %q: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", url, err)
	}
	return text, nil
}
