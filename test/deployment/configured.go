package deployment

import "testing"

// StartConfigured starts the sealer or the edge with a configuration of the test's
// own, for what Sealer and Edge have no field for, and waits until it is ready.
func StartConfigured(tb testing.TB, name string, configuration map[string]any) *Service {
	tb.Helper()
	return startConfigured(tb, name, configuration)
}
