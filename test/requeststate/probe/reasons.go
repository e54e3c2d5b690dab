package probe

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Countersign's counters; both have the label `reason`.
const (
	refusalsCounter = "countersign_edge_request_state_refusals_total"
	answersCounter  = "countersign_edge_dropped_answers_total"
)

// counts reads a counter of the target by reason; it is empty where the target's
// metrics are not known.
func (s *session) counts(ctx context.Context, counter string) (map[string]int, error) {
	counts := map[string]int{}
	if s.target.Metrics == "" {
		return counts, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.target.Metrics, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the metrics at %q: %w", s.target.Metrics, err)
	}
	for _, metric := range families[counter].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "reason" {
				counts[label.GetValue()] += int(metric.GetCounter().GetValue())
			}
		}
	}
	return counts, nil
}

// difference is what was counted between two readings.
func difference(before, after map[string]int) map[string]int {
	counted := map[string]int{}
	for reason, count := range after {
		if count > before[reason] {
			counted[reason] = count - before[reason]
		}
	}
	return counted
}

// checkReasons checks that every refusal was counted once, under a reason that the
// case allows.
func checkReasons(counted map[string]int, allowed []string, refusals int) error {
	total := 0
	for _, reason := range slices.Sorted(maps.Keys(counted)) {
		if !slices.Contains(allowed, reason) {
			return fmt.Errorf("the server counted the reason %q; this case has %s", reason, strings.Join(allowed, ", "))
		}
		total += counted[reason]
	}
	if total != refusals {
		return fmt.Errorf("the server counted %d refusals, and gave %d", total, refusals)
	}
	return nil
}
