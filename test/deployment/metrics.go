package deployment

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
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
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		tb.Fatal(err)
	}
	return families
}

// command is a command that ends with the test.
func command(tb testing.TB, path string, arguments ...string) *exec.Cmd {
	tb.Helper()
	return exec.CommandContext(tb.Context(), path, arguments...) //nolint:gosec // the test names the program
}
